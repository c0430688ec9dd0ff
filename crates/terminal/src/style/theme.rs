//! Named themes, and how one is chosen.
//!
//! Normal text has the terminal's own foreground, and secondary text is faint. Black, white and
//! bright black are never used, because each is invisible on some background. Colour is never the
//! only sign of anything.

use super::{ColorLevel, Rgb, TextColor, TextStyle, contrast};

/// The name of a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeName {
    /// Chosen by the terminal's background. If the background is unknown, uses the terminal's own
    /// 16 colours.
    #[default]
    Auto,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// For a dark background, without red-green contrast.
    DarkDaltonized,
    /// For a light background, without red-green contrast.
    LightDaltonized,
    /// For a dark background, in the terminal's own 16 colours.
    DarkAnsi,
    /// For a light background, in the terminal's own 16 colours.
    LightAnsi,
}

impl ThemeName {
    /// Parses the name of a theme in the settings.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "dark" => Self::Dark,
            "light" => Self::Light,
            "dark-daltonized" => Self::DarkDaltonized,
            "light-daltonized" => Self::LightDaltonized,
            "dark-ansi" => Self::DarkAnsi,
            "light-ansi" => Self::LightAnsi,
            _ => return None,
        })
    }
}

/// A theme: the styles of text by purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// Text that the user should notice first: prompts, selected entries.
    pub accent: TextStyle,
    /// Success.
    pub success: TextStyle,
    /// Failure.
    pub failure: TextStyle,
    /// Warnings.
    pub warning: TextStyle,
    /// Secondary text.
    pub faint: TextStyle,
    /// Headings of a reply.
    pub heading: TextStyle,
    /// Links.
    pub link: TextStyle,
    /// Inline code.
    pub inline_code: TextStyle,
    /// Comments in code.
    pub comment: TextStyle,
    /// Strings in code.
    pub string: TextStyle,
    /// Numbers and constants in code.
    pub number: TextStyle,
    /// Keywords in code.
    pub keyword: TextStyle,
    /// Type names in code.
    pub type_name: TextStyle,
    /// Calls in code.
    pub call: TextStyle,
    /// Added lines: the mark, and the background if the terminal's background is known.
    pub added: TextStyle,
    /// Removed lines.
    pub removed: TextStyle,
    /// True if the theme is for a light background.
    pub is_light: bool,
}

/// The share of a colour in the background of a changed line.
const TINT: f64 = 0.12;

/// The minimum contrast of readable text.
const READABLE: f64 = 4.5;

impl Theme {
    /// Creates the theme with this name. `background` is `None` if it is unknown.
    pub fn new(name: ThemeName, background: Option<Rgb>, level: ColorLevel) -> Self {
        let (is_light, daltonized, own_colors) = match name {
            ThemeName::Auto => match background {
                Some(color) => (color.is_light(), false, level <= ColorLevel::Ansi16),
                None => (false, false, true),
            },
            ThemeName::Dark => (false, false, level <= ColorLevel::Ansi16),
            ThemeName::Light => (true, false, level <= ColorLevel::Ansi16),
            ThemeName::DarkDaltonized => (false, true, false),
            ThemeName::LightDaltonized => (true, true, false),
            ThemeName::DarkAnsi => (false, false, true),
            ThemeName::LightAnsi => (true, false, true),
        };
        let palette = match (own_colors, is_light) {
            (true, _) => ThemePalette::ANSI,
            (false, false) => ThemePalette::DARK,
            (false, true) => ThemePalette::LIGHT,
        };
        let palette = if daltonized {
            palette.daltonized(is_light)
        } else {
            palette
        };
        palette.theme(is_light, background.filter(|_| !own_colors))
    }

    /// Parses `COLORFGBG`, which rxvt and Konsole set: `15;0` is light on dark.
    pub fn background_of(colorfgbg: &str) -> Option<Rgb> {
        let last = colorfgbg.rsplit(';').next()?;
        match last.parse::<u8>().ok()? {
            0..=6 | 8 => Some(Rgb(0, 0, 0)),
            7 | 9..=15 => Some(Rgb(255, 255, 255)),
            _ => None,
        }
    }
}

struct ThemePalette {
    accent: TextColor,
    green: TextColor,
    red: TextColor,
    yellow: TextColor,
    blue: TextColor,
    magenta: TextColor,
    cyan: TextColor,
}

const fn rgb(red: u8, green: u8, blue: u8) -> TextColor {
    TextColor::Rgb(Rgb(red, green, blue))
}

impl ThemePalette {
    const ANSI: Self = Self {
        accent: TextColor::Ansi(6),
        green: TextColor::Ansi(2),
        red: TextColor::Ansi(1),
        yellow: TextColor::Ansi(3),
        blue: TextColor::Ansi(4),
        magenta: TextColor::Ansi(5),
        cyan: TextColor::Ansi(6),
    };

    const DARK: Self = Self {
        accent: rgb(122, 184, 255),
        green: rgb(128, 200, 120),
        red: rgb(240, 128, 128),
        yellow: rgb(226, 192, 108),
        blue: rgb(122, 184, 255),
        magenta: rgb(206, 158, 240),
        cyan: rgb(112, 200, 208),
    };

    const LIGHT: Self = Self {
        accent: rgb(0, 88, 180),
        green: rgb(16, 112, 32),
        red: rgb(180, 24, 40),
        yellow: rgb(132, 92, 0),
        blue: rgb(0, 88, 180),
        magenta: rgb(124, 52, 160),
        cyan: rgb(0, 108, 120),
    };

    /// Returns the palette with blue for additions and orange for removals.
    fn daltonized(self, is_light: bool) -> Self {
        let (added, removed) = match is_light {
            true => (rgb(0, 92, 168), rgb(160, 84, 0)),
            false => (rgb(110, 180, 250), rgb(240, 160, 80)),
        };
        Self {
            green: added,
            red: removed,
            ..self
        }
    }

    fn theme(self, is_light: bool, background: Option<Rgb>) -> Theme {
        let plain = TextStyle::new();
        let marked = |color: TextColor| match (color, background) {
            (TextColor::Rgb(tint), Some(background)) => {
                let text = if is_light {
                    Rgb(0, 0, 0)
                } else {
                    Rgb(255, 255, 255)
                };
                let mixed = background.mixed(tint, TINT);
                match contrast(text, mixed) >= READABLE {
                    true => plain.bg(TextColor::Rgb(mixed)),
                    false => plain.fg(color),
                }
            }
            _ => plain.fg(color),
        };
        Theme {
            accent: plain.fg(self.accent),
            success: plain.fg(self.green),
            failure: plain.fg(self.red),
            warning: plain.fg(self.yellow),
            faint: plain.faint(),
            heading: plain.bold(),
            link: plain.fg(self.blue).underline(),
            inline_code: plain.fg(self.cyan),
            comment: plain.faint().italic(),
            string: plain.fg(self.green),
            number: plain.fg(self.yellow),
            keyword: plain.fg(self.magenta),
            type_name: plain.fg(self.cyan),
            call: plain.fg(self.blue),
            added: marked(self.green),
            removed: marked(self.red),
            is_light,
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::new(ThemeName::Auto, None, ColorLevel::Ansi16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_follows_the_background() {
        let of = |background| Theme::new(ThemeName::Auto, background, ColorLevel::TrueColor);
        assert!(of(Some(Rgb(255, 255, 255))).is_light);
        assert!(!of(Some(Rgb(30, 30, 46))).is_light);
        assert_eq!(of(None).accent, TextStyle::new().fg(TextColor::Ansi(6)));
    }

    #[test]
    fn colours_are_readable_on_their_background() {
        for (name, background) in [
            (ThemeName::Dark, Rgb(30, 30, 46)),
            (ThemeName::Dark, Rgb(0, 0, 0)),
            (ThemeName::DarkDaltonized, Rgb(0, 43, 54)),
            (ThemeName::Light, Rgb(255, 255, 255)),
            (ThemeName::LightDaltonized, Rgb(253, 246, 227)),
        ] {
            let theme = Theme::new(name, Some(background), ColorLevel::TrueColor);
            for style in [
                theme.accent,
                theme.success,
                theme.failure,
                theme.warning,
                theme.keyword,
            ] {
                let Some(TextColor::Rgb(color)) = style.foreground else {
                    panic!("{style:?}")
                };
                assert!(
                    contrast(color, background) >= READABLE,
                    "{name:?} {color:?}"
                );
            }
            let Some(TextColor::Rgb(behind)) = theme.added.background else {
                panic!("{theme:?}")
            };
            let text = if theme.is_light {
                Rgb(0, 0, 0)
            } else {
                Rgb(255, 255, 255)
            };
            assert!(contrast(text, behind) >= READABLE, "{name:?}");
        }
    }

    #[test]
    fn black_white_and_bright_black_are_never_used() {
        let theme = Theme::default();
        for style in [
            theme.accent,
            theme.success,
            theme.warning,
            theme.faint,
            theme.comment,
        ] {
            let color = style.foreground;
            assert!(
                !matches!(color, Some(TextColor::Ansi(0 | 7 | 8 | 15))),
                "{style:?}"
            );
        }
    }

    #[test]
    fn the_variable_of_rxvt_is_read() {
        assert!(Theme::background_of("0;15").unwrap().is_light());
        assert!(!Theme::background_of("15;default;0").unwrap().is_light());
        assert_eq!(Theme::background_of("x"), None);
    }
}
