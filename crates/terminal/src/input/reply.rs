//! Replies of a terminal.

use super::{event::TerminalReply, keys::CsiParameters};
use crate::style::Rgb;

/// Decodes `CSI ? … final`.
pub(super) fn decode_csi(
    parameters: &CsiParameters,
    intermediate: &[u8],
    last: u8,
) -> Option<TerminalReply> {
    match (intermediate, last) {
        ([], b'c') => Some(TerminalReply::Attributes(parameters.all())),
        ([], b'u') => Some(TerminalReply::KeyboardFlags(parameters.get(0))),
        ([], b'n') if parameters.get(0) == 997 => Some(TerminalReply::ThemeChanged {
            is_dark: parameters.get(1) == 1,
        }),
        _ => None,
    }
}

/// Decodes the body of an `OSC`, `DCS` or `APC` string.
pub(super) fn decode_string(introducer: u8, body: &[u8]) -> Option<TerminalReply> {
    let text = String::from_utf8_lossy(body);
    match introducer {
        b']' => text
            .strip_prefix("11;")
            .and_then(color)
            .map(TerminalReply::Background),
        b'P' => {
            let version = text.strip_prefix(">|")?;
            let version: String = version
                .chars()
                .filter(|c| !c.is_control())
                .take(100)
                .collect();
            Some(TerminalReply::Version(version))
        }
        b'_' => {
            let (_, outcome) = text.strip_prefix('G')?.split_once(';')?;
            Some(TerminalReply::Graphics(outcome == "OK"))
        }
        _ => None,
    }
}

/// Parses `rgb:1e1e/1e1e/2e2e` or `rgba:…` with one to four digits per part, or `#1e1e2e`.
fn color(text: &str) -> Option<Rgb> {
    let scaled = |part: &str| {
        let value = u32::from_str_radix(part, 16).ok()?;
        let most = match part.len() {
            length @ 1..=4 => 16u32.pow(u32::try_from(length).ok()?) - 1,
            _ => return None,
        };
        u8::try_from(value * 255 / most).ok()
    };
    if let Some(digits) = text.strip_prefix('#') {
        let length = digits.len() / 3;
        let part = |at: usize| scaled(digits.get(at * length..(at + 1) * length)?);
        return Some(Rgb(part(0)?, part(1)?, part(2)?));
    }
    let (_, parts) = text
        .split_once(':')
        .filter(|(kind, _)| matches!(*kind, "rgb" | "rgba"))?;
    let mut parts = parts.split('/').map(scaled);
    let mut next = || parts.next().flatten();
    Some(Rgb(next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_at_any_precision() {
        for (text, expected) in [
            ("rgb:ffff/8080/0000", Some(Rgb(255, 128, 0))),
            ("rgb:f/8/0", Some(Rgb(255, 136, 0))),
            ("rgba:ff/80/00/ff", Some(Rgb(255, 128, 0))),
            ("#1e1e2e", Some(Rgb(30, 30, 46))),
            ("rgb:xx/00/00", None),
            ("#", None),
            ("#\u{e9}\u{e9}x", None),
            ("", None),
        ] {
            assert_eq!(color(text), expected, "{text}");
        }
    }
}
