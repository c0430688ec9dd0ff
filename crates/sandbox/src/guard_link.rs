//! Our process's end of the socket to the guard of a command.

use std::{
    collections::VecDeque,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::{io::Interest, net::UnixStream};

use crate::protocol::{self, FILES, GuardEvent, GuardOrder};

pub(crate) struct GuardLink {
    stream: UnixStream,
    /// Received bytes that are not a complete frame yet.
    heard: Vec<u8>,
    /// Open files that were received.
    files: VecDeque<OwnedFd>,
    /// Bytes that must still be sent.
    unsent: Vec<u8>,
    closed: bool,
}

impl GuardLink {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            heard: Vec::new(),
            files: VecDeque::new(),
            unsent: Vec::new(),
            closed: false,
        }
    }

    /// Waits for the guard's next event; `None` when the guard has exited. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<GuardEvent> {
        loop {
            if let Some(news) = self.next_frame() {
                return Some(news);
            }
            if self.closed {
                return None;
            }
            let interest = if self.flush().is_err() || self.unsent.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            match self.stream.ready(interest).await {
                Ok(ready) if ready.is_readable() => {}
                Ok(_) => continue,
                Err(_) => self.closed = true,
            }
            match self.read() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => self.closed = true,
                Ok(_) => {}
            }
        }
    }

    /// Returns the next open file that was received.
    pub(crate) fn file(&mut self) -> Option<OwnedFd> {
        self.files.pop_front()
    }

    /// Sends an order to the guard. Bytes that do not fit into the socket are sent by the following
    /// calls of [`next`](Self::next).
    pub(crate) fn send(&mut self, order: &GuardOrder) -> io::Result<()> {
        self.unsent.extend(protocol::frame(order)?);
        self.flush()
    }

    /// Sends open files with one byte. Must come before all orders, so that it never blocks.
    pub(crate) fn send_files(&mut self, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        protocol::send(self.stream.as_fd(), b"f", files)
    }

    /// Waits until all orders have been sent.
    pub(crate) async fn flush_orders(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            self.stream.writable().await?;
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(written) => {
                    self.unsent.drain(..written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    self.unsent.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = self.stream.try_io(Interest::READABLE, || {
            let mut pieces = [io::IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            Ok(recvmsg(self.stream.as_fd(), &mut pieces, &mut control, flags)?.bytes)
        })?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        self.heard.extend(&bytes[..got]);
        Ok(got)
    }

    fn next_frame(&mut self) -> Option<GuardEvent> {
        let head = *self.heard.first_chunk::<4>()?;
        let Ok(length) = protocol::length(head) else {
            self.closed = true;
            return None;
        };
        let end = 4 + length;
        let news = serde_json::from_slice(self.heard.get(4..end)?);
        self.heard.drain(..end);
        // A message that cannot be decoded is not from our guard.
        self.closed |= news.is_err();
        news.ok()
    }
}
