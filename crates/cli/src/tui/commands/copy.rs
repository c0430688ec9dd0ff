//! `/copy [N | code]`: copies an answer, or the last code block of the last answer.

use crate::tui::app::{App, AppEffect};

use super::ScreenCommand;

pub(super) const COPY: ScreenCommand = ScreenCommand {
    name: "copy",
    hint: "[N | code]",
    description: "Copy the last answer, the Nth from the end, or the last block of code",
    run: |app, arguments, _| app.copy_answer(arguments),
};

impl App {
    pub(crate) fn copy_answer(&mut self, which: &str) {
        let answers = &self.reply.answers;
        let found = match which {
            "" => answers.last().cloned(),
            "code" => answers.last().and_then(|answer| last_code(answer)),
            number => match number.parse::<usize>() {
                Ok(number @ 1..) => answers.iter().nth_back(number - 1).cloned(),
                _ => {
                    self.warn("! /copy takes a number, counted from the newest answer, or `code`");
                    return;
                }
            },
        };
        match found {
            Some(text) => self.effect(AppEffect::Copy(text.trim_end().to_owned())),
            None => self.warn("! there is nothing to copy"),
        }
    }
}

/// Returns the contents of the last fenced code block.
fn last_code(answer: &str) -> Option<String> {
    let (mut code, mut last) = (None::<Vec<&str>>, None);
    for line in answer.lines() {
        let is_fence = line.trim_start().starts_with("```");
        code = match (code, is_fence) {
            (None, true) => Some(Vec::new()),
            (None, false) => None,
            (Some(lines), true) => {
                last = Some(lines.join("\n"));
                None
            }
            (Some(mut lines), false) => {
                lines.push(line);
                Some(lines)
            }
        };
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fence_is_the_one_that_was_closed_last() {
        let answer = "a\n```rust\nlet a = 1;\n```\nb\n```\nls\nps\n```\nc";
        assert_eq!(last_code(answer).as_deref(), Some("ls\nps"));
        assert_eq!(last_code("no code"), None);
    }
}
