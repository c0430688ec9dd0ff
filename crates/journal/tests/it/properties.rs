//! What must hold for any bytes and any texts.

use haft_journal::edit::{Change, EditError, apply, plan};
use proptest::prelude::*;

/// Few different bytes, so that matches, breaks and broken characters are frequent.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop_oneof![Just(b"a".to_vec()), Just(b"b".to_vec()), Just(b" ".to_vec())],
        2 => prop_oneof![Just(b"\n".to_vec()), Just(b"\r\n".to_vec()), Just(b"\r".to_vec())],
        1 => prop_oneof![Just("é".as_bytes().to_vec()), Just(b"\xe9".to_vec()), Just(b"\xef\xbb\xbf".to_vec())],
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop_oneof![Just("a"), Just("b"), Just(" ")],
        2 => prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        1 => prop_oneof![Just("é"), Just("\u{feff}")],
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn folded(bytes: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    for (position, &byte) in bytes.iter().enumerate() {
        if byte != b'\r' || bytes.get(position + 1) != Some(&b'\n') {
            result.push(byte);
        }
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_outside_the_matches_never_change(
        file in file(), old in text(), new in text(), replace_all: bool
    ) {
        if let Ok(plan) = plan(&file, &Change { old: &old, new: &new, replace_all }) {
            let result = apply(&file, &plan);
            let (mut before, mut after) = (0, 0);
            for splice in &plan.splices {
                let gap = splice.range.start - before;
                prop_assert_eq!(&file[before..splice.range.start], &result[after..after + gap]);
                after += gap;
                prop_assert_eq!(&result[after..after + splice.text.len()], &splice.text[..]);
                after += splice.text.len();
                before = splice.range.end;
            }
            prop_assert_eq!(&file[before..], &result[after..]);
            prop_assert_ne!(result, file);
            prop_assert_eq!(plan.places.len(), plan.splices.len());
        }
    }

    #[test]
    fn a_match_equals_the_old_text_but_for_breaks(file in file(), old in text(), new in "[ab]{1,3}") {
        if let Ok(plan) = plan(&file, &Change { old: &old, new: &new, replace_all: true })
            && file.contains(&b'\n')
        {
            for splice in &plan.splices {
                let matched = folded(&file[splice.range.clone()]);
                let wanted = folded(old.as_bytes());
                let without_mark = folded(old.trim_start_matches('\u{feff}').as_bytes());
                prop_assert!(matched == wanted || matched == without_mark);
                // Never half of a CRLF.
                for border in [splice.range.start, splice.range.end] {
                    let splits = border > 0 && file[border - 1] == b'\r' && file.get(border) == Some(&b'\n');
                    prop_assert!(!splits);
                }
            }
        }
    }

    #[test]
    fn one_place_is_changed_only_if_there_is_one(file in "[ab\n]{0,30}", old in "[ab\n]{1,3}") {
        let change = Change { old: &old, new: "x", replace_all: false };
        let count = (0..file.len()).filter(|&at| file[at..].starts_with(&old)).count();
        match plan(file.as_bytes(), &change) {
            Ok(plan) => prop_assert_eq!((count, plan.splices.len()), (1, 1)),
            Err(EditError::NotFound { .. }) => prop_assert_eq!(count, 0),
            Err(EditError::Ambiguous { count: told, .. }) => prop_assert_eq!(told, count),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn replacing_all_agrees_with_the_plain_replacement(file in "[ab\n]{0,30}", old in "[ab\n]{1,3}") {
        let change = Change { old: &old, new: "x", replace_all: true };
        if let Ok(plan) = plan(file.as_bytes(), &change) {
            prop_assert_eq!(apply(file.as_bytes(), &plan), file.replace(&old, "x").into_bytes());
        }
    }

    #[test]
    fn in_a_crlf_file_no_lone_break_is_written(lines in prop::collection::vec("[ab]{0,2}", 1..8), old in "[ab\n]{1,4}", new in "[ab\n]{0,4}") {
        let file: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let change = Change { old: &old, new: &new, replace_all: true };
        if let Ok(plan) = plan(file.as_bytes(), &change) {
            let result = String::from_utf8(apply(file.as_bytes(), &plan)).unwrap();
            prop_assert_eq!(result.matches('\n').count(), result.matches("\r\n").count());
            prop_assert_eq!(result.matches('\r').count(), result.matches("\r\n").count());
        }
    }

    #[test]
    fn any_bytes_can_be_asked_for_an_edit(file in prop::collection::vec(any::<u8>(), 0..200), old in ".{0,4}", new in ".{0,4}", replace_all: bool) {
        if let Ok(plan) = plan(&file, &Change { old: &old, new: &new, replace_all }) {
            apply(&file, &plan);
        }
    }
}
