//! Attempts to get out of a sandbox, made for real: each one in every profile, with every mechanism
//! that works here, as root and as a user without rights.
//!
//! What counts is not what an attempt says but what is seen from outside afterwards (`outside`). That an
//! attempt is worth its name is shown by making it once without a sandbox: there it must succeed.
//! Where it does succeed in a sandbox, the table says so and why: a hole is written down, or closed.

mod control;
mod devices;
mod dialled;
mod environment;
mod files;
mod hidden;
mod limits;
mod meanwhile;
mod network;
mod outside;
mod processes;
mod rights;
mod stand;
mod table;
mod user;
