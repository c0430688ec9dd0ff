//! `terminalSequence` in hook output: sets the title, shows a notification or rings the bell. The
//! sequence is parsed and generated again, so nothing else that a hook prints reaches the terminal.

use haft_terminal::paint::{NotifyChannel, TerminalControl};
use serde_json::Value;

/// The maximum length of a sequence in bytes.
const MAX_LENGTH: usize = 4_096;

/// Returns the controls that a hook's output requests, or none if any part of the sequence is not
/// supported.
pub(crate) fn parse_output(stdout: &str, in_tmux: bool) -> Vec<TerminalControl> {
    let is_object = stdout.trim_start().starts_with('{');
    if !is_object || !stdout.contains("\"terminalSequence\"") {
        return Vec::new();
    }
    let said = serde_json::from_str::<Value>(stdout).unwrap_or_default();
    let sequence = said["terminalSequence"].as_str().unwrap_or_default();
    read(sequence, in_tmux).unwrap_or_default()
}

fn read(sequence: &str, in_tmux: bool) -> Option<Vec<TerminalControl>> {
    if sequence.len() > MAX_LENGTH {
        return None;
    }
    let mut controls = Vec::new();
    let mut rest = sequence;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('\x07') {
            controls.push(TerminalControl::Bell);
            rest = behind;
            continue;
        }
        let body = rest.strip_prefix("\x1b]")?;
        let end = body.find(['\x07', '\x1b'])?;
        let (content, behind) = body.split_at(end);
        rest = behind
            .strip_prefix('\x07')
            .or(behind.strip_prefix("\x1b\\"))?;
        if content.contains(char::is_control) {
            return None;
        }
        let (number, text) = content.split_once(';')?;
        let notify = |channel, text: &str| TerminalControl::Notify {
            channel,
            text: text.to_owned(),
            in_tmux,
        };
        controls.push(match number {
            "0" | "1" | "2" => TerminalControl::Title(text.to_owned()),
            "9" => notify(NotifyChannel::Osc9, text),
            "99" => notify(NotifyChannel::Osc99, text.split_once(';')?.1),
            "777" => notify(NotifyChannel::Osc777, text.strip_prefix("notify;")?),
            _ => return None,
        });
    }
    Some(controls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sequence: &str) -> String {
        let stdout = serde_json::json!({"terminalSequence": sequence}).to_string();
        let mut out = Vec::new();
        for control in parse_output(&stdout, false) {
            control.write(&mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn titles_notices_and_the_bell_are_written_and_nothing_else() {
        assert_eq!(written("\x07"), "\x07");
        assert_eq!(written("\x1b]9;done\x07"), "\x1b]9;done\x07");
        assert_eq!(written("\x1b]9;done\x1b\\\x07"), "\x1b]9;done\x07\x07");
        assert_eq!(written("\x1b]99;;done\x07"), "\x1b]99;;done\x07");
        assert!(written("\x1b]2;busy\x07").contains("busy"));
        assert!(written("\x1b]777;notify;a;b\x07").contains("a,b"));
        for refused in [
            "plain text",
            "\x1b[2J",
            "\x1b]52;c;c2VjcmV0\x07",
            "\x1b]9;a\x1b[31mb\x07",
            "\x1b]9;unfinished",
            "\x1b]8;;http://a.example\x07",
            "\x1b]9;fine\x07and text",
            "\u{9b}31m",
            "\x1b]9;a\u{9c}\x07",
        ] {
            assert_eq!(written(refused), "", "{refused:?}");
        }
        assert!(parse_output("plain", false).is_empty());
        assert!(parse_output("{\"terminalSequence\": 7}", false).is_empty());
        assert!(parse_output("{\"terminalSequence\"", false).is_empty());
    }
}
