//! PDFs read as the product reads them: by a child process, which is this very test binary.
//!
//! - `written`: the smallest PDFs that say something
//! - `reading`: text, outline, pages, scans
//! - `quality`: fonts, East Asian text, columns and tables, held against poppler
//! - `damaged`: files of which part is lost
//! - `entry`: any bytes, wherever bytes of others come in
//! - `hostile`: files and children that mean harm
//! - `drawing`: pictures of pages, with the real pdftoppm where there is one

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod damaged;
mod drawing;
mod entry;
mod hostile;
mod quality;
mod reading;
mod written;

use std::{env, fs, path::Path};

use haft_pdf::{
    PageSelection, PdfReading, PdfRequest,
    child::{self, ARGUMENT, PdfLimits, PdfReadError},
};

/// Not a test: what the binary does when it is called as a child. The name is also the filter that
/// the argument amounts to.
#[test]
fn __pdf() {
    if env::args()
        .nth(1)
        .is_some_and(|argument| argument == ARGUMENT)
    {
        child::main();
    }
}

fn request(pages: Option<&str>) -> PdfRequest {
    PdfRequest {
        pages: pages.map(|pages| PageSelection::parse(pages, 20).unwrap()),
        whole_up_to: 10,
        max_page_bytes: 10_000,
    }
}

fn ask(pdf: &[u8], pages: Option<&str>) -> Result<PdfReading, PdfReadError> {
    ask_within(pdf, pages, &PdfLimits::default())
}

fn ask_within(
    pdf: &[u8],
    pages: Option<&str>,
    limits: &PdfLimits,
) -> Result<PdfReading, PdfReadError> {
    let program = env::current_exe().unwrap();
    child::read_in_child(&program, pdf, &request(pages), limits, &|| false)
}

#[test]
fn the_seeds_of_the_fuzzer_break_no_promise() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/pdf_entry");
    let mut count = 0;
    for seed in fs::read_dir(seeds).unwrap() {
        let bytes = fs::read(seed.unwrap().path()).unwrap();
        entry::check(&bytes, |bytes, request| {
            let program = env::current_exe().unwrap();
            let limits = PdfLimits::default();
            match child::read_in_child(&program, bytes, request, &limits, &|| false) {
                Ok(document) => Some(Ok(document)),
                Err(PdfReadError::Refused(refusal)) => Some(Err(refusal)),
                Err(PdfReadError::Crashed(_) | PdfReadError::TimedOut(_)) => None,
                Err(error) => panic!("{error}"),
            }
        });
        count += 1;
    }
    assert!(count > 10, "{count} seeds");
}
