//! `Monitor`: a command or a connection whose lines the model receives as they arrive.
//!
//! A command is a background task like one of Bash, with the same rules and the same sandbox. Its
//! output is reported in events of a few lines each; too many events end the monitor. A WebSocket
//! is opened by the shared HTTP client. Its address is checked like those of other connections.

mod lines;
mod url;
mod websocket;

pub(crate) use lines::{EventRate, LineQueue, MonitorEvent};

use std::{any::Any, borrow::Cow, path::Path, sync::Arc, time::Duration};

use haft_contract::{
    BackgroundTasks, CallContext, Card, CardSection, CheckOutcome, Effects, RuleMatch, ServiceNeed,
    TaskKind, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Bash, ShellProgram, bash, run};
use url::SocketUrl;

/// The default and the maximum lifetime of a monitor, in milliseconds.
const DEFAULT_LIFETIME: f64 = 300_000.0;
const MAX_LIFETIME: f64 = 1_800_000.0;
/// The lifetime of a monitor that runs as long as the session.
const PERSISTENT: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The maximum number of monitors that run concurrently.
const MAX_COUNT: usize = 20;

/// Watches a command or a WebSocket in the background. Each line or message is shown to you when it arrives,
/// between your turns. Lines that arrive together are one event. Returns immediately.
///
/// - Print only what you must react to: `tail -n0 -F app.log | grep --line-buffered -E "ERROR|FATAL"`, or a loop
///   that prints when a state changes. Pipes need line buffering (`grep --line-buffered`, `stdbuf -oL`,
///   `awk … fflush()`); otherwise lines arrive late. Lines of stderr are included; `2>/dev/null` removes them.
/// - Cover failure as well as success: a command that prints nothing when it breaks looks like one that still runs.
/// - More than 100 events in a minute end the monitor. At most 20 run concurrently.
/// - It ends with its command, after `timeout_ms`, with TaskStop, and with the session. For a single result use
///   Bash with `run_in_background` instead.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A description in 5 to 10 words: the heading of each event.
    description: String,
    /// The command line. Either this or `ws`.
    command: Option<String>,
    /// A WebSocket, instead of `command`. The user is always asked.
    ws: Option<SocketInput>,
    /// The lifetime in milliseconds (default 300000, at most 1800000).
    timeout_ms: Option<f64>,
    /// Run as long as the session, without `timeout_ms`.
    #[serde(default)]
    persistent: bool,
    /// The command as input of Bash, filled in by haft.
    #[serde(skip)]
    bash: Option<bash::Input>,
}

/// A WebSocket.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SocketInput {
    /// ws://… or wss://…, without a user name or password.
    url: String,
    /// Subprotocols to offer.
    #[serde(default)]
    protocols: Vec<String>,
}

impl Input {
    /// Returns the command as input of Bash. It is empty for a connection.
    fn as_bash(&self) -> Cow<'_, bash::Input> {
        match &self.bash {
            Some(bash) => Cow::Borrowed(bash),
            None => Cow::Owned(self.new_bash()),
        }
    }

    fn new_bash(&self) -> bash::Input {
        bash::Input {
            command: self.command.clone().unwrap_or_default(),
            timeout: None,
            description: Some(self.description.clone()),
            run_in_background: true,
            dangerously_disable_sandbox: false,
            read: bash::CachedAnalysis::default(),
        }
    }

    fn lifetime(&self) -> Duration {
        if self.persistent {
            return PERSISTENT;
        }
        let asked = self
            .timeout_ms
            .filter(|asked| asked.is_finite() && *asked >= 1.0);
        Duration::from_secs_f64(asked.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME) / 1000.0)
    }
}

pub(crate) struct Monitor;

/// Returns an error if the maximum number of monitors is already running.
fn has_room(cx: &CallContext) -> Result<(), ToolError> {
    let Ok(tasks) = cx.services.get::<BackgroundTasks>() else {
        return Ok(());
    };
    let running = tasks.running();
    let monitors = running.iter().filter(|task| task.kind == TaskKind::Monitor);
    let ids: Vec<&str> = monitors.map(|task| &*task.id).collect();
    if ids.len() < MAX_COUNT {
        return Ok(());
    }
    Err(ToolError::Refused(format!(
        "{MAX_COUNT} monitors are running already, which is the maximum. Stop one with TaskStop first: {}.",
        ids.join(", ")
    )))
}

impl Tool for Monitor {
    type Input = Input;
    const NAME: &'static str = "Monitor";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "shell".into(),
            search_hint: "watch follow tail log stream events background websocket notify".into(),
            deferred: true,
            access: ToolAccess::Anything,
            rules: RuleMatch::Command("command"),
            needs: const { &[ServiceNeed::service::<ShellProgram>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        let effects = match input.command {
            Some(_) => Bash.effects(&input.as_bash()),
            None => Effects::EXCLUSIVE,
        };
        // A background command does not change the session's directory. Monitors start one after
        // the other, so that the count is exact.
        Effects {
            patches: false,
            exclusive: true,
            ..effects
        }
    }

    fn set_location(&self, input: &mut Input, cwd: &Path, home: Option<&Path>) {
        let mut bash = input.new_bash();
        Bash.set_location(&mut bash, cwd, home);
        input.bash = Some(bash);
    }

    fn parsed_input(&self, input: &Input) -> Option<Arc<dyn Any + Send + Sync>> {
        input.command.as_ref()?;
        Bash.parsed_input(&input.as_bash())
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        match (&input.command, &input.ws) {
            (Some(_), None) => Bash.check(&input.as_bash(), cx).await,
            (None, Some(ws)) => {
                let url = SocketUrl::parse(&ws.url).map_err(ToolError::Refused)?;
                websocket::check_protocols(&ws.protocols)?;
                websocket::check(&url, cx)?;
                Ok(CheckOutcome::Ask(format!(
                    "it listens to {}, port {}, as long as it runs",
                    url.host, url.port
                )))
            }
            _ => Err(ToolError::Refused(
                "Give either `command` or `ws`: one of them, and not both.".to_owned(),
            )),
        }
    }

    fn classifier_input(&self, input: &Input) -> Option<String> {
        input.command.clone()
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let lifetime = input.lifetime();
        has_room(cx)?;
        let id = match &input.ws {
            Some(ws) => websocket::start(ws, &input.description, lifetime, cx).await?,
            None => run::monitor(&input.as_bash(), lifetime, cx).await?,
        };
        let milliseconds = match input.persistent {
            true => 0,
            false => u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX),
        };
        let ends = match input.persistent {
            true => "as long as the session".to_owned(),
            false => format!("at most {}", super::limits::format(lifetime)),
        };
        let text = format!(
            "Monitor {id} is running, {ends}. Its events are sent to you automatically: do not wait for them."
        );
        let mut structured = json!({"taskId": id, "timeoutMs": milliseconds});
        if input.persistent {
            structured["persistent"] = json!(true);
        }
        Ok(ToolOutput::text(text).with_structured(structured))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let card = match &input.ws {
            Some(ws) => Card::new(Self::NAME, &*ws.url),
            None => {
                let mut card = Bash.render_use(&input.as_bash())?;
                card.title = Self::NAME.into();
                return Some(card);
            }
        };
        let card = card.with_summary(input.description.trim());
        Some(card.with(CardSection::Muted("in the background".to_owned())))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let mut card = self.render_use(input)?;
        card.body.clear();
        let id = output.structured.as_ref()?.get("taskId")?.as_str()?;
        Some(card.with_summary(format!("{}: {id}", input.description.trim())))
    }
}
