//! The crate from outside: the judge against lines whose right verdict is known, the parser against
//! bash itself.
//!
//! - `corpus`: the lines, `bars` what must hold of them, `variants` what is made of them
//! - `execution`: what is judged harmless is run and changes nothing; `fixture` is where
//! - `bypasses`: each published one, by name
//! - `functions`: what a definition covers, held against bash
//! - `lines`: the table of command lines that the tests of the parser share
//! - `bash`: running bash
//! - `names`: what a tree says will run
//! - `accepted`: bash accepts what we accept, and prints it back as the same tree (`normal`)
//! - `executed`: what bash runs is in the tree
//! - `braces`: words become what bash makes of them
//! - `second`: another parser finds the same commands
//! - `trees`: a random tree is read again from its text (`write`)
//! - `variables`: what a line sets, and where its value is known
//! - `random`: any text; `spans`: what must hold for the places in a tree

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod accepted;
#[cfg(test)]
mod bars;
mod bash;
mod braces;
#[cfg(test)]
mod bypasses;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod executed;
#[cfg(test)]
mod execution;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod functions;
mod lines;
mod names;
mod normal;
mod random;
mod second;
mod spans;
mod trees;
#[cfg(test)]
mod variables;
#[cfg(test)]
mod variants;
mod write;
