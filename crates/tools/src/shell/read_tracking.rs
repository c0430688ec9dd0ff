//! Read tracking for commands. A command that only shows one file is recorded as a read of that
//! file, so that Edit accepts it afterwards.

use std::{path::PathBuf, sync::Arc};

use haft_contract::CallContext;
use haft_journal::{Journal, PageRequest};
use haft_shell::{Analysis, Effect, LinePart};

use crate::blocking::blocking;

/// Commands that show a whole file.
const WHOLE: [&str; 4] = ["cat", "nl", "bat", "batcat"];
/// Commands that show a part of a file. `sed` only with `-n`, which prints only the requested
/// lines.
const PART: [&str; 7] = ["head", "tail", "sed", "grep", "egrep", "fgrep", "rg"];

/// A file that a line has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownFile {
    path: PathBuf,
    whole: bool,
}

/// Records a read of the file if the line shows exactly one. The caller must have shown the output
/// in full.
pub(crate) async fn record_read(analysis: &Analysis, command: &str, cx: &CallContext) {
    let Some(shown) = shown(analysis, command) else {
        return;
    };
    let Ok(journal) = cx.services.get::<Journal>() else {
        return;
    };
    let look = move |journal: Arc<Journal>| {
        let mut request = PageRequest::default();
        if !shown.whole {
            // Reads only one line, so that the read of a longer file is recorded as partial.
            request.max_lines = 1;
        }
        // A file that cannot be read as text is not recorded.
        let _ = journal.read(&shown.path, &request);
    };
    let _ = blocking(move || look(journal)).await;
}

fn shown(analysis: &Analysis, command: &str) -> Option<ShownFile> {
    let [part] = analysis.parts.as_slice() else {
        return None;
    };
    // The text of a part excludes redirections. The comparison ensures that the line contains only
    // this part.
    if part.text != command.trim() || !part.assignments.is_empty() {
        return None;
    }
    let name = part.command_name()?;
    let whole = WHOLE.contains(&name);
    let prints = name != "sed" || has_option(part, "-n");
    if !(whole || PART.contains(&name) && prints) {
        return None;
    }
    let mut files = part
        .finding
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Read(read) if read.content && !read.is_recursive => Some(&read.path),
            _ => None,
        });
    let (Some(file), None) = (files.next(), files.next()) else {
        return None;
    };
    let [place] = part.cwd.as_deref()? else {
        return None;
    };
    Some(ShownFile {
        path: place.join(file.text()?),
        whole,
    })
}

fn has_option(part: &LinePart, option: &str) -> bool {
    part.argv.iter().any(|word| word.text() == Some(option))
}

#[cfg(test)]
mod tests {
    use haft_shell::{LineLocation, analyze};

    use super::*;

    #[test]
    fn only_a_line_that_shows_one_file_counts() {
        let place = LineLocation {
            cwd: PathBuf::from("/w"),
            home: None,
        };
        let look = |line: &str| shown(&analyze(line, &place), line);
        let seen = |path: &str, whole| {
            let path = PathBuf::from(path);
            Some(ShownFile { path, whole })
        };
        let cases = [
            ("cat a.txt", seen("/w/a.txt", true)),
            ("  nl -ba /x/a.txt ", seen("/x/a.txt", true)),
            ("head -n 5 a.txt", seen("/w/a.txt", false)),
            ("sed -n '3,9p' a.txt", seen("/w/a.txt", false)),
            ("grep -n foo a.txt", seen("/w/a.txt", false)),
            ("sed 's/a/b/' a.txt", None),
            ("cat a.txt b.txt", None),
            ("cat a.txt | head", None),
            ("cat a.txt > b.txt", None),
            ("cat < a.txt", None),
            ("cat *.txt", None),
            ("cat $x", None),
            ("cat a.txt; ls", None),
            ("cd b && cat a.txt", None),
            ("grep -r foo src", None),
            ("wc a.txt", None),
        ];
        for (line, expected) in cases {
            assert_eq!(look(line), expected, "{line}");
        }
    }
}
