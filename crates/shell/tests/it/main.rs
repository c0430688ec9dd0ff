//! The parser against bash itself, against another parser, and against random text.
//!
//! - `lines`: the table of command lines that the other tests share
//! - `bash`: running bash
//! - `names`: what a tree says will run
//! - `accepted`: bash accepts what we accept, and prints it back as the same tree (`normal`)
//! - `executed`: what bash runs is in the tree
//! - `braces`: words become what bash makes of them
//! - `second`: another parser finds the same commands
//! - `trees`: a random tree is read again from its text (`write`)
//! - `random`: any text; `spans`: what must hold for the places in a tree

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod accepted;
mod bash;
mod braces;
mod executed;
mod lines;
mod names;
mod normal;
mod random;
mod second;
mod spans;
mod trees;
mod write;
