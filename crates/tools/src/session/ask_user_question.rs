//! `AskUserQuestion`: asks the user for a decision.
//!
//! The user is asked during the permission check, like for any call that needs approval. The
//! answers come back as `answers`, which a model cannot set.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
};

use haft_contract::{
    AgentAccess, ApprovalKind, CallContext, Card, CardSection, CheckOutcome, Effects, Tool,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Asks the user to choose, if you cannot find out otherwise what they prefer. They can always type their
/// own answer: give no option for that.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<UserQuestion>,
    /// The answers, by question; missing for questions without an answer.
    #[schemars(skip)]
    #[serde(default)]
    answers: Map<String, Value>,
    /// The user's notes, by question.
    #[schemars(skip)]
    #[serde(default)]
    annotations: BTreeMap<String, AnswerAnnotation>,
    #[schemars(skip)]
    #[serde(default)]
    #[expect(dead_code, reason = "some callers send it, and it is not used")]
    metadata: Value,
    /// Text of the user that answers no particular question.
    #[schemars(skip)]
    response: Option<String>,
    /// The time within which the user did not answer.
    #[schemars(skip)]
    afk_timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct UserQuestion {
    /// Ends in a question mark.
    #[schemars(length(min = 1))]
    question: String,
    /// A label of one or two words.
    #[schemars(length(min = 1, max = 12))]
    header: String,
    #[schemars(length(min = 2, max = 4))]
    options: Vec<Choice>,
    /// Whether the user may choose several.
    #[serde(default)]
    multi_select: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    #[schemars(length(min = 1))]
    label: String,
    /// Its meaning.
    description: String,
    /// Code or text to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct AnswerAnnotation {
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

pub(crate) struct AskUserQuestion;

impl Tool for AskUserQuestion {
    type Input = Input;
    const NAME: &'static str = "AskUserQuestion";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            title: Some("Question".into()),
            family: "session".into(),
            search_hint: "ask user question choose clarify decide".into(),
            access: ToolAccess::Reads,
            approval: ApprovalKind::Question,
            reserved: &[
                "answers",
                "annotations",
                "metadata",
                "response",
                "afkTimeoutMs",
            ],
            interactive: true,
            agents: AgentAccess::Main,
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // One question at a time, in order.
        Effects::queueing("user")
    }

    fn permission(&self, _: &Input, cx: &CallContext) -> ToolPermission {
        ToolPermission::Ask(match cx.services.approver().is_available() {
            true => "the model has a question".to_owned(),
            false => {
                "it is a question to the user, who cannot be asked: decide yourself, and state your \
                      assumptions"
                    .to_owned()
            }
        })
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        let mut texts = HashSet::new();
        for question in &input.questions {
            if !texts.insert(&question.question) {
                return Err(ToolError::Refused(format!(
                    "The question {:?} is asked twice: ask it once.",
                    question.question
                )));
            }
            let mut labels = HashSet::new();
            let twice = question
                .options
                .iter()
                .find(|option| !labels.insert(&option.label));
            if let Some(option) = twice {
                return Err(ToolError::Refused(format!(
                    "The question {:?} has two options {:?}: give each its own label.",
                    question.question, option.label
                )));
            }
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let mut text = String::new();
        let mut answers = Map::new();
        for question in &input.questions {
            let answer = input.answers.get(&question.question).and_then(answer_text);
            let _ = match &answer {
                Some(answer) => writeln!(text, "{:?} = {answer:?}", question.question),
                None => writeln!(text, "{:?} was not answered", question.question),
            };
            if let Some(annotation) = input.annotations.get(&question.question)
                && let Some(notes) = annotation.notes.as_ref()
            {
                let _ = writeln!(text, "  The user adds: {notes}");
            }
            answers.extend(answer.map(|answer| (question.question.clone(), json!(answer))));
        }
        if let Some(response) = &input.response {
            let _ = writeln!(text, "The user says: {response}");
        }
        let mut told = json!({"questions": input.questions, "answers": answers});
        if let Some(response) = &input.response {
            told["response"] = json!(response);
        }
        if !input.annotations.is_empty() {
            told["annotations"] = json!(input.annotations);
        }
        if let Some(waited) = input.afk_timeout_ms {
            told["afkTimeoutMs"] = json!(waited);
            let _ = writeln!(
                text,
                "The user did not answer within {} s. Decide yourself what you can, and state your \
                 assumptions.",
                waited / 1000
            );
        }
        Ok(ToolOutput::text(text.trim_end()).with_structured(told))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let mut card = Card::new("Question", "");
        for question in &input.questions {
            let mut text = question.question.clone();
            for option in &question.options {
                let _ = write!(text, "\n  · {} – {}", option.label, option.description);
            }
            card = card.with(CardSection::Text(text));
        }
        Some(card)
    }

    fn render_result(&self, _: &Input, output: &ToolOutput) -> Option<Card> {
        let text = output.content.first()?.as_text()?;
        Some(Card::new("Question", "").with(CardSection::Text(text.to_owned())))
    }
}

/// Returns an answer as text: a label, the user's own text, or several labels.
fn answer_text(answer: &Value) -> Option<String> {
    let text = match answer {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(several) => {
            let labels: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            labels.join(", ")
        }
        _ => String::new(),
    };
    (!text.is_empty()).then_some(text)
}
