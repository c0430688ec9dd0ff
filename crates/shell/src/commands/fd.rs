//! File search by name: fd and locate.

use super::{
    find::{here, names_below},
    options::{ParsedArguments, parse},
    searching::places,
    spec::{CommandSpec, KnownCommand, OperandKind},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect, StartedProgram},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Spec(&FD), KnownCommand::Spec(&LOCATE)];

static FD: CommandSpec = CommandSpec::reads(
    "fd fdfind",
    "-HIusigFalLp0h1qV -d: -E: -t: -e: -S: -o: -c: -j: -C: -x: -X: --hidden --no-hidden --no-ignore --ignore \
     --no-ignore-vcs --ignore-vcs --no-ignore-parent --ignore-parent --no-global-ignore-file --no-require-git \
     --require-git --unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings --and= \
     --absolute-path --relative-path --list-details --follow --no-follow --full-path --print0 --max-depth= \
     --maxdepth= --min-depth= --exact-depth= --exclude= --prune --type= --extension= --size= \
     --changed-within= --change-newer-than= --newer= --changed-after= --changed-before= --change-older-than= \
     --older= --owner= --format= --batch-size= --ignore-file< --color= --hyperlink=? --threads= \
     --max-results= --max-buffer-time= --quiet --has-results --show-errors --base-directory= \
     --path-separator= --search-path= --strip-cwd-prefix=? --one-file-system --mount --xdev \
     --gen-completions=? --help --version --exec= --exec-batch=",
)
.strict()
.with_evaluator(fd);

static LOCATE: CommandSpec = CommandSpec::prints(
    "locate plocate mlocate slocate",
    "-AbceEhHiLmNPpqrsSVwx0 -d: -l: -n: --all --basename --count --database= --existing \
     --non-existing --follow --nofollow --ignore-case --ignore-spaces --limit= --null --literal --print --quiet \
     --regexp= --regex --statistics --transliterate --wholename --whole-name --mmap --stdio --max-database-age= \
     --help --version",
);

/// `-x command …` extends to the end of the line, or to a `;`.
fn fd(parsed: &ParsedArguments<'_>) -> CommandFinding {
    const EXECUTE: [&str; 4] = ["-x", "-X", "--exec", "--exec-batch"];
    let given = parsed
        .options
        .iter()
        .find(|given| EXECUTE.contains(&given.name));
    let Some(given) = given else {
        return fd_places(parsed);
    };
    let is_execute = |arg: &Arg| {
        let text = arg.text().unwrap_or_default();
        arg.span == given.span && (text.starts_with("--exec") || text.contains(['x', 'X']))
    };
    let start = parsed.argv.iter().skip(1).position(is_execute);
    let start = start.map_or(parsed.argv.len(), |start| start + 1);
    let mut finding = fd_places(&parse(parsed.spec, &parsed.argv[..start])).requiring_exact_rule();
    let attached = given
        .value
        .as_ref()
        .filter(|value| value.span == given.span)
        .filter(|value| parsed.argv.get(start + 1) != Some(value));
    let rest = parsed.argv.get(start + 1..).unwrap_or_default();
    let end = rest.iter().position(|arg| arg.is(";"));
    let words = &rest[..end.unwrap_or(rest.len())];
    let mut argv: Vec<Arg> = attached.into_iter().chain(words).cloned().collect();
    let all = matches!(given.name, "-X" | "--exec-batch");
    let mut placed = false;
    for arg in &mut argv {
        placed |= fill(arg, all);
    }
    if !placed {
        argv.push(Arg {
            span: given.span,
            value: ArgValue::Unknown {
                prefix: String::new(),
                one: !all,
            },
        });
    }
    let uncertain = words.iter().find(|arg| arg.text().is_none());
    let doubt = match (end, uncertain) {
        (_, Some(arg)) => Some(("the result of an expansion may end the command", arg.span)),
        (Some(_), None) if words.len() + 1 < rest.len() => {
            Some(("words follow the command that it starts", given.span))
        }
        _ => None,
    };
    if let Some((why, span)) = doubt {
        let mut unknown = CommandFinding::unknown(why)
            .with_span(span)
            .requiring_exact_rule();
        unknown.effects = finding.effects;
        finding = unknown;
    }
    // The alternatives of one brace expansion share a span, so the span cannot distinguish them.
    let braced = |arg: &Arg| matches!(arg.value, ArgValue::Braced(_));
    if parsed.argv.get(start).is_some_and(braced) {
        let why = "a brace expansion makes the command that it starts";
        finding.effects.push(Effect::Opaque(why.into()));
    }
    finding.starting(StartedProgram::Command { argv, more: true })
}

fn fd_places(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = parsed.finding(OperandKind::None);
    let about = ["-h", "--help", "-V", "--version", "--gen-completions"];
    if about.iter().any(|name| parsed.has(name)) {
        return finding;
    }
    let other = ["-C", "--base-directory", "--search-path"];
    let given = parsed
        .options
        .iter()
        .filter(|given| other.contains(&given.name))
        .filter_map(|given| given.value.as_ref());
    let mut places: Vec<&Arg> = given.chain(places(parsed, &parsed.operands, &[])).collect();
    let here = here(parsed.argv);
    if places.is_empty() {
        places.push(&here);
    }
    finding.effects.extend(places.into_iter().map(names_below));
    finding
}

/// Replaces a placeholder with the unknown name of a found file. Returns whether there was a
/// placeholder.
fn fill(arg: &mut Arg, all: bool) -> bool {
    const MARKS: [&str; 5] = ["{}", "{/}", "{//}", "{.}", "{/.}"];
    let Some(text) = arg.text() else { return false };
    let Some(at) = MARKS.iter().filter_map(|mark| text.find(mark)).min() else {
        return false;
    };
    arg.value = ArgValue::Unknown {
        prefix: text[..at].to_owned(),
        one: !(all && MARKS.contains(&text)),
    };
    true
}

#[cfg(test)]
mod tests {
    use crate::arg::ArgValue;
    use crate::commands::testing::{assert_not_read_only, assert_read_only, effects, find};
    use crate::effect::{RuleCoverage, StartedProgram};

    #[test]
    fn looking_for_names_is_harmless() {
        assert_read_only(&[
            "fd",
            "fd foo src",
            "fd -e rs -t f --hidden",
            "fd -H -I --max-depth 3 '^x' .",
            "fd -l foo",
            "fd -tx",
            "fdfind -0 foo",
            "fd -e rs -x wc -l",
            "fd -e rs -X wc -l {}",
            "fd foo --exec cat {} ;",
            "locate -i foo",
            "plocate -c $x",
        ]);
    }

    #[test]
    fn what_cannot_be_read_is_not() {
        assert_not_read_only(&[
            "fd $x",
            "fd foo *",
            "fd --odd",
            "fd -x $command",
            "fd -x cat ; -x rm",
            "fd --odd -x cat",
            "locate --odd x",
        ]);
    }

    #[test]
    fn effects_name_where_it_looks() {
        let cases: [(&str, &[&str]); 5] = [
            ("fd", &["names below ."]),
            ("fd foo a b", &["names below a", "names below b"]),
            ("fd --search-path a foo", &["names below a"]),
            ("fd foo a -x rm b", &["names below a"]),
            ("fd --version", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }

    #[test]
    fn a_command_that_fd_starts_is_looked_at_on_its_own() {
        let cases: [(&str, &[&str]); 7] = [
            ("fd -x rm -f", &["rm", "-f", "…"]),
            ("fd foo -X rm {}", &["rm", "…s"]),
            ("fd -Hx rm {/}", &["rm", "…"]),
            ("fd -xrm a{.}.b", &["rm", "a…"]),
            ("fd --exec=rm ;", &["rm", "…"]),
            ("fd -e -x -x rm", &["rm", "…"]),
            ("fd --exec-batch rm ; foo", &["rm", "…s"]),
        ];
        for (line, expected) in cases {
            let finding = find(line);
            assert_eq!(finding.coverage, RuleCoverage::Exact, "{line}");
            let [StartedProgram::Command { argv, more: true }] = finding.starts.as_slice() else {
                panic!("{line}: {:?}", finding.starts);
            };
            let words: Vec<String> = argv
                .iter()
                .map(|arg| match &arg.value {
                    ArgValue::Unknown { prefix, one: true } => format!("{prefix}…"),
                    ArgValue::Unknown { prefix, one: false } => format!("{prefix}…s"),
                    _ => arg.text().unwrap_or("?").to_owned(),
                })
                .collect();
            assert_eq!(words, expected, "{line}");
        }
    }
}
