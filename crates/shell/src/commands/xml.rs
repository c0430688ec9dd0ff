//! XML tools.

use super::{
    options::{ParsedArguments, content},
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, runs, writes},
};
use crate::effect::{CommandFinding, Effect};

pub(super) const ENTRIES: &[KnownCommand] =
    &[KnownCommand::Spec(&XMLLINT), KnownCommand::Spec(&XSLTPROC)];

static XMLLINT: CommandSpec = CommandSpec::reads(
    "xmllint",
    "--version -version --debug -debug --debugent -debugent --copy -copy --recover -recover --huge -huge \
     --noenc -noenc --noout -noout --load-trace -load-trace --nonet -nonet --nocompact -nocompact --htmlout \
     -htmlout --nowrap -nowrap --quiet -quiet --timing -timing --html -html --xmlout -xmlout --nodefdtd \
     -nodefdtd --push -push --memory -memory --nowarning -nowarning --noblanks -noblanks --nocdata -nocdata \
     --format -format --dropdtd -dropdtd --c14n -c14n --c14n11 -c14n11 --exc-c14n -exc-c14n --nsclean \
     -nsclean --nocatalogs -nocatalogs --stream -stream --walker -walker --sax1 -sax1 --sax -sax \
     --oldxml10 -oldxml10 --valid -valid --postvalid -postvalid --encode= -encode= --pretty= -pretty= --xpath= \
     -xpath= --pattern= -pattern= --maxmem= -maxmem= --dtdvalid< -dtdvalid< --relaxng< -relaxng< --schema< \
     -schema< --schematron< -schematron<",
)
.refusing(&[
    writes("--output> -output> -o>", "writes its result into a file"),
    runs("--shell -shell", "takes commands"),
    runs(
        "--noent -noent --xinclude -xinclude --noxincludenode -noxincludenode --loaddtd -loaddtd --dtdattr \
         -dtdattr",
        "reads what the document names",
    ),
])
.style(OptionStyle::Words)
.strict()
.with_evaluator(xmllint);

/// Analyzes `xmllint`. A document may name its DTD, and a schema other schemas, also by URL.
fn xmllint(parsed: &ParsedArguments<'_>) -> CommandFinding {
    const VALIDATE: &str = "valid postvalid dtdvalid relaxng schema schematron";
    let offline = parsed.has("--nonet") || parsed.has("-nonet");
    let validates = parsed.options.iter().find(|given| {
        let name = given.name.trim_start_matches('-');
        VALIDATE.split(' ').any(|word| word == name)
    });
    let hosts: Vec<Option<String>> = parsed
        .operands
        .iter()
        .copied()
        .chain(
            parsed
                .options
                .iter()
                .filter_map(|given| given.value.as_ref()),
        )
        .filter_map(|arg| arg.text()?.split_once("://"))
        .filter(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .map(|(_, rest)| host(rest))
        .collect();
    let doubt = match validates {
        _ if !hosts.is_empty() => Some(CommandFinding::unknown("it contacts a host")),
        Some(given) if !offline => {
            let why = format!("{} may fetch from a host without --nonet", given.name);
            Some(CommandFinding::unknown(why).with_span(given.span))
        }
        _ => None,
    };
    let mut finding = match (parsed.verdict(), doubt) {
        (None, Some(doubt)) => parsed.with_effects(doubt, OperandKind::None),
        _ => parsed.finding(OperandKind::None),
    };
    let files = parsed.operands.iter().filter(|file| {
        let text = file.text().unwrap_or_default();
        text != "-" && !text.contains("://")
    });
    finding.effects.extend(files.map(|file| content(file)));
    finding.effects.extend(hosts.into_iter().map(Effect::Net));
    finding
}

/// Returns the host of a URL without its scheme.
fn host(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    (!host.is_empty()).then(|| host.to_owned())
}

static XSLTPROC: CommandSpec = CommandSpec::unsure(
    "xsltproc",
    "a stylesheet can write files and fetch from hosts",
)
.refusing(&[writes("-o> --output>", "writes its result into a file")])
.style(OptionStyle::Words);

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, effects, verdict};

    #[test]
    fn reading_xml_is_harmless() {
        assert_read_only(&[
            "xmllint f.xml",
            "xmllint --noout f.xml",
            "xmllint -noout f.xml g.xml",
            "xmllint --format -",
            "xmllint --xpath '//a[@b=\"c\"]/text()' f.xml",
            "xmllint --html --xpath //title/text() f.html",
            "xmllint --nonet --noout --schema f.xsd f.xml",
            "xmllint --nonet --valid --noout f.xml",
            "xmllint --version",
            "xmllint --xpath 'string(//a:b)' f.xml",
        ]);
    }

    #[test]
    fn writing_and_fetching_are_not() {
        assert_not_read_only(&[
            "xmllint --output g f",
            "xmllint -o g f",
            "xmllint f --output g",
            "xmllint --shell f",
            "xmllint --noent f",
            "xmllint --xinclude f",
            "xmllint --valid f",
            "xmllint --schema f.xsd f.xml",
            "xmllint http://example.com/f.xml",
            "xmllint --nonet --schema http://example.com/x f",
            "xmllint --odd f",
            "xmllint $x",
            "xmllint *.xml",
            "xsltproc a.xsl f.xml",
        ]);
        assert_eq!(
            verdict("xmllint --schema x f"),
            "unknown: --schema may fetch from a host without --nonet"
        );
    }

    #[test]
    fn effects_name_files_and_hosts() {
        let cases: [(&str, &[&str]); 5] = [
            ("xmllint f -", &["read f"]),
            ("xmllint --nonet --schema x f", &["read x", "read f"]),
            ("xmllint -o g f", &["OptionWrite g", "read f"]),
            ("xmllint http://u@h:80/f", &["net h"]),
            (
                "xsltproc -o out a b",
                &["OperandWrite out", "read a", "read b"],
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }
}
