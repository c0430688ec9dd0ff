//! Asks the model's questions to the user at the terminal.

use std::{fmt::Write, time::Duration};

use haft::ApprovalAnswer;
use haft_host::{FormQuestion, UserQuestions};
use serde_json::{Map, json};

use crate::{
    line_input::{AnswerSource, LineInput, read_answer},
    show::{self, ConsoleStyle},
};

/// The meaning of the user's input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedReply {
    Answer(String),
    /// The user chose to enter a free-text answer.
    Other,
    Nothing,
    /// Invalid input, with a hint.
    Again(String),
}

/// Asks the questions one by one.
pub(crate) fn ask_questions(source: &AnswerSource, asked: &UserQuestions) -> ApprovalAnswer {
    let style = ConsoleStyle::of_stderr();
    let mut answers = Map::new();
    for question in &asked.questions {
        show::warn_drawn(&drawn(question, style));
        match answer(source, question, asked.timeout) {
            Ok(Some(said)) => {
                answers.insert(question.question.clone(), json!(said));
            }
            Ok(None) => {}
            Err(LineInput::TooLate) => {
                show::warn("\n  no answer: the model continues without one");
                return asked.unanswered();
            }
            Err(_) => return ApprovalAnswer::Unavailable,
        }
    }
    asked.answered(answers)
}

/// Returns the answer to a question, or `None` if the user gives none.
fn answer(
    source: &AnswerSource,
    asked: &FormQuestion,
    timeout: Option<Duration>,
) -> Result<Option<String>, LineInput> {
    let ask = |prompt: &str| match read_answer(source, prompt, timeout) {
        LineInput::Line(line) => Ok(line),
        ended => Err(ended),
    };
    loop {
        let what = match asked.multi_select {
            true => "Numbers, or your own answer",
            false => "A number, or your own answer",
        };
        match parse_reply(ask(&format!("  {what} (- for no answer): "))?.trim(), asked) {
            ParsedReply::Answer(answer) => return Ok(Some(answer)),
            ParsedReply::Nothing => return Ok(None),
            ParsedReply::Again(hint) => show::warn(&format!("  {hint}")),
            ParsedReply::Other => {
                let words = ask("  Your answer: ")?.trim().to_owned();
                if !words.is_empty() {
                    return Ok(Some(words));
                }
            }
        }
    }
}

fn drawn(asked: &FormQuestion, style: ConsoleStyle) -> String {
    let one_line = |text: &str| show::clean(text).replace('\n', " ");
    let mut text = format!("\n{} ", style.bold("?"));
    if !asked.header.is_empty() {
        let _ = write!(text, "{}  ", style.dim(&one_line(&asked.header)));
    }
    text += &style.bold(&one_line(&asked.question));
    for (number, choice) in (1..).zip(&asked.options) {
        let _ = write!(text, "\n  {number}. {}", one_line(&choice.label));
        if !choice.description.is_empty() {
            let description = format!("– {}", one_line(&choice.description));
            let _ = write!(text, " {}", style.dim(&description));
        }
        for line in choice.preview.iter().flat_map(|preview| preview.lines()) {
            let _ = write!(
                text,
                "\n     {}",
                style.dim(&format!("│ {}", show::clean(line)))
            );
        }
    }
    let _ = write!(
        text,
        "\n  {}. Other: enter your answer",
        asked.options.len() + 1
    );
    text
}

pub(crate) fn parse_reply(said: &str, asked: &FormQuestion) -> ParsedReply {
    let most = asked.options.len();
    let numbers: Option<Vec<usize>> = said
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok())
        .collect();
    match numbers.as_deref() {
        _ if said == "-" => ParsedReply::Nothing,
        None => ParsedReply::Answer(said.to_owned()),
        Some([]) => ParsedReply::Again(format!("type a number from 1 to {}", most + 1)),
        Some([only]) if *only == most + 1 => ParsedReply::Other,
        Some(numbers) if numbers.iter().any(|number| !(1..=most).contains(number)) => {
            ParsedReply::Again(format!("type a number from 1 to {}", most + 1))
        }
        Some([_, _, ..]) if !asked.multi_select => {
            ParsedReply::Again("only one can be chosen".to_owned())
        }
        Some(numbers) => {
            // In display order, without duplicates.
            let chosen = (1..).zip(&asked.options);
            let chosen = chosen.filter(|(number, _)| numbers.contains(number));
            let labels: Vec<&str> = chosen.map(|(_, choice)| choice.label.as_str()).collect();
            ParsedReply::Answer(labels.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn asked(multi_select: bool) -> FormQuestion {
        let value = json!({
            "question": "Which \u{1b}[31mway?",
            "header": "Way",
            "options": [
                {"label": "Left", "description": "by the river", "preview": "~~~\n ~"},
                {"label": "Right", "description": ""},
            ],
            "multiSelect": multi_select,
        });
        FormQuestion::deserialize(&value).unwrap()
    }

    #[test]
    fn a_question_as_it_is_shown() {
        insta::assert_snapshot!(drawn(&asked(false), ConsoleStyle::fixed(false, 80)));
    }

    #[test]
    fn an_answer_is_a_number_or_words() {
        let answer = |text: &str| ParsedReply::Answer(text.to_owned());
        for (said, one, several) in [
            ("1", answer("Left"), answer("Left")),
            (" 2 ", answer("Right"), answer("Right")),
            ("up", answer("up"), answer("up")),
            ("1 or 2", answer("1 or 2"), answer("1 or 2")),
            ("3", ParsedReply::Other, ParsedReply::Other),
            ("-", ParsedReply::Nothing, ParsedReply::Nothing),
        ] {
            assert_eq!(parse_reply(said.trim(), &asked(false)), one, "{said}");
            assert_eq!(parse_reply(said.trim(), &asked(true)), several, "{said}");
        }
        assert_eq!(parse_reply("2, 1", &asked(true)), answer("Left, Right"));
        for (said, multi) in [
            ("", true),
            ("0", true),
            ("9", false),
            ("1,2", false),
            ("1,3", true),
        ] {
            let heard = parse_reply(said, &asked(multi));
            assert!(matches!(heard, ParsedReply::Again(_)), "{said}: {heard:?}");
        }
    }
}
