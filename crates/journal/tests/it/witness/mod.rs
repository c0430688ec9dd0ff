//! Commands whose changes a guard witnesses.
//!
//! - `guard`: a model of the guard; `random`: any sequence of calls; `vectors`: single commands

mod guard;
mod leases;
mod overlap;
mod random;
mod vectors;

pub(crate) use guard::{Kill, Killed, TestGuard};
