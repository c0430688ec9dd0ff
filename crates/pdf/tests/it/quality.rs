//! What text is found, in which order, in the ways that files have of saying it; and that poppler,
//! where it is installed, finds the same words.

use std::{collections::HashMap, fs, io::Write, path::Path, process::Stdio};

use crate::{
    ask,
    written::{file_of, stream},
};

/// One page: entries of its dictionary, its fonts, its content, and objects from 5 on.
fn page(entries: &str, fonts: &str, content: &str, more: &[String]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R {entries} \
             /Resources << /Font << {fonts} >> >> >>"
        ),
        stream("", content),
    ];
    objects.extend_from_slice(more);
    file_of(&objects)
}

const HELVETICA: &str =
    "/F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

fn text_of(file: &[u8]) -> String {
    let document = ask(file, None).unwrap();
    let page = &document.pages[0];
    assert_eq!(page.failure, None);
    page.text.clone()
}

#[test]
fn east_asian_text_is_read_by_the_encodings_that_have_names() {
    let cases = [
        ("UniGB-UCS2-H", "GB1", "4E2D65876D4B8BD5", "中文测试"),
        ("GBK-EUC-H", "GB1", "D6D0CEC4", "中文"),
        ("ETen-B5-H", "CNS1", "A4A4A4E5", "中文"),
        ("UniJIS-UTF16-H", "Japan1", "65E5672C8A9E", "日本語"),
        ("90ms-RKSJ-H", "Japan1", "93FA967B8CEA41", "日本語A"),
        ("KSCms-UHC-H", "Korea1", "C7D1B1B9", "한국"),
    ];
    for (encoding, ordering, codes, expected) in cases {
        let font = format!(
            "/F1 << /Type /Font /Subtype /Type0 /BaseFont /Some /Encoding /{encoding} \
             /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Some \
             /CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) /Supplement 0 >> >>] >>"
        );
        let content = format!("BT /F1 12 Tf 72 700 Td <{codes}> Tj ET");
        assert_eq!(
            text_of(&page("", &font, &content, &[])),
            expected,
            "{encoding}"
        );
    }
}

#[test]
fn text_that_is_written_downwards_is_read_from_the_right() {
    let font = "/F1 << /Type /Font /Subtype /Type0 /BaseFont /Some /Encoding /UniJIS-UTF16-V \
        /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Some \
        /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 0 >> >>] >>";
    let content = "BT /F1 12 Tf 1 0 0 1 480 700 Tm <4E8C> Tj 1 0 0 1 500 700 Tm <4E008A71> Tj ET";
    assert_eq!(text_of(&page("", font, content, &[])), "一話\n二");
}

#[test]
fn codes_mean_what_the_font_says() {
    let table = stream(
        "",
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n\
         1 begincodespacerange <0000> <ffff> endcodespacerange\n\
         1 beginbfrange <0001> <0002> <0041> endbfrange\n\
         2 beginbfchar <0003> <00660066006C> <0004> <FB01> endbfchar\nendcmap end end",
    );
    let fonts = "\
        /A << /Type /Font /Subtype /Type1 /BaseFont /Own /Encoding << /Type /Encoding \
              /Differences [1 /Aacute /fi /uni20AC 10 /afii10017 /quoteright] >> >> \
        /B << /Type /Font /Subtype /Type1 /BaseFont /Symbol >> \
        /C << /Type /Font /Subtype /TrueType /BaseFont /Arial /Encoding /MacRomanEncoding >> \
        /D << /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 5 0 R \
              /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 500 \
              /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>] >>";
    let content = "BT 72 700 Td /A 12 Tf <0102030A0B> Tj 0 -20 Td /B 12 Tf (abS) Tj \
        0 -20 Td /C 12 Tf <4a8a> Tj 0 -20 Td /D 12 Tf <0001000200030004> Tj \
        0 -20 Td /Span << /ActualText <FEFF00660069> >> BDC /A 12 Tf <05> Tj <02> Tj EMC ET";
    let text = text_of(&page("", fonts, content, &[table]));
    assert_eq!(text, "Áfi€А’\nαβΣ\nJä\nABfflfi\nfi");
}

#[test]
fn a_field_that_was_filled_in_is_read() {
    let appearance = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 100 20] \
         /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>",
        "BT /F1 10 Tf 2 5 Td (Ada Lovelace) Tj ET",
    );
    let entries = "/Annots [ \
        << /Type /Annot /Subtype /Widget /Rect [120 695 220 715] /AP << /N 5 0 R >> >> \
        << /Type /Annot /Subtype /Widget /F 2 /Rect [120 595 220 615] /AP << /N 5 0 R >> >> ]";
    let content = "BT /F1 12 Tf 72 700 Td (Name:) Tj ET";
    let text = text_of(&page(entries, HELVETICA, content, &[appearance]));
    assert_eq!(text, "Name:  Ada Lovelace");
}

/// Two columns under a title, drawn row by row.
fn columns() -> Vec<u8> {
    let mut content = "BT /F1 16 Tf 150 740 Td (A Title Across Both Columns) Tj ET\n".to_owned();
    for row in 0..8 {
        for (left, side) in [(72, "left"), (320, "right")] {
            content += &format!(
                "BT /F1 10 Tf {left} {} Td (This is line {row} of the {side} column) Tj ET\n",
                700 - 12 * row
            );
        }
    }
    page("", HELVETICA, &content, &[])
}

#[test]
fn columns_are_read_one_after_the_other() {
    let text = text_of(&columns());
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let mut expected = vec!["A Title Across Both Columns".to_owned()];
    for side in ["left", "right"] {
        expected.extend((0..8).map(|row| format!("This is line {row} of the {side} column")));
    }
    assert_eq!(lines, expected);
}

/// Short cells.
fn table() -> Vec<u8> {
    let mut content = String::new();
    for (row, cells) in [
        ["Name", "Count", "Price"],
        ["Apples", "12", "3.50"],
        ["Pears", "7", "4.25"],
    ]
    .iter()
    .enumerate()
    {
        for (column, cell) in cells.iter().enumerate() {
            content += &format!(
                "BT /F1 10 Tf {} {} Td ({cell}) Tj ET\n",
                72 + 120 * column,
                700 - 14 * row
            );
        }
    }
    page("", HELVETICA, &content, &[])
}

#[test]
fn tables_are_read_row_by_row() {
    let text = text_of(&table());
    assert_eq!(text, "Name  Count  Price\nApples  12  3.50\nPears  7  4.25");
}

/// A page lying on its side, with words set one by one and kerned.
fn turned() -> Vec<u8> {
    let content = "BT /F1 12 Tf 0 1 -1 0 100 72 Tm [(K)40(erned w)10(ords)] TJ \
        0 1 -1 0 100 150 Tm (set) Tj 0 1 -1 0 100 172 Tm (apart) Tj ET";
    page("/Rotate 90", HELVETICA, content, &[])
}

#[test]
fn a_page_is_read_the_way_it_is_turned() {
    assert_eq!(text_of(&turned()), "Kerned words set apart");
}

#[test]
fn an_empty_password_opens_a_file() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/pdf_entry");
    for name in ["enc_open.pdf", "enc_rc4.pdf"] {
        let file = fs::read(seeds.join(name)).unwrap();
        assert!(text_of(&file).contains("hello"), "{name}");
    }
}

fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split_whitespace() {
        *words.entry(word.to_owned()).or_default() += 1;
    }
    words
}

#[test]
fn poppler_finds_the_same_words() {
    let long: Vec<String> = (0..35)
        .map(|row| format!("Line {row}: efficient offices (say 3.5 %) re-open on day {row}."))
        .collect();
    let files = [
        columns(),
        table(),
        turned(),
        crate::written::pdf(&[&long.join("\n")]),
    ];
    let (mut found, mut expected) = (0, 0);
    for file in files {
        let poppler = haft_testkit::command("pdftotext")
            .args(["-enc", "UTF-8", "-", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut poppler) = poppler else {
            println!("skipped: there is no pdftotext (poppler-utils) on the path");
            return;
        };
        poppler.stdin.take().unwrap().write_all(&file).unwrap();
        let output = poppler.wait_with_output().unwrap();
        let theirs = words(&String::from_utf8(output.stdout).unwrap());
        let ours = words(&text_of(&file));
        expected += theirs.values().sum::<usize>();
        found += theirs
            .iter()
            .map(|(word, count)| *count.min(ours.get(word).unwrap_or(&0)))
            .sum::<usize>();
    }
    assert!(expected > 400, "{expected}");
    assert!(found * 100 >= expected * 98, "{found} of {expected}");
}
