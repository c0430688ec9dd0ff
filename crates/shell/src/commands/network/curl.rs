//! curl.

use super::{download_name, host_of, inside, refused, write};
use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::{self, GivenOption, ParsedArguments},
        spec::{CommandSpec, KnownCommand, OperandKind, runs},
    },
    effect::{CommandFinding, Effect, EffectVerdict, WriteKind},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[KnownCommand::Spec(&CURL)];

/// The full list of curl's options. If an option is missing, its value is read as an operand and
/// therefore as a host.
static CURL: CommandSpec = CommandSpec::prints(
    "curl",
    "-aqfGgI0ik46jlLMnNZpJORSs231BvV -E: -C: -b: -c: -d: -D: -F: -P: -H: -h: -m: -o: -U: -Q: -r: -e: \
     -X: -Y: -y: -t: -z: -T: -u: -A: -w: -x: --anyauth --append --basic --cert-status --compressed \
     --compressed-ssh --create-dirs --crlf --digest --disable --disable-eprt --disable-epsv \
     --disallow-username-in-url --doh-cert-status --doh-insecure --fail --fail-early --fail-with-body \
     --false-start --form-escape --ftp-create-dirs --ftp-pasv --ftp-pret --ftp-skip-pasv-ip \
     --ftp-ssl-ccc --ftp-ssl-control --get --globoff --haproxy-protocol --head --http0.9 --http1.0 \
     --http1.1 --http2 --http2-prior-knowledge --http3 --http3-only --ignore-content-length --include \
     --insecure --ipv4 --ipv6 --junk-session-cookies --list-only --location --location-trusted \
     --mail-rcpt-allowfails --manual --metalink --negotiate --netrc --netrc-optional --next --no-alpn \
     --no-buffer --no-clobber --no-keepalive --no-npn --no-progress-meter --no-sessionid --ntlm \
     --ntlm-wb --parallel --parallel-immediate --path-as-is --post301 --post302 --post303 \
     --progress-bar --proxy-anyauth --proxy-basic --proxy-digest --proxy-insecure --proxy-negotiate \
     --proxy-ntlm --proxy-ssl-allow-beast --proxy-ssl-auto-client-cert --proxy-tlsv1 --proxytunnel \
     --raw --remote-header-name --remote-name --remote-name-all --remote-time --remove-on-error \
     --retry-all-errors --retry-connrefused --sasl-ir --show-error --silent --socks5-basic \
     --socks5-gssapi --socks5-gssapi-nec --ssl --ssl-allow-beast --ssl-auto-client-cert \
     --ssl-no-revoke --ssl-reqd --ssl-revoke-best-effort --sslv2 --sslv3 --styled-output \
     --suppress-connect-headers --tcp-fastopen --tcp-nodelay --tftp-no-options --tlsv1 --tlsv1.0 \
     --tlsv1.1 --tlsv1.2 --tlsv1.3 --tr-encoding --trace-time --use-ascii --verbose --version --xattr \
     --alt-svc= --aws-sigv4= --cacert< --capath= --cert= --cert-type= --ciphers= --connect-timeout= \
     --connect-to= --continue-at= --cookie= --cookie-jar= --create-file-mode= --crlfile< --curves= \
     --data= --data-ascii= --data-binary= --data-raw= --data-urlencode= --delegation= \
     --dns-interface= --dns-ipv4-addr= --dns-ipv6-addr= --dns-servers= --doh-url= --dump-header= \
     --egd-file= --etag-compare< --etag-save= --expect100-timeout= --form= --form-string= \
     --ftp-account= --ftp-alternative-to-user= --ftp-method= --ftp-port= --ftp-ssl-ccc-mode= \
     --happy-eyeballs-timeout-ms= --header= --help= --hostpubmd5= --hostpubsha256= --hsts= \
     --interface= --json= --keepalive-time= --key< --key-type= --krb= --libcurl= --limit-rate= \
     --local-port= --login-options= --mail-auth= --mail-from= --mail-rcpt= --max-filesize= \
     --max-redirs= --max-time= --netrc-file< --noproxy= --oauth2-bearer= --output= --output-dir= \
     --parallel-max= --pass= --pinnedpubkey= --preproxy= --proto= --proto-default= --proto-redir= \
     --proxy= --proxy-cacert< --proxy-capath= --proxy-cert= --proxy-cert-type= --proxy-ciphers= \
     --proxy-crlfile< --proxy-header= --proxy-key< --proxy-key-type= --proxy-pass= \
     --proxy-pinnedpubkey= --proxy-service-name= --proxy-tls13-ciphers= --proxy-tlsauthtype= \
     --proxy-tlspassword= --proxy-tlsuser= --proxy-user= --proxy1.0= --pubkey< --quote= \
     --random-file= --range= --rate= --referer= --request= --request-target= --resolve= --retry= \
     --retry-delay= --retry-max-time= --sasl-authzid= --service-name= --socks4= --socks4a= --socks5= \
     --socks5-gssapi-service= --socks5-hostname= --speed-limit= --speed-time= --stderr= \
     --telnet-option= --tftp-blksize= --time-cond= --tls-max= --tls13-ciphers= --tlsauthtype= \
     --tlspassword= --tlsuser= --trace= --trace-ascii= --upload-file= --url= --url-query= --user= \
     --user-agent= --write-out=",
)
.refusing(&[
    runs("-K: --config=", "takes options from a file"),
    runs("--engine=", "loads a library"),
    runs(
        "--unix-socket= --abstract-unix-socket=",
        "talks to a local service",
    ),
])
.with_evaluator(curl);

fn curl(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut effects = Vec::new();
    for url in parsed.operands.iter().copied() {
        effects.extend(contacted(url));
    }
    let directory = parsed.value("--output-dir");
    let mut sends = false;
    for given in &parsed.options {
        sends |= sends_data(given);
        effects.extend(value_effects(given, directory));
    }
    let urls = urls(parsed);
    if parsed.has("-J") || parsed.has("--remote-header-name") {
        let span = parsed.argv[0].span;
        effects.push(write(
            &inside(directory, Arg::literal(".", span)),
            WriteKind::OptionWrite,
        ));
        effects.push(write(
            &inside(directory, Arg::literal(".", span)),
            WriteKind::Tree,
        ));
    }
    let keeps = ["-O", "--remote-name", "--remote-name-all"];
    if keeps.iter().any(|name| parsed.has(name)) {
        let names = urls.iter().filter_map(|url| download_name(url));
        effects.extend(names.map(|name| write(&inside(directory, name), WriteKind::OptionWrite)));
    }
    let asks = ["-V", "--version", "-h", "--help", "-M", "--manual"];
    let only_prints = urls.is_empty() && asks.iter().any(|name| parsed.has(name));
    let writes = effects
        .iter()
        .any(|effect| matches!(effect, Effect::Write(write) if !write.path.is("/dev/null")));
    let finding = match refused(parsed) {
        Some(finding) => finding,
        None if only_prints && parsed.verdict().is_none() => {
            CommandFinding::read_only("it only prints")
        }
        None if sends => CommandFinding::mutating("it sends data to a host"),
        None if writes => CommandFinding::mutating("it writes what a host sends into a file"),
        None => CommandFinding::unknown("it contacts a host"),
    };
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    finding.effects.extend(effects);
    if finding.verdict != EffectVerdict::ReadOnly && urls.is_empty() {
        finding.effects.push(Effect::Net(None));
    }
    finding
}

fn urls<'a>(parsed: &'a ParsedArguments<'_>) -> Vec<&'a Arg> {
    let given = parsed.options.iter();
    let given = given.filter(|given| given.name == "--url");
    let given = given.filter_map(|given| given.value.as_ref());
    parsed.operands.iter().copied().chain(given).collect()
}

/// Returns the host that a URL names, or the local file.
fn contacted(url: &Arg) -> Vec<Effect> {
    match url.text().and_then(|text| text.strip_prefix("file://")) {
        Some(path) => {
            let path = path.trim_start_matches("localhost");
            vec![options::content(&Arg::literal(path, url.span))]
        }
        None => hosts::contacts(url, host_of),
    }
}

/// Returns the table that describes curl.
pub(in crate::commands) fn table() -> &'static CommandSpec {
    &CURL
}

/// Returns whether an option sends data or requests a change.
pub(in crate::commands) fn sends_data(given: &GivenOption) -> bool {
    let text = given.value.as_ref().and_then(Arg::text).unwrap_or_default();
    match given.name {
        "-d" | "--data" | "--data-ascii" | "--data-binary" | "--data-raw" | "--data-urlencode"
        | "--json" | "-F" | "--form" | "--form-string" | "-T" | "--upload-file" | "-Q"
        | "--quote" | "--mail-from" | "--mail-rcpt" => true,
        "-X" | "--request" => !matches!(
            text.to_ascii_uppercase().as_str(),
            "GET" | "HEAD" | "OPTIONS"
        ),
        _ => false,
    }
}

/// Returns the effects of an option's value: a read, a write or a contacted host.
fn value_effects(given: &GivenOption, directory: Option<&Arg>) -> Vec<Effect> {
    let Some(value) = &given.value else {
        return Vec::new();
    };
    let text = value.text();
    let file = |path: &str| {
        (path != "-" && !path.is_empty()).then(|| options::content(&Arg::literal(path, value.span)))
    };
    let read: Vec<Effect> = match given.name {
        "-d" | "--data" | "--data-ascii" | "--data-binary" | "--json" | "-H" | "--header"
        | "--proxy-header" | "-w" | "--write-out" => text
            .and_then(|text| text.strip_prefix('@'))
            .and_then(file)
            .into_iter()
            .collect(),
        "--data-urlencode" | "--url-query" => text
            .filter(|text| !text.split('@').next().unwrap_or_default().contains('='))
            .and_then(|text| text.split_once('@'))
            .and_then(|(_, path)| file(path))
            .into_iter()
            .collect(),
        "-F" | "--form" => form_files(text.unwrap_or_default())
            .filter_map(file)
            .collect(),
        "-T" | "--upload-file" | "-E" | "--cert" => text.and_then(file).into_iter().collect(),
        "-b" | "--cookie" => text
            .filter(|text| !text.contains('='))
            .and_then(file)
            .into_iter()
            .collect(),
        _ => Vec::new(),
    };
    if !read.is_empty() {
        return read;
    }
    match given.name {
        "-o" | "--output" if !value.is("-") => {
            vec![write(
                &inside(directory, value.clone()),
                WriteKind::OptionWrite,
            )]
        }
        "-D" | "--dump-header" | "-c" | "--cookie-jar" | "--trace" | "--trace-ascii"
        | "--stderr" | "--hsts" | "--alt-svc" | "--etag-save" | "--libcurl"
            if !value.is("-") && !value.is("") =>
        {
            vec![write(value, WriteKind::OptionWrite)]
        }
        "--url" => contacted(value),
        "-x" | "--proxy" | "--preproxy" | "--proxy1.0" | "--socks4" | "--socks4a" | "--socks5"
        | "--socks5-hostname" | "--doh-url" => hosts::contacts(value, host_of),
        // These options replace the host in the URL with another one.
        "--connect-to" | "--resolve" | "--dns-servers" => vec![Effect::Net(None)],
        _ => Vec::new(),
    }
}

/// Returns the files of `name=@a;type=x,b` and `name=<c`.
fn form_files(text: &str) -> impl Iterator<Item = &str> {
    let content = text.split_once('=').map_or("", |(_, content)| content);
    let files = content.strip_prefix(['@', '<']).unwrap_or_default();
    files
        .split(',')
        .map(|file| file.split(';').next().unwrap_or_default())
        .map(|file| file.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::RuleCoverage};

    #[test]
    fn only_its_version_and_help_are_read_only() {
        assert_read_only(&[
            "curl --version",
            "curl -V",
            "curl --help all",
            "curl -h all",
        ]);
        let cases = [
            ("curl https://example.com", "unknown: it contacts a host"),
            ("curl -V https://example.com", "unknown: it contacts a host"),
            ("curl -sSL example.com/x", "unknown: it contacts a host"),
            ("curl -I example.com", "unknown: it contacts a host"),
            (
                "curl -o f example.com",
                "mutating: it writes what a host sends into a file",
            ),
            (
                "curl -o /dev/null example.com",
                "unknown: it contacts a host",
            ),
            (
                "curl -O example.com/x",
                "mutating: it writes what a host sends into a file",
            ),
            (
                "curl -d a=b example.com",
                "mutating: it sends data to a host",
            ),
            (
                "curl -XDELETE example.com",
                "mutating: it sends data to a host",
            ),
            ("curl -K f", "unknown: -K takes options from a file"),
            ("curl $x", "unknown: it contacts a host"),
        ];
        for (line, expected) in cases {
            assert_eq!(verdict(line), expected, "{line}");
        }
        assert_eq!(find("curl --config f").coverage, RuleCoverage::Exact);
        assert_eq!(find("curl --unix-socket s x").coverage, RuleCoverage::Exact);
    }

    #[test]
    fn hosts_files_and_uploads_are_named() {
        let cases: [(&str, &[&str]); 24] = [
            ("curl https://User@Example.com:8080/x", &["net example.com"]),
            ("curl a.com b.com", &["net a.com", "net b.com"]),
            ("curl --url a.com", &["net a.com"]),
            ("curl $x", &["net ?"]),
            ("curl https://a.com/$x", &["net a.com", "net ?"]),
            ("curl https://a.com$x", &["net ?"]),
            ("curl https://a.com/x?y=z", &["net a.com"]),
            ("curl https://a.com?y", &["net ?"]),
            ("curl 'http://{a,b}.com'", &["net ?"]),
            ("curl -o f a.com", &["net a.com", "OptionWrite f"]),
            ("curl -of a.com", &["net a.com", "OptionWrite f"]),
            ("curl -o - a.com", &["net a.com"]),
            (
                "curl -O 'https://a.com/d/x.tgz?y'",
                &["net a.com", "OptionWrite x.tgz"],
            ),
            (
                "curl --output-dir d -O https://a.com/x",
                &["net a.com", "OptionWrite d/x"],
            ),
            (
                "curl -OJ https://a.com/x",
                &["net a.com", "OptionWrite .", "Tree .", "OptionWrite x"],
            ),
            ("curl -d @f a.com", &["net a.com", "read f"]),
            ("curl --data-binary @f a.com", &["net a.com", "read f"]),
            ("curl --data-urlencode x@f a.com", &["net a.com", "read f"]),
            ("curl -d a=@f a.com", &["net a.com"]),
            ("curl -F 'x=@f;type=t' a.com", &["net a.com", "read f"]),
            ("curl -T f a.com", &["net a.com", "read f"]),
            (
                "curl -x proxy.com:80 a.com",
                &["net a.com", "net proxy.com"],
            ),
            ("curl file:///etc/passwd", &["read /etc/passwd"]),
            (
                "curl -c jar -b jar a.com",
                &["net a.com", "OptionWrite jar", "read jar"],
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }

    #[test]
    fn the_table_is_well_formed() {
        assert_well_formed(&[CURL]);
    }
}
