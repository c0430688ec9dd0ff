//! The toolkit on terminals: in process with an emulator, and in tmux.

#![forbid(unsafe_code)]

mod emulator;
mod invariants;
mod live_region;
mod properties;
mod resizes;
mod safety;
mod threads;
mod tmux;
