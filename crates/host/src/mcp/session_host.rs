//! The host of MCP servers: it answers their requests, and configures their connections.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_agent::NoticeLevel;
use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, Approver, BoxFuture, CallId, Card,
    HttpTransport, SecretFile, ToolUse, secrets,
};
use haft_mcp::client::oauth::TokenStore;
use haft_mcp::client::{
    ClientHost, ClientOptions, ElicitationAnswer, ElicitationKind, ServerElicitation, ServerLaunch,
    ServerScope,
};
use haft_models::{Http, HttpOptions};
use serde_json::{Map, Value, json};

use super::{
    approvals::{PinDecider, PinnedTools},
    elicitation_hooks::ElicitationHooks,
    server_sandbox,
};
use crate::{Environment, SessionConfig, event::EventEmitter, resolved_settings::ResolvedSettings};

/// The approximate number of characters per token.
const TOKEN: usize = 4;
/// The maximum length of a result in tokens.
const RESULT_TOKENS: u32 = 25_000;

/// A program that shows the unchanged forms of servers to its user.
pub trait ElicitationHost: Send + Sync {
    /// Returns whether the program can show forms.
    fn can_show_forms(&self) -> bool;

    /// Returns the user's answer; `None` if the program cannot show the form.
    fn elicit<'a>(
        &'a self,
        asked: &'a ServerElicitation,
    ) -> BoxFuture<'a, Option<ElicitationAnswer>>;
}

/// The session, as seen by servers.
pub(crate) struct SessionHost {
    pub(crate) events: Arc<EventEmitter>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) program: Option<Arc<dyn ElicitationHost>>,
    pub(crate) hooks: ElicitationHooks,
    pub(crate) roots: Arc<Mutex<Vec<PathBuf>>>,
}

impl ClientHost for SessionHost {
    fn warn(&self, text: &str) {
        self.events.warn(text);
    }

    fn notice(&self, text: &str) {
        self.events.notice(NoticeLevel::Warning, text);
    }

    fn roots(&self) -> Vec<PathBuf> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        roots.clone()
    }

    fn can_elicit(&self) -> bool {
        self.program().is_some() || self.approver.is_available() || self.hooks.may_answer()
    }

    fn elicit(&self, asked: ServerElicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            if let Some(answer) = self.hooks.run_before(&asked).await {
                return answer;
            }
            self.hooks.notify_asked(&asked).await;
            let answer = self.ask(&asked).await;
            self.hooks.notify_answered(&asked, &answer).await;
            self.hooks.run_after(&asked, answer).await
        })
    }

    fn elicitation_completed(&self, server: &str, id: &str) {
        self.hooks.notify_completed(server, id);
    }
}

impl SessionHost {
    /// Asks the user.
    async fn ask(&self, asked: &ServerElicitation) -> ElicitationAnswer {
        if let Some(program) = self.program()
            && let Some(answer) = program.elicit(asked).await
        {
            return answer;
        }
        let fields = fields(asked);
        if fields.is_empty() {
            return ElicitationAnswer::Decline;
        }
        let questions: Vec<Value> = fields.iter().map(|field| field.question.clone()).collect();
        let input = json!({"questions": questions});
        let request = ApprovalRequest {
            kind: ApprovalKind::Question,
            call: CallId::new(),
            tool: format!("mcp__{}", asked.server),
            card: Card::default(),
            reason: format!("the MCP server {} asks", asked.server),
            offers: Vec::new(),
            asked: Some(ToolUse {
                id: String::new(),
                name: "AskUserQuestion".to_owned(),
                input,
            }),
            ..ApprovalRequest::default()
        };
        match self.approver.ask(request).await {
            ApprovalAnswer::InputEdited { input } => answered(asked, &fields, &input["answers"]),
            ApprovalAnswer::Deny { .. } => ElicitationAnswer::Decline,
            _ => ElicitationAnswer::Cancel,
        }
    }

    fn program(&self) -> Option<&Arc<dyn ElicitationHost>> {
        self.program
            .as_ref()
            .filter(|program| program.can_show_forms())
    }
}

/// A field of a form, as a question.
struct ElicitationField {
    name: String,
    schema: Value,
    question: Value,
}

/// Returns the fields of a form. A URL becomes one question: whether to visit it.
fn fields(asked: &ServerElicitation) -> Vec<ElicitationField> {
    let option =
        |label: &str, description: &str| json!({"label": label, "description": description});
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let schema = match &asked.kind {
        ElicitationKind::Url { url, .. } => {
            let question = format!(
                "{} ({} asks you to visit {url})",
                asked.message, asked.server
            );
            let options = [
                option(VISITED, "I have opened the address, or will now"),
                option("No", "The server is notified"),
            ];
            return vec![ElicitationField {
                name: String::new(),
                schema: Value::Null,
                question: json!({"question": question, "header": "MCP", "options": options}),
            }];
        }
        ElicitationKind::Form { schema } => schema,
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let fields = properties.map(|(name, schema)| {
        let title = match (text(&schema["title"]), text(&schema["description"])) {
            (title, about) if title.is_empty() && about.is_empty() => name.clone(),
            (title, about) if title.is_empty() => format!("{name}: {about}"),
            (title, about) if about.is_empty() => title,
            (title, about) => format!("{title}: {about}"),
        };
        let choices = choices(schema);
        let options: Vec<Value> = match choices.is_empty() {
            false => choices.iter().map(|(label, _)| option(label, "")).collect(),
            true => match schema.get("default") {
                Some(default) => vec![option(&label(default), "as proposed")],
                None => Vec::new(),
            },
        };
        ElicitationField {
            name: name.clone(),
            schema: schema.clone(),
            question: json!({
                "question": format!("{} {title}", asked.message),
                "header": asked.server.chars().take(12).collect::<String>(),
                "options": options,
                "multiSelect": schema["type"] == "array",
            }),
        }
    });
    fields.collect()
}

const VISITED: &str = "Opened";

/// Returns the choices: the label to show, and the value to send.
fn choices(schema: &Value) -> Vec<(String, Value)> {
    if schema["type"] == "boolean" {
        return vec![
            ("Yes".to_owned(), json!(true)),
            ("No".to_owned(), json!(false)),
        ];
    }
    let of = match schema["type"] == "array" {
        true => &schema["items"],
        false => schema,
    };
    let titled = of["oneOf"].as_array().or(of["anyOf"].as_array());
    if let Some(titled) = titled {
        let choices = titled.iter().map(|one| {
            let shown = one["title"].as_str().map(str::to_owned);
            (
                shown.unwrap_or_else(|| label(&one["const"])),
                one["const"].clone(),
            )
        });
        return choices.collect();
    }
    let values = of["enum"].as_array().into_iter().flatten();
    let names = of["enumNames"].as_array();
    let choices = values.enumerate().map(|(at, value)| {
        let shown = names.and_then(|names| names.get(at)?.as_str());
        (
            shown.map_or_else(|| label(value), str::to_owned),
            value.clone(),
        )
    });
    choices.collect()
}

fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the answer for the server, from the answers by the text of the questions.
fn answered(
    asked: &ServerElicitation,
    fields: &[ElicitationField],
    answers: &Value,
) -> ElicitationAnswer {
    let given = |field: &ElicitationField| {
        let question = field.question["question"].as_str()?;
        answers.get(question).cloned()
    };
    if let ElicitationKind::Url { .. } = &asked.kind {
        let visited = fields.first().and_then(given) == Some(json!(VISITED));
        return match visited {
            true => ElicitationAnswer::Accept(Value::Null),
            false => ElicitationAnswer::Decline,
        };
    }
    let mut content = Map::new();
    for field in fields {
        if let Some(answer) = given(field)
            && let Some(value) = value_of(&field.schema, &answer)
        {
            content.insert(field.name.clone(), value);
        }
    }
    match content.is_empty() {
        true => ElicitationAnswer::Cancel,
        false => ElicitationAnswer::Accept(Value::Object(content)),
    }
}

/// Converts an answer into the type that the form expects.
fn value_of(schema: &Value, answer: &Value) -> Option<Value> {
    let choices = choices(schema);
    let chosen = |text: &str| {
        let found = choices.iter().find(|(label, _)| label == text);
        found.map(|(_, value)| value.clone())
    };
    let text = label(answer);
    match schema["type"].as_str() {
        Some("array") => {
            let parts: Vec<String> = match answer {
                Value::Array(parts) => parts.iter().map(label).collect(),
                _ => text.split(',').map(|part| part.trim().to_owned()).collect(),
            };
            Some(parts.iter().filter_map(|part| chosen(part)).collect())
        }
        Some("boolean") => chosen(&text).or_else(|| text.parse::<bool>().ok().map(Value::Bool)),
        Some("integer") => text.trim().parse::<i64>().ok().map(|number| json!(number)),
        Some("number") => text.trim().parse::<f64>().ok().map(|number| json!(number)),
        _ if choices.is_empty() => Some(Value::String(text)),
        _ => chosen(&text),
    }
}

/// Returns the connection options for servers of a session.
pub(crate) fn options(
    config: &SessionConfig,
    permitted: &ResolvedSettings,
    folder: &Path,
    decides: PinDecider,
) -> anyhow::Result<ClientOptions> {
    let environment = &config.environment;
    // 0 is treated as not set.
    let millis = |name: &str| -> anyhow::Result<Option<Duration>> {
        let given = environment.number(name)?.filter(|given| *given > 0);
        Ok(given.map(|given| Duration::from_millis(given.into())))
    };
    let usual = ClientOptions::default();
    let idle = match environment.number("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT")? {
        None => (usual.idle, usual.network_idle),
        Some(0) => (None, None),
        Some(millis) => {
            let limit = Some(Duration::from_millis(millis.into()));
            (limit, limit)
        }
    };
    let tokens = environment
        .number("MAX_MCP_OUTPUT_TOKENS")?
        .filter(|given| *given > 0);
    let inherits = environment.clone();
    let looks = environment.clone();
    Ok(ClientOptions {
        connect: millis("MCP_TIMEOUT")?.unwrap_or(usual.connect),
        call: millis("MCP_TOOL_TIMEOUT")?.unwrap_or(usual.call),
        idle: idle.0,
        network_idle: idle.1,
        result_cap: usize::try_from(tokens.unwrap_or(RESULT_TOKENS))?.saturating_mul(TOKEN),
        deferred: true,
        folder: folder.to_path_buf(),
        cache: environment
            .cache_folder()
            .map(|folder| folder.join("mcp-tools")),
        http: Some(http(environment)),
        tokens: Some(Arc::new(token_store(environment, &config.cwd))),
        approvals: Some(Arc::new(PinnedTools::for_session(config, decides))),
        launch: ServerLaunch {
            guard: config.program.clone(),
            cwd: config.cwd.clone(),
            sandbox: server_sandbox::sandbox_factory(permitted),
        },
        environment: Arc::new(move |scope| environment_of(&inherits, scope)),
        variable: Arc::new(move |name| looks.raw_variable(name)),
    })
}

/// Returns the HTTP client for servers.
pub(super) fn http(environment: &Environment) -> Arc<dyn HttpTransport> {
    Arc::new(Http::new(HttpOptions::from_variables(|name| {
        environment.variable(name)
    })))
}

/// Returns the user's tokens, for servers that require a login.
pub(super) fn token_store(environment: &Environment, cwd: &Path) -> TokenStore {
    let places = environment.settings_places(cwd);
    TokenStore::new(SecretFile::McpTokens.below(&places.user), http(environment))
}

/// Returns the environment of a server. It includes keys only if the user wrote the entry.
fn environment_of(environment: &Environment, scope: ServerScope) -> BTreeMap<OsString, OsString> {
    let mut all = environment.all();
    if scope.is_foreign() {
        all.retain(|name, value| !secrets::is_secret(name, value));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> ServerElicitation {
        ServerElicitation {
            server: "s".to_owned(),
            message: "Please fill in.".to_owned(),
            kind: ElicitationKind::Form {
                schema: json!({"properties": {
                    "name": {"type": "string", "title": "Name"},
                    "age": {"type": "integer", "description": "in years", "default": 3},
                    "ok": {"type": "boolean"},
                    "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
                    "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
                }}),
            },
        }
    }

    #[test]
    fn a_form_is_a_row_of_questions_and_their_answers_its_values() {
        let form = form();
        let fields = fields(&form);
        let questions: Vec<&Value> = fields.iter().map(|field| &field.question).collect();
        insta::assert_json_snapshot!(questions);
        let word = |name: &str| {
            let field = fields.iter().find(|field| field.name == name).unwrap();
            field.question["question"].as_str().unwrap().to_owned()
        };
        let answers = json!({
            word("name"): "Ada", word("age"): "36", word("ok"): "Yes", word("color"): "Green", word("tags"): "a, b",
        });
        let expected =
            json!({"name": "Ada", "age": 36, "ok": true, "color": "g", "tags": ["a", "b"]});
        assert_eq!(
            answered(&form, &fields, &answers),
            ElicitationAnswer::Accept(expected)
        );
        assert_eq!(
            answered(&form, &fields, &json!({})),
            ElicitationAnswer::Cancel
        );
    }

    #[test]
    fn keys_are_for_servers_that_the_person_named() {
        let environment = Environment::from_variables([("PATH", "/bin"), ("GITHUB_TOKEN", "x")]);
        let own = environment_of(&environment, ServerScope::User);
        assert_eq!(own.len(), 2);
        let foreign = environment_of(&environment, ServerScope::Project);
        assert_eq!(foreign.into_keys().collect::<Vec<_>>(), ["PATH"]);
    }
}
