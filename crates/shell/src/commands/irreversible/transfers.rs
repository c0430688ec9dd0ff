//! Programs whose arguments, not their verbs, say whether they reach or change another machine.

use crate::{
    arg::{Arg, ArgValue},
    commands::{
        network::{curl, wget},
        options,
    },
};

/// Returns whether `git -c alias.x=…` defines the subcommand that runs.
pub(super) fn defines_alias(argv: &[Arg]) -> bool {
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        let value = match word.text() {
            Some("-c" | "--config-env") => words.next().map(Arg::text),
            Some(text) if text.starts_with('-') => {
                let attached = text.strip_prefix("--config-env=");
                attached
                    .or_else(|| text.strip_prefix("-c"))
                    .filter(|value| !value.is_empty())
                    .map(Some)
            }
            Some(_) | None => return false,
        };
        let is_alias = |value: &str| value.to_ascii_lowercase().starts_with("alias.");
        if value.is_some_and(|value| value.is_none_or(is_alias)) {
            return true;
        }
    }
    false
}

/// Returns whether an operand is `host:path` or a URL, or may be one.
pub(super) fn has_remote_path(argv: &[Arg]) -> bool {
    argv.iter().skip(1).any(|arg| {
        let certain = match &arg.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) => {
                return !text.starts_with('-') && is_remote(text);
            }
            ArgValue::Glob(text) => text,
            ArgValue::Unknown { prefix, .. } => prefix,
        };
        // `./$x` is a local path, however it continues.
        !certain.contains('/') || is_remote(certain)
    })
}

fn is_remote(text: &str) -> bool {
    let host = text.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| !host.is_empty() && !host.contains('/'))
}

/// Returns whether a database client names a host, or may name one.
pub(super) fn names_database_host(argv: &[Arg]) -> bool {
    let mut is_statement = false;
    for arg in argv.iter().skip(1) {
        let is_value = std::mem::take(&mut is_statement);
        let text = match &arg.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => text,
            ArgValue::Unknown { one: true, .. } if is_value => continue,
            ArgValue::Unknown { prefix, .. } if prefix.is_empty() => return true,
            ArgValue::Unknown { prefix, .. } => prefix,
        };
        if is_value {
            continue;
        }
        is_statement = [
            "-c",
            "--command",
            "-f",
            "--file",
            "-e",
            "--execute",
            "--eval",
        ]
        .contains(&text.as_str());
        let short = text.starts_with("-h") && !text.starts_with("-help");
        let named = ["--host", "-H", "-S", "-host", "--uri", "--server"]
            .iter()
            .any(|option| text.starts_with(option));
        let address = text.contains("://") || text.contains("host=") || text.contains('@');
        let host = !text.starts_with('-') && text.contains(['.', ':']) && !text.contains('/');
        if short || named || address || host {
            return true;
        }
    }
    false
}

/// Returns whether curl sends a body, uploads, or uses a method other than GET and HEAD.
pub(super) fn curl_sends(argv: &[Arg]) -> bool {
    if argv.iter().skip(1).any(may_be_options) {
        return true;
    }
    let parsed = options::parse(curl::table(), argv);
    // An option that is not in the table, or a file with options.
    if parsed.problem.is_some() || parsed.has("-K") || parsed.has("--config") {
        return true;
    }
    // `curl "$x" URL`: the operand may be an option with its value.
    let hidden = parsed.operands.iter().any(|operand| is_hidden(operand));
    if hidden && parsed.operands.len() > 1 {
        return true;
    }
    // With `-G`, the data becomes a part of the URL.
    let in_url = parsed.has("-G") || parsed.has("--get");
    parsed.options.iter().any(|given| {
        let text = given.value.as_ref().and_then(Arg::text);
        match given.name {
            "-X" | "--request" => !text.is_some_and(only_asks),
            "-d" | "--data" | "--data-ascii" | "--data-binary" | "--data-raw"
            | "--data-urlencode" => !in_url,
            "--unix-socket" | "--abstract-unix-socket" => true,
            _ => curl::sends_data(given),
        }
    })
}

/// Returns whether wget sends a body or uses a method other than GET and HEAD.
pub(super) fn wget_sends(argv: &[Arg]) -> bool {
    if argv.iter().skip(1).any(may_be_options) {
        return true;
    }
    let parsed = options::parse(wget::table(), argv);
    if parsed.problem.is_some() {
        return true;
    }
    parsed.options.iter().any(|given| {
        let text = given.value.as_ref().and_then(Arg::text);
        match given.name {
            "--method" => !text.is_some_and(only_asks),
            "--post-data" | "--post-file" | "--body-data" | "--body-file" | "-e" | "--execute"
            | "--config" => true,
            _ => false,
        }
    })
}

/// Returns whether httpie sends a body or uses a method other than GET and HEAD: `http POST URL`,
/// `http URL name=value`.
pub(super) fn httpie_sends(argv: &[Arg]) -> bool {
    argv.iter().skip(1).any(|arg| {
        let Some(text) = arg.text() else {
            return may_be_options(arg);
        };
        let method = !text.is_empty() && text.chars().all(|next| next.is_ascii_uppercase());
        let is_url = text.contains("://") || text.starts_with('/');
        let field = !is_url
            && !text.starts_with('-')
            && !text.contains("==")
            && (text.contains('=') || text.contains('@'));
        let body = ["--raw", "--form", "-f", "--multipart", "--json", "-j"]
            .iter()
            .any(|option| text == *option || text.starts_with(&format!("{option}=")));
        (method && !only_asks(text)) || field || body
    })
}

fn only_asks(method: &str) -> bool {
    method.eq_ignore_ascii_case("GET") || method.eq_ignore_ascii_case("HEAD")
}

/// Returns whether the line shows nothing of an argument.
fn is_hidden(arg: &Arg) -> bool {
    matches!(&arg.value, ArgValue::Unknown { prefix, .. } if prefix.is_empty())
}

/// Returns whether text that the line does not show may be options.
fn may_be_options(arg: &Arg) -> bool {
    match &arg.value {
        ArgValue::Literal(_) | ArgValue::Braced(_) | ArgValue::Glob(_) => false,
        ArgValue::Unknown { prefix, one } => prefix.starts_with('-') || (prefix.is_empty() && !one),
    }
}
