//! Resolution of schema URIs: a reference is resolved against its base URI (RFC 3986 §5).

/// Returns the absolute URI, with its fragment.
pub(super) fn resolved(base: &str, reference: &str) -> String {
    let (reference, fragment) = split(reference);
    let address = if reference.is_empty() {
        split(base).0.to_owned()
    } else if scheme(reference).is_some() {
        reference.to_owned()
    } else {
        relative(split(base).0, reference)
    };
    match fragment {
        Some(fragment) => format!("{address}#{fragment}"),
        None => address,
    }
}

/// Splits a URI into the part before the fragment and the fragment.
pub(super) fn split(uri: &str) -> (&str, Option<&str>) {
    match uri.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (uri, None),
    }
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut letters = scheme.chars();
    let fits = letters.next()?.is_ascii_alphabetic()
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    fits.then_some(scheme)
}

fn relative(base: &str, reference: &str) -> String {
    let Some(scheme) = scheme(base) else {
        return reference.to_owned();
    };
    let rest = &base[scheme.len() + 1..];
    if let Some(network) = reference.strip_prefix("//") {
        return format!("{scheme}://{network}");
    }
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            (format!("//{}", &rest[..end]), &rest[end..])
        }
        None => (String::new(), rest),
    };
    let path = path.split('?').next().unwrap_or_default();
    if reference.starts_with('?') {
        return format!("{scheme}:{host}{path}{reference}");
    }
    let (wanted, query) = match reference.split_once('?') {
        Some((wanted, query)) => (wanted, format!("?{query}")),
        None => (reference, String::new()),
    };
    let path = if wanted.starts_with('/') {
        wanted.to_owned()
    } else {
        let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
        format!("{folder}{wanted}")
    };
    format!("{scheme}:{host}{}{query}", without_dots(&path))
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut open = false;
    for part in path.split('/').skip(1) {
        open = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let end = if open { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// Decodes the percent-encoding of a fragment; `None` if it is invalid.
pub(super) fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let code = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(code, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_resolved_against_its_base() {
        for (base, reference, wanted) in [
            ("http://a/b/c", "d", "http://a/b/d"),
            ("http://a/b/c", "/d", "http://a/d"),
            ("http://a/b/c", "../d#x", "http://a/d#x"),
            ("http://a/b/c", "#x", "http://a/b/c#x"),
            ("http://a/b/c#y", "", "http://a/b/c"),
            ("http://a/b/c?q", "./", "http://a/b/"),
            ("http://a", "d", "http://a/d"),
            ("http://a/b", "//c/d", "http://c/d"),
            ("http://a/b", "?q", "http://a/b?q"),
            ("urn:uuid:1", "#x", "urn:uuid:1#x"),
            ("http://a/b", "urn:x:y", "urn:x:y"),
        ] {
            assert_eq!(resolved(base, reference), wanted, "{reference} in {base}");
        }
        assert_eq!(decoded("a%25b%C3%A4").as_deref(), Some("a%bä"));
        assert_eq!(decoded("a%2"), None);
    }
}
