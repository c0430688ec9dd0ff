//! The lines of `tests/corpus`; its README says how they are written.

use std::{collections::BTreeMap, fs, path::Path};

use haft_shell::{EffectVerdict, LineLocation};

/// The right verdict of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Truth {
    ReadOnly,
    Network,
    Mutating,
    Unknown,
    /// Either way is right: no bar counts it.
    Open,
}

pub(crate) struct Line {
    pub(crate) truth: Truth,
    pub(crate) class: String,
    pub(crate) text: String,
}

impl Line {
    /// Bash can parse it. What it cannot could become another line inside a wrapper.
    pub(crate) fn is_complete(&self) -> bool {
        !self.class.starts_with("text bash cannot finish")
    }

    /// As it stands in the corpus, for messages.
    pub(crate) fn shown(&self) -> String {
        shown(&self.text)
    }
}

/// On one line, as the corpus writes it.
pub(crate) fn shown(text: &str) -> String {
    text.replace('\n', "␤")
        .replace('\r', "␍")
        .replace('\t', "␉")
}

pub(crate) fn judge(text: &str) -> EffectVerdict {
    let place = LineLocation {
        cwd: "/work/demo".into(),
        home: Some("/home/ada".into()),
    };
    haft_shell::analyze(text, &place).verdict
}

/// Every line of every file.
pub(crate) fn lines() -> Vec<Line> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    files.sort();
    let mut lines = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a file of the corpus is UTF-8");
        read(&text, &mut lines);
    }
    lines
}

fn read(text: &str, lines: &mut Vec<Line>) {
    let mut open = None;
    for line in text.split('\n') {
        if let Some(header) = line.strip_prefix("== ") {
            let (verdict, class) = header.split_once(": ").expect("a class is `verdict: name`");
            let truth = match verdict {
                "readonly" => Truth::ReadOnly,
                "network" => Truth::Network,
                "mutating" => Truth::Mutating,
                "unknown" => Truth::Unknown,
                "open" => Truth::Open,
                other => panic!("no verdict is called {other}"),
            };
            open = Some((truth, class));
        } else if !line.is_empty() && !line.starts_with("## ") {
            let (truth, class) = open.expect("a class comes before its lines");
            lines.push(Line {
                truth,
                class: class.to_owned(),
                text: line
                    .replace('␤', "\n")
                    .replace('␍', "\r")
                    .replace('␉', "\t"),
            });
        }
    }
}

#[test]
fn no_line_stands_twice_and_both_sides_are_large() {
    let lines = lines();
    let mut seen = BTreeMap::new();
    for line in &lines {
        if let Some(class) = seen.insert(&line.text, &line.class) {
            panic!("`{}` is in `{class}` and `{}`", line.shown(), line.class);
        }
    }
    let count = |wanted: &[Truth]| {
        let of_them = lines.iter().filter(|line| wanted.contains(&line.truth));
        of_them.count()
    };
    assert!(count(&[Truth::ReadOnly]) >= 1_000);
    assert!(count(&[Truth::Mutating, Truth::Unknown]) >= 2_000);
}
