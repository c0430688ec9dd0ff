//! `haft call`: runs one tool call, for a user or a script.

use anyhow::Context;
use haft::Haft;
use haft_host::ToolTelemetry;
use serde_json::{Map, Value, json};

use super::exec::answer;
use crate::{
    args::{CallFlags, SessionArgs},
    exit::Exit,
    session,
    show::{self, ConsoleStyle},
};

pub(crate) async fn run(args: SessionArgs, call: CallFlags) -> anyhow::Result<Exit> {
    let input = input(&call.input)?;
    let telemetry = ToolTelemetry::default();
    let mut haft = session::tools(&args, Some(&telemetry)).await?;
    let cancel = haft.session_token();
    haft::spawn_boxed(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
    });
    let interrupted = haft.session_token();
    read_named_file(&mut haft, &call.name, &input).await;
    let finished = haft.call(&call.name, input).await;
    telemetry.close(None).await;
    if call.json {
        show::json(&serde_json::to_string_pretty(&answer(
            &Value::Null,
            &finished,
        ))?)?;
    } else if show::stdout_is_terminal() {
        let card = show::card(
            &finished.card,
            finished.is_error,
            &haft.context().cwd,
            ConsoleStyle::of_stdout(),
        );
        show::drawn(card.trim_end())?;
    } else {
        show::line(finished.text().trim_end_matches('\n'))?;
    }
    Ok(match finished.is_error {
        _ if interrupted.is_cancelled() => Exit::Interrupted,
        true => Exit::CallFailed,
        false => Exit::Success,
    })
}

/// Reads the file that the call names, so that the call may edit it. A session with a single call
/// has read nothing, so every edit would be rejected; a caller that names a file is assumed to know
/// its current contents.
async fn read_named_file(haft: &mut Haft, name: &str, input: &Value) {
    if name == "Read" {
        return;
    }
    for parameter in ["file_path", "notebook_path"] {
        if let Some(path) = input.get(parameter).and_then(Value::as_str) {
            let look = json!({"file_path": path, "limit": u32::MAX});
            haft.call("Read", look).await;
        }
    }
}

/// Parses one JSON object, or pairs of the forms `KEY=VALUE` and `KEY:=JSON`.
pub(super) fn input(words: &[String]) -> anyhow::Result<Value> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only).context("the input is not valid JSON");
    }
    let mut object = Map::new();
    for word in words {
        let (key, value) = word.split_once('=').with_context(|| {
            format!("{word:?}: expected KEY=VALUE, KEY:=JSON or one JSON object")
        })?;
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let value = serde_json::from_str(value)
                    .with_context(|| format!("{key}: the value is not valid JSON"))?;
                (key, value)
            }
            // The value stays a string; the engine converts "10" to 10 where the tool expects a
            // number.
            None => (key, Value::from(value)),
        };
        anyhow::ensure!(
            object.insert(key.to_owned(), value).is_none(),
            "{key}: given twice"
        );
    }
    Ok(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        input(&words).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn the_input_is_an_object_or_pairs() {
        assert_eq!(read(&[]), Ok(json!({})));
        assert_eq!(read(&["{\"a\": 1}"]), Ok(json!({"a": 1})));
        assert_eq!(
            read(&["a=1", "-i=true", "b=x=y", "c="]),
            Ok(json!({"a": "1", "-i": "true", "b": "x=y", "c": ""}))
        );
        assert_eq!(read(&["a:=[1, 2]"]), Ok(json!({"a": [1, 2]})));
        for bad in [&["plain"][..], &["{\"a\": "], &["a:=["], &["a=1", "a=2"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
