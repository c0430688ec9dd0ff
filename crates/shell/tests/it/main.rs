//! The judge from outside, held against lines whose right verdict is known.

#[cfg(test)]
mod bars;
#[cfg(test)]
mod bypasses;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod execution;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod variants;
