//! The vectors of the terminal, end to end: the real binary with a scripted model in tmux. Each is a test in process
//! too (`crates/cli/src/tui/vectors_tests.rs`, `crates/terminal/tests`), where time is exact.
//!
//! - `drawing`: 1 to 8, 25, 30, 36
//! - `asking`: 9 to 17
//! - `typing`: 18 to 21, 23, 24
//! - `history`: 32, 33, 35
//! - `interactive` beside this has 3, 22, 26 to 29 and 34; `plain` has 31, on a terminal of its own: tmux would hide
//!   the bytes that must not be there.
//!
//! What is left to the tests in process: of 5, a run while the window has no focus (`--still` shows nothing that
//! moves, and without it every frame differs); of 6, the frame in which a word is open (a script cannot wait there); of 10, exact times (here an early key comes as soon as the question is
//! seen); of 15, `rm -rf /` itself, which no test should come near to run; of 30, the report of another theme, to which
//! tmux gives no answer; of 35, the time to the first frame, which `benches/terminal` measures.

mod asking;
mod drawing;
mod history;
mod typing;
