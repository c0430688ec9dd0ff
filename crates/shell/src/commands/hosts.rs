//! The host in a URL or an address.

use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect},
};

/// Returns the host of `scheme://user@host:port/path`, in lower case.
pub(super) fn url_host(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let named = !scheme.is_empty()
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !named {
        return None;
    }
    authority_host(rest.split(['/', '?', '#', '\\']).next().unwrap_or_default())
}

/// Returns the host of `user@host:port`.
pub(super) fn authority_host(text: &str) -> Option<String> {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?.0,
        None => host.split(':').next().unwrap_or_default(),
    };
    plain(host)
}

/// Returns the host of `user@host:path`. Without a colon, or with a slash before it, the text is a
/// local path.
pub(super) fn remote_path_host(text: &str) -> Option<String> {
    if text.contains("://") {
        return url_host(text);
    }
    let (host, _) = match text.find('[') {
        Some(_) => text.split_once(']')?,
        None => text.split_once(':')?,
    };
    if host.contains('/') {
        return None;
    }
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    plain(host.trim_start_matches('['))
}

/// Returns a name that can be compared with a rule: only letters, digits, dots, hyphens (and the
/// colons of an address).
fn plain(host: &str) -> Option<String> {
    let host = host.trim_end_matches('.');
    let fits = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte));
    (fits && !host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// Returns the hosts that an argument contacts. `None` is a host that the line does not
/// name.
///
/// `https://host/$x` names its host before the expansion begins. If the expansion may become
/// several arguments, those may name other hosts.
pub(super) fn contacts(arg: &Arg, host: fn(&str) -> Option<String>) -> Vec<Effect> {
    let (certain, more) = match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) => return vec![Effect::Net(host(text))],
        ArgValue::Glob(text) => (
            text.split(['*', '?', '[']).next().unwrap_or_default(),
            false,
        ),
        ArgValue::Unknown { prefix, one } => (prefix.as_str(), !one),
    };
    let complete = certain
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('/'));
    let named = if complete { host(certain) } else { None };
    match named {
        Some(named) if more => vec![Effect::Net(Some(named)), Effect::Net(None)],
        named => vec![Effect::Net(named)],
    }
}

/// Adds the host that an operand such as `host:path` names.
pub(super) fn with_remote(mut finding: CommandFinding, place: &Arg) -> CommandFinding {
    finding.effects.extend(contacts(place, remote_path_host));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_the_programs_read_them() {
        let urls = [
            ("https://example.com/x", Some("example.com")),
            ("HTTP://User:p@Example.COM:8080", Some("example.com")),
            ("https://a@b@c.de?x=@d.ef", Some("c.de")),
            ("https://[::1]:80/", Some("::1")),
            ("https://ok.com\\@evil.com/", Some("ok.com")),
            ("https://ex ample.com", None),
            ("example.com/x", None),
            ("://x", None),
            ("https://", None),
        ];
        for (url, host) in urls {
            assert_eq!(url_host(url).as_deref(), host, "{url}");
        }
        let paths = [
            ("me@example.com:x/y", Some("example.com")),
            ("example.com:", Some("example.com")),
            ("ssh://git@example.com/x", Some("example.com")),
            ("[::1]:x", Some("::1")),
            ("./a:b", None),
            ("plain", None),
        ];
        for (path, host) in paths {
            assert_eq!(remote_path_host(path).as_deref(), host, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_host_holds_nothing_that_two_readers_could_read_differently(text in "\\PC{0,40}") {
            for host in [url_host(&text), authority_host(&text), remote_path_host(&text)].into_iter().flatten() {
                let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-:_".contains(letter);
                proptest::prop_assert!(!host.is_empty() && host.chars().all(fits), "{host:?}");
            }
        }
    }
}
