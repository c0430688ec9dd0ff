//! Prompts that a server offers to users of its clients.

use haft_contract::BoxFuture;
use serde_json::{Map, Value, json};

use crate::{
    Revision, RpcError,
    server::{RequestContext, ServiceAnswer},
};

/// A prompt as listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptDefinition {
    /// Its name.
    pub name: String,
    /// Its name for display.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The arguments: names and descriptions.
    pub arguments: Vec<(String, String)>,
}

/// A source of prompts.
pub trait PromptSource: Send + Sync {
    /// Returns the current prompts.
    fn list(&self) -> Vec<PromptDefinition>;

    /// Returns the text of a prompt with these arguments, by name. All names are defined by the
    /// prompt. The error is shown to the user.
    fn get<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        cx: &'a RequestContext,
    ) -> BoxFuture<'a, Result<String, String>>;
}

/// Returns the answer to `prompts/list`.
pub(super) fn list(source: &dyn PromptSource, revision: Revision) -> Value {
    let prompts = source.list().into_iter().map(|prompt| {
        let arguments = prompt.arguments.iter();
        let arguments: Vec<Value> = arguments
            .map(|(name, about)| json!({"name": name, "description": about, "required": false}))
            .collect();
        let mut listed = Map::new();
        listed.insert("name".to_owned(), json!(prompt.name));
        if let Some(title) = prompt.title.filter(|_| revision >= Revision::V2025_06_18) {
            listed.insert("title".to_owned(), json!(title));
        }
        listed.insert("description".to_owned(), json!(prompt.description));
        if !arguments.is_empty() {
            listed.insert("arguments".to_owned(), json!(arguments));
        }
        Value::Object(listed)
    });
    json!({"prompts": prompts.collect::<Vec<_>>()})
}

/// Returns the answer to `prompts/get`.
pub(super) async fn get(
    source: &dyn PromptSource,
    params: &Value,
    cx: &RequestContext,
) -> ServiceAnswer {
    let Some(name) = params["name"].as_str() else {
        return Err(RpcError::invalid_params(
            "`name` is missing: name the prompt",
        ));
    };
    let known = source.list().into_iter().find(|prompt| prompt.name == name);
    let Some(known) = known else {
        let why = format!("unknown prompt {name:?}; prompts/list returns the prompts");
        return Err(RpcError::invalid_params(why));
    };
    let none = Map::new();
    let arguments = match &params["arguments"] {
        Value::Null => &none,
        Value::Object(arguments) if arguments.values().all(Value::is_string) => arguments,
        _ => {
            let why = "`arguments` must be an object with string values";
            return Err(RpcError::invalid_params(why));
        }
    };
    let is_known = |name: &&String| known.arguments.iter().any(|(own, _)| own == *name);
    if let Some(unknown) = arguments.keys().find(|name| !is_known(name)) {
        let why = format!("the prompt {name:?} has no argument {unknown:?}");
        return Err(RpcError::invalid_params(why));
    }
    let text = source.get(name, arguments, cx).await;
    let text = text.map_err(RpcError::invalid_params)?;
    Ok(json!({
        "description": known.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }))
}
