//! Files of which part is lost are said to be damaged, and what is lost is named; a scan is not.

use haft_pdf::{PageFailure, PdfReading, child::PdfReadError, child_answer::UnreadableReason};

use crate::{
    ask,
    written::{pdf, scan},
};

/// In words: what a reader would conclude.
fn verdict(file: &[u8]) -> String {
    match ask(file, None) {
        Err(PdfReadError::Refused(refusal)) => format!("refused: {refusal}"),
        Err(error) => panic!("{error}"),
        Ok(document) => {
            let PdfReading {
                page_count,
                pages,
                damage,
                ..
            } = document;
            let mut words = format!("{page_count} pages");
            if let Some(damage) = damage {
                words += &format!("; damaged: {damage}");
            }
            for page in pages {
                words += &match (page.text.is_empty(), page.failure) {
                    (false, None) => format!("; {} text", page.number),
                    (true, None) => format!("; {} no text", page.number),
                    (is_empty, Some(PageFailure::Damaged(why))) => {
                        let text = if is_empty { "no text" } else { "text" };
                        format!("; {} {text}, damaged: {why}", page.number)
                    }
                    (_, Some(PageFailure::Unreadable(why))) => {
                        format!("; {} unreadable: {why}", page.number)
                    }
                };
            }
            words
        }
    }
}

fn edited(file: Vec<u8>, old: &str, new: &str) -> Vec<u8> {
    let file = String::from_utf8(file).unwrap();
    assert!(file.contains(old), "{old}");
    file.replacen(old, new, 1).into_bytes()
}

#[test]
fn a_file_that_was_cut_off_is_damaged_wherever_the_cut_is() {
    for file in [pdf(&["one", "two"]), scan(2)] {
        // The closing words are "startxref", a number, "%%EOF"; without the last one nothing is lost.
        let closing = file.len() - b"startxref\n1234\n%%EOF\n".len();
        for length in (20..closing).step_by(23) {
            match ask(&file[..length], None) {
                Err(PdfReadError::Refused(UnreadableReason::Damaged(why))) => {
                    assert!(why.contains("cut off"), "{length}: {why}");
                }
                Err(error) => panic!("{length}: {error}"),
                Ok(document) => {
                    let why = document.damage.unwrap_or_default();
                    assert!(why.contains("cut off"), "{length}: {why}");
                }
            }
        }
    }
}

#[test]
fn what_is_lost_inside_a_file_is_named() {
    let lost_page = edited(pdf(&["one", "two"]), "\n7 0 obj\n", "\n9 0 xxx\n");
    let lost_content = edited(pdf(&["one"]), "\n6 0 obj\n", "\n9 0 xxx\n");
    let lost_font = edited(
        pdf(&["one"]),
        "/Encoding /WinAnsiEncoding",
        "/Encoding 99 0 R",
    );
    let short = edited(pdf(&["one"]), "/Length 35", "/Length 937");
    let lost_picture = edited(scan(1), "\n5 0 obj\n", "\n9 0 xxx\n");
    let short_picture = edited(scan(1), &"ff".repeat(512), "");
    let spoilt = edited(
        pdf(&["one"]),
        "/Length 35",
        "/Length 35 /Filter /FlateDecode",
    );
    let verdicts = [
        ("a whole file", pdf(&["one", "", "two"])),
        ("a scan", scan(2)),
        ("a page", lost_page),
        ("a page's content", lost_content),
        ("a page's font", lost_font),
        ("length of a content that can be read all the same", short),
        ("a scan's picture", lost_picture),
        ("half a scan's picture", short_picture),
        ("compressed data", spoilt),
        ("everything", b"%PDF-1.4\nstartxref\n0\n%%EOF\n".to_vec()),
    ]
    .map(|(lost, file)| format!("{lost}: {}", verdict(&file)));
    insta::assert_snapshot!(verdicts.join("\n"));
}

#[test]
fn a_wrong_table_of_objects_loses_nothing() {
    let whole = pdf(&["one", "two"]);
    let expected = verdict(&whole);
    let file = String::from_utf8(whole).unwrap();
    let cases = [
        file.replacen("startxref\n", "startxref\n9", 1),
        file.replace("\n", "\r\n"),
        file.clone() + &"\0".repeat(6_000),
        file.clone() + "<html>an obj</html>",
        file.replacen("0000000009 00000 n", "0000000000 00000 f", 1),
    ];
    for (index, file) in cases.iter().enumerate() {
        assert_eq!(verdict(file.as_bytes()), expected, "{index}");
    }
}
