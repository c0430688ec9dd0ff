//! What must hold for any bytes and any texts.

use haft_journal::edit::{EditError, EditRequest, MatchTier, apply, plan};
use haft_journal::readable_text;
use proptest::prelude::*;

use crate::damage::{Damage, Hunk, HunkLine, tolerant_count};
use crate::invariants::{Case, check, plain};

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
    fn replaced_lines_keep_their_breaks(
        breaks in prop::collection::vec(any::<bool>(), 1..8),
        from in 0_usize..8,
        count in 1_usize..8,
        changed in prop::collection::vec(any::<bool>(), 8),
        ends in any::<bool>(),
    ) {
        let from = from % breaks.len();
        let range = from..(from + count).min(breaks.len());
        let name = |line: usize, new: bool| format!("line {line}{}", if new { "!" } else { "" });
        let file = |new: &dyn Fn(usize) -> bool| -> String {
            let line = |(at, crlf): (usize, &bool)| name(at, new(at)) + if *crlf { "\r\n" } else { "\n" };
            breaks.iter().enumerate().map(line).collect()
        };
        let is_new = |line: usize| range.contains(&line) && (changed[line] || line == range.start);
        let typed = |new: &dyn Fn(usize) -> bool| {
            let lines: Vec<String> = range.clone().map(|line| name(line, new(line))).collect();
            lines.join("\n") + if ends { "\n" } else { "" }
        };
        let (old, new) = (typed(&|_| false), typed(&is_new));
        let before = file(&|_| false);
        let plan = plan(before.as_bytes(), &EditRequest { old: &old, new: &new, replace_all: false });
        let after = apply(before.as_bytes(), &plan.unwrap());
        prop_assert_eq!(String::from_utf8(after).unwrap(), file(&is_new));
    }

    #[test]
    fn bytes_outside_the_matches_never_change(
        file in file(), old in text(), new in text(), replace_all: bool
    ) {
        if let Ok(plan) = plan(&file, &EditRequest { old: &old, new: &new, replace_all }) {
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
        if let Ok(plan) = plan(&file, &EditRequest { old: &old, new: &new, replace_all: true })
            && plan.tier == MatchTier::Exact
            && file.contains(&b'\n')
        {
            for splice in &plan.splices {
                let matched = folded(&file[splice.range.clone()]);
                let wanted = folded(old.as_bytes());
                let without_mark = folded(old.strip_prefix('\u{feff}').unwrap_or(&old).as_bytes());
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
        let change = EditRequest { old: &old, new: "x", replace_all: false };
        let count = (0..file.len()).filter(|&at| file[at..].starts_with(&old)).count();
        match plan(file.as_bytes(), &change) {
            Ok(plan) if plan.tier == MatchTier::EndOfFile => {
                prop_assert!(count == 0 && old.ends_with('\n') && !file.ends_with('\n'));
            }
            Ok(plan) => prop_assert_eq!((count, plan.splices.len(), plan.tier), (1, 1, MatchTier::Exact)),
            Err(EditError::NotFound { .. }) => prop_assert_eq!(count, 0),
            Err(EditError::Ambiguous { count: told, .. }) => prop_assert_eq!(told, count),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn replacing_all_agrees_with_the_plain_replacement(file in "[ab\n]{0,30}", old in "[ab\n]{1,3}") {
        let change = EditRequest { old: &old, new: "x", replace_all: true };
        if let Ok(plan) = plan(file.as_bytes(), &change) && plan.tier == MatchTier::Exact {
            prop_assert_eq!(apply(file.as_bytes(), &plan), file.replace(&old, "x").into_bytes());
        }
    }

    #[test]
    fn in_a_crlf_file_no_lone_break_is_written(lines in prop::collection::vec("[ab]{0,2}", 1..8), old in "[ab\n]{1,4}", new in "[ab\n]{0,4}") {
        let file: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let change = EditRequest { old: &old, new: &new, replace_all: true };
        if let Ok(plan) = plan(file.as_bytes(), &change) {
            let result = String::from_utf8(apply(file.as_bytes(), &plan)).unwrap();
            prop_assert_eq!(result.matches('\n').count(), result.matches("\r\n").count());
            prop_assert_eq!(result.matches('\r').count(), result.matches("\r\n").count());
        }
    }

    #[test]
    fn any_bytes_can_be_asked_for_an_edit(file in prop::collection::vec(any::<u8>(), 0..200), old in ".{0,4}", new in ".{0,4}", replace_all: bool) {
        if let Ok(plan) = plan(&file, &EditRequest { old: &old, new: &new, replace_all }) {
            apply(&file, &plan);
        }
    }
}

/// A line of source, with signs that are easily miscopied.
fn line() -> impl Strategy<Value = String> {
    let indent = prop_oneof![Just(""), Just("  "), Just("    "), Just("\t"), Just("\t\t")];
    let body = prop_oneof![
        Just("let name = \"text\";"),
        Just("say ‘hello’ – it’s “me”"),
        Just("don't(x - y)"),
        Just("}"),
        Just(""),
        Just("return 1\u{a0}000"),
        Just("naïve café"),
    ];
    let end = prop_oneof![6 => Just(""), 1 => Just("  "), 1 => Just("\t")];
    (indent, body, 0..40_u8, end).prop_map(|(indent, body, number, end)| match (body, number) {
        ("" | "}", _) => format!("{indent}{body}{end}"),
        // Most lines are unlike each other.
        (_, number) if number > 5 => format!("{indent}{body} // {number}{end}"),
        _ => format!("{indent}{body}{end}"),
    })
}

/// A file, whether it ends in a break, and which lines become which.
fn hunk() -> impl Strategy<Value = (String, Hunk)> {
    let lines = prop::collection::vec(line(), 1..14);
    let changed =
        prop::collection::vec(prop_oneof![3 => Just(None), 2 => line().prop_map(Some)], 8);
    (
        lines,
        any::<bool>(),
        any::<prop::sample::Index>(),
        1..6_usize,
        changed,
        prop::option::of(line()),
    )
        .prop_map(|(lines, ended, start, length, changed, extra)| {
            let mut text = lines.join("\n");
            if ended {
                text.push('\n');
            }
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let start = start.index(lines.len().max(1));
            let mut hunk = Hunk {
                first_line: start + 1,
                lines: Vec::new(),
            };
            for (line, change) in lines[start.min(lines.len())..]
                .iter()
                .take(length)
                .zip(changed)
            {
                let end = if line.ends_with('\n') { "\n" } else { "" };
                match change {
                    None => hunk.lines.push(HunkLine::Kept((*line).to_owned())),
                    Some(change) => {
                        hunk.lines.push(HunkLine::Removed((*line).to_owned()));
                        hunk.lines.push(HunkLine::Added(change + end));
                    }
                }
            }
            if let Some(extra) = extra
                && let Some(HunkLine::Kept(last) | HunkLine::Added(last)) = hunk.lines.last()
                && last.ends_with('\n')
            {
                hunk.lines.push(HunkLine::Added(extra + "\n"));
            }
            (text, hunk)
        })
}

/// Equal, but for lines that are exactly those of the file: to a model that sees no
/// blanks, a line that is in both its texts was kept, and keeps the blanks of the file.
fn equal_or_kept(result: &str, expected: &str, file: &str) -> bool {
    fn bare(line: &str) -> &str {
        line.trim_end_matches([' ', '\t'])
    }
    let lines = |text: &str| {
        text.replace("\r\n", "\n")
            .split('\n')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (result, expected, file) = (lines(result), lines(expected), lines(file));
    result.len() == expected.len()
        && result.iter().zip(&expected).all(|(line, wanted)| {
            line == wanted || bare(line) == bare(wanted) && file.contains(line)
        })
}

fn encoded(text: &str, form: u8) -> Vec<u8> {
    let marked = format!("\u{feff}{text}");
    match form {
        0 => text.as_bytes().to_vec(),
        1 => text.replace('\n', "\r\n").into_bytes(),
        2 => marked.into_bytes(),
        3 => marked.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        4 => marked.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => marked
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect(),
    }
}

/// Lines of code at several depths, and which of them an edit replaces or keeps.
#[derive(Debug, Clone)]
struct ShiftedEdit {
    before: Vec<String>,
    kept_and_new: Vec<(String, Vec<String>)>,
    after: Vec<String>,
}

fn shifted_edit() -> impl Strategy<Value = ShiftedEdit> {
    let line = (0..4_usize, "[a-d]{1,2}|\\}|")
        .prop_map(|(depth, text)| match text.is_empty() {
            true => text,
            false => "\t".repeat(depth) + &text,
        })
        .boxed();
    let lines = |count| prop::collection::vec(line.clone(), count);
    let kept = (line.clone(), lines(0..3));
    (lines(0..4), prop::collection::vec(kept, 1..6), lines(0..4)).prop_map(
        |(before, kept_and_new, after)| ShiftedEdit {
            before,
            kept_and_new,
            after,
        },
    )
}

fn indented(text: &str, prefix: &str) -> String {
    text.split('\n')
        .map(|line| match line.is_empty() {
            true => String::new(),
            false => format!("{prefix}{line}"),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each line of the old text is kept, replaced by new ones, or followed by them.
    #[test]
    fn a_shifted_edit_equals_the_edit_on_the_file_as_it_was(
        edit in shifted_edit(), kinds in prop::collection::vec(0..3_u8, 6),
        prefix in prop::sample::select(vec!["\t", "\t\t", "  ", "    ", "\t "]), removed: bool
    ) {
        let old: Vec<&str> = edit.kept_and_new.iter().map(|(line, _)| line.as_str()).collect();
        let mut new: Vec<&str> = Vec::new();
        for ((line, added), kind) in edit.kept_and_new.iter().zip(kinds) {
            if kind != 0 {
                new.push(line);
            }
            if kind != 1 {
                new.extend(added.iter().map(String::as_str));
            }
        }
        prop_assume!(old.iter().any(|line| !line.is_empty() && new.contains(line)));
        let whole = |middle: &[&str]| {
            let lines = edit.before.iter().map(String::as_str);
            let lines = lines.chain(middle.iter().copied());
            lines.chain(edit.after.iter().map(String::as_str)).collect::<Vec<_>>().join("\n") + "\n"
        };
        let (file, expected) = (whole(&old), whole(&new));
        let (old, new) = (old.join("\n"), new.join("\n"));
        prop_assume!(tolerant_count(&file, &old) == 1);
        // Either the file or the typed text has the additional prefix.
        let (file, expected, old, new) = match removed {
            true => (file, expected, indented(&old, prefix), indented(&new, prefix)),
            false => (indented(&file, prefix), indented(&expected, prefix), old, new),
        };
        let change = EditRequest { old: &old, new: &new, replace_all: false };
        if let Ok(plan) = plan(file.as_bytes(), &change)
            && matches!(plan.tier, MatchTier::Indentation | MatchTier::IndentationShift(_))
        {
            let result = String::from_utf8(apply(file.as_bytes(), &plan)).unwrap();
            prop_assert_eq!(result, expected, "{:?}", plan.tier);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_old_text_is_applied_right_or_refused((file, hunk) in hunk(), form in 0..6_u8) {
        let expected = encoded(&hunk.applied_to(&file), form);
        let source = encoded(&file, form);
        let clean = hunk.sides(Damage::None).0;
        let unique = tolerant_count(&file, &clean) == 1;
        for damage in Damage::ALL {
            let (old, new) = hunk.sides(damage);
            let change = EditRequest { old: &old, new: &new, replace_all: false };
            // A text that is damaged into one that is also there names that one.
            let is_there = plain(&file).contains(&plain(&old)) && plain(&old) != plain(&clean);
            match plan(&source, &change) {
                Ok(plan) if unique && !is_there => {
                    let (result, expected) = (readable_text(&apply(&source, &plan)), readable_text(&expected));
                    let blind = damage == Damage::BlanksLost;
                    let same = result == expected || blind && equal_or_kept(&result, &expected, &file);
                    prop_assert!(same, "{:?} {:?}: {:?} → {:?}\n{}\ninstead of\n{}", damage, plan.tier, old, new, result, expected);
                }
                Ok(plan) => prop_assert_eq!(plan.splices.len(), 1),
                Err(error) => prop_assert!(damage != Damage::None || !unique || old == new || file == hunk.applied_to(&file), "{}", error),
            }
        }
    }

    #[test]
    fn every_promise_holds_for_texts_full_of_near_matches(
        form in prop::sample::select(b"ulbwmcULBWMC".to_vec()),
        file in prop::collection::vec(line(), 0..8), old in prop::collection::vec(line(), 1..3), new in prop::collection::vec(line(), 0..3), final_break: bool
    ) {
        let end = if final_break { "\n" } else { "" };
        let text = format!("{}{}\x1e{}{end}\x1e{}{end}", form as char, file.join("\n"), old.join("\n"), new.join("\n"));
        check(&Case::parse(text.as_bytes()).unwrap());
    }

    #[test]
    fn every_promise_holds_for_any_bytes(bytes in prop::collection::vec(prop_oneof![Just(0x1e), Just(b'\n'), Just(b' '), Just(b'a'), any::<u8>()], 1..60)) {
        if let Some(case) = Case::parse(&bytes) {
            check(&case);
        }
    }

    #[test]
    fn every_promise_holds_for_small_texts(
        form in prop::sample::select(b"uUlCc".to_vec()), file in "[a‘' \t\n2]{0,24}", old in "[a‘' \t\n2]{1,5}", new in "[a‘' \t\nb]{0,5}"
    ) {
        check(&Case::parse(format!("{}{file}\x1e{old}\x1e{new}", form as char).as_bytes()).unwrap());
    }

    #[test]
    fn every_promise_holds_for_lines_that_come_and_go(old in "([abc]\n){0,8}", new in "([abc]\n){0,8}") {
        // One sign is another, so the change is projected.
        let case = format!("u’\n{old}\x1e'\n{old}\x1e'\n{new}");
        check(&Case::parse(case.as_bytes()).unwrap());
    }
}

#[test]
fn the_seeds_of_the_fuzz_target_keep_every_promise() {
    let seeds = crate::seeds("edit");
    assert!(seeds.len() >= 20, "only {} seeds", seeds.len());
    for (name, bytes) in seeds {
        check(&Case::parse(&bytes).unwrap_or_else(|| panic!("{name}")));
    }
}
