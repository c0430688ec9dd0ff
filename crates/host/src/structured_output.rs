//! Answers in a shape: `--json-schema`.

use std::sync::Arc;

use anyhow::Context;
use haft_agent::RunResult;
use haft_contract::CancellationToken;
use haft_engine::SchemaValidator;
use haft_models::{EventStream, Model, ModelRequest, ToolChoice, Usage};
use serde_json::Value;

/// How many times the model is told what does not fit.
pub(crate) const MOST_RETRIES: u32 = 3;

/// The shape that answers must have.
pub(crate) struct Shape {
    schema: Value,
    validator: SchemaValidator,
}

impl Shape {
    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        let schema: Value = serde_json::from_str(text).context("the JSON schema is not JSON")?;
        let validator = SchemaValidator::new(&schema).context("the JSON schema is none")?;
        Ok(Self { schema, validator })
    }

    /// The same model, asked for this shape.
    pub(crate) fn around(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(Shaped {
            model,
            schema: self.schema.clone(),
        })
    }

    /// The answer as a value; or what to tell the model.
    pub(crate) fn fits(&self, text: &str) -> Result<Value, String> {
        let again = |why: String| {
            format!(
                "Your answer does not fit the JSON schema it must fit: {why}. Answer again, with the \
                 JSON alone."
            )
        };
        let value = serde_json::from_str(text.trim())
            .map_err(|error| again(format!("it is not JSON ({error})")))?;
        let problems: Vec<String> = self
            .validator
            .problems(&value)
            .iter()
            .take(5)
            .map(ToString::to_string)
            .collect();
        if problems.is_empty() {
            Ok(value)
        } else {
            Err(again(problems.join("; ")))
        }
    }
}

#[derive(Debug)]
struct Shaped {
    model: Arc<dyn Model>,
    schema: Value,
}

impl Model for Shaped {
    fn stream(&self, mut request: ModelRequest, cancel: CancellationToken) -> EventStream {
        // Where no tool may be used the conversation is summarized: that is no answer.
        if request.tool_choice != ToolChoice::None {
            request.output_schema = Some(self.schema.clone());
        }
        self.model.stream(request, cancel)
    }
}

/// What two runs for one message came to.
pub(crate) fn together(first: RunResult, mut last: RunResult) -> RunResult {
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
        let shape = Shape::read(&schema.to_string()).unwrap();
        assert_eq!(shape.fits(" {\"n\": 1}\n"), Ok(json!({"n": 1})));
        let told = ["hello", "{}", "{\"n\": \"x\"}"].map(|text| shape.fits(text).unwrap_err());
        insta::assert_snapshot!(told.join("\n"));
    }
}
