//! Any bytes, wherever bytes of others come in: as a list of pages, as what a child said, as a file.
//! The fuzzer sends what it likes (`fuzz/fuzz_targets/pdf_entry.rs`), the tests what is worth
//! remembering (`fuzz/seeds/pdf_entry`).

use haft_pdf::{
    PageSelection, PdfReading, PdfRequest,
    child_answer::{PdfAnswer, UnreadableReason, parse_answer, write_answer},
};

const AT_MOST: usize = 20;

/// Panics if a promise is broken. `read` reads a file as the child does; `None` if that ended badly,
/// as it may: it is a child's end.
pub(crate) fn check(
    bytes: &[u8],
    read: impl Fn(&[u8], &PdfRequest) -> Option<Result<PdfReading, UnreadableReason>>,
) {
    let pages = std::str::from_utf8(bytes).ok().and_then(list_of_pages);
    let some = PageSelection::parse("1-3,7", AT_MOST).ok();
    for pages in [None, some, pages] {
        let request = PdfRequest {
            pages,
            whole_up_to: 10,
            max_page_bytes: 1_000,
        };
        said(bytes, &request);
        said(&[b"%haft-pdf 2\n", bytes].concat(), &request);
    }
    let request = PdfRequest {
        pages: None,
        whole_up_to: 10,
        max_page_bytes: 1_000,
    };
    if let Some(answer) = read(bytes, &request) {
        // What a child finds, its parent believes.
        let mut output = Vec::new();
        write_answer(&answer, &mut output).unwrap();
        match parse_answer(&output, &request) {
            PdfAnswer::Answer(understood) => assert_eq!(understood, answer),
            said => panic!("{said:?} of {answer:?}"),
        }
    }
}

fn list_of_pages(text: &str) -> Option<PageSelection> {
    let pages = PageSelection::parse(text, AT_MOST).ok()?;
    let numbers = pages.numbers();
    assert!((1..=AT_MOST).contains(&numbers.len()), "{text:?}");
    assert!(numbers[0] > 0 && numbers.is_sorted_by(|one, next| one < next));
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    assert_eq!(
        PageSelection::parse(&words.join(","), AT_MOST).as_ref(),
        Ok(&pages)
    );
    Some(pages)
}

/// Nothing is believed that could hurt the one who shows it.
fn said(output: &[u8], request: &PdfRequest) {
    let PdfAnswer::Answer(Ok(document)) = parse_answer(output, request) else {
        return;
    };
    let most = request
        .pages
        .as_ref()
        .map_or(request.whole_up_to as usize, |pages| pages.numbers().len());
    assert!(document.pages.len() <= most);
    assert!(document.outline.len() <= 200);
    assert!(document.outline.iter().all(|heading| heading.level <= 8));
    assert!(
        document
            .pages
            .iter()
            .all(|page| page.text.len() <= request.max_page_bytes && page.number > 0)
    );
}
