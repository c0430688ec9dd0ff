//! The parser against bash itself, against another parser, and against random text.
//!
//! - `lines`: the table of command lines that the other tests share
//! - `bash`: running bash
//! - `names`: what a tree says will run
//! - `accepted`: bash accepts what we accept, and prints it back as the same tree
//! - `executed`: what bash runs is in the tree

mod bash;
mod executed;
mod names;
