//! Runs scripts in the page's own JavaScript context.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    cdp_pipe::IgnoredResult,
    error::{ChromiumError, Result, unusable},
    logs,
    tab::Tab,
};

/// The time limit for a script to end after it was terminated.
const STOPS: Duration = Duration::from_secs(3);
/// The time limit for a page to respond. If it does not, one of its scripts is blocking it.
const WAKES: Duration = Duration::from_secs(15);

impl Tab {
    /// Evaluates `script`: an expression, statements with `return`, or a function. With `on`, the
    /// function is called with that element. Promises are awaited. When the time limit expires, the
    /// script is terminated.
    ///
    /// # Errors
    /// The script throws or exceeds the limit, or the page cannot answer.
    pub async fn evaluate(&self, script: &str, on: Option<u32>, limit: Duration) -> Result<Value> {
        let before = self.settle_baseline()?;
        let answer = match on {
            None => self.run(script, limit).await?,
            Some(number) => {
                let element = self.element(number).await?;
                // The same node in the page's own context.
                let node: Value = self
                    .call(
                        "DOM.resolveNode",
                        json!({"backendNodeId": element.entry.node}),
                    )
                    .await?;
                let params = json!({
                    "functionDeclaration": format!(
                        "function() {{ const el = this; const value = (\n{script}\n); \
                         return typeof value === 'function' ? value.call(this, this) : value; }}"
                    ),
                    "objectId": node["object"]["objectId"], "awaitPromise": true, "returnByValue": true,
                    "userGesture": true,
                });
                self.stopped_at(limit, "Runtime.callFunctionOn", params)
                    .await?
            }
        };
        self.wait_until_settled(before).await?;
        value(&answer)
    }

    async fn run(&self, script: &str, limit: Duration) -> Result<Value> {
        let evaluate = |expression: String, awaits_itself: bool| {
            let params = json!({
                "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
                "allowUnsafeEvalBlockedByCSP": true, "replMode": awaits_itself,
            });
            self.stopped_at(limit, "Runtime.evaluate", params)
        };
        let answer = evaluate(format!("{script}\n"), false).await?;
        let exception = &answer["exceptionDetails"]["exception"]["description"];
        let refused = |start: &str| {
            exception
                .as_str()
                .is_some_and(|text| text.starts_with(start))
        };
        if refused("SyntaxError: Illegal return") {
            return evaluate(format!("(async () => {{\n{script}\n}})()"), false).await;
        }
        if refused("SyntaxError: await is only valid") {
            return evaluate(format!("{script}\n"), true).await;
        }
        if answer["result"]["type"] == "function" {
            let function = script.trim().trim_end_matches(';');
            return evaluate(format!("({function})()"), false).await;
        }
        Ok(answer)
    }

    /// Checks that the page responds. If one of its scripts blocks it, the script is terminated and
    /// an error is returned.
    pub(crate) async fn is_awake(&self) -> Result<()> {
        let params = json!({"expression": "0", "returnByValue": true});
        let asked = self.call_within::<IgnoredResult>(WAKES, "Runtime.evaluate", params);
        match asked.await {
            Err(ChromiumError::Timeout { .. }) => {
                self.stop_script().await;
                Err(unusable(format!(
                    "The page did not answer for {} s: one of its scripts did not end and was stopped. Try again, or \
                     navigate elsewhere.",
                    WAKES.as_secs()
                )))
            }
            Err(ChromiumError::Protocol { .. }) | Ok(_) => Ok(()),
            Err(other) => Err(other),
        }
    }

    pub(crate) async fn stop_script(&self) {
        let stop =
            self.call_within::<IgnoredResult>(STOPS, "Runtime.terminateExecution", json!({}));
        drop(stop.await);
    }

    async fn stopped_at(&self, limit: Duration, method: &str, params: Value) -> Result<Value> {
        let call = self.call_within::<Value>(limit, method, params);
        match call.await {
            Err(ChromiumError::Timeout { .. }) => {
                self.stop_script().await;
                Err(ChromiumError::Timeout {
                    what: "the script".to_owned(),
                    after: limit,
                })
            }
            other => other,
        }
    }
}

fn value(answer: &Value) -> Result<Value> {
    if let Some(details) = answer.get("exceptionDetails") {
        let place = match (
            details["lineNumber"].as_u64(),
            details["columnNumber"].as_u64(),
        ) {
            (Some(line), Some(column)) => format!(" (line {}, column {})", line + 1, column + 1),
            _ => String::new(),
        };
        return Err(unusable(format!(
            "The script failed: {}{place}",
            crate::text::one_line(&logs::exception_text(details), 500)
        )));
    }
    let result = &answer["result"];
    if let Some(value) = result.get("value") {
        return Ok(value.clone());
    }
    Ok(
        match (
            result["type"].as_str(),
            result["unserializableValue"].as_str(),
        ) {
            (_, Some(value)) => json!(value),
            (Some("undefined"), _) => json!("undefined"),
            _ => result["description"].clone(),
        },
    )
}
