//! Any text as a command line: no panic, no text that takes long, and every place in the tree is one in
//! the line.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/shell/tests/it/spans.rs"]
mod spans;

fuzz_target!(|line: &str| {
    if let Ok(script) = haft_shell::syntax::parse(line) {
        spans::check(line, &script);
    }
});
