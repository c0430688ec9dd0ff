//! The crate from outside: the judge against lines whose right verdict is known, the parser against
//! bash itself.
//!
//! - `corpus`: the lines, `bars` what must hold of them, `variants` what is made of them
//! - `execution`: what is judged harmless is run and changes nothing; `fixture` is where
//! - `bypasses`: each published one, by name
//! - `bash`: running bash
//! - `names`: what a tree says will run
//! - `executed`: what bash runs is in the tree

#[cfg(test)]
mod bars;
#[cfg(test)]
mod bash;
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
mod names;
#[cfg(test)]
mod variants;
