//! The model's questions as a form in the editor.

use haft_contract::ApprovalAnswer;
use haft_host::{FormQuestion, UserQuestions};
use serde_json::{Map, Value, json};

/// Returns the schema of a form with these questions. Each has one property for the options and one
/// for another answer.
pub(crate) fn schema(asked: &UserQuestions) -> Value {
    let mut properties = Map::new();
    for (at, question) in asked.questions.iter().enumerate() {
        properties.insert(format!("q{}", at + 1), property(question));
        properties.insert(
            format!("q{}_other", at + 1),
            json!({"type": "string", "title": "Another answer"}),
        );
    }
    json!({"type": "object", "properties": properties})
}

fn property(question: &FormQuestion) -> Value {
    let options: Vec<Value> = question
        .options
        .iter()
        .map(|option| {
            let title = match option.description.is_empty() {
                true => option.label.clone(),
                false => format!("{}: {}", option.label, option.description),
            };
            json!({"const": option.label, "title": title})
        })
        .collect();
    match question.multi_select {
        true => {
            json!({"type": "array", "title": question.question, "items": {"anyOf": options}})
        }
        false => json!({"type": "string", "title": question.question, "oneOf": options}),
    }
}

/// Converts the filled-in form to an answer.
pub(crate) fn answered(asked: &UserQuestions, content: &Value) -> ApprovalAnswer {
    let mut answers = Map::new();
    for (at, question) in asked.questions.iter().enumerate() {
        let mut chosen: Vec<String> = match &content[format!("q{}", at + 1)] {
            Value::String(one) => vec![one.clone()],
            Value::Array(several) => several
                .iter()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        };
        let other = content[format!("q{}_other", at + 1)].as_str();
        chosen.extend(
            other
                .filter(|text| !text.trim().is_empty())
                .map(str::to_owned),
        );
        if !chosen.is_empty() {
            answers.insert(question.question.clone(), json!(chosen.join(", ")));
        }
    }
    asked.answered(answers)
}

/// Returns the question if it is the only one and allows exactly one of its options.
pub(crate) fn single(asked: &UserQuestions) -> Option<&FormQuestion> {
    match asked.questions.as_slice() {
        [only] if !only.multi_select && !only.options.is_empty() => Some(only),
        _ => None,
    }
}
