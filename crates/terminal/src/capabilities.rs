//! The capabilities of the terminal: first guessed from the environment, then corrected by the
//! terminal's replies to queries.

use std::fmt;

use crate::{
    image::ImageProtocol,
    input::TerminalReply,
    paint::NotifyChannel,
    style::{ColorLevel, Rgb, Theme},
};

/// Access to environment variables, from any source that the caller chooses.
pub struct TerminalEnvironment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl<'a> TerminalEnvironment<'a> {
    /// Creates an environment from a function that returns a variable by name.
    pub fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self(get)
    }

    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

impl fmt::Debug for TerminalEnvironment<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TerminalEnvironment")
            .finish_non_exhaustive()
    }
}

/// The capabilities of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The number of colours it shows.
    pub level: ColorLevel,
    /// True if it rewraps lines when its width changes.
    pub reflows: bool,
    /// True if it supports hyperlinks (OSC 8).
    pub hyperlinks: bool,
    /// True if output is encoded in UTF-8.
    pub unicode: bool,
    /// True if it is at the other end of a network connection (SSH).
    pub is_remote: bool,
    /// True if tmux is between haft and the terminal.
    pub in_tmux: bool,
    /// Its background colour, if known.
    pub background: Option<Rgb>,
    /// The protocol for images.
    pub images: ImageProtocol,
    /// The protocol for desktop notifications.
    pub notices: NotifyChannel,
    /// True after the reply to the last query. A capability that is still unknown then stays
    /// unknown.
    pub is_settled: bool,
}

/// Variables that are set only by terminals that reflow.
const REFLOWING: [&str; 6] = [
    "TMUX",
    "STY",
    "VTE_VERSION",
    "KONSOLE_VERSION",
    "WT_SESSION",
    "TERM_PROGRAM",
];

impl Capabilities {
    /// Derives the capabilities from the environment.
    pub fn from_environment(environment: &TerminalEnvironment<'_>) -> Self {
        let program = environment.get("TERM_PROGRAM").unwrap_or_default();
        let term = environment.get("TERM").unwrap_or_default();
        let is_kitty = term == "xterm-kitty" || environment.has("KITTY_WINDOW_ID");
        let in_tmux = environment.has("TMUX");
        let level = color_level(environment, &term);
        Self {
            level,
            reflows: REFLOWING.iter().any(|name| environment.has(name)),
            hyperlinks: !in_tmux
                && (is_kitty
                    || environment.has("WT_SESSION")
                    || environment.has("KONSOLE_VERSION")
                    || environment
                        .get("VTE_VERSION")
                        .is_some_and(|version| version.as_str() >= "5000")
                    || matches!(&*program, "iTerm.app" | "WezTerm" | "ghostty" | "vscode")),
            unicode: is_utf8(environment),
            is_remote: environment.has("SSH_TTY"),
            in_tmux,
            background: environment
                .get("COLORFGBG")
                .and_then(|value| Theme::background_of(&value)),
            images: match &*program {
                _ if in_tmux || level < ColorLevel::Ansi256 => ImageProtocol::for_level(level),
                "iTerm.app" | "WezTerm" => ImageProtocol::Iterm,
                _ => ImageProtocol::for_level(level),
            },
            notices: match &*term {
                _ if is_kitty => NotifyChannel::Osc99,
                "rxvt-unicode" | "rxvt-unicode-256color" => NotifyChannel::Osc777,
                _ => NotifyChannel::Osc9,
            },
            is_settled: false,
        }
    }

    /// Applies a reply of the terminal. Returns `true` if a capability changed.
    pub fn update_from_reply(&mut self, reply: &TerminalReply) -> bool {
        let before = self.clone();
        match reply {
            TerminalReply::Background(color) => self.background = Some(*color),
            // xterm replies too, but it cuts its rows instead of reflowing them.
            TerminalReply::Version(version) => {
                self.reflows |= !version.starts_with("XTerm(");
                let known = [
                    "kitty", "WezTerm", "iTerm2", "ghostty", "foot", "Konsole", "contour",
                ];
                self.hyperlinks |= known.iter().any(|name| version.starts_with(name));
                let tmux = version.strip_prefix("tmux ");
                self.hyperlinks |= tmux.is_some_and(|version| numbers(version) >= vec![3, 4]);
            }
            // tmux sends this reply itself and draws no images.
            TerminalReply::Graphics(true) if !self.in_tmux => self.images = ImageProtocol::Kitty,
            TerminalReply::Attributes(attributes) => {
                let has_sixel = attributes.contains(&4) && !self.in_tmux;
                if has_sixel && self.images <= ImageProtocol::HalfBlocks {
                    self.images = ImageProtocol::Sixel;
                }
                self.is_settled = true;
            }
            TerminalReply::ThemeChanged { is_dark } => {
                // The real colour is queried again; until the reply arrives, this is close enough.
                let near = if *is_dark {
                    Rgb(0, 0, 0)
                } else {
                    Rgb(255, 255, 255)
                };
                if self
                    .background
                    .is_none_or(|known| known.is_light() == *is_dark)
                {
                    self.background = Some(near);
                }
            }
            TerminalReply::Graphics(_) | TerminalReply::KeyboardFlags(_) => {}
        }
        *self != before
    }
}

/// Parses a version: `3.3a` becomes 3 and 3.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split('.').take(2);
    let digits = |part: &str| {
        part.chars()
            .map_while(|digit| digit.to_digit(10))
            .fold(0, |sum, digit| sum * 10 + digit)
    };
    parts.map(digits).collect()
}

fn color_level(environment: &TerminalEnvironment<'_>, term: &str) -> ColorLevel {
    if environment.has("NO_COLOR") {
        return ColorLevel::None;
    }
    let forced = environment.get("FORCE_COLOR");
    let by_term = match environment.get("COLORTERM").as_deref() {
        Some("truecolor" | "24bit") => ColorLevel::TrueColor,
        _ if term.ends_with("-direct") => ColorLevel::TrueColor,
        _ if term.contains("256color") || term == "xterm-kitty" => ColorLevel::Ansi256,
        _ => ColorLevel::Ansi16,
    };
    match forced.as_deref() {
        Some("0" | "false") => ColorLevel::None,
        Some("3") => ColorLevel::TrueColor,
        Some("2") => ColorLevel::Ansi256,
        _ => by_term,
    }
}

/// Checks the locale, the most specific variable first. Without a locale, most systems use UTF-8.
fn is_utf8(environment: &TerminalEnvironment<'_>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let Some(locale) = names.iter().find_map(|name| environment.get(name)) else {
        return true;
    };
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Capabilities {
        let get = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Capabilities::from_environment(&TerminalEnvironment::new(&get))
    }

    #[test]
    fn colours_are_as_many_as_the_variables_say() {
        let cases: [(&[(&str, &str)], ColorLevel); 7] = [
            (&[("TERM", "xterm")], ColorLevel::Ansi16),
            (&[("TERM", "xterm-256color")], ColorLevel::Ansi256),
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")],
                ColorLevel::TrueColor,
            ),
            (
                &[("COLORTERM", "truecolor"), ("NO_COLOR", "1")],
                ColorLevel::None,
            ),
            (
                &[("COLORTERM", "truecolor"), ("NO_COLOR", "")],
                ColorLevel::TrueColor,
            ),
            (
                &[("TERM", "xterm"), ("FORCE_COLOR", "3")],
                ColorLevel::TrueColor,
            ),
            (
                &[("TERM", "xterm-256color"), ("FORCE_COLOR", "0")],
                ColorLevel::None,
            ),
        ];
        for (variables, expected) in cases {
            assert_eq!(of(variables).level, expected, "{variables:?}");
        }
    }

    #[test]
    fn reflow_is_known_by_variables_and_by_the_answer() {
        assert!(of(&[("TMUX", "x")]).reflows);
        let mut unknown = of(&[("TERM", "xterm")]);
        assert!(!unknown.reflows);
        unknown.update_from_reply(&TerminalReply::Version("XTerm(379)".into()));
        assert!(!unknown.reflows);
        assert!(unknown.update_from_reply(&TerminalReply::Version("foot(1.16)".into())));
        assert!(unknown.reflows && unknown.hyperlinks);
        for (version, expected) in [
            ("3.3a", false),
            ("3.4", true),
            ("3.10b", true),
            ("4.0", true),
        ] {
            let mut tmux = of(&[("TMUX", "x")]);
            tmux.update_from_reply(&TerminalReply::Version(format!("tmux {version}")));
            assert_eq!(tmux.hyperlinks, expected, "{version}");
        }
    }

    #[test]
    fn pictures_are_shown_as_well_as_the_terminal_can() {
        let mut xterm = of(&[("TERM", "xterm-256color")]);
        assert_eq!(xterm.images, ImageProtocol::HalfBlocks);
        xterm.update_from_reply(&TerminalReply::Attributes(vec![64, 4]));
        assert_eq!(xterm.images, ImageProtocol::Sixel);
        xterm.update_from_reply(&TerminalReply::Graphics(true));
        assert_eq!(xterm.images, ImageProtocol::Kitty);
        let mut tmux = of(&[("TERM", "screen-256color"), ("TMUX", "x")]);
        tmux.update_from_reply(&TerminalReply::Attributes(vec![64, 4]));
        assert_eq!(tmux.images, ImageProtocol::HalfBlocks);
        assert_eq!(of(&[("TERM", "xterm")]).images, ImageProtocol::Name);
        assert_eq!(
            of(&[("TERM_PROGRAM", "WezTerm"), ("COLORTERM", "truecolor")]).images,
            ImageProtocol::Iterm
        );
    }

    #[test]
    fn a_changed_theme_counts_until_the_real_colour_comes() {
        let mut terminal = of(&[]);
        assert!(terminal.update_from_reply(&TerminalReply::Background(Rgb(255, 255, 255))));
        assert!(!terminal.update_from_reply(&TerminalReply::ThemeChanged { is_dark: false }));
        assert!(terminal.update_from_reply(&TerminalReply::ThemeChanged { is_dark: true }));
        assert!(!terminal.background.unwrap().is_light());
    }

    #[test]
    fn ascii_is_for_locales_without_utf8() {
        assert!(of(&[]).unicode && of(&[("LANG", "de_DE.UTF-8")]).unicode);
        assert!(!of(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]).unicode);
    }
}
