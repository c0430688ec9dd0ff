//! What holds for every edit of every file: shared by the property tests, the
//! seeds and the fuzz target (`fuzz/fuzz_targets/edit.rs` includes this file).

use haft_journal::edit::{
    EditError, EditPlan, EditRequest, MatchTier, apply, explain_missing, plan,
};

/// One question to Edit, owned.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) file: Vec<u8>,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) replace_all: bool,
}

impl Case {
    /// Any bytes as a case: a letter for the form of the file and of the call, then
    /// file, old and new text, separated by 0x1E. Capital letter: replace all.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (form, rest) = bytes.split_first()?;
        let mut parts = rest.splitn(3, |&byte| byte == 0x1e);
        let file = parts.next()?;
        let text =
            |part: Option<&[u8]>| String::from_utf8_lossy(part.unwrap_or_default()).into_owned();
        let shown = String::from_utf8_lossy(file);
        let marked = || std::iter::once('\u{feff}').chain(shown.chars());
        let utf16 = || {
            marked()
                .collect::<String>()
                .encode_utf16()
                .collect::<Vec<_>>()
        };
        let file = match form.to_ascii_lowercase() {
            b'l' => utf16().into_iter().flat_map(u16::to_le_bytes).collect(),
            b'b' => utf16().into_iter().flat_map(u16::to_be_bytes).collect(),
            b'w' => marked().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
            b'm' => marked().collect::<String>().into_bytes(),
            b'c' => shown.replace('\n', "\r\n").into_bytes(),
            _ => file.to_vec(),
        };
        Some(Self {
            file,
            old: text(parts.next()),
            new: text(parts.next()),
            replace_all: form.is_ascii_uppercase(),
        })
    }
}

/// Plans and applies; panics if a promise is broken.
pub(crate) fn check(case: &Case) {
    let change = EditRequest {
        old: &case.old,
        new: &case.new,
        replace_all: case.replace_all,
    };
    let file = &case.file;
    match plan(file, &change) {
        Ok(plan) => check_plan(case, &plan),
        Err(EditError::NotFound { help }) => {
            assert!(help.lines().count() <= 60, "long help: {help}");
            assert_eq!(explain_missing(file, &case.old, &case.new), help);
            assert_eq!(
                exact_count(case),
                Some(0).filter(|_| exact_count(case).is_some())
            );
        }
        Err(EditError::Ambiguous {
            count,
            tier: MatchTier::Exact,
            ..
        }) => {
            assert!(count > 1 && !case.replace_all);
            assert!(exact_count(case).is_none_or(|real| real == count));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_plan(case: &Case, plan: &EditPlan) {
    let file = &case.file;
    let result = apply(file, plan);
    assert_ne!(&result, file, "an edit that changes nothing");
    assert!(!plan.splices.is_empty());
    assert_eq!(plan.places.len(), plan.splices.len());
    if !case.replace_all {
        assert_eq!(plan.splices.len(), 1, "more than one place");
    }
    // Outside the splices every byte is where it was.
    let (mut before, mut after) = (0, 0);
    for splice in &plan.splices {
        assert!(before <= splice.range.start && splice.range.start <= splice.range.end);
        let gap = splice.range.start - before;
        assert_eq!(file[before..splice.range.start], result[after..after + gap]);
        after += gap + splice.text.len();
        before = splice.range.end;
    }
    assert_eq!(file[before..], result[after..]);
    if let (Ok(text), Ok(new)) = (str::from_utf8(file), str::from_utf8(&result)) {
        check_text(case, plan, text, new);
    } else {
        assert!(str::from_utf8(file).is_err(), "UTF-8 became something else");
    }
}

/// Each tier by its definition, the slow way. LF only: breaks have tests of their own.
fn check_text(case: &Case, plan: &EditPlan, text: &str, new: &str) {
    if text.contains('\r')
        || case.old.contains('\r')
        || text.starts_with('\u{feff}')
        || case.old.is_empty()
    {
        return;
    }
    let (old, range) = (case.old.as_str(), plan.splices[0].range.clone());
    let exact = count(text, old);
    match plan.tier {
        MatchTier::Exact => assert!(exact == 1 || case.replace_all && exact > 1),
        _ => assert_eq!(exact, 0, "an exact match was passed over"),
    }
    let signs = count(&plain(text), &plain(old));
    match plan.tier {
        MatchTier::Exact => {}
        MatchTier::Typography => {
            assert!(signs == 1 || case.replace_all && signs > 1);
            if !case.new.is_empty() {
                assert_eq!(plain(&text[range.clone()]), plain(old));
            }
        }
        _ => assert_eq!(signs, 0),
    }
    let projects = matches!(plan.tier, MatchTier::Typography | MatchTier::TrailingBlanks);
    if projects && !case.new.is_empty() && !case.new.contains('\r') {
        // But for signs and blanks at line ends it is what was typed.
        let bare = |text: &str| -> Vec<String> {
            let lines = text.split('\n');
            let bare = |line: &str| plain(line).trim_end_matches([' ', '\t']).to_owned();
            lines.map(bare).collect()
        };
        let mut literal = text.to_owned();
        for splice in plan.splices.iter().rev() {
            literal.replace_range(splice.range.clone(), &case.new);
        }
        assert_eq!(bare(new), bare(&literal));
    }
    let matched = || text[range.clone()].split('\n');
    match plan.tier {
        MatchTier::TrailingBlanks if !case.new.is_empty() => {
            for (file, old) in matched().zip(old.split('\n')) {
                assert_eq!(
                    plain(file).trim_end_matches([' ', '\t']),
                    plain(old).trim_end_matches([' ', '\t'])
                );
            }
        }
        MatchTier::EndOfFile => {
            assert!(range.end == text.len() && !text.ends_with('\n') && old.ends_with('\n'));
            assert_eq!(&text[range.clone()], old.trim_end_matches('\n'), "{new:?}");
        }
        MatchTier::LineNumbers => {
            assert!(range.start == 0 || text[..range.start].ends_with('\n'));
            let number: usize = old
                .trim_start()
                .split(['\t', '→'])
                .next()
                .unwrap_or_default()
                .parse()
                .unwrap_or(0);
            assert_eq!(number, text[..range.start].matches('\n').count() + 1);
        }
        MatchTier::Indentation | MatchTier::IndentationShift(_) => {
            assert!(range.start == 0 || text[..range.start].ends_with('\n'));
            let trimmed = |text: &str| -> Vec<String> {
                text.split('\n')
                    .map(|line| line.trim_matches([' ', '\t']).to_owned())
                    .collect()
            };
            let (all, wanted) = (
                trimmed(text),
                trimmed(old.strip_suffix('\n').unwrap_or(old)),
            );
            assert_eq!(
                all.windows(wanted.len())
                    .filter(|window| *window == wanted)
                    .count(),
                1
            );
        }
        _ => {}
    }
}

/// How often the old text occurs, where that is easy to say.
fn exact_count(case: &Case) -> Option<usize> {
    let text = str::from_utf8(&case.file).ok()?;
    let easy = !text.contains('\r') && !case.old.contains('\r') && !text.starts_with('\u{feff}');
    (easy && !case.old.is_empty()).then(|| count(text, &case.old))
}

fn count(text: &str, needle: &str) -> usize {
    text.char_indices()
        .filter(|(at, _)| text[*at..].starts_with(needle))
        .count()
}

pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '‘' | '’' | '‚' | '‛' => '\'',
            '“' | '”' | '„' | '‟' => '"',
            '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            other => other,
        })
        .collect()
}
