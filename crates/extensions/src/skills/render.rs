//! Rendering of a skill's text: finds commands and fills in placeholders.
//!
//! Commands are found in the text as its author wrote it. Placeholders are filled in afterwards, so
//! that no argument can start a command. Filled-in text is not processed again.

use std::path::Path;

use super::{Skill, arguments::split_arguments};

/// The parameters of a skill call.
#[derive(Debug, Clone, Copy)]
pub struct SkillCall<'a> {
    /// The text after the name.
    pub arguments: &'a str,
    /// The session id.
    pub session: &'a str,
    /// The effort level of the model.
    pub effort: Option<&'a str>,
    /// The project's root.
    pub project: &'a Path,
    /// The folder for the plugin's data.
    pub plugin_data: Option<&'a Path>,
}

/// A part of the rendered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillPart {
    /// Text.
    Text(String),
    /// The output of a command.
    Command {
        /// The command line, or several.
        line: String,
        /// Whether the command is in its own block.
        is_block: bool,
    },
}

/// Renders the text of a skill call, in order.
pub fn render(skill: &Skill, body: &str, given: SkillCall<'_>) -> Vec<SkillPart> {
    let filling = PlaceholderFiller {
        words: split_arguments(given.arguments),
        names: &skill.arguments,
        variables: variables(skill, given),
        given,
    };
    let mut used = false;
    let mut parts = Vec::new();
    for piece in pieces(body) {
        parts.push(match piece {
            BodyPiece::Text(text) => SkillPart::Text(filling.fill(text, &mut used)),
            BodyPiece::Inline(line) => SkillPart::Command {
                line: filling.fill(line, &mut used),
                is_block: false,
            },
            BodyPiece::Block(line) => SkillPart::Command {
                line: filling.fill(line, &mut used),
                is_block: true,
            },
        });
    }
    let arguments = given.arguments.trim();
    if !used && !arguments.is_empty() {
        let last = format!("\nARGUMENTS: {arguments}");
        match parts.last_mut() {
            Some(SkillPart::Text(text)) => {
                text.truncate(text.trim_end().len());
                *text += &last;
            }
            _ => parts.push(SkillPart::Text(last)),
        }
    }
    if let Some(folder) = &skill.folder {
        let head = format!("Skill directory: {}\n\n", folder.display());
        parts.insert(0, SkillPart::Text(head));
    }
    parts
}

/// Returns whether a text runs commands.
pub(super) fn runs_commands(body: &str) -> bool {
    pieces(body)
        .iter()
        .any(|piece| !matches!(piece, BodyPiece::Text(_)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyPiece<'a> {
    Text(&'a str),
    Inline(&'a str),
    Block(&'a str),
}

/// Splits text into plain text and commands: `` !`…` `` at the start of a line or after whitespace,
/// and blocks that start with `` ```! ``.
fn pieces(body: &str) -> Vec<BodyPiece<'_>> {
    let mut pieces = Vec::new();
    let mut text_from = 0;
    let mut at = 0;
    while at < body.len() {
        let end = body[at..].find('\n').map_or(body.len(), |end| at + end + 1);
        let line = &body[at..end];
        if line.trim_start().starts_with("```!") {
            if let Some((commands, after)) = block(body, end) {
                pieces.push(BodyPiece::Text(&body[text_from..at]));
                pieces.push(BodyPiece::Block(commands));
                text_from = after;
                at = after;
                continue;
            }
        } else {
            let mut from = 0;
            while let Some((begin, finish)) = inline(line, from) {
                pieces.push(BodyPiece::Text(&body[text_from..at + begin]));
                pieces.push(BodyPiece::Inline(&line[begin + 2..finish - 1]));
                text_from = at + finish;
                from = finish;
            }
        }
        at = end;
    }
    pieces.push(BodyPiece::Text(&body[text_from..]));
    pieces.retain(|piece| *piece != BodyPiece::Text(""));
    pieces
}

/// Returns the content of a block that starts here, and its end.
fn block(body: &str, from: usize) -> Option<(&str, usize)> {
    let mut at = from;
    while at < body.len() {
        let end = body[at..].find('\n').map_or(body.len(), |end| at + end + 1);
        let line = &body[at..end];
        if line.trim_start().starts_with("```") {
            // The line break belongs to the text.
            let after = end - usize::from(line.ends_with('\n'));
            return Some((body[from..at].trim_end_matches('\n'), after));
        }
        at = end;
    }
    None
}

/// Returns the start and end of the next command in a line, including its marks.
fn inline(line: &str, mut from: usize) -> Option<(usize, usize)> {
    loop {
        let begin = from + line[from..].find("!`")?;
        let inside = begin + 2;
        let end = inside + line[inside..].find('`')?;
        let stands_free = line[..begin]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        if stands_free && !line[inside..end].trim().is_empty() {
            return Some((begin, end + 1));
        }
        from = inside;
    }
}

fn variables(skill: &Skill, given: SkillCall<'_>) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("${CLAUDE_SESSION_ID}", given.session.to_owned()),
        (
            "${CLAUDE_PROJECT_DIR}",
            given.project.to_string_lossy().into_owned(),
        ),
    ];
    for (name, path) in skill.directories() {
        all.push((name, path.to_string_lossy().into_owned()));
    }
    if let Some(effort) = given.effort {
        all.push(("${CLAUDE_EFFORT}", effort.to_owned()));
    }
    if let Some(data) = given.plugin_data.filter(|_| skill.plugin.is_some()) {
        all.push(("${CLAUDE_PLUGIN_DATA}", data.to_string_lossy().into_owned()));
    }
    all
}

struct PlaceholderFiller<'a> {
    words: Vec<String>,
    names: &'a [String],
    variables: Vec<(&'static str, String)>,
    given: SkillCall<'a>,
}

impl PlaceholderFiller<'_> {
    /// Fills in the placeholders of a text; sets `used` if one of them is for arguments.
    fn fill(&self, text: &str, used: &mut bool) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['\\', '$']) {
            filled += &rest[..at];
            rest = &rest[at..];
            let slashes = rest.len() - rest.trim_start_matches('\\').len();
            let (before, behind) = rest.split_at(slashes);
            let Some((length, value)) = self.placeholder(behind) else {
                // Not a known placeholder: it stays unchanged, including backslashes.
                let kept = slashes.max(1);
                filled += &rest[..kept];
                rest = &rest[kept..];
                continue;
            };
            filled += &before[..slashes / 2];
            let literal = &behind[..length];
            rest = &behind[length..];
            if slashes % 2 == 1 {
                filled += literal;
                continue;
            }
            match value {
                PlaceholderValue::Variable(value) => filled += value,
                PlaceholderValue::Arguments(value) => {
                    *used = true;
                    filled += value.unwrap_or(literal);
                }
            }
        }
        filled + rest
    }

    /// Returns the length and the value of the placeholder at the start of a text.
    fn placeholder<'s>(&'s self, text: &str) -> Option<(usize, PlaceholderValue<'s>)> {
        let name = text.strip_prefix('$')?;
        if name.starts_with('{') {
            let (variable, value) = self
                .variables
                .iter()
                .find(|(variable, _)| text.starts_with(variable))?;
            return Some((variable.len(), PlaceholderValue::Variable(value)));
        }
        let word = |index: &str| {
            let word = index.parse().ok().and_then(|at: usize| self.words.get(at));
            PlaceholderValue::Arguments(word.map(String::as_str))
        };
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(rest) = name.strip_prefix("ARGUMENTS") {
            if let Some(index) = rest.strip_prefix('[') {
                let count = digits(index);
                if count > 0 && index[count..].starts_with(']') {
                    return Some(("$ARGUMENTS[]".len() + count, word(&index[..count])));
                }
            }
            return is_end(rest).then(|| {
                (
                    "$ARGUMENTS".len(),
                    PlaceholderValue::Arguments(Some(self.given.arguments)),
                )
            });
        }
        let count = digits(name);
        if count > 0 {
            return Some((1 + count, word(&name[..count])));
        }
        // The longest matching name: a name may be the beginning of another one.
        let fitting = self.names.iter().enumerate().filter(|(_, known)| {
            let rest = name.strip_prefix(known.as_str());
            !known.is_empty() && rest.is_some_and(is_end)
        });
        let (at, known) = fitting.max_by_key(|(_, known)| known.len())?;
        let value = self.words.get(at).map_or("", String::as_str);
        Some((1 + known.len(), PlaceholderValue::Arguments(Some(value))))
    }
}

enum PlaceholderValue<'a> {
    /// A value of the session.
    Variable(&'a str),
    /// A value of the call; `None` if the argument is missing, then the placeholder stays.
    Arguments(Option<&'a str>),
}

/// Returns whether a name ends before this text.
fn is_end(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
