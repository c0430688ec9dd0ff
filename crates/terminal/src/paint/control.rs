//! Everything that is sent to a terminal besides text and cursor movement.
//!
//! Texts are cleaned or encoded here, so that none can end its sequence and start another.

use crate::{clean::is_plain, image::base64};

/// Modes, queries and signals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalControl {
    /// Enables keyboard reports, bracketed paste, focus reports and theme reports. Send it after
    /// the first frame.
    EnterModes,
    /// Disables the same modes and shows the cursor.
    LeaveModes,
    /// Queries background, version, Kitty graphics and, last, device attributes. After the reply to
    /// the last query, no other reply is to be expected.
    Queries,
    /// Saves the title for [`TerminalControl::PopTitle`].
    PushTitle,
    /// Restores the saved title.
    PopTitle,
    /// Sets the title.
    Title(String),
    /// Rings the bell.
    Bell,
    /// Shows a desktop notification; inside tmux it is passed through to the terminal.
    Notify {
        /// The protocol.
        channel: NotifyChannel,
        /// The text.
        text: String,
        /// True if tmux is between haft and the terminal.
        in_tmux: bool,
    },
    /// Copies text to the clipboard of the user's own machine (OSC 52).
    Clipboard(String),
    /// Sets the progress bar of the window.
    Progress(ProgressState),
    /// Marks the start or end of a message, for terminals that can jump between them.
    Mark(PromptMark),
}

/// The protocol for desktop notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyChannel {
    /// iTerm2 and most others.
    Osc9,
    /// urxvt.
    Osc777,
    /// Kitty.
    Osc99,
}

/// The state of the progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressState {
    /// No progress bar.
    Off,
    /// Work is in progress.
    Busy,
    /// The work failed.
    Failed,
}

/// A mark in the scrollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptMark {
    /// Before a message.
    Start,
    /// After the message: what follows is output.
    Output,
}

/// The maximum number of bytes for the clipboard. Some terminals drop longer sequences.
pub const MAX_FOR_CLIPBOARD: usize = 74 * 1024;

impl TerminalControl {
    /// Appends the bytes of the sequence.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::EnterModes => {
                out.extend_from_slice(b"\x1b[>1u\x1b[>4;1m\x1b[?2004h\x1b[?1004h\x1b[?2031h");
            }
            Self::LeaveModes => out.extend_from_slice(LEAVE_MODES),
            Self::Queries => out.extend_from_slice(
                b"\x1b]11;?\x1b\\\x1b[>q\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c",
            ),
            Self::PushTitle => out.extend_from_slice(b"\x1b[22;2t"),
            Self::PopTitle => out.extend_from_slice(b"\x1b[23;2t"),
            Self::Title(text) => osc(&format!("2;{}", sanitized_title(text, 200)), false, out),
            Self::Bell => out.push(7),
            Self::Notify {
                channel,
                text,
                in_tmux,
            } => {
                let text = sanitized_title(text, 300);
                let body = match channel {
                    NotifyChannel::Osc9 => format!("9;{text}"),
                    NotifyChannel::Osc777 => format!("777;notify;{};", text.replace(';', ",")),
                    NotifyChannel::Osc99 => format!("99;;{text}"),
                };
                osc(&body, *in_tmux, out);
            }
            Self::Clipboard(text) => {
                osc(&format!("52;c;{}", base64(text.as_bytes())), false, out);
            }
            Self::Progress(state) => {
                let body = match state {
                    ProgressState::Off => "9;4;0;0",
                    ProgressState::Busy => "9;4;3;0",
                    ProgressState::Failed => "9;4;2;0",
                };
                osc(body, false, out);
            }
            Self::Mark(PromptMark::Start) => osc("133;A;redraw=0", false, out),
            Self::Mark(PromptMark::Output) => osc("133;C", false, out),
        }
    }
}

pub(crate) const LEAVE_MODES: &[u8] =
    b"\x1b[<u\x1b[>4m\x1b[?2004l\x1b[?1004l\x1b[?2031l\x1b[?2026l\x1b[?25h";

fn osc(body: &str, through_tmux: bool, out: &mut Vec<u8>) {
    // Terminated by BEL: for titles, some terminals support no other terminator.
    if through_tmux {
        out.extend_from_slice(b"\x1bPtmux;\x1b\x1b]");
        out.extend_from_slice(body.as_bytes());
        out.extend_from_slice(b"\x07\x1b\\");
    } else {
        out.extend_from_slice(b"\x1b]");
        out.extend_from_slice(body.as_bytes());
        out.push(7);
    }
}

/// Returns at most `most` characters, with every unsafe character replaced by a space.
fn sanitized_title(text: &str, most: usize) -> String {
    let characters = text.chars().map(|c| if is_plain(c) { c } else { ' ' });
    characters.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(control: &TerminalControl) -> String {
        let mut out = Vec::new();
        control.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_text_ends_its_sequence() {
        let evil = "a\x07\x1b]52;c;eA==\x07\x1b\\\u{9c}b";
        let title = bytes(&TerminalControl::Title(evil.into()));
        assert_eq!(title, "\x1b]2;a  ]52;c;eA==  \\ b\x07");
        let notice = TerminalControl::Notify {
            channel: NotifyChannel::Osc9,
            text: evil.into(),
            in_tmux: true,
        };
        assert_eq!(
            bytes(&notice),
            "\x1bPtmux;\x1b\x1b]9;a  ]52;c;eA==  \\ b\x07\x1b\\"
        );
        assert_eq!(
            bytes(&TerminalControl::Clipboard("hi\x07".into())),
            "\x1b]52;c;aGkH\x07"
        );
    }

    #[test]
    fn what_is_entered_is_left() {
        let (enter, leave) = (
            bytes(&TerminalControl::EnterModes),
            bytes(&TerminalControl::LeaveModes),
        );
        for mode in ["2004", "1004", "2031"] {
            assert!(enter.contains(&format!("?{mode}h")) && leave.contains(&format!("?{mode}l")));
        }
        assert!(!enter.contains("?1000h") && !enter.contains("6n"));
        assert!(bytes(&TerminalControl::Queries).ends_with("\x1b[c"));
    }
}
