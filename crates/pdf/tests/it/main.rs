//! PDFs read as the product reads them: by a child process, which is this very test binary.
//!
//! - `written`: the smallest PDFs that say something
//! - `reading`: text, outline, pages, scans
//! - `hostile`: damaged files and children that misbehave

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod hostile;
mod reading;
mod written;

use std::env;

use haft_pdf::{
    Document, Request,
    child::{self, ARGUMENT, AskError, Limits},
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

fn request(pages: Option<&[u32]>) -> Request {
    Request {
        pages: pages.map(<[u32]>::to_vec),
        whole_up_to: 10,
        max_page_bytes: 10_000,
    }
}

fn ask(pdf: &[u8], pages: Option<&[u32]>) -> Result<Document, AskError> {
    ask_within(pdf, pages, &Limits::default())
}

fn ask_within(pdf: &[u8], pages: Option<&[u32]>, limits: &Limits) -> Result<Document, AskError> {
    let program = env::current_exe().unwrap();
    child::ask(&program, pdf, &request(pages), limits, &|| false)
}
