//! Word-level differences between two versions of a line.

use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};
use unicode_segmentation::UnicodeSegmentation;

/// The maximum length in bytes of a compared line. Longer lines are not compared.
const MAX_LINE: usize = 2000;

/// Returns the byte ranges that differ in the old and in the new line. If less than a quarter of a
/// line stays the same, both lists are empty: the whole line is new, and highlighting parts of it
/// would only distract.
pub fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len() > MAX_LINE || new.len() > MAX_LINE {
        return (Vec::new(), Vec::new());
    }
    let (old_words, new_words) = (split_words(old), split_words(new));
    let text = |words: &[(usize, &str)]| -> Vec<String> {
        words.iter().map(|(_, word)| (*word).to_owned()).collect()
    };
    let operations = capture_diff_slices(Algorithm::Myers, &text(&old_words), &text(&new_words));
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut same = 0;
    for operation in operations {
        let (tag, before, after) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            same += old_words[before]
                .iter()
                .filter(|(_, word)| !word.trim().is_empty())
                .count();
            continue;
        }
        join(&mut removed, &old_words[before]);
        join(&mut added, &new_words[after]);
    }
    let count = |words: &[(usize, &str)]| {
        words
            .iter()
            .filter(|(_, word)| !word.trim().is_empty())
            .count()
    };
    if same * 4 < count(&old_words).max(count(&new_words)) {
        return (Vec::new(), Vec::new());
    }
    (removed, added)
}

fn split_words(line: &str) -> Vec<(usize, &str)> {
    line.split_word_bound_indices().collect()
}

fn join(places: &mut Vec<Range<usize>>, words: &[(usize, &str)]) {
    let (Some((start, _)), Some((last, word))) = (words.first(), words.last()) else {
        return;
    };
    let end = last + word.len();
    match places.last_mut() {
        Some(before) if before.end == *start => before.end = end,
        _ => places.push(*start..end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked<'a>(line: &'a str, places: &[Range<usize>]) -> Vec<&'a str> {
        places.iter().map(|place| &line[place.clone()]).collect()
    }

    #[test]
    fn only_what_differs_is_marked() {
        let (old, new) = ("if total > 5000 {", "if total >= 5000 {");
        let (removed, added) = changed_words(old, new);
        assert_eq!(marked(old, &removed), Vec::<&str>::new());
        assert_eq!(marked(new, &added), ["="]);
        let (old, new) = ("let name = old_name();", "let name = new_name();");
        let (removed, added) = changed_words(old, new);
        assert_eq!(
            (marked(old, &removed), marked(new, &added)),
            (vec!["old_name"], vec!["new_name"])
        );
    }

    #[test]
    fn lines_with_nothing_in_common_are_not_marked() {
        assert_eq!(
            changed_words("one two", "three four five six"),
            (vec![], vec![])
        );
        let long = "x ".repeat(2000);
        assert_eq!(changed_words(&long, "x"), (vec![], vec![]));
    }
}
