//! A server with the tools, prompts and resources that the conformance scenarios expect.

use std::{sync::Arc, time::Duration};

use haft_contract::BoxFuture;
use haft_mcp::{
    RpcError,
    message::code,
    server::{
        ClientRequestError, LogLevel, McpService, OpenSession, RequestContext, ServerDescription,
        ServiceAnswer, SessionNotifier,
    },
};
use serde_json::{Value, json};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

pub(crate) struct Fixture;

impl OpenSession for Fixture {
    fn open(&self, _: SessionNotifier) -> BoxFuture<'_, Result<Arc<dyn McpService>, String>> {
        Box::pin(async { Ok(Arc::new(FixtureService) as Arc<dyn McpService>) })
    }
}

struct FixtureService;

impl McpService for FixtureService {
    fn description(&self) -> ServerDescription {
        ServerDescription {
            name: "fixture".to_owned(),
            title: "Fixture".to_owned(),
            version: "1.0.0".to_owned(),
            instructions: None,
            capabilities: json!({
                "tools": {},
                "prompts": {},
                "resources": {"subscribe": true},
                "logging": {},
                "completions": {},
            }),
        }
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        cx: &'a RequestContext,
    ) -> BoxFuture<'a, ServiceAnswer> {
        Box::pin(async move {
            match method {
                "tools/list" => Ok(json!({"tools": tools()})),
                "tools/call" => call(&params, cx).await,
                "prompts/list" => Ok(json!({"prompts": prompts()})),
                "prompts/get" => prompt(&params, cx).await,
                "resources/list" => Ok(json!({"resources": [
                    {"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
                    {"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"},
                ]})),
                "resources/templates/list" => Ok(json!({"resourceTemplates": [
                    {"uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json"},
                ]})),
                "resources/read" => read(&params),
                "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
                "completion/complete" => Ok(json!({
                    "completion": {"values": ["paris", "park"], "total": 2, "hasMore": false},
                })),
                other => Err(RpcError::no_method(other)),
            }
        })
    }

    fn schema_with_headers(&self, tool: &str) -> Option<Value> {
        let tools = tools();
        let found = tools.iter().find(|one| one["name"] == tool)?;
        Some(found["inputSchema"].clone())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn tools() -> Vec<Value> {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_logging_tool",
        "test_slow",
        "test_reconnection",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
    ];
    let mut tools: Vec<Value> = plain
        .into_iter()
        .map(|name| tool(name, json!({"type": "object", "properties": {}})))
        .collect();
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    tools.push(tool("test_sampling", text("prompt")));
    tools.push(tool("test_elicitation", text("message")));
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
    }});
    tools.push(tool("test_header", schema));
    tools.push(tool(
        "json_schema_2020_12_tool",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "anyOf": [{"required": ["phone"]}, {"required": ["email"]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        }),
    ));
    tools
}

fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "description": format!("The tool {name}"), "inputSchema": schema})
}

fn said(text: impl AsRef<str>) -> Value {
    json!({"content": [{"type": "text", "text": text.as_ref()}]})
}

fn form(message: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    })
}

fn failed(error: ClientRequestError) -> RpcError {
    match error {
        ClientRequestError::Answered(error) => error,
        other => RpcError::new(code::INTERNAL, other.to_string()),
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn call(params: &Value, cx: &RequestContext) -> ServiceAnswer {
    let arguments = &params["arguments"];
    let name = params["name"].as_str().unwrap_or_default();
    if let Some(rest) = name.strip_prefix("test_input_required_result_") {
        return call_that_asks(rest, cx).await;
    }
    Ok(match name {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => {
            json!({"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]})
        }
        "test_audio_content" => {
            json!({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]})
        }
        "test_embedded_resource" => json!({"content": [{"type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        }}]}),
        "test_multiple_content_types" => json!({"content": [
            {"type": "text", "text": "Multiple content types test:"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": "{\"test\":\"data\",\"value\":123}",
            }},
        ]}),
        "test_logging_tool" | "test_tool_with_logging" => {
            for text in [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ] {
                cx.log(LogLevel::Info, "fixture", json!(text));
                pause().await;
            }
            said("logged")
        }
        "test_error_handling" => {
            let mut error = said("This tool intentionally returns an error for testing");
            error["isError"] = json!(true);
            error
        }
        "test_tool_with_progress" => {
            for done in [0.0, 50.0, 100.0] {
                cx.progress(done, Some(100.0), None);
                pause().await;
            }
            said("done")
        }
        "test_slow" => {
            cx.progress(1.0, None, Some("it has begun"));
            cx.cancel.cancelled().await;
            said("never")
        }
        "test_reconnection" => {
            cx.disconnect();
            pause().await;
            said("it was worth coming back")
        }
        "test_streaming_elicitation" => {
            cx.progress(1.0, None, None);
            said(confirm(cx).await?.to_string())
        }
        "test_sampling" => {
            let asked = json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": arguments["prompt"]}}],
                "maxTokens": 100,
            });
            let answer = cx.ask("sampling/createMessage", asked).await;
            let answer = answer.map_err(failed)?;
            said(format!("LLM response: {}", answer["content"]["text"]))
        }
        "test_elicitation" => {
            let fields = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            let message = arguments["message"].as_str().unwrap_or_default();
            let answer = cx
                .ask(
                    "elicitation/create",
                    form(message, fields, &["username", "email"]),
                )
                .await
                .map_err(failed)?;
            said(format!("User response: {answer}"))
        }
        "test_elicitation_sep1034_defaults" => {
            let fields = json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            });
            completed(cx, fields).await?
        }
        "test_elicitation_sep1330_enums" => {
            let plain = ["option1", "option2", "option3"];
            let titled = json!([
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]);
            let fields = json!({
                "untitledSingle": {"type": "string", "enum": plain},
                "titledSingle": {"type": "string", "oneOf": titled.clone()},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            });
            completed(cx, fields).await?
        }
        "test_missing_capability" => {
            if cx.client.capabilities.get("sampling").is_none() {
                let words = "this tool needs sampling";
                let needed = json!({"requiredCapabilities": {"sampling": {}}});
                return Err(RpcError::new(code::MISSING_CAPABILITY, words).with_data(needed));
            }
            said("sampled")
        }
        "test_header" | "json_schema_2020_12_tool" => said(arguments.to_string()),
        other => {
            return Err(RpcError::invalid_params(format!(
                "no tool is called {other}"
            )));
        }
    })
}

async fn completed(cx: &RequestContext, fields: Value) -> ServiceAnswer {
    let answer = cx
        .ask("elicitation/create", form("Please fill in.", fields, &[]))
        .await;
    let answer = answer.map_err(failed)?;
    Ok(said(format!(
        "Elicitation completed: action={}, content={}",
        answer["action"].as_str().unwrap_or_default(),
        answer["content"]
    )))
}

fn one_field(message: &str, name: &str, kind: &str) -> Value {
    form(message, json!({name: {"type": kind}}), &[name])
}

async fn ask_name(cx: &RequestContext) -> Result<Value, RpcError> {
    let asked = one_field("What is your name?", "name", "string");
    let answer = cx.ask_as("user_name", "elicitation/create", asked).await;
    answer.map_err(failed)
}

async fn sample(cx: &RequestContext, key: &str, text: &str) -> Result<Value, RpcError> {
    let asked = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": 100,
    });
    let answer = cx.ask_as(key, "sampling/createMessage", asked).await;
    answer.map_err(failed)
}

async fn roots(cx: &RequestContext) -> Result<Value, RpcError> {
    let answer = cx.ask_as("client_roots", "roots/list", json!({})).await;
    answer.map_err(failed)
}

async fn confirm(cx: &RequestContext) -> Result<Value, RpcError> {
    let asked = one_field("Please confirm", "ok", "boolean");
    let answer = cx.ask_as("confirm", "elicitation/create", asked).await;
    answer.map_err(failed)
}

async fn call_that_asks(what: &str, cx: &RequestContext) -> ServiceAnswer {
    Ok(match what {
        "elicitation" => {
            let answer = ask_name(cx).await?;
            let name = answer["content"]["name"].as_str();
            let name = name.ok_or_else(|| RpcError::invalid_params("a form without a name"))?;
            said(format!("Hello, {name}!"))
        }
        "sampling" => {
            let question = "What is the capital of France?";
            let answer = sample(cx, "capital_question", question).await?;
            said(format!("It is said: {}", answer["content"]["text"]))
        }
        "list_roots" => said(roots(cx).await?.to_string()),
        "request_state" | "tampered_state" => {
            confirm(cx).await?;
            said("state-ok")
        }
        "multiple_inputs" => {
            let greeting = sample(cx, "greeting", "Generate a greeting");
            let (name, greeting, roots) = tokio::join!(ask_name(cx), greeting, roots(cx));
            said(format!("{} {} {}", name?, greeting?, roots?))
        }
        "multi_round" => {
            let first = one_field("Step 1: What is your name?", "name", "string");
            let name = cx.ask_as("step1", "elicitation/create", first).await;
            let name = name.map_err(failed)?;
            let second = one_field("Step 2: What is your favorite color?", "color", "string");
            let color = cx.ask_as("step2", "elicitation/create", second).await;
            said(format!("{name} {}", color.map_err(failed)?))
        }
        "capabilities" => {
            let can = |what: &str| cx.client.capabilities.get(what).is_some();
            if can("sampling") {
                sample(cx, "greeting", "Generate a greeting").await?;
            } else if can("elicitation") {
                ask_name(cx).await?;
            }
            said("as far as you can")
        }
        other => return Err(RpcError::invalid_params(format!("no tool asks {other}"))),
    })
}

fn prompts() -> Value {
    let argument =
        |name: &str| json!({"name": name, "description": "An argument", "required": true});
    json!([
        {"name": "test_simple_prompt", "description": "Simple"},
        {"name": "test_prompt_with_arguments", "description": "With arguments",
            "arguments": [argument("arg1"), argument("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": "With a resource",
            "arguments": [argument("resourceUri")]},
        {"name": "test_prompt_with_image", "description": "With a picture"},
        {"name": "test_input_required_result_prompt", "description": "Asks"},
    ])
}

async fn prompt(params: &Value, cx: &RequestContext) -> ServiceAnswer {
    let arguments = &params["arguments"];
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let value = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
            let (one, two) = (value("arg1"), value("arg2"));
            vec![text(&format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({"role": "user", "content": {"type": "resource", "resource": {
                "uri": arguments["resourceUri"],
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}}),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}}),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let asked = one_field("What context should the prompt use?", "context", "string");
            let answer = cx.ask_as("user_context", "elicitation/create", asked).await;
            vec![text(&answer.map_err(failed)?.to_string())]
        }
        other => {
            return Err(RpcError::invalid_params(format!(
                "no prompt is called {other}"
            )));
        }
    };
    Ok(json!({"messages": messages}))
}

fn read(params: &Value) -> ServiceAnswer {
    let uri = params["uri"].as_str().unwrap_or_default();
    let content = match uri {
        "test://static-text" => json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = uri.strip_prefix("test://template/");
            let Some(id) = id.and_then(|rest| rest.strip_suffix("/data")) else {
                let words = format!("there is no resource {uri}");
                let error = RpcError::new(code::RESOURCE_NOT_FOUND, words);
                return Err(error.with_data(json!({"uri": uri})));
            };
            let text =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
    };
    Ok(json!({"contents": [content]}))
}
