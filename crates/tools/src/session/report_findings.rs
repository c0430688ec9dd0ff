//! `ReportFindings`: reports the findings of a review as a list, so that neither the user nor
//! programs need to parse prose.
//!
//! The named files are not accessed. The findings are returned as structured output, and the user
//! sees them as a list.

use std::fmt::Write;

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, Tool, ToolAccess, ToolError, ToolOutput,
    ToolProfile,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Reports the findings of a review, each with its place, the problem and how it fails. Call it once, at the end,
/// with the most serious finding first; an empty list means no findings. Report only what you have checked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The requested thoroughness of the review.
    #[schemars(length(max = 40))]
    level: Option<String>,
    #[schemars(length(max = 32))]
    findings: Vec<Finding>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Finding {
    #[schemars(length(min = 1))]
    file: String,
    /// The first affected line.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The problem, in one or two sentences.
    #[schemars(length(min = 1))]
    summary: String,
    /// A short form of the summary.
    #[schemars(length(max = 80))]
    #[serde(skip_serializing_if = "Option::is_none")]
    short_summary: Option<String>,
    /// The effect, with an input or a state that causes it.
    #[schemars(length(min = 1))]
    failure_scenario: String,
    /// Such as `correctness`, `security`.
    #[schemars(length(max = 40))]
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// Your confidence in it.
    #[schemars(length(max = 40))]
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    /// The result, if you acted on it.
    #[schemars(length(max = 40))]
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
}

impl Finding {
    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        }
    }
}

pub(crate) struct ReportFindings;

impl Tool for ReportFindings {
    type Input = Input;
    const NAME: &'static str = "ReportFindings";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            title: Some("Findings".into()),
            family: "session".into(),
            search_hint: "review code bugs findings issues report audit defects".into(),
            deferred: true,
            access: ToolAccess::Reads,
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::NONE
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        let mut findings = input.findings.iter().enumerate();
        let empty = findings.find(|(_, finding)| {
            let texts = [&finding.file, &finding.summary, &finding.failure_scenario];
            texts.iter().any(|text| text.trim().is_empty())
        });
        match empty {
            Some((number, _)) => Err(ToolError::Refused(format!(
                "`findings[{number}]` needs a `file`, a `summary` and a `failure_scenario` that are not empty."
            ))),
            None => Ok(CheckOutcome::Pass),
        }
    }

    async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let text = match input.findings.len() {
            0 => "Reported: no findings.".to_owned(),
            1 => "Reported: 1 finding.".to_owned(),
            count => format!("Reported: {count} findings."),
        };
        let mut reported = json!({"findings": input.findings});
        if let Some(level) = &input.level {
            reported["level"] = json!(level);
        }
        Ok(ToolOutput::text(text).with_structured(reported))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let count = match input.findings.len() {
            0 => "none".to_owned(),
            count => count.to_string(),
        };
        let mut card = Card::new("Findings", count);
        for (number, finding) in (1..).zip(&input.findings) {
            let mut text = format!("{number}. {}", finding.place());
            let marks = [&finding.category, &finding.verdict, &finding.outcome];
            let marks: Vec<&str> = marks.into_iter().flatten().map(String::as_str).collect();
            if !marks.is_empty() {
                let _ = write!(text, " ({})", marks.join(", "));
            }
            let _ = write!(text, "\n   {}", finding.summary);
            card = card
                .with(CardSection::Text(text))
                .with(CardSection::Muted(format!(
                    "   {}",
                    finding.failure_scenario
                )));
        }
        Some(card)
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        self.render_use(input)
    }
}
