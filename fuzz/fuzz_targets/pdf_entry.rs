//! Any bytes as a list of pages, as the output of the child process, and as a PDF. haft reads the
//! first two in its own process, where nothing may panic. It reads a PDF in a child process with
//! limits, so this target treats a panic of the library as an error. `-timeout` and
//! `-rss_limit_mb` find endless loops and memory use.
#![no_main]

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/pdf/tests/it/entry.rs"]
mod entry;

thread_local! {
    static IN_LIBRARY: Cell<bool> = const { Cell::new(false) };
}

/// libFuzzer ends the process at every panic, caught or not: but not at those of the library.
fn excuse_the_library() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let end = take_hook();
        set_hook(Box::new(move |panic| {
            if !IN_LIBRARY.get() {
                end(panic);
            }
        }));
    });
}

fuzz_target!(|bytes: &[u8]| {
    excuse_the_library();
    entry::check(bytes, |bytes, request| {
        IN_LIBRARY.set(true);
        let read = catch_unwind(AssertUnwindSafe(|| haft_pdf::read(bytes.to_vec(), request)));
        IN_LIBRARY.set(false);
        read.ok()
    });
});
