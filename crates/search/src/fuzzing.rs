//! Properties of the index that fuzz targets check: a wrong query plan or posting list would hide a
//! match.

use std::collections::BTreeSet;
use std::sync::Arc;

use grep_matcher::Matcher;

use crate::GrepQuery;
use crate::grep::matcher_of;
use crate::index::fuzzed::{Segment, SegmentBuilder, TrigramCollector, TrigramQuery, decode, plan};

/// Panics if the pattern matches in the text although its trigram plan rules the text out.
pub fn check_plan(pattern: &str, text: &[u8], case_insensitive: bool, multiline: bool) {
    let planned = plan(pattern, case_insensitive, multiline);
    let query = GrepQuery {
        case_insensitive,
        multiline,
        ..GrepQuery::new(pattern, "/")
    };
    let Ok(matcher) = matcher_of(&query) else {
        return;
    };
    // As in a search: the whole text in multiline mode, otherwise line by line.
    let parts: Vec<&[u8]> = match multiline {
        true => vec![text],
        false => text.split(|byte| *byte == b'\n').collect(),
    };
    if !parts
        .iter()
        .any(|part| matcher.is_match(part).unwrap_or(false))
    {
        return;
    }
    let mut collector = TrigramCollector::new();
    let trigrams = collector.collect(text, usize::MAX).unwrap_or_default();
    let mut builder = SegmentBuilder::default();
    builder.add(trigrams);
    let found = builder.build().candidates(&planned);
    let is_found = found.is_ok_and(|found| found.holds(0));
    assert!(
        is_found,
        "{pattern:?} matches in {:?}, but its plan {planned:?} rules that out",
        text.escape_ascii().to_string()
    );
}

/// Panics if a posting list does not return what was put into it. Bytes that were never a list must
/// not cause a panic.
pub fn check_postings(bytes: &[u8]) {
    let [texts, rest @ ..] = bytes else { return };
    let texts = usize::from(*texts) * 31 + 1;
    if let Ok(found) = decode(rest, texts) {
        assert!(
            found
                .iter()
                .all(|number| number < texts.next_multiple_of(64))
        );
    }
    // Every three bytes name a text (two bytes) and a trigram it contains (one byte).
    let pairs: BTreeSet<(usize, u32)> = rest
        .chunks_exact(3)
        .map(|it| {
            let text = usize::from(u16::from_le_bytes([it[0], it[1]])) % texts;
            (text, u32::from(it[2] % 16))
        })
        .collect();
    let has = |text: usize, trigram: u32| pairs.contains(&(text, trigram));
    let mut builder = SegmentBuilder::default();
    for text in 0..texts {
        let own: Vec<u32> = (0..16).filter(|trigram| has(text, *trigram)).collect();
        builder.add(&own);
    }
    let built = builder.build();
    let mut kept = Vec::new();
    let size = built.write(&mut kept).expect("memory takes everything");
    let file = tempfile_of(&kept);
    let opened = Segment::open(&Arc::new(file), 0, size).expect("it was just written");
    for segment in [&built, &opened] {
        for trigram in 0..16 {
            let found = segment.candidates(&TrigramQuery::One(trigram));
            let found: Vec<usize> = found.expect("it is sound").iter().collect();
            let expected: Vec<usize> = (0..texts).filter(|text| has(*text, trigram)).collect();
            assert_eq!(found, expected, "trigram {trigram} of {texts} texts");
        }
        let both = TrigramQuery::And(vec![TrigramQuery::One(1), TrigramQuery::One(2)]);
        let found = segment.candidates(&both).expect("it is sound");
        for text in (0..texts).filter(|text| has(*text, 1) && has(*text, 2)) {
            assert!(found.holds(text), "{text} has both");
        }
    }
}

/// Returns an open, unnamed file with these bytes.
fn tempfile_of(bytes: &[u8]) -> std::fs::File {
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write;
    let file = memfd_create("haft-fuzz", MemfdFlags::CLOEXEC).expect("a file in memory");
    let mut file = std::fs::File::from(file);
    file.write_all(bytes).expect("room");
    file
}
