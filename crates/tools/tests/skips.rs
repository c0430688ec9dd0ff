//! One line about what this run of `cargo test --workspace` has skipped. It stands here because this is the
//! last test program of the workspace.

use std::env;

#[expect(clippy::print_stdout, reason = "this line is all there is to it")]
fn main() {
    // Runners other than `cargo test` ask for a list of tests first: there is none.
    if env::args().any(|argument| argument == "--list") {
        return;
    }
    let skipped: Vec<String> = haft_testkit::skip::take_skipped().into_iter().collect();
    match &skipped[..] {
        [] => println!("nothing was skipped"),
        some => println!("{} skipped: {}", some.len(), some.join(" · ")),
    }
}
