//! Raw mode: keys arrive immediately and without echo. The previous modes are restored afterwards.

use std::{
    fmt, io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
    tcgetattr, tcgetwinsize, tcsetattr,
};

use crate::screen::ScreenSize;

/// A terminal in raw mode. Dropping it restores the modes.
#[derive(Debug)]
pub struct RawMode {
    terminal: OwnedFd,
    saved: SavedModes,
}

impl RawMode {
    /// Switches a terminal to raw mode.
    ///
    /// # Errors
    /// If `terminal` is not a terminal.
    pub fn enter(terminal: impl AsFd) -> io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&terminal)?;
        let mode = Self {
            terminal,
            saved: SavedModes(before),
        };
        mode.resume()?;
        Ok(mode)
    }

    /// Returns the previous modes, for example for a guard process.
    pub fn saved(&self) -> &SavedModes {
        &self.saved
    }

    /// Restores the previous modes, for another program that runs on the terminal, or before haft
    /// is stopped.
    ///
    /// # Errors
    /// If the terminal no longer exists.
    pub fn suspend(&self) -> io::Result<()> {
        Ok(tcsetattr(
            &self.terminal,
            OptionalActions::Now,
            &self.saved.0,
        )?)
    }

    /// Switches to raw mode again.
    ///
    /// # Errors
    /// If the terminal no longer exists.
    pub fn resume(&self) -> io::Result<()> {
        let mut raw = self.saved.0.clone();
        raw.make_raw();
        // A read returns as soon as there is a byte.
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that no longer exists needs no modes.
        let _ = self.suspend();
    }
}

/// The modes of a terminal, which can be passed to another process as a text (like `stty -g`).
#[derive(Clone)]
pub struct SavedModes(Termios);

impl SavedModes {
    /// Returns the current modes of a terminal.
    ///
    /// # Errors
    /// If `terminal` is not a terminal.
    pub fn from_terminal(terminal: impl AsFd) -> io::Result<Self> {
        Ok(Self(tcgetattr(terminal)?))
    }

    /// Sets the modes.
    ///
    /// # Errors
    /// If the terminal no longer exists.
    pub fn restore(&self, terminal: impl AsFd) -> io::Result<()> {
        Ok(tcsetattr(terminal, OptionalActions::Now, &self.0)?)
    }

    /// Sets the modes if the terminal is still raw. If it is not, a shell owns the terminal and has
    /// set its own modes, which must stay. Returns `false` if nothing was changed.
    ///
    /// # Errors
    /// If the terminal no longer exists.
    pub fn restore_if_raw(&self, terminal: impl AsFd) -> io::Result<bool> {
        let terminal = terminal.as_fd();
        let now = tcgetattr(terminal)?;
        let mut raw = self.0.clone();
        raw.make_raw();
        let is_ours = now.local_modes == raw.local_modes && now.input_modes == raw.input_modes;
        if is_ours {
            self.restore(terminal)?;
        }
        Ok(is_ours)
    }

    /// Returns the modes as a text.
    pub fn encode(&self) -> String {
        let modes = &self.0;
        let mut text = format!(
            "{:x}:{:x}:{:x}:{:x}",
            modes.input_modes.bits(),
            modes.output_modes.bits(),
            modes.control_modes.bits(),
            modes.local_modes.bits()
        );
        for code in CODES {
            text += &format!(":{:x}", modes.special_codes[code]);
        }
        text
    }

    /// Parses a text that [`SavedModes::encode`] returned, for this terminal.
    ///
    /// # Errors
    /// If the text is invalid, or `terminal` is not a terminal.
    pub fn decode(text: &str, terminal: impl AsFd) -> io::Result<Self> {
        let bad = || io::Error::new(io::ErrorKind::InvalidInput, "invalid terminal modes");
        let mut modes = tcgetattr(terminal)?;
        let numbers: Result<Vec<u32>, _> = text
            .split(':')
            .map(|part| u32::from_str_radix(part, 16))
            .collect();
        let numbers = numbers.map_err(|_| bad())?;
        let [input, output, control, local, codes @ ..] = numbers.as_slice() else {
            return Err(bad());
        };
        if codes.len() != CODES.len() {
            return Err(bad());
        }
        modes.input_modes = InputModes::from_bits_retain(*input);
        modes.output_modes = OutputModes::from_bits_retain(*output);
        modes.control_modes = ControlModes::from_bits_retain(*control);
        modes.local_modes = LocalModes::from_bits_retain(*local);
        for (code, value) in CODES.into_iter().zip(codes) {
            modes.special_codes[code] = u8::try_from(*value).map_err(|_| bad())?;
        }
        Ok(Self(modes))
    }
}

impl fmt::Debug for SavedModes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("SavedModes")
            .field(&self.encode())
            .finish()
    }
}

/// The special characters of cooked mode.
const CODES: [SpecialCodeIndex; 14] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VTIME,
    SpecialCodeIndex::VMIN,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VLNEXT,
];

/// Returns the size of a terminal, or 80 by 24 if the terminal does not report it.
pub fn terminal_size(terminal: impl AsFd) -> ScreenSize {
    let size = tcgetwinsize(terminal).ok();
    let or = |value: Option<u16>, otherwise| value.filter(|value| *value > 0).unwrap_or(otherwise);
    ScreenSize {
        columns: or(size.map(|size| size.ws_col), 80),
        rows: or(size.map(|size| size.ws_row), 24),
    }
}

#[cfg(test)]
mod tests {
    use std::os::{fd::OwnedFd, unix::ffi::OsStrExt};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    fn pty() -> (OwnedFd, OwnedFd) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.to_bytes());
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let slave = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap();
        (master, slave)
    }

    fn text(terminal: &OwnedFd) -> String {
        SavedModes::from_terminal(terminal).unwrap().encode()
    }

    #[test]
    fn modes_come_back_by_drop_by_suspending_and_through_a_text() {
        let (_master, slave) = pty();
        let before = text(&slave);
        let raw = RawMode::enter(&slave).unwrap();
        let raw_text = text(&slave);
        assert_ne!(raw_text, before);
        raw.suspend().unwrap();
        assert_eq!(text(&slave), before);
        raw.resume().unwrap();
        assert_eq!(text(&slave), raw_text);
        let sent = raw.saved().encode();
        drop(raw);
        assert_eq!(text(&slave), before);

        let raw = RawMode::enter(&slave).unwrap();
        let saved = SavedModes::decode(&sent, &slave).unwrap();
        assert!(saved.restore_if_raw(&slave).unwrap());
        assert_eq!(text(&slave), before);
        // A shell has taken over: its modes stay.
        assert!(!saved.restore_if_raw(&slave).unwrap());
        drop(raw);
    }

    #[test]
    fn a_text_that_is_none_of_ours_is_refused() {
        let (_master, slave) = pty();
        for text in [
            "",
            "1:2:3",
            "x",
            "1:2:3:4:999999999999",
            "1:2:3:4:fff:0:0:0:0:0:0:0:0:0:0:0:0:0",
        ] {
            assert!(SavedModes::decode(text, &slave).is_err(), "{text}");
        }
    }
}
