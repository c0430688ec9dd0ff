//! Questions to the user of an MCP client, as elicitation forms.

use haft_contract::{ApprovalAnswer, ApprovalRequest, BoxFuture, ContextPatch, RuleList};
use haft_mcp::{
    Revision,
    server::{ActiveCalls, RequestContext},
};
use serde_json::{Map, Value, json};

use crate::{FormQuestion, QuestionHandler, UserQuestions};

/// The maximum number of characters of a request that are shown.
const MAX_LENGTH: usize = 4_000;

const ONCE: &str = "Allow once";
const SESSION: &str = "Allow for this session";
const DENY: &str = "Deny";

/// Asks the client that made a call. A client without forms cannot be asked.
pub(crate) struct ElicitedQuestions {
    calls: ActiveCalls,
}

impl ElicitedQuestions {
    pub(crate) fn new(calls: ActiveCalls) -> Self {
        Self { calls }
    }

    /// Returns the client that made a call, if its user can be asked.
    fn client(&self, request: &ApprovalRequest) -> Option<RequestContext> {
        let cx = self.calls.find(&request.asked.as_ref()?.id)?;
        cx.client.has_forms().then_some(cx)
    }
}

impl QuestionHandler for ElicitedQuestions {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let Some(cx) = self.client(&request) else {
                return ApprovalAnswer::Unavailable;
            };
            let form = permission_form(&request, cx.client.revision);
            match filled_in(&cx, form).await {
                FormAnswer::Filled(fields) => decided(&fields, request),
                FormAnswer::Declined => ApprovalAnswer::Deny { reason: None },
                FormAnswer::Failed => ApprovalAnswer::Unavailable,
            }
        })
    }

    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let Some(cx) = self.client(&asked.request) else {
                return ApprovalAnswer::Unavailable;
            };
            let form = question_form(&asked.questions, cx.client.revision);
            let filled = filled_in(&cx, form);
            let filled = match asked.timeout {
                None => filled.await,
                Some(patience) => match tokio::time::timeout(patience, filled).await {
                    Ok(filled) => filled,
                    Err(_) => return asked.unanswered(),
                },
            };
            match filled {
                FormAnswer::Filled(fields) => asked.answered(answers(&asked.questions, &fields)),
                FormAnswer::Declined => ApprovalAnswer::Deny { reason: None },
                FormAnswer::Failed => ApprovalAnswer::Unavailable,
            }
        })
    }

    fn can_ask_user(&self) -> bool {
        self.calls.has_forms()
    }
}

/// The outcome of a form.
enum FormAnswer {
    Filled(Map<String, Value>),
    Declined,
    /// No user answered.
    Failed,
}

async fn filled_in(cx: &RequestContext, form: Value) -> FormAnswer {
    let answer = match cx.ask("elicitation/create", form).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::debug!(%error, "no answer to a form");
            return FormAnswer::Failed;
        }
    };
    match (answer["action"].as_str(), &answer["content"]) {
        (Some("accept"), Value::Object(fields)) => FormAnswer::Filled(fields.clone()),
        _ => FormAnswer::Declined,
    }
}

fn form(
    message: &str,
    properties: Map<String, Value>,
    required: &[&str],
    revision: Revision,
) -> Value {
    let mut form = Map::new();
    if revision >= Revision::V2025_11_25 {
        form.insert("mode".to_owned(), json!("form"));
    }
    form.insert("message".to_owned(), json!(shown(message)));
    let schema = json!({"type": "object", "properties": properties, "required": required});
    form.insert("requestedSchema".to_owned(), schema);
    Value::Object(form)
}

fn permission_form(request: &ApprovalRequest, revision: Revision) -> Value {
    let mut message = format!("May {} run?\n\n{}", request.tool, request.shown());
    if !request.reason.is_empty() {
        message += &format!("\n\nAsked because: {}", request.reason);
    }
    let mut choices = vec![ONCE.to_owned()];
    for (at, offer) in request.offers.iter().enumerate() {
        let choice = session_choice(at);
        message += &format!("\n\"{choice}\" allows: {}", offer.to_text());
        choices.push(choice);
    }
    choices.push(DENY.to_owned());
    let decision = json!({"type": "string", "title": "Decision", "enum": choices});
    let properties = Map::from_iter([("decision".to_owned(), decision)]);
    form(&message, properties, &["decision"], revision)
}

fn decided(fields: &Map<String, Value>, request: ApprovalRequest) -> ApprovalAnswer {
    match fields.get("decision").and_then(Value::as_str) {
        Some(ONCE) => ApprovalAnswer::Allow,
        Some(choice) => {
            let mut offers = request.offers.into_iter().enumerate();
            let chosen = offers.find(|(at, _)| session_choice(*at) == choice);
            let Some((_, offer)) = chosen else {
                return ApprovalAnswer::Deny { reason: None };
            };
            let rules = offer.rules.into_iter();
            let patches = rules.map(|rule| ContextPatch::AddRule {
                list: RuleList::Allow,
                rule,
            });
            ApprovalAnswer::Updated {
                input: None,
                patches: patches.collect(),
                keep: Vec::new(),
                scope: None,
            }
        }
        None => ApprovalAnswer::Deny { reason: None },
    }
}

/// Returns the text of the choice that allows the rules of an offer in this session.
fn session_choice(offer: usize) -> String {
    match offer {
        0 => SESSION.to_owned(),
        at => format!("{SESSION} ({})", at + 1),
    }
}

fn question_form(questions: &[FormQuestion], revision: Revision) -> Value {
    let mut properties = Map::new();
    let mut message = "The model has questions:".to_owned();
    for (number, question) in (1..).zip(questions) {
        message += &format!("\n{}", question.question);
        let labels: Vec<&str> = question
            .options
            .iter()
            .map(|option| &*option.label)
            .collect();
        let options = question.options.iter();
        let meanings: Vec<String> = options
            .filter(|option| !option.description.is_empty())
            .map(|option| format!("{}: {}", option.label, option.description))
            .collect();
        let title = match question.header.is_empty() {
            true => &question.question,
            false => &question.header,
        };
        let description = format!("{}\n{}", question.question, meanings.join("\n"));
        let several = question.multi_select && revision >= Revision::V2025_11_25;
        let field = match several {
            true => json!({
                "type": "array",
                "title": title,
                "description": description.trim(),
                "items": {"type": "string", "enum": labels},
            }),
            false => json!({
                "type": "string",
                "title": title,
                "description": description.trim(),
                "enum": labels,
            }),
        };
        properties.insert(format!("answer{number}"), field);
        let other = json!({"type": "string", "title": format!("{title}: another answer")});
        properties.insert(format!("other{number}"), other);
    }
    form(&message, properties, &[], revision)
}

/// Returns the answers by the text of their questions; unanswered questions are left out.
fn answers(questions: &[FormQuestion], fields: &Map<String, Value>) -> Map<String, Value> {
    let mut answers = Map::new();
    for (number, question) in (1..).zip(questions) {
        let mut chosen: Vec<&str> = Vec::new();
        match fields.get(&format!("answer{number}")) {
            Some(Value::String(label)) => chosen.push(label),
            Some(Value::Array(labels)) => chosen.extend(labels.iter().filter_map(Value::as_str)),
            _ => {}
        }
        let other = fields.get(&format!("other{number}"));
        chosen.extend(other.and_then(Value::as_str));
        chosen.retain(|answer| !answer.is_empty());
        if !chosen.is_empty() {
            answers.insert(question.question.clone(), json!(chosen.join(", ")));
        }
    }
    answers
}

/// Limits the length of a text, and removes control characters.
fn shown(text: &str) -> String {
    let plain = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let mut letters = text.chars().filter(plain);
    let mut shown: String = letters.by_ref().take(MAX_LENGTH).collect();
    if letters.next().is_some() {
        shown += "…";
    }
    shown
}

#[cfg(test)]
mod tests {
    use haft_contract::{ApprovalKind, CallId, Card, RuleOffer};

    use super::*;
    use crate::AnswerOption;

    fn request(rules: &[&str]) -> ApprovalRequest {
        ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: CallId::new(),
            tool: "Bash".to_owned(),
            card: Card::new("Bash", "rm -r build\x1b[2J"),
            reason: "it changes files".to_owned(),
            offers: RuleOffer::for_call(rules.iter().map(|rule| (*rule).to_owned()).collect())
                .into_iter()
                .collect(),
            asked: None,
            ..ApprovalRequest::default()
        }
    }

    #[test]
    fn what_a_person_is_asked() {
        let form = permission_form(&request(&["Bash(rm -r build)"]), Revision::V2025_11_25);
        insta::assert_json_snapshot!(form);
        let older = permission_form(&request(&[]), Revision::V2025_06_18);
        assert_eq!(older.get("mode"), None);
        let choices = &older["requestedSchema"]["properties"]["decision"]["enum"];
        assert_eq!(*choices, json!([ONCE, DENY]));
    }

    #[test]
    fn what_was_decided() {
        let decision = |text: &str| {
            let fields = Map::from_iter([("decision".to_owned(), json!(text))]);
            decided(&fields, request(&["Bash(ls)"]))
        };
        assert_eq!(decision(ONCE), ApprovalAnswer::Allow);
        let ApprovalAnswer::Updated { patches, keep, .. } = decision(SESSION) else {
            panic!("no rule");
        };
        assert_eq!((patches.len(), keep.len()), (1, 0));
        let mut several = request(&["Bash(ls *)"]);
        several.offers.push(RuleOffer {
            rules: vec!["Bash(ls)".to_owned(), "Bash(cd)".to_owned()],
            asks_again: Vec::new(),
        });
        let form = permission_form(&several, Revision::V2025_11_25);
        let choices = &form["requestedSchema"]["properties"]["decision"]["enum"];
        let second = "Allow for this session (2)";
        assert_eq!(*choices, json!([ONCE, SESSION, second, DENY]));
        let fields = Map::from_iter([("decision".to_owned(), json!(second))]);
        let ApprovalAnswer::Updated { patches, .. } = decided(&fields, several) else {
            panic!("no rule");
        };
        assert_eq!(patches.len(), 2);
        let denied = ApprovalAnswer::Deny { reason: None };
        assert_eq!(decision(DENY), denied);
        assert_eq!(decision("yes please"), denied);
    }

    #[test]
    fn questions_of_the_model() {
        let option = |label: &str| AnswerOption {
            label: label.to_owned(),
            description: format!("it is {label}"),
            preview: None,
        };
        let question = |text: &str, multi_select| FormQuestion {
            question: text.to_owned(),
            header: "Colour".to_owned(),
            options: vec![option("red"), option("blue")],
            multi_select,
        };
        let questions = [question("Which?", false), question("Which ones?", true)];
        insta::assert_json_snapshot!(question_form(&questions, Revision::V2025_11_25));
        let fields = json!({"answer1": "red", "answer2": ["red", "blue"], "other2": "green"});
        let answers = answers(&questions, fields.as_object().unwrap());
        assert_eq!(
            Value::Object(answers),
            json!({"Which?": "red", "Which ones?": "red, blue, green"})
        );
    }
}
