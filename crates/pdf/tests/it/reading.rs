//! What is found in good files.

use std::env;

use haft_pdf::child::{self, PdfLimits, PdfReadError};

use crate::{
    ask, ask_within,
    written::{pdf, pdf_with},
};

#[test]
fn pages_come_with_their_text() {
    let document = ask(&pdf(&["Hello (world)\nsecond line", "", "last"]), None).unwrap();
    assert_eq!(document.page_count, 3);
    let texts: Vec<_> = document
        .pages
        .iter()
        .map(|page| (page.number, page.text.as_str(), page.failure.as_ref()))
        .collect();
    assert_eq!(
        texts,
        [
            (1, "Hello (world)\nsecond line", None),
            (2, "", None),
            (3, "last", None)
        ]
    );
}

#[test]
fn only_the_pages_asked_for_are_read() {
    let texts: Vec<String> = (1..=12).map(|page| format!("page {page}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let file = pdf_with(&texts, &[("Start", 1), ("Middle", 7)]);
    let numbers = |pages: Option<&str>| -> Vec<u32> {
        let document = ask(&file, pages).unwrap();
        assert_eq!(document.page_count, 12);
        document.pages.iter().map(|page| page.number).collect()
    };
    assert_eq!(numbers(Some("2,11,13")), [2, 11]);
    assert!(numbers(None).is_empty());
    let outline: Vec<_> = ask(&file, None)
        .unwrap()
        .outline
        .into_iter()
        .map(|heading| (heading.title, heading.level, heading.page))
        .collect();
    assert_eq!(
        outline,
        [("Start".into(), 0, Some(1)), ("Middle".into(), 0, Some(7))]
    );
}

#[test]
fn a_long_page_is_cut() {
    let text = "word ".repeat(20) + "\n";
    let document = ask(&pdf(&[&text.repeat(35)]), None).unwrap();
    assert!(
        !document.pages[0].is_cut,
        "{}",
        document.pages[0].text.len()
    );
    let limits = PdfLimits::default();
    let mut request = crate::request(None);
    request.max_page_bytes = 100;
    let program = env::current_exe().unwrap();
    let document = child::read_in_child(
        &program,
        &pdf(&[&text.repeat(35)]),
        &request,
        &limits,
        &|| false,
    )
    .unwrap();
    let page = &document.pages[0];
    assert!(page.is_cut && page.text.len() <= 100 && page.text.starts_with("word word"));
}

#[test]
fn what_is_no_reader_is_said_to_be_none() {
    let request = crate::request(None);
    let limits = PdfLimits::default();
    let error =
        child::read_in_child("/bin/true".as_ref(), b"", &request, &limits, &|| false).unwrap_err();
    assert!(matches!(error, PdfReadError::NotAReader(_)), "{error}");
    let error =
        child::read_in_child("/no/such".as_ref(), b"", &request, &limits, &|| false).unwrap_err();
    assert!(matches!(error, PdfReadError::Io(_)), "{error}");
    let error = ask_within(b"hello", None, &limits).unwrap_err();
    assert!(matches!(error, PdfReadError::Refused(_)), "{error}");
}
