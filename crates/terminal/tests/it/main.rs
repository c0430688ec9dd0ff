//! The toolkit on terminals: in process with an emulator, and in tmux.

#![forbid(unsafe_code)]

mod emulator;
mod live_region;
mod resizes;
mod safety;
