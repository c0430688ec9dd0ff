//! Loads the configured colour theme: a built-in one, or a custom one from a file.
//!
//! A file in `~/.claude/themes` names its base theme and the differences: `{"base": "dark",
//! "overrides": {"error": "#ff5555"}}`.

use std::{fs::File, io::Read, path::Path};

use haft_terminal::{
    ColorLevel, Rgb, TextColor, TextStyle, Theme,
    style::{ThemeName, contrast},
};
use serde_json::Value;

/// The maximum size of a theme file in bytes.
const MAX_FILE: u64 = 64 << 10;

/// The minimum contrast of a colour with the background.
const READABLE: f64 = 2.0;

/// Returns the theme with this name (setting `theme`), and the problem with it, if any. Reads a
/// file only for `custom:`.
pub(crate) fn theme(
    name: Option<&str>,
    background: Option<Rgb>,
    level: ColorLevel,
    themes: &Path,
) -> (Theme, Option<String>) {
    let usual = |name| Theme::new(name, background, level);
    let Some(name) = name else {
        return (usual(ThemeName::Auto), None);
    };
    if let Some(custom) = name.strip_prefix("custom:") {
        return match load_theme_file(custom, background, level, themes) {
            Ok((theme, problem)) => (theme, problem),
            Err(why) => (usual(ThemeName::Auto), Some(format!("theme {name}: {why}"))),
        };
    }
    match ThemeName::parse(name) {
        Some(name) => (usual(name), None),
        None => {
            let why = format!("theme {name}: unknown theme; auto is used");
            (usual(ThemeName::Auto), Some(why))
        }
    }
}

fn load_theme_file(
    name: &str,
    background: Option<Rgb>,
    level: ColorLevel,
    themes: &Path,
) -> Result<(Theme, Option<String>), String> {
    let is_name = |letter: char| letter.is_alphanumeric() || "-_ .".contains(letter);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
        return Err("not a valid file name".to_owned());
    }
    let path = themes.join(format!("{name}.json"));
    let shown = path.display();
    let file = File::open(&path).map_err(|error| format!("{shown}: {error}"))?;
    let mut text = String::new();
    let read = file.take(MAX_FILE).read_to_string(&mut text);
    read.map_err(|error| format!("{shown}: {error}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
    let base = value["base"].as_str().unwrap_or("auto");
    let base = ThemeName::parse(base).ok_or_else(|| format!("{shown}: unknown base {base}"))?;
    let mut theme = Theme::new(base, background, level);
    let mut unread = Vec::new();
    for (part, color) in value["overrides"].as_object().into_iter().flatten() {
        let color = color.as_str().and_then(color_of);
        let is_used = color.is_some_and(|color| set(&mut theme, part, color, background));
        // Parts that only other programs draw are not reported.
        if color.is_none() || !is_used && is_builtin(part) {
            unread.push(part.as_str());
        }
    }
    let problem = (!unread.is_empty())
        .then(|| format!("{shown}: invalid colours, ignored: {}", unread.join(", ")));
    Ok((theme, problem))
}

/// A style of a theme with its name in theme files.
type ThemePart = (&'static str, fn(&mut Theme) -> &mut TextStyle);

/// The styles that a theme file can change, with their names.
const PARTS: [ThemePart; 18] = [
    ("accent", |theme| &mut theme.accent),
    ("claude", |theme| &mut theme.accent),
    ("success", |theme| &mut theme.success),
    ("error", |theme| &mut theme.failure),
    ("warning", |theme| &mut theme.warning),
    ("heading", |theme| &mut theme.heading),
    ("link", |theme| &mut theme.link),
    ("inlineCode", |theme| &mut theme.inline_code),
    ("comment", |theme| &mut theme.comment),
    ("string", |theme| &mut theme.string),
    ("number", |theme| &mut theme.number),
    ("keyword", |theme| &mut theme.keyword),
    ("type", |theme| &mut theme.type_name),
    ("call", |theme| &mut theme.call),
    ("added", |theme| &mut theme.added),
    ("removed", |theme| &mut theme.removed),
    ("diffAdded", |theme| &mut theme.added),
    ("diffRemoved", |theme| &mut theme.removed),
];

fn is_builtin(part: &str) -> bool {
    PARTS.iter().any(|(name, _)| *name == part)
}

/// Sets the colour of a part. Returns `false` if the part does not exist or the colour would be
/// unreadable.
fn set(theme: &mut Theme, part: &str, color: TextColor, background: Option<Rgb>) -> bool {
    let Some((_, style_of)) = PARTS.iter().find(|(name, _)| *name == part) else {
        return false;
    };
    // The text on the background colours of a diff has the terminal's default colour.
    let is_background = part.starts_with("diff");
    let text = if theme.is_light {
        Rgb(0, 0, 0)
    } else {
        Rgb(255, 255, 255)
    };
    let other = if is_background {
        Some(text)
    } else {
        background
    };
    if let (TextColor::Rgb(color), Some(other)) = (color, other)
        && contrast(color, other) < READABLE
    {
        return false;
    }
    let style = style_of(theme);
    *style = match is_background {
        true => TextStyle::new().bg(color),
        false => style.fg(color),
    };
    true
}

/// Parses `#rgb`, `#rrggbb`, `rgb(1,2,3)`, `ansi256(n)`, `ansi:red` or `ansi:redBright`.
fn color_of(text: &str) -> Option<TextColor> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix('#') {
        let digits: Vec<u8> = digits
            .chars()
            .map(|digit| {
                digit
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            })
            .collect::<Option<_>>()?;
        return match digits.as_slice() {
            [r, g, b] => Some(TextColor::Rgb(Rgb(r * 17, g * 17, b * 17))),
            [a, b, c, d, e, f] => Some(TextColor::Rgb(Rgb(a * 16 + b, c * 16 + d, e * 16 + f))),
            _ => None,
        };
    }
    let inside = |beginning: &str| text.strip_prefix(beginning)?.strip_suffix(')');
    if let Some(parts) = inside("rgb(") {
        let parts: Option<Vec<u8>> = parts
            .split(',')
            .map(|part| part.trim().parse().ok())
            .collect();
        return match parts?.as_slice() {
            [r, g, b] => Some(TextColor::Rgb(Rgb(*r, *g, *b))),
            _ => None,
        };
    }
    if let Some(number) = inside("ansi256(") {
        return number.trim().parse().ok().map(TextColor::Indexed);
    }
    let name = text.strip_prefix("ansi:")?;
    let (name, bright) = match name.strip_suffix("Bright") {
        Some(name) => (name, 8),
        None => (name, 0),
    };
    const NAMES: [&str; 8] = [
        "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    ];
    let number = NAMES.iter().position(|known| *known == name)?;
    let number = u8::try_from(number).ok()?;
    Some(TextColor::Ansi(number + bright))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn of(name: &str, themes: &Path) -> (Theme, Option<String>) {
        theme(Some(name), None, ColorLevel::TrueColor, themes)
    }

    #[test]
    fn a_name_that_is_not_known_is_auto_and_said() {
        let (found, problem) = of("neon", Path::new("/"));
        assert_eq!(
            found,
            theme(None, None, ColorLevel::TrueColor, Path::new("/")).0
        );
        assert_eq!(problem.unwrap(), "theme neon: unknown theme; auto is used");
        assert_eq!(of("light-ansi", Path::new("/")).1, None);
    }

    #[test]
    fn a_file_of_the_persons_own_changes_a_look() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("mine.json"),
            r##"{"base": "dark", "overrides": {"error": "#f00", "accent": "ansi256(99)", "planMode": "#123456",
                "success": "nonsense", "diffAdded": "#ffffff"}}"##,
        )
        .unwrap();
        let (found, problem) = of("custom:mine", dir.path());
        let red = TextColor::Rgb(Rgb(255, 0, 0));
        assert_eq!(found.failure, TextStyle::new().fg(red));
        assert_eq!(found.accent.foreground, Some(TextColor::Indexed(99)));
        let usual = Theme::new(ThemeName::Dark, None, ColorLevel::TrueColor);
        assert_eq!((found.success, found.added), (usual.success, usual.added));
        let problem = problem.unwrap();
        assert!(
            problem.ends_with("ignored: success, diffAdded"),
            "{problem}"
        );
    }

    #[test]
    fn a_name_never_leads_out_of_the_folder() {
        for name in [
            "custom:../x",
            "custom:",
            "custom:a/b",
            "custom:.x",
            "custom:none",
        ] {
            let (_, problem) = of(name, Path::new("/nowhere"));
            assert!(problem.is_some(), "{name}");
        }
    }

    #[test]
    fn colours_are_read_as_files_write_them() {
        let cases = [
            ("#0af", Some(TextColor::Rgb(Rgb(0, 170, 255)))),
            ("#00aaff", Some(TextColor::Rgb(Rgb(0, 170, 255)))),
            ("rgb(1, 2, 3)", Some(TextColor::Rgb(Rgb(1, 2, 3)))),
            ("ansi:redBright", Some(TextColor::Ansi(9))),
            ("ansi256(300)", None),
            ("#12", None),
            ("red", None),
        ];
        for (text, expected) in cases {
            assert_eq!(color_of(text), expected, "{text}");
        }
    }
}
