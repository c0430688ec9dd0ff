//! Paths that a command builds from its operands.

use crate::arg::{Arg, Value};

/// Returns the path of a name in a directory.
pub(super) fn joined(folder: &Arg, name: &Arg) -> Arg {
    let Some(base) = folder.text() else {
        return folder.clone();
    };
    let path = |name: &str| match (name.starts_with('/'), base.ends_with('/')) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{base}{name}"),
        (false, false) => format!("{base}/{name}"),
    };
    let value = match &name.value {
        Value::Literal(text) => Value::Literal(path(text)),
        Value::Braced(text) => Value::Braced(path(text)),
        Value::Glob(text) => Value::Glob(path(text)),
        Value::Unknown { prefix, one } if prefix.is_empty() => Value::Unknown {
            prefix: String::new(),
            one: *one,
        },
        Value::Unknown { prefix, one } => Value::Unknown {
            prefix: path(prefix),
            one: *one,
        },
    };
    Arg {
        span: name.span,
        value,
    }
}

/// Returns the path of a source file that is copied into a directory: the directory and the file's
/// last name.
pub(super) fn placed(folder: &Arg, source: &Arg) -> Arg {
    let Some(base) = folder.text() else {
        return folder.clone();
    };
    let last = |text: &str| {
        text.trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let name = match &source.value {
        Value::Literal(text) | Value::Braced(text) => Value::Literal(last(text)),
        Value::Glob(text) => match last(text) {
            name if name.contains(['*', '?', '[']) => Value::Glob(name),
            name => Value::Literal(name),
        },
        // The unknown part may contain the last slash.
        Value::Unknown { one, .. } => {
            let prefix = format!("{}/", base.trim_end_matches('/'));
            return Arg {
                span: source.span,
                value: Value::Unknown { prefix, one: *one },
            };
        }
    };
    match &name {
        Value::Literal(text) if matches!(text.as_str(), "" | "." | "..") => folder.clone(),
        _ => joined(
            folder,
            &Arg {
                span: source.span,
                value: name,
            },
        ),
    }
}

/// Returns the directories above a path, the nearest first, as far as its text names them.
pub(super) fn parents(path: &Arg) -> impl Iterator<Item = Arg> {
    let span = path.span;
    let mut rest = path
        .text()
        .map(|text| text.trim_end_matches('/').to_owned());
    std::iter::from_fn(move || {
        let at = rest.as_ref()?.rfind('/')?;
        let above = rest.take()?[..at].trim_end_matches('/').to_owned();
        if above.is_empty() {
            return None;
        }
        rest = Some(above.clone());
        Some(Arg::literal(above, span))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::argv;

    fn shown(arg: &Arg) -> String {
        match &arg.value {
            Value::Literal(text) | Value::Braced(text) => text.clone(),
            Value::Glob(text) => format!("glob({text})"),
            Value::Unknown { prefix, .. } => format!("{prefix}$"),
        }
    }

    #[test]
    fn names_go_into_directories() {
        let cases = [
            // (directory, source, joined, placed)
            ("d", "a", "d/a", "d/a"),
            ("d/", "x/a", "d/x/a", "d/a"),
            ("d", "/x/a/", "/x/a/", "d/a"),
            ("d", "..", "d/..", "d"),
            ("d", "x/*.rs", "glob(d/x/*.rs)", "glob(d/*.rs)"),
            ("d", "*/a", "glob(d/*/a)", "d/a"),
            ("d", "x/$y", "d/x/$", "d/$"),
            ("d", "$y", "$", "d/$"),
            ("$y", "a", "$", "$"),
        ];
        for (folder, name, in_whole, by_last) in cases {
            let words = argv(&format!("{folder} {name}"));
            assert_eq!(
                shown(&joined(&words[0], &words[1])),
                in_whole,
                "{folder} {name}"
            );
            assert_eq!(
                shown(&placed(&words[0], &words[1])),
                by_last,
                "{folder} {name}"
            );
        }
    }

    #[test]
    fn directories_above() {
        let above = |text: &str| {
            parents(&argv(text)[0])
                .map(|arg| shown(&arg))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(above("a/b/c"), "a/b a");
        assert_eq!(above("a"), "");
        assert_eq!(above("/a/b/"), "/a");
        assert_eq!(above("$x"), "");
    }
}
