//! Answers that must match a JSON schema: `--json-schema`.
//!
//! The model gives its answer by calling `StructuredOutput`, whose input has this schema. A tool
//! cannot have every schema, for example a list or a choice. In that case the request
//! contains the schema, and the answer is the text. A text that matches the schema is accepted in
//! both cases.

use std::sync::Arc;

use anyhow::Context;
use haft_agent::{FinalAnswer, RunResult};
use haft_contract::{
    AgentAccess, BoundCall, BoxFuture, CallContext, CancellationToken, DynTool, Effects,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile, ToolSpec,
};
use haft_engine::{SchemaValidator, ToolRegistry};
use haft_models::{EventStream, Model, ModelRequest, ToolChoice, Usage};
use serde_json::Value;

/// The maximum number of retries after a mismatch, if the model's text is the answer.
const MAX_RETRIES: u32 = 3;
/// The maximum number of times that the model is reminded of the tool.
const MAX_REMINDERS: u32 = 1;
/// The maximum number of failed calls of the tool.
const MAX_TRIES: u32 = 5;

const TOOL: &str = "StructuredOutput";
const DESCRIPTION: &str = "Gives your final answer in the format that the user requested: the input is the answer. Call \
    it once, alone, when everything else is done. Later output is ignored, and text is not an answer.";

/// The output schema.
pub(crate) struct OutputSchema {
    schema: Value,
    validator: Arc<SchemaValidator>,
    /// The tool for the answer, if the schema can be that of a tool.
    pub(crate) tool: Option<AnswerTool>,
}

/// The tool for the answer, and the place where it stores the answer.
#[derive(Clone)]
pub(crate) struct AnswerTool {
    pub(crate) tool: Arc<dyn DynTool>,
    pub(crate) answer: Arc<FinalAnswer>,
}

impl OutputSchema {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let schema: Value = serde_json::from_str(text).context("the JSON schema is not JSON")?;
        let validator = SchemaValidator::new(&schema).context("the JSON schema is not valid")?;
        let validator = Arc::new(validator);
        Ok(Self {
            tool: AnswerTool::for_schema(&schema, &validator),
            schema,
            validator,
        })
    }

    /// Wraps the model so that it is asked for this schema, unless a tool has it.
    pub(crate) fn wrap_model(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        match &self.tool {
            Some(_) => model,
            None => Arc::new(OutputSchemaModel {
                model,
                schema: self.schema.clone(),
            }),
        }
    }

    /// Clears the answer before a new message.
    pub(crate) fn reset(&self) {
        if let Some(tool) = &self.tool {
            tool.answer.begin();
        }
    }

    /// Returns the answer of a run that ended with this text, or a message to the model.
    pub(crate) fn parse_answer(&self, text: &str) -> Result<Value, String> {
        let Some(tool) = &self.tool else {
            return self.validate_text(text);
        };
        if let Some(given) = tool.answer.value() {
            return Ok(given);
        }
        let why = match tool.answer.is_given_up() {
            true => format!("{MAX_TRIES} calls of {TOOL} failed."),
            false => format!(
                "You have not given your answer: text is not an answer. Call {TOOL} now, with the answer as its input."
            ),
        };
        self.validate_text(text).map_err(|_| why)
    }

    /// Returns whether the model may be asked again after this number of retries.
    pub(crate) fn may_retry(&self, times: u32) -> bool {
        match &self.tool {
            Some(tool) => times < MAX_REMINDERS && !tool.answer.is_given_up(),
            None => times < MAX_RETRIES,
        }
    }

    /// Parses and validates a text as the answer, or returns a message to the model.
    fn validate_text(&self, text: &str) -> Result<Value, String> {
        let again = |why: String| {
            format!(
                "Your answer does not match the JSON schema: {why}. Answer again, with only the JSON."
            )
        };
        let value = serde_json::from_str(text.trim())
            .map_err(|error| again(format!("it is not JSON ({error})")))?;
        match problems(&self.validator, &value) {
            None => Ok(value),
            Some(problems) => Err(again(problems.join("; "))),
        }
    }
}

/// Returns the first five problems of a value, if any.
fn problems(validator: &SchemaValidator, value: &Value) -> Option<Vec<String>> {
    let problems = validator.problems(value);
    let problems: Vec<String> = problems.iter().take(5).map(ToString::to_string).collect();
    (!problems.is_empty()).then_some(problems)
}

impl AnswerTool {
    /// Creates the tool with this input schema; `None` if providers would reject it as a tool.
    fn for_schema(schema: &Value, validator: &Arc<SchemaValidator>) -> Option<Self> {
        let choices = [
            "oneOf", "anyOf", "allOf", "not", "if", "$ref", "enum", "const",
        ];
        if schema["type"] != "object" || choices.iter().any(|name| schema.get(name).is_some()) {
            return None;
        }
        let answer = Arc::new(FinalAnswer::new(TOOL, MAX_TRIES));
        let tool: Arc<dyn DynTool> = Arc::new(StructuredOutput {
            spec: ToolSpec {
                name: TOOL.to_owned(),
                description: DESCRIPTION.to_owned(),
                input_schema: schema.clone(),
                profile: ToolProfile {
                    family: "session".into(),
                    search_hint: "final answer result".into(),
                    access: ToolAccess::Reads,
                    agents: AgentAccess::Main,
                    basic: true,
                    ..ToolProfile::default()
                },
            },
            validator: Arc::clone(validator),
            answer: Arc::clone(&answer),
        });
        let is_one = ToolRegistry::new().add_erased(Arc::clone(&tool)).is_ok();
        is_one.then_some(Self { tool, answer })
    }

    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }
}

struct StructuredOutput {
    spec: ToolSpec,
    validator: Arc<SchemaValidator>,
    answer: Arc<FinalAnswer>,
}

impl DynTool for StructuredOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        match problems(&self.validator, &input) {
            None => Ok(Box::new(AnswerCall { tool: self, input })),
            Some(problems) => Err(ToolError::Input(problems.join("\n"))),
        }
    }
}

struct AnswerCall {
    tool: Arc<StructuredOutput>,
    input: Value,
}

impl BoundCall for AnswerCall {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        // Runs in order, so that earlier calls have ended before it.
        Effects {
            in_order: true,
            ..Effects::NONE
        }
    }

    fn permission(&self, _: &CallContext) -> ToolPermission {
        // An answer changes nothing.
        ToolPermission::Allow
    }

    fn call<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.tool.answer.set(&cx.tool_use_id, self.input.clone());
        let output =
            ToolOutput::text("The answer was accepted.").with_structured(self.input.clone());
        Box::pin(async { Ok(output) })
    }
}

#[derive(Debug)]
struct OutputSchemaModel {
    model: Arc<dyn Model>,
    schema: Value,
}

impl Model for OutputSchemaModel {
    fn stream(&self, mut request: ModelRequest, cancel: CancellationToken) -> EventStream {
        // A request without tools is a compaction, not an answer.
        if request.tool_choice != ToolChoice::None {
            request.output_schema = Some(self.schema.clone());
        }
        self.model.stream(request, cancel)
    }
}

/// Merges the results of two runs for one message.
pub(crate) fn merge_results(first: RunResult, mut last: RunResult) -> RunResult {
    last.num_turns += first.num_turns;
    last.duration += first.duration;
    last.duration_api += first.duration_api;
    last.first_token = first.first_token.or(last.first_token);
    let mut denials = first.permission_denials;
    denials.append(&mut last.permission_denials);
    last.permission_denials = denials;
    last.usage = Usage {
        input: first.usage.input + last.usage.input,
        output: first.usage.output + last.usage.output,
        cache_read: first.usage.cache_read + last.usage.cache_read,
        cache_write: first.usage.cache_write + last.usage.cache_write,
        cache_write_1h: first.usage.cache_write_1h + last.usage.cache_write_1h,
        estimated: first.usage.estimated || last.usage.estimated,
    };
    last
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_fits_or_the_model_is_told_why_not() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        });
        let shape = OutputSchema::parse(&schema.to_string()).unwrap();
        assert_eq!(shape.validate_text(" {\"n\": 1}\n"), Ok(json!({"n": 1})));
        let told =
            ["hello", "{}", "{\"n\": \"x\"}"].map(|text| shape.validate_text(text).unwrap_err());
        insta::assert_snapshot!(told.join("\n"));
    }
}
