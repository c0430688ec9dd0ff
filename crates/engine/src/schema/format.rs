//! The keyword `format`, which is enforced up to draft 7: dates, addresses, host names and the
//! like.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{draft::SchemaDraft, pattern};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StringFormat {
    Date,
    DateTime,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Iri,
    IriReference,
    JsonPointer,
    Regex,
    RelativeJsonPointer,
    Time,
    Uri,
    UriReference,
    UriTemplate,
}

impl StringFormat {
    /// Returns the format that a draft enforces; `None` for an unknown one.
    pub(super) fn binding(name: &str, draft: SchemaDraft) -> Option<Self> {
        let (since, format) = match name {
            "date" => (SchemaDraft::Four, Self::Date),
            "date-time" => (SchemaDraft::Four, Self::DateTime),
            "email" => (SchemaDraft::Four, Self::Email),
            "hostname" => (SchemaDraft::Four, Self::Hostname),
            "ipv4" => (SchemaDraft::Four, Self::Ipv4),
            "ipv6" => (SchemaDraft::Four, Self::Ipv6),
            "iri" => (SchemaDraft::Seven, Self::Iri),
            "iri-reference" => (SchemaDraft::Seven, Self::IriReference),
            "json-pointer" => (SchemaDraft::Six, Self::JsonPointer),
            "regex" => (SchemaDraft::Four, Self::Regex),
            "relative-json-pointer" => (SchemaDraft::Seven, Self::RelativeJsonPointer),
            "time" => (SchemaDraft::Four, Self::Time),
            "uri" => (SchemaDraft::Four, Self::Uri),
            "uri-reference" => (SchemaDraft::Six, Self::UriReference),
            "uri-template" => (SchemaDraft::Six, Self::UriTemplate),
            _ => return None,
        };
        (since <= draft && draft <= SchemaDraft::Seven).then_some(format)
    }

    /// Returns a description for error messages.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Date => "a date (2026-01-31)",
            Self::DateTime => "a date and time (2026-01-31T12:00:00Z)",
            Self::Email => "an e-mail address",
            Self::Hostname => "the name of a host",
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
            Self::Iri => "an IRI",
            Self::IriReference => "an IRI or a relative one",
            Self::JsonPointer => "a JSON pointer",
            Self::Regex => "a regular expression",
            Self::RelativeJsonPointer => "a relative JSON pointer",
            Self::Time => "a time (12:00:00Z)",
            Self::Uri => "a URI",
            Self::UriReference => "a URI or a relative one",
            Self::UriTemplate => "a URI template",
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Date => date(text),
            Self::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(day, hour)| date(day) && time(hour)),
            Self::Email => email(text),
            Self::Hostname => hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Iri => address(text, true) && has_scheme(text),
            Self::IriReference => address(text, true),
            Self::JsonPointer => json_pointer(text),
            Self::Regex => pattern::compiled(text).is_ok(),
            Self::RelativeJsonPointer => relative_json_pointer(text),
            Self::Time => time(text),
            Self::Uri => address(text, false) && has_scheme(text),
            Self::UriReference => address(text, false),
            Self::UriTemplate => uri_template(text),
        }
    }
}

/// Parses exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (
        parts.next().and_then(|part| digits(part, 4)),
        parts.next().and_then(|part| digits(part, 2)),
        parts.next().and_then(|part| digits(part, 2)),
        parts.next(),
    ) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn time(text: &str) -> bool {
    let Some((clock, zone)) = text.find(['Z', 'z', '+', '-']).map(|at| text.split_at(at)) else {
        return false;
    };
    let hours_and_minutes = |text: &str| {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
        (hours < 24 && minutes < 60).then_some(i64::from(hours * 60 + minutes))
    };
    let offset = match zone {
        "Z" | "z" => Some(0),
        zone => match zone.split_at(1) {
            ("+", zone) => hours_and_minutes(zone),
            (_, zone) => hours_and_minutes(zone).map(|minutes| -minutes),
        },
    };
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    if fraction.is_some_and(|digits| {
        digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit())
    }) {
        return false;
    }
    let Some((Some(minutes), Some(seconds))) = clock
        .rsplit_once(':')
        .map(|(minutes, seconds)| (hours_and_minutes(minutes), digits(seconds, 2)))
    else {
        return false;
    };
    match offset {
        None => false,
        // A leap second is at the end of a UTC day.
        Some(offset) if seconds == 60 => (minutes - offset).rem_euclid(24 * 60) == 24 * 60 - 1,
        Some(_) => seconds < 60,
    }
}

fn hostname(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let quoted = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let local_fits = match quoted {
        Some(inner) => {
            let mut escaped = false;
            let clean = inner.chars().all(|c| {
                let fits = escaped || c != '"';
                escaped = !escaped && c == '\\';
                fits && c.is_ascii() && !c.is_ascii_control()
            });
            clean && !escaped
        }
        None => local.split('.').all(|atom| {
            !atom.is_empty()
                && atom.bytes().all(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
                })
        }),
    };
    let literal = domain
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let domain_fits = match literal {
        Some(literal) => match literal.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => literal.parse::<Ipv4Addr>().is_ok(),
        },
        None => hostname(domain),
    };
    local.len() <= 64 && local_fits && domain_fits
}

fn json_pointer(text: &str) -> bool {
    let tildes = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && tildes
}

fn relative_json_pointer(text: &str) -> bool {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (up, rest) = text.split_at(end);
    !up.is_empty() && (up == "0" || !up.starts_with('0')) && (rest == "#" || json_pointer(rest))
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Checks a URI or relative reference (RFC 3986); with `wide`, an IRI (RFC 3987).
fn address(text: &str, wide: bool) -> bool {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let rest = if has_scheme(rest) {
        rest.split_once(':').map_or(rest, |(_, rest)| rest)
    } else {
        // A colon in the first segment would end a scheme.
        if rest
            .split('/')
            .next()
            .is_some_and(|part| part.contains(':'))
        {
            return false;
        }
        rest
    };
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    authority(host, wide)
        && letters(path, "/:@", wide)
        && letters(query, "/?:@", wide)
        && letters(fragment, "/?:@", wide)
}

fn authority(text: &str, wide: bool) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let host = match host.strip_prefix('[') {
        Some(rest) => {
            let Some((literal, port)) = rest.split_once(']') else {
                return false;
            };
            let future = literal.starts_with(['v', 'V']) && letters(literal, ":", false);
            if !future && literal.parse::<Ipv6Addr>().is_err() {
                return false;
            }
            port
        }
        None => host,
    };
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    letters(user, ":", wide)
        && letters(name, "", wide)
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks that a text has only unreserved characters, those in `more`, and percent-encoded bytes.
fn letters(text: &str, more: &str, wide: bool) -> bool {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let fits = match c {
            '%' => {
                let mut digit = || rest.next().is_some_and(|c| c.is_ascii_hexdigit());
                digit() && digit()
            }
            c if c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c) => true,
            c if c.is_ascii() => more.contains(c),
            c => wide && c >= '\u{a0}',
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Checks a URI template (RFC 6570): text with expressions in braces.
fn uri_template(text: &str) -> bool {
    let mut rest = text;
    loop {
        let (plain, after) = match rest.split_once('{') {
            Some((plain, after)) => (plain, Some(after)),
            None => (rest, None),
        };
        if plain.contains(['}', '"', '<', '>', '\\', '^', '`', '|', ' '])
            || plain.chars().any(char::is_control)
            || !letters(
                &plain.replace(|c| c != '%' && !char::is_ascii_hexdigit(&c), "x"),
                "",
                true,
            )
        {
            return false;
        }
        let Some(after) = after else {
            return true;
        };
        let Some((expression, after)) = after.split_once('}') else {
            return false;
        };
        let names = expression
            .strip_prefix(|c| "+#./;?&=,!@|".contains(c))
            .unwrap_or(expression);
        if !names.split(',').all(template_variable) {
            return false;
        }
        rest = after;
    }
}

fn template_variable(text: &str) -> bool {
    let name = match text.split_once(':') {
        Some((name, length)) => {
            let fits = (1..=4).contains(&length.len())
                && !length.starts_with('0')
                && length.bytes().all(|byte| byte.is_ascii_digit());
            if !fits {
                return false;
            }
            name
        }
        None => text.strip_suffix('*').unwrap_or(text),
    };
    name.split('.').all(|part| {
        !part.is_empty()
            && letters(part, "", false)
            && !part.contains(|c: char| c.is_ascii_punctuation() && c != '_' && c != '%')
    })
}
