//! The display of changed files in an editor.

use std::{fs, path::Path};

use haft_contract::{CardSection, DiffHunk};
use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum size in bytes of a file that is shown in full before and after the change.
const WHOLE_BYTES: usize = 64 << 10;

/// Returns the diffs in a result, which may change one file or several.
pub(crate) fn result_diffs(structured: &Value, cwd: &Path) -> Vec<Value> {
    let one = std::iter::once(structured);
    let several = structured["files"].as_array().into_iter().flatten();
    one.chain(several)
        .flat_map(|file| file_diffs(file, cwd))
        .collect()
}

fn file_diffs(file: &Value, cwd: &Path) -> Vec<Value> {
    let name = ["filePath", "path", "file", "notebook_path"]
        .iter()
        .find_map(|key| file[*key].as_str());
    let Some(name) = name else {
        return Vec::new();
    };
    let path = cwd.join(name);
    if file["type"] == "create"
        && let Some(content) = file["content"].as_str()
    {
        return vec![whole_file_diff(&path, None, content)];
    }
    let hunks: Vec<DiffHunk> =
        Deserialize::deserialize(&file["structuredPatch"]).unwrap_or_default();
    let original = ["originalFile", "original_file"]
        .iter()
        .find_map(|key| file[*key].as_str());
    hunk_diffs(&path, original, &hunks)
}

/// Returns the diffs of a call from its preview. Reads the file again, to show the whole file after
/// the change.
pub(crate) fn preview_diffs(body: &[CardSection], path: &Path) -> Vec<Value> {
    let diffs = body.iter().filter_map(|piece| match piece {
        CardSection::Diff(hunks) => Some(hunks),
        _ => None,
    });
    let hunks: Vec<DiffHunk> = diffs.flatten().cloned().collect();
    if hunks.is_empty() {
        return Vec::new();
    }
    let is_small =
        fs::metadata(path).is_ok_and(|is| is.is_file() && is.len() <= WHOLE_BYTES as u64);
    let text = is_small.then(|| fs::read_to_string(path).ok()).flatten();
    if text.is_none() && !path.exists() {
        let added = hunks.iter().flat_map(|hunk| &hunk.lines);
        let added = added.filter_map(|line| line.strip_prefix('+'));
        let text: String = added.flat_map(|line| [line, "\n"]).collect();
        return vec![whole_file_diff(path, None, &text)];
    }
    hunk_diffs(path, text.as_deref(), &hunks)
}

fn hunk_diffs(path: &Path, original: Option<&str>, hunks: &[DiffHunk]) -> Vec<Value> {
    if hunks.is_empty() {
        return Vec::new();
    }
    let changed = original.and_then(|old| Some((old, apply(old, hunks)?)));
    match changed {
        Some((old, new)) if old.len() <= WHOLE_BYTES && new.len() <= WHOLE_BYTES => {
            vec![whole_file_diff(path, Some(old), &new)]
        }
        _ => hunks.iter().map(|hunk| part(path, hunk)).collect(),
    }
}

fn whole_file_diff(path: &Path, old: Option<&str>, new: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": old, "newText": new})
}

fn part(path: &Path, hunk: &DiffHunk) -> Value {
    let side = |other: char| -> String {
        let lines = hunk.lines.iter().filter(|line| !line.starts_with(other));
        lines
            .flat_map(|line| [line.get(1..).unwrap_or_default(), "\n"])
            .collect()
    };
    whole_file_diff(path, Some(&side('+')), &side('-'))
}

/// Applies the hunks to a text. Returns `None` if they do not match: lines may be truncated, or the
/// file may have changed.
fn apply(old: &str, hunks: &[DiffHunk]) -> Option<String> {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut new = String::with_capacity(old.len());
    let mut at = 0;
    let mut ends_with_addition = false;
    for hunk in hunks {
        let start = usize::try_from(hunk.old_start).ok()?.saturating_sub(1);
        let start = match hunk.old_lines {
            // A hunk without old lines adds its lines after this line.
            0 => usize::try_from(hunk.old_start).ok()?,
            _ => start,
        };
        new.extend(lines.get(at..start)?.iter().copied());
        at = start;
        for line in &hunk.lines {
            let (sign, text) = (line.chars().next()?, line.get(1..)?);
            ends_with_addition = false;
            match sign {
                '+' if text.contains("… [cut: ") => return None,
                '+' => {
                    if !new.is_empty() && !new.ends_with('\n') {
                        new.push('\n');
                    }
                    new.push_str(text);
                    new.push('\n');
                    ends_with_addition = true;
                }
                ' ' | '-' => {
                    let is = lines.get(at)?;
                    let same = is.trim_end_matches(['\r', '\n']) == text.trim_end_matches('\r');
                    if !same {
                        return None;
                    }
                    if sign == ' ' {
                        new.push_str(is);
                    }
                    at += 1;
                }
                _ => return None,
            }
        }
    }
    if ends_with_addition && at >= lines.len() && !old.is_empty() && !old.ends_with('\n') {
        new.pop();
    }
    new.extend(lines.get(at..)?.iter().copied());
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(old_start: u64, lines: &[&str]) -> DiffHunk {
        let count =
            |other: char| lines.iter().filter(|line| !line.starts_with(other)).count() as u64;
        DiffHunk {
            old_start,
            old_lines: count('+'),
            new_start: old_start,
            new_lines: count('-'),
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        }
    }

    #[test]
    fn small_files_are_shown_whole() {
        let hunks = [hunk(2, &[" b", "-c", "+C", "+D"])];
        assert_eq!(apply("a\nb\nc\nd", &hunks).unwrap(), "a\nb\nC\nD\nd");
        assert_eq!(apply("a\nb\nc", &hunks).unwrap(), "a\nb\nC\nD");
        assert_eq!(
            apply("a\r\nb\r\nc\r\n", &hunks).unwrap(),
            "a\r\nb\r\nC\nD\n"
        );
        assert_eq!(apply("", &[hunk(0, &["+x"])]).unwrap(), "x\n");
        assert_eq!(apply("a\n", &[hunk(1, &["+x"])]).unwrap(), "a\nx\n");
    }

    #[test]
    fn changes_that_do_not_fit_are_shown_one_by_one() {
        let hunks = [hunk(2, &[" other", "-c", "+C"])];
        assert_eq!(apply("a\nb\nc\n", &hunks), None);
        let shown = hunk_diffs(Path::new("/p/a"), Some("a\nb\nc\n"), &hunks);
        assert_eq!(
            shown,
            [
                json!({"type": "diff", "path": "/p/a", "oldText": "other\nc\n", "newText": "other\nC\n"})
            ]
        );
    }

    #[test]
    fn a_new_file_has_no_old_text() {
        let result =
            json!({"type": "create", "filePath": "b.txt", "content": "x\n", "structuredPatch": []});
        let shown = result_diffs(&result, Path::new("/p"));
        assert_eq!(
            shown,
            [json!({"type": "diff", "path": "/p/b.txt", "oldText": null, "newText": "x\n"})]
        );
    }
}
