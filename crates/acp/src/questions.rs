//! Asks the user in the editor.

use std::sync::{Arc, Weak};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, BoxFuture, CardSection, ContextPatch, GrantEnd,
    PermissionMode, RuleOffer, RuleScope, rule_offer::OfferKind,
};
use haft_host::{
    ElicitationAnswer, ElicitationHost, ElicitationKind, QuestionHandler, ServerElicitation,
    UserQuestions,
};
use haft_terminal::names::{distinct, distinct_line};
use serde_json::{Map, Value, json};

use crate::{calls, diffs, form, sessions::EditorSession, wire::RequestFailure};

/// The user's choice.
enum OptionChoice {
    Option(String),
    /// The user cancelled the whole turn.
    Cancelled,
    /// The user cannot be asked.
    Unavailable,
}

/// Passes the questions of a session to the user in the editor.
pub(crate) struct EditorQuestions(pub(crate) Weak<EditorSession>);

impl QuestionHandler for EditorQuestions {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let Some(session) = self.0.upgrade() else {
                return ApprovalAnswer::Unavailable;
            };
            let asked = AskGuard::begin(&session, &request);
            let once = json!({"optionId": "allow", "name": "Allow", "kind": "allow_once"});
            let always = always(&session, &request);
            let permanent = always
                .iter()
                .map(|(id, name, _)| json!({"optionId": id, "name": name, "kind": "allow_always"}));
            let mut options: Vec<Value> = permanent.collect();
            // Only the choice to run without network comes before the plain answer.
            let first = request.offers.first().map(RuleOffer::kind);
            let is_first = first == Some(OfferKind::Offline);
            options.insert(if is_first { 2.min(options.len()) } else { 0 }, once);
            options.push(json!({"optionId": "reject", "name": "Reject", "kind": "reject_once"}));
            let choice = choose(&session, call(&session, &request), options).await;
            let answer = match choice {
                OptionChoice::Option(id) if id == "allow" => ApprovalAnswer::Allow,
                OptionChoice::Option(id) => {
                    let mut always = always.into_iter();
                    let chosen = always.find(|(option, _, _)| *option == id);
                    chosen.map_or(ApprovalAnswer::Deny { reason: None }, |(_, _, answer)| {
                        answer
                    })
                }
                OptionChoice::Cancelled => {
                    session.interrupt();
                    ApprovalAnswer::Deny { reason: None }
                }
                OptionChoice::Unavailable => ApprovalAnswer::Unavailable,
            };
            let may_run = !matches!(
                answer,
                ApprovalAnswer::Deny { .. } | ApprovalAnswer::Unavailable
            );
            asked.end(may_run);
            answer
        })
    }

    fn question(&self, questions: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let Some(session) = self.0.upgrade() else {
                return ApprovalAnswer::Unavailable;
            };
            let asked = AskGuard::begin(&session, &questions.request);
            let answer = match (session.capabilities.forms, form::single(&questions)) {
                (true, _) => ask_in_form(&session, &questions).await,
                (false, Some(single)) => {
                    let options = single.options.iter().enumerate();
                    let options = options.map(|(at, option)| {
                        json!({"optionId": at.to_string(), "name": option.label, "kind": "allow_once"})
                    });
                    let mut options: Vec<Value> = options.collect();
                    options.push(
                        json!({"optionId": "reject", "name": "No answer", "kind": "reject_once"}),
                    );
                    let mut shown = call(&session, &questions.request);
                    shown["title"] = json!(single.question);
                    match choose(&session, shown, options).await {
                        OptionChoice::Option(id) => {
                            let at = id.parse().ok();
                            let chosen = at.and_then(|at: usize| single.options.get(at));
                            let mut answers = Map::new();
                            if let Some(chosen) = chosen {
                                answers.insert(single.question.clone(), json!(chosen.label));
                            }
                            questions.answered(answers)
                        }
                        OptionChoice::Cancelled => {
                            session.interrupt();
                            ApprovalAnswer::Deny { reason: None }
                        }
                        OptionChoice::Unavailable => ApprovalAnswer::Unavailable,
                    }
                }
                (false, None) => ApprovalAnswer::Unavailable,
            };
            asked.end(true);
            answer
        })
    }

    fn plan(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let Some(session) = self.0.upgrade() else {
                return ApprovalAnswer::Unavailable;
            };
            let asked = AskGuard::begin(&session, &request);
            let options = vec![
                json!({"optionId": "acceptEdits", "name": "Yes, and accept edits", "kind": "allow_always"}),
                json!({"optionId": "default", "name": "Yes, and ask before edits", "kind": "allow_once"}),
                json!({"optionId": "plan", "name": "No, keep planning", "kind": "reject_once"}),
            ];
            let mut shown = call(&session, &request);
            let input = request.asked.as_ref().map(|asked| &asked.input);
            if let Some(plan) = input.and_then(|input| input["plan"].as_str()) {
                shown["content"] = json!([calls::text_content(plan)]);
            }
            let answer = match choose(&session, shown, options).await {
                OptionChoice::Option(id) if id == "acceptEdits" => accept_edits(),
                OptionChoice::Option(id) if id == "default" => ApprovalAnswer::Allow,
                OptionChoice::Option(_) => ApprovalAnswer::Deny { reason: None },
                OptionChoice::Cancelled => {
                    session.interrupt();
                    ApprovalAnswer::Deny { reason: None }
                }
                OptionChoice::Unavailable => ApprovalAnswer::Unavailable,
            };
            asked.end(false);
            answer
        })
    }
}

/// Prevents a call from being reported as running while the user is asked about it.
/// [`AskGuard::end`] must be called afterwards.
struct AskGuard<'a> {
    session: &'a EditorSession,
    id: Option<&'a str>,
}

impl<'a> AskGuard<'a> {
    fn begin(session: &'a EditorSession, request: &'a ApprovalRequest) -> Self {
        let id = request.asked.as_ref().map(|asked| asked.id.as_str());
        if let Some(id) = id {
            session.updates.set_asked(id, true);
        }
        Self { session, id }
    }

    fn end(self, runs: bool) {
        if let Some(id) = self.id {
            self.session.updates.set_asked(id, false);
            if runs {
                self.session.updates.mark_running(self.session, id);
            }
        }
    }
}

/// Returns the ids, labels and answers of the options that allow a call from now on.
fn always(
    session: &EditorSession,
    request: &ApprovalRequest,
) -> Vec<(String, String, ApprovalAnswer)> {
    let edits = calls::kind(&request.tool) == "edit";
    if edits && session.mode() == PermissionMode::Default {
        let name = "Always allow edits in this session".to_owned();
        return vec![("always".to_owned(), name, accept_edits())];
    }
    let offers = request.offers.iter().enumerate();
    let mut options: Vec<(String, String, ApprovalAnswer)> = offers
        .flat_map(|(at, offer)| {
            let name = distinct_line(&format!("Always allow {}", offer.to_text()));
            let always = match at {
                0 => ("always".to_owned(), name, ApprovalAnswer::AllowAlways),
                _ => (format!("always-{}", at + 1), name, keep_rules(offer, None)),
            };
            let for_session = (offer.kind() != OfferKind::AllowRules).then(|| {
                let name = format!("Allow in this session: {}", offer.to_text());
                let answer = keep_rules(offer, Some(RuleScope::Session));
                (format!("session-{}", at + 1), distinct_line(&name), answer)
            });
            for_session.into_iter().chain([always])
        })
        .collect();
    if let Some(first) = request.rule_offer() {
        let (rules, text) = (|| first.rules.clone(), first.to_text());
        let name = |end: &str| distinct_line(&format!("Allow {text} {end}"));
        for (id, end) in [("task", GrantEnd::Task), ("minutes", GrantEnd::HALF_HOUR)] {
            let answer = ApprovalAnswer::allow_until(rules(), end);
            options.push((id.to_owned(), name(&end.description()), answer));
        }
        let answer = ApprovalAnswer::allow_in_session(rules());
        options.push(("session".to_owned(), name("for this session"), answer));
    }
    options
}

/// Returns an approval that saves the rules of a choice; without a scope, in the usual place.
fn keep_rules(offer: &RuleOffer, scope: Option<RuleScope>) -> ApprovalAnswer {
    ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: offer.rules.clone(),
        scope,
    }
}

fn accept_edits() -> ApprovalAnswer {
    ApprovalAnswer::Updated {
        input: None,
        patches: vec![ContextPatch::SetMode {
            mode: PermissionMode::AcceptEdits,
        }],
        keep: Vec::new(),
        scope: None,
    }
}

/// Returns the complete call, because some editors show nothing else with the question.
fn call(session: &EditorSession, request: &ApprovalRequest) -> Value {
    let asked = request.asked.as_ref();
    let id = match asked {
        Some(asked) => session.updates.shown_id(&asked.id),
        None => format!("question-{}", request.call),
    };
    let input = asked.map(|asked| &asked.input).unwrap_or(&Value::Null);
    let mut title = calls::title(&request.tool, &request.card);
    if request.kind == ApprovalKind::Permission {
        title = distinct_line(&title);
    }
    if let Some(agent) = &request.agent {
        title = format!("{agent} › {title}");
    }
    json!({
        "toolCallId": id,
        "title": title,
        "kind": calls::kind(&request.tool),
        "status": "pending",
        "content": content(session, request, input),
        "locations": calls::locations(input, &session.cwd),
        "rawInput": input,
    })
}

/// Returns the effect of the call and the reasons for the question.
fn content(session: &EditorSession, request: &ApprovalRequest, input: &Value) -> Vec<Value> {
    let body = &request.shown().body;
    // Confusable characters are marked only in permission questions: plans and other questions are
    // prose.
    let shown = |text: &str| match request.kind {
        ApprovalKind::Permission => distinct(text),
        _ => text.to_owned(),
    };
    let mut content = match calls::path(input, &session.cwd) {
        Some(path) => diffs::preview_diffs(body, &path),
        None => Vec::new(),
    };
    if content.is_empty() {
        for piece in body {
            if let CardSection::Text(text) | CardSection::Muted(text) | CardSection::Alarm(text) =
                piece
                && !text.trim().is_empty()
            {
                content.push(calls::text_content(&shown(text)));
            }
        }
    }
    if content.is_empty() && !request.card.subject.is_empty() {
        content.push(calls::text_content(&shown(&request.card.subject)));
    }
    let mut why = vec![request.reason.clone()];
    why.extend(
        request
            .reasons
            .iter()
            .filter(|line| !request.reason.contains(line.as_str()))
            .cloned(),
    );
    for (given, leads_to) in &request.resolved_elsewhere {
        why.push(format!("{} is {}", given.display(), leads_to.display()));
    }
    why.extend(request.look_alikes.clone());
    why.extend(request.confinement.clone());
    why.retain(|line| !line.trim().is_empty());
    if !why.is_empty() {
        content.push(calls::text_content(&shown(&why.join("\n"))));
    }
    content
}

/// Asks the user to choose an option, and waits for the choice.
async fn choose(session: &EditorSession, call: Value, options: Vec<Value>) -> OptionChoice {
    let id = session.id.to_string();
    let params = json!({"sessionId": id, "toolCall": call, "options": options});
    let answer = session
        .client
        .ask("session/request_permission", params)
        .await;
    match answer {
        Ok(answer) => match answer["outcome"]["outcome"].as_str() {
            Some("selected") => {
                let option = answer["outcome"]["optionId"].as_str();
                OptionChoice::Option(option.unwrap_or_default().to_owned())
            }
            Some("cancelled") => OptionChoice::Cancelled,
            _ => OptionChoice::Option(String::new()),
        },
        Err(RequestFailure::Refused(_) | RequestFailure::TooLong | RequestFailure::Gone) => {
            OptionChoice::Unavailable
        }
    }
}

async fn ask_in_form(session: &EditorSession, questions: &UserQuestions) -> ApprovalAnswer {
    let headers: Vec<&str> = questions
        .questions
        .iter()
        .map(|question| question.question.as_str())
        .collect();
    let asked = questions.request.asked.as_ref();
    let mut params = json!({
        "sessionId": session.id.to_string(),
        "mode": "form",
        "message": headers.join("\n"),
        "requestedSchema": form::schema(questions),
    });
    if let Some(asked) = asked {
        params["toolCallId"] = json!(session.updates.shown_id(&asked.id));
    }
    match session.client.ask("elicitation/create", params).await {
        Ok(answer) if answer["action"] == "accept" => form::answered(questions, &answer["content"]),
        Ok(_) => questions.answered(Map::new()),
        Err(_) => ApprovalAnswer::Unavailable,
    }
}

/// Shows the questions of MCP servers as forms in the editor.
pub(crate) struct EditorForms(pub(crate) Weak<EditorSession>);

impl EditorForms {
    fn session(&self) -> Option<Arc<EditorSession>> {
        self.0
            .upgrade()
            .filter(|session| session.capabilities.forms)
    }
}

impl ElicitationHost for EditorForms {
    fn can_show_forms(&self) -> bool {
        self.session().is_some()
    }

    fn elicit<'a>(
        &'a self,
        asked: &'a ServerElicitation,
    ) -> BoxFuture<'a, Option<ElicitationAnswer>> {
        Box::pin(async move {
            let session = self.session()?;
            let ElicitationKind::Form { schema } = &asked.kind else {
                return None;
            };
            let params = json!({
                "sessionId": session.id.to_string(),
                "mode": "form",
                "message": format!("{}: {}", asked.server, asked.message),
                "requestedSchema": schema,
            });
            let answer = session
                .client
                .ask("elicitation/create", params)
                .await
                .ok()?;
            Some(match answer["action"].as_str() {
                Some("accept") => ElicitationAnswer::Accept(answer["content"].clone()),
                Some("decline") => ElicitationAnswer::Decline,
                _ => ElicitationAnswer::Cancel,
            })
        })
    }
}
