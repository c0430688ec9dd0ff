//! wget and other programs that download.

use super::{download_name, host_of, inside, refused, write};
use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, runs},
    },
    effect::{CommandFinding, Effect, WriteKind},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&WGET),
    KnownCommand::Spec(&DOWNLOADERS),
    KnownCommand::Spec(&BROWSERS),
];

static WGET: CommandSpec = CommandSpec::prints(
    "wget wget2",
    "-VhbdqvFcNSxErkKmpHLnd -o> -a> -i< -B: -t: -O: -T: -w: -Q: -P: -U: -l: -A: -R: -D: -I: -X: \
     --version --help --background --debug --quiet --verbose --no-verbose --force-html --no-config \
     --retry-connrefused --no-clobber --no-netrc --continue --show-progress --timestamping \
     --no-if-modified-since --no-use-server-timestamps --server-response --spider --random-wait \
     --no-proxy --no-dns-cache --ignore-case --ask-password --no-iri --unlink --xattr \
     --force-directories --no-directories --no-host-directories --protocol-directories --no-cache \
     --adjust-extension --ignore-length --save-headers --no-http-keep-alive --no-cookies \
     --keep-session-cookies --content-disposition --content-on-error --auth-no-challenge --https-only \
     --no-check-certificate --no-hsts --recursive --delete-after --convert-links --backup-converted \
     --mirror --page-requisites --strict-comments --follow-ftp --span-hosts --relative --no-parent \
     --trust-server-names --output-file> --append-output> --report-speed= --input-file< --base= \
     --rejected-log> --tries= --retry-on-http-error= --output-document= --start-pos= --progress= \
     --timeout= --dns-timeout= --connect-timeout= --read-timeout= --wait= --waitretry= --quota= \
     --bind-address= --limit-rate= --restrict-file-names= --prefer-family= --user= --password= \
     --local-encoding= --remote-encoding= --directory-prefix= --cut-dirs= --http-user= \
     --http-password= --default-page= --header= --compression= --max-redirect= --proxy-user= \
     --proxy-password= --referer= --user-agent= --load-cookies< --save-cookies> --post-data= \
     --post-file< --method= --body-data= --body-file< --secure-protocol= --certificate< \
     --certificate-type= --private-key< --private-key-type= --ca-certificate< --ca-directory= \
     --crl-file< --pinnedpubkey= --ciphers= --hsts-file= --ftp-user= --ftp-password= --warc-file> \
     --level= --backups=? --accept= --reject= --accept-regex= --reject-regex= --regex-type= --domains= \
     --exclude-domains= --follow-tags= --ignore-tags= --include-directories= --exclude-directories=",
)
.refusing(&[
    runs("-e: --execute= --config=", "injects configuration"),
    runs("--use-askpass=", "starts a program"),
])
.with_evaluator(wget);

/// Returns the table that describes wget.
pub(in crate::commands) fn table() -> &'static CommandSpec {
    &WGET
}

fn wget(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let document = parsed.value("-O").or(parsed.value("--output-document"));
    let directory = parsed.value("-P").or(parsed.value("--directory-prefix"));
    let asks = ["-V", "--version", "-h", "--help"];
    if asks.iter().any(|name| parsed.has(name))
        && parsed.operands.is_empty()
        && parsed.verdict().is_none()
    {
        return CommandFinding::read_only("it only prints");
    }
    let sends = [
        "--post-data",
        "--post-file",
        "--body-data",
        "--body-file",
        "--method",
    ]
    .iter()
    .any(|name| parsed.has(name));
    let kept: Vec<Effect> = match document {
        Some(file) if file.is("-") => Vec::new(),
        Some(file) => vec![write(file, WriteKind::OperandWrite)],
        None if parsed.has("--spider") => Vec::new(),
        None => {
            let names = parsed.operands.iter().map(|url| {
                download_name(url).unwrap_or_else(|| Arg::literal("index.html", url.span))
            });
            names
                .map(|name| write(&inside(directory, name), WriteKind::OperandWrite))
                .collect()
        }
    };
    // With these options, the server's response or a list decides the file names.
    let unnamed = [
        "-r",
        "-m",
        "-p",
        "-i",
        "-x",
        "--recursive",
        "--mirror",
        "--page-requisites",
        "--input-file",
        "--force-directories",
        "--content-disposition",
        "--trust-server-names",
    ]
    .iter()
    .any(|name| parsed.has(name));
    let span = parsed.argv.first().map(|name| name.span);
    let below = span.filter(|_| unnamed && document.is_none() && !parsed.has("--spider"));
    let below =
        below.map(|span| write(&inside(directory, Arg::literal(".", span)), WriteKind::Tree));
    let finding = match refused(parsed) {
        Some(finding) => finding,
        None if sends => CommandFinding::mutating("it sends data to a host"),
        None if kept.iter().any(
            |effect| matches!(effect, Effect::Write(write) if !write.path.is("/dev/null")),
        ) =>
        {
            CommandFinding::mutating("it writes what a host sends into a file")
        }
        None => CommandFinding::unknown("it contacts a host"),
    };
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    let hosts = parsed
        .operands
        .iter()
        .flat_map(|url| hosts::contacts(url, host_of));
    finding.effects.extend(hosts);
    if parsed.operands.is_empty() {
        finding.effects.push(Effect::Net(None));
    }
    finding.effects.extend(kept);
    finding.effects.extend(below);
    finding
}

static DOWNLOADERS: CommandSpec =
    CommandSpec::prints("aria2c axel yt-dlp youtube-dl http https xh xhs httpie", "")
        .with_evaluator(downloader);

fn downloader(parsed: &ParsedArguments<'_>) -> CommandFinding {
    contact_urls(parsed, CommandFinding::unknown("it contacts a host"))
}

static BROWSERS: CommandSpec =
    CommandSpec::prints("lynx w3m links elinks", "").with_evaluator(browser);

fn browser(parsed: &ParsedArguments<'_>) -> CommandFinding {
    contact_urls(parsed, CommandFinding::unknown("it contacts a host"))
}

/// Adds every operand that may be a URL.
fn contact_urls(parsed: &ParsedArguments<'_>, mut finding: CommandFinding) -> CommandFinding {
    let urls = parsed
        .operands
        .iter()
        .filter(|arg| arg.text().is_none_or(|text| text.contains(['.', ':'])));
    finding
        .effects
        .extend(urls.flat_map(|url| hosts::contacts(url, host_of)));
    if finding.effects.is_empty() {
        finding.effects.push(Effect::Net(None));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::RuleCoverage};

    #[test]
    fn hosts_and_files_are_named() {
        assert_read_only(&["wget --version", "wget -h"]);
        let cases: [(&str, &[&str]); 12] = [
            (
                "wget https://a.com/x.zip",
                &["net a.com", "OperandWrite x.zip"],
            ),
            ("wget a.com", &["net a.com", "OperandWrite index.html"]),
            (
                "wget -P d https://a.com/x",
                &["net a.com", "OperandWrite d/x"],
            ),
            ("wget -O f a.com", &["net a.com", "OperandWrite f"]),
            ("wget -qO- a.com", &["net a.com"]),
            ("wget -q -O - a.com", &["net a.com"]),
            ("wget --spider a.com/x", &["net a.com"]),
            ("wget -i list", &["read list", "net ?", "Tree ."]),
            (
                "wget -o log a.com/x",
                &["OptionWrite log", "net a.com", "OperandWrite x"],
            ),
            (
                "wget --post-file=f a.com/x",
                &["read f", "net a.com", "OperandWrite x"],
            ),
            ("aria2c https://a.com/x", &["net a.com"]),
            ("http POST a.com x=y", &["net a.com"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
            assert_not_read_only(&[line]);
        }
        for line in [
            "wget -e x=y a.com",
            "wget --config=f a.com",
            "wget --use-askpass=x a.com",
        ] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
    }

    #[test]
    fn the_table_is_well_formed() {
        assert_well_formed(&[WGET]);
    }
}
