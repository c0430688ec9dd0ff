//! What Read shows: lines, limits, encodings, large files.

use std::fs::File;
use std::io::{BufWriter, Write};

use haft_journal::{BreakStyle, Encoding, PageRequest, estimate_tokens};
use proptest::prelude::*;

use crate::{Desk, assert_says};

fn texts(page: &haft_journal::TextPage) -> Vec<&str> {
    page.lines.iter().map(|line| line.text.as_str()).collect()
}

#[test]
fn lines_are_shown_without_their_breaks() {
    let cases: [(&str, &[u8], &[&str], BreakStyle, bool); 8] = [
        ("LF", b"a\nb\n", &["a", "b"], BreakStyle::Lf, true),
        (
            "no final newline",
            b"a\nb",
            &["a", "b"],
            BreakStyle::Lf,
            false,
        ),
        (
            "85 CRLF and tab",
            b"\tx\r\n",
            &["\tx"],
            BreakStyle::CrLf,
            true,
        ),
        (
            "mixed",
            b"a\r\nb\nc",
            &["a", "b", "c"],
            BreakStyle::Mixed,
            false,
        ),
        ("CR only", b"a\rb\r", &["a", "b"], BreakStyle::Cr, true),
        (
            "lone CR is data",
            b"a\rb\nc\n",
            &["a\rb", "c"],
            BreakStyle::Lf,
            true,
        ),
        (
            "32 form feed is data",
            b"f\x0cg\nh\n",
            &["f\x0cg", "h"],
            BreakStyle::Lf,
            true,
        ),
        (
            "blank lines count",
            b"\n\n",
            &["", ""],
            BreakStyle::Lf,
            true,
        ),
    ];
    for (what, content, lines, breaks, final_newline) in cases {
        let desk = Desk::new();
        desk.put("file", content);
        let page = desk.read("file").unwrap();
        assert_eq!(texts(&page), lines, "{what}");
        assert_eq!(
            (page.facts.breaks, page.facts.final_newline),
            (breaks, Some(final_newline)),
            "{what}"
        );
        assert_eq!(page.total_lines, Some(lines.len() as u64), "{what}");
        assert!(
            page.whole && page.next_offset.is_none() && !page.read_record.partial,
            "{what}"
        );
    }
}

#[test]
fn encodings_are_named_and_shown() {
    let cases: [(&str, &[u8], &str, Encoding, bool, bool); 5] = [
        (
            "UTF-8 BOM hidden",
            b"\xef\xbb\xbfa\n",
            "a",
            Encoding::Utf8,
            true,
            false,
        ),
        (
            "UTF-16LE",
            b"\xff\xfen\0\xf1\0\n\0",
            "nñ",
            Encoding::Utf16Le,
            true,
            false,
        ),
        (
            "UTF-16BE",
            b"\xfe\xff\0n\0\n",
            "n",
            Encoding::Utf16Be,
            true,
            false,
        ),
        (
            "UTF-32LE",
            b"\xff\xfe\0\0n\0\0\0",
            "n",
            Encoding::Utf32Le,
            true,
            false,
        ),
        (
            "legacy",
            b"caf\xe9\n",
            "caf\u{fffd}",
            Encoding::Legacy {
                likely: "windows-1252",
            },
            false,
            true,
        ),
    ];
    for (what, content, text, encoding, bom, lossy) in cases {
        let desk = Desk::new();
        desk.put("file", content);
        let page = desk.read("file").unwrap();
        assert_eq!(texts(&page), [text], "{what}");
        assert_eq!(
            (page.facts.encoding, page.facts.bom, page.facts.lossy),
            (encoding, bom, lossy),
            "{what}"
        );
    }
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    for content in [&b""[..], b"\xef\xbb\xbf"] {
        let desk = Desk::new(); // 83
        desk.put("file", content);
        let page = desk.read("file").unwrap();
        assert!(page.empty && page.lines.is_empty() && page.total_lines == Some(0));
        desk.write("file", "now\n").unwrap();
    }
}

#[test]
fn a_range_is_shown_with_the_way_on() {
    let desk = Desk::new();
    let content: String = (1..=10).map(|line| format!("{line}\n")).collect();
    desk.put("file", content);
    let path = desk.path("file");
    let cases = [
        // (offset, limit, first, last, next)
        (Some(0), Some(2), 1, 2, Some(3)),
        (Some(4), Some(3), 4, 6, Some(7)),
        (Some(9), Some(5), 9, 10, None),
        (None, Some(10), 1, 10, None),
    ];
    for (offset, limit, first, last, next) in cases {
        let request = PageRequest {
            offset,
            limit,
            ..PageRequest::default()
        };
        let page = desk.journal.read(&path, &request).unwrap();
        assert_eq!(
            (page.first, page.last, page.next_offset),
            (first, last, next)
        );
        assert_eq!(page.total_lines, Some(10));
        assert_eq!(page.truncated_by_lines, next.is_some());
        assert!(!page.read_record.partial, "a named range is never partial");
    }
    let request = PageRequest {
        offset: Some(11),
        ..PageRequest::default()
    };
    assert_says(
        desk.journal.read(&path, &request),
        &["past the end", "10 lines"],
    ); // 84
}

#[test]
fn the_default_page_is_bounded_by_lines_and_by_tokens() {
    let desk = Desk::new();
    desk.put("lines", "x\n".repeat(5_000));
    let page = desk.read("lines").unwrap();
    assert_eq!(
        (page.last, page.total_lines, page.next_offset),
        (2_000, Some(5_000), Some(2_001))
    );
    assert!(page.truncated_by_lines && !page.truncated_by_tokens && page.read_record.partial);
    desk.put("tokens", ("y".repeat(1_000) + "\n").repeat(1_000));
    let page = desk.read("tokens").unwrap();
    assert!(page.truncated_by_tokens && !page.truncated_by_lines && page.read_record.partial);
    assert_eq!(
        (page.last, page.total_lines, page.next_offset),
        (86, Some(1_000), Some(87))
    );
}

#[test]
fn a_line_of_five_megabytes_is_cut_with_its_true_length_and_read_on() {
    let desk = Desk::new(); // 86
    let line: String = "0123456789é".repeat(500_000);
    desk.put("file", format!("{line}\r\nnext\n"));
    let page = desk.read("file").unwrap();
    assert_eq!(page.lines[0].cut, Some(5_500_000));
    assert_eq!(page.lines[0].text.chars().count(), 2_000);
    assert_eq!(
        (page.lines[1].text.as_str(), page.total_lines, page.whole),
        ("next", Some(2), false)
    );
    let go_on = |char_offset| PageRequest {
        offset: Some(1),
        limit: Some(1),
        char_offset,
        ..PageRequest::default()
    };
    let page = desk
        .journal
        .read(&desk.path("file"), &go_on(2_001))
        .unwrap();
    assert!(
        page.lines[0]
            .text
            .starts_with(&line.chars().skip(2_001).take(30).collect::<String>())
    );
    let page = desk
        .journal
        .read(&desk.path("file"), &go_on(5_499_999))
        .unwrap();
    assert_eq!(
        (page.lines[0].text.as_str(), page.lines[0].cut),
        ("é", None)
    );
    assert_says(
        desk.journal.read(&desk.path("file"), &go_on(5_500_000)),
        &["char_offset", "5500000 characters"],
    );
}

#[test]
fn streaming_shows_the_same_as_reading_at_once() {
    // Characters and CRLF on every kind of piece border; above 1 MB files are streamed.
    let unit = "é\r\n中\n😀x\r\nlast\n";
    let content = unit.repeat((3 << 20) / unit.len());
    let desk = Desk::new();
    desk.put("file", &content);
    let expected: Vec<&str> = content.lines().collect();
    let first = expected.len() as u64 - 5;
    for offset in [1, 100_001, first] {
        let request = PageRequest {
            offset: Some(offset),
            limit: Some(6),
            ..PageRequest::default()
        };
        let page = desk.journal.read(&desk.path("file"), &request).unwrap();
        let start = offset as usize - 1;
        assert_eq!(
            texts(&page),
            expected[start..(start + 6).min(expected.len())]
        );
        assert_eq!(page.total_lines, Some(expected.len() as u64));
        assert_eq!(page.facts.breaks, BreakStyle::Mixed);
        assert!(!page.facts.lossy);
    }
    assert_eq!(
        desk.journal
            .ledger()
            .lookup(&desk.path("file").canonicalize().unwrap())
            .unwrap()
            .hash,
        Some(haft_journal::ContentHash::compute(content.as_bytes()))
    );
    desk.put("old", content.replace("\r\n", "\r").replace('\n', "\r"));
    assert_eq!(desk.read("old").unwrap().lines[1].text, "中");
}

#[test]
fn a_file_above_the_limit_is_scanned_only_as_far_as_needed() {
    let desk = Desk::new();
    let mut file = BufWriter::new(File::create(desk.path("file")).unwrap());
    for line in 0..1_100_000_u32 {
        writeln!(file, "{line:>62}").unwrap();
    }
    file.into_inner().unwrap();
    let request = PageRequest {
        offset: Some(1_000_001),
        limit: Some(2),
        ..PageRequest::default()
    };
    let page = desk.journal.read(&desk.path("file"), &request).unwrap();
    let shown: Vec<&str> = page.lines.iter().map(|line| line.text.trim()).collect();
    assert_eq!(shown, ["1000000", "1000001"]);
    assert_eq!(
        (page.total_lines, page.next_offset, page.read_record.hash),
        (None, Some(1_000_003), None)
    );
    let past = PageRequest {
        offset: Some(2_000_000),
        ..PageRequest::default()
    };
    assert_says(
        desk.journal.read(&desk.path("file"), &past),
        &["1100000 lines"],
    );
}

#[test]
fn what_is_not_text_is_refused_by_kind() {
    let desk = Desk::new();
    desk.put("image.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    assert_says(
        desk.read("image.txt"),
        &["binary file", "PNG image", "16 bytes"],
    );
    assert_says(desk.read("."), &["is a directory"]);
    assert_says(
        desk.read("image.txt/below"),
        &["a part of its path is a file"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn files_without_a_size_are_read() {
    let desk = Desk::new();
    let page = desk
        .journal
        .read("/proc/self/status", &PageRequest::default())
        .unwrap();
    assert!(page.lines[0].text.starts_with("Name:"));
    assert!(!page.empty && !page.unended);
    // Some megabytes, and it says 0 bytes.
    let request = PageRequest {
        max_lines: u64::MAX,
        max_tokens: u64::MAX,
        ..PageRequest::default()
    };
    let page = desk.journal.read("/proc/kallsyms", &request);
    let page = page.unwrap();
    let bytes: usize = page.lines.iter().map(|line| line.text.len() + 1).sum();
    assert!((250 << 10..=257 << 10).contains(&bytes), "{bytes}");
    assert!(page.unended && page.read_record.partial && !page.whole);
    assert_eq!((page.total_lines, page.next_offset), (None, None));
}

/// Reads a file to its end by what each page says: the next line, and where a cut line goes on.
fn in_parts(desk: &Desk, limits: &PageRequest) -> Vec<String> {
    let read = |request: &PageRequest| {
        let page = desk.journal.read(&desk.path("file"), request).unwrap();
        let bytes: usize = page.lines.iter().map(|line| line.text.len()).sum();
        assert!(estimate_tokens(bytes as u64) <= request.max_tokens || page.lines.len() == 1);
        assert!(page.lines.len() as u64 <= request.max_lines);
        page
    };
    let (mut lines, mut offset) = (Vec::new(), None);
    loop {
        let page = read(&PageRequest {
            offset,
            ..limits.clone()
        });
        for line in page.lines {
            assert_eq!(line.number, lines.len() as u64 + 1);
            let (mut text, mut cut) = (line.text, line.cut);
            while let Some(length) = cut {
                let known = text.chars().count() as u64;
                assert!(known < length);
                let rest = read(&PageRequest {
                    offset: Some(line.number),
                    limit: Some(1),
                    char_offset: known,
                    ..limits.clone()
                });
                text += &rest.lines[0].text;
                cut = rest.lines[0].cut;
            }
            lines.push(text);
        }
        offset = page.next_offset;
        if offset.is_none() {
            return lines;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_of_a_file_together_are_the_file(
        lines in prop::collection::vec(("[aé😀\t\x0c\u{2028}]{0,30}", prop::bool::ANY), 1..40),
        ends_in_a_break: bool,
        breaks in prop::sample::select(&["\n", "\r\n", "\r", "mixed"][..]),
        (max_lines, max_line_chars, max_tokens) in (1_u64..9, 1_usize..12, 1_u64..60),
    ) {
        let mut content = String::new();
        for (line, crlf) in &lines {
            content += line;
            content += match (breaks, crlf) {
                ("mixed", true) => "\r\n",
                ("mixed", false) => "\n",
                (same, _) => same,
            };
        }
        let mut expected: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        if !ends_in_a_break {
            content.truncate(content.trim_end_matches(['\r', '\n']).len());
            while expected.last() == Some(&"") {
                expected.pop();
            }
        }
        prop_assume!(!expected.is_empty());
        let desk = Desk::new();
        desk.put("file", &content);
        let limits = PageRequest { max_lines, max_line_chars, max_tokens, ..PageRequest::default() };
        prop_assert_eq!(in_parts(&desk, &limits), expected);
    }
}
