//! Paths that a command builds from its operands.

use crate::arg::{Arg, ArgValue};

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
        ArgValue::Literal(text) => ArgValue::Literal(path(text)),
        ArgValue::Braced(text) => ArgValue::Braced(path(text)),
        ArgValue::Glob(text) => ArgValue::Glob(path(text)),
        ArgValue::Unknown { prefix, one } if prefix.is_empty() => ArgValue::Unknown {
            prefix: String::new(),
            one: *one,
        },
        ArgValue::Unknown { prefix, one } => ArgValue::Unknown {
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
        ArgValue::Literal(text) | ArgValue::Braced(text) => ArgValue::Literal(last(text)),
        ArgValue::Glob(text) => match last(text) {
            name if name.contains(['*', '?', '[']) => ArgValue::Glob(name),
            name => ArgValue::Literal(name),
        },
        // The unknown part may contain the last slash.
        ArgValue::Unknown { one, .. } => {
            let prefix = format!("{}/", base.trim_end_matches('/'));
            return Arg {
                span: source.span,
                value: ArgValue::Unknown { prefix, one: *one },
            };
        }
    };
    match &name {
        ArgValue::Literal(text) if matches!(text.as_str(), "" | "." | "..") => folder.clone(),
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
            ArgValue::Literal(text) | ArgValue::Braced(text) => text.clone(),
            ArgValue::Glob(text) => format!("glob({text})"),
            ArgValue::Unknown { prefix, .. } => format!("{prefix}$"),
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
