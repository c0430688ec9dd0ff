//! Stdin and stdout, where a program is at the other end.

use std::{
    fs,
    os::{fd::AsFd, unix::fs::FileTypeExt},
};

use tokio::net::unix::pipe;

/// Stdin and stdout, if both are pipes.
pub(crate) fn pipes() -> Option<(pipe::Receiver, pipe::Sender)> {
    let input = fs::File::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
    let output = fs::File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?);
    let is_pipe = |file: &fs::File| {
        let facts = file.metadata();
        facts.is_ok_and(|facts| facts.file_type().is_fifo())
    };
    // Both or none: whatever is taken no longer blocks.
    if !is_pipe(&input) || !is_pipe(&output) {
        return None;
    }
    let input = pipe::Receiver::from_file(input).ok()?;
    Some((input, pipe::Sender::from_file(output).ok()?))
}
