//! `haft -p`, with models that say what a script or a server on this machine says.
//!
//! - `answers`: formats, flags, prompts; `attachments`: what goes with a prompt
//! - `background`: tasks that outlast a turn
//! - `code`: language servers
//! - `conventions`: what programs of the convention count on
//! - `extensions`: what people laid in folders
//! - `ends`: limits, refusals, failures, exit codes
//! - `hooks`: programs, servers and models that have a say; `hook_vectors`: where each vector is tested;
//!   `hook_events`: every event comes
//! - `left_behind`: nothing is, however it ends
//! - `skill_effects`: what skills bring beside their text
//! - `plugins`: what plugins and projects bring
//! - `models`: which model is asked, by which name, and what it costs
//! - `planning`: tasks, plan mode, questions
//! - `notifications`: what the model wants people to see
//! - `subagents`: models that work for another's calls
//! - `schedules`: prompts that are said later, and monitors; `schedule_times`: when they are
//! - `sessions`: going on, forking, forgetting, listing; `settings`: those that act on the model
//! - `talk`: messages and control requests on stdin
//! - `requests`: what else can be asked; `servers`: MCP servers at the other end
//! - `mcp_programs`: MCP servers that are programs; `mcp_agents`: those of subagents; `mcp_sandbox`: confined ones;
//!   `mcp_elicitation`: what they want to know; `server`: a provider on this machine
//! - `tools_on_demand`: tools that are sent by name only; `worktrees`, `worktree_agents`: copies of a
//!   checkout to work in

mod answers;
mod attachments;
mod background;
#[cfg(feature = "code")]
pub(crate) mod code;
mod conventions;
mod ends;
mod extensions;
mod hook_events;
mod hook_vectors;
mod hooks;
mod left_behind;
mod mcp_agents;
mod mcp_changes;
mod mcp_elicitation;
mod mcp_programs;
mod mcp_sandbox;
mod message_display;
mod models;
mod notifications;
mod planning;
mod plugins;
mod requests;
mod schedule_times;
mod schedules;
mod server;
mod servers;
mod sessions;
mod settings;
mod skill_effects;
mod subagents;
mod talk;
mod tools_on_demand;
mod worktree_agents;
mod worktree_permissions;
mod worktrees;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::binary::{Ran, haft, run};

/// `haft` with a script of these turns, each a list of blocks.
pub(crate) fn scripted(cwd: &Path, turns: &Value) -> Command {
    let turns: Vec<Value> = turns
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| match turn {
            Value::Array(content) => {
                json!({"content": content, "usage": {"input": 10, "output": 5}})
            }
            turn => turn.clone(),
        })
        .collect();
    // Outside of where the tools look.
    let script = cwd.join(".haft-test-script.json");
    fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
    let mut command = haft(cwd);
    command.arg("--script").arg(script);
    command
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": name, "input": input})
}

/// Runs to the end with nothing on stdin.
fn answer(command: &mut Command) -> Ran {
    run(command, b"")
}

pub(crate) fn lines(ran: &Ran) -> Vec<Value> {
    let parsed = ran.stdout.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().unwrap()
}

/// Everything that differs from run to run, replaced.
fn steady(mut message: Value, cwd: &Path) -> Value {
    fn walk(value: &mut Value, cwd: &str) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let time = ["duration_ms", "duration_api_ms", "ttft_ms"];
                    if ["uuid", "session_id", "pid", "hook_id"].contains(&name.as_str()) {
                        *value = json!(format!("[{name}]"));
                    } else if time.contains(&name.as_str()) {
                        *value = json!(0);
                    } else if name == "tools" {
                        *value = json!("[tools]");
                    } else {
                        walk(value, cwd);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, cwd)),
            Value::String(text) => *text = text.replace(cwd, "[cwd]"),
            _ => {}
        }
    }
    walk(&mut message, &cwd.to_string_lossy());
    message
}

fn steady_lines(messages: &[Value], cwd: &Path) -> String {
    let told: Vec<String> = messages
        .iter()
        .map(|message| steady(message.clone(), cwd).to_string())
        .collect();
    told.join("\n")
}

/// The types of messages, in order.
fn kinds(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .map(|message| {
            let kind = message["type"].as_str().unwrap();
            match message["subtype"].as_str() {
                Some(subtype) => format!("{kind}/{subtype}"),
                None => kind.to_owned(),
            }
        })
        .collect()
}

/// A `haft --input-format stream-json` that is talked to line by line.
pub(crate) struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Talk {
    pub(crate) fn new(command: &mut Command) -> Self {
        let mut child = command
            .args(["--output-format", "stream-json", "--verbose"])
            .args(["--input-format", "stream-json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn user(&mut self, text: &str) {
        let message = json!({"role": "user", "content": text});
        self.say(&json!({"type": "user", "message": message, "session_id": "default"}));
    }

    pub(crate) fn request(&mut self, id: &str, request: &Value) {
        self.say(&json!({"type": "control_request", "request_id": id, "request": request}));
    }

    pub(crate) fn respond(&mut self, request: &Value, response: &Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": response});
        self.say(&json!({"type": "control_response", "response": response}));
    }

    fn fail(&mut self, request: &Value, error: &str) {
        let id = &request["request_id"];
        let response = json!({"subtype": "error", "request_id": id, "error": error});
        self.say(&json!({"type": "control_response", "response": response}));
    }

    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Everything up to the first message of this type and subtype.
    pub(crate) fn hear_until(&mut self, kind: &str) -> Vec<Value> {
        let mut heard = Vec::new();
        while let Some(message) = self.hear() {
            heard.push(message);
            let kinds = kinds(&heard);
            if kinds.last().is_some_and(|last| last.starts_with(kind)) {
                return heard;
            }
        }
        panic!("the end came before {kind}: {heard:#?}")
    }

    /// Closes stdin: the rest, and how it ended.
    pub(crate) fn end(mut self) -> (Vec<Value>, i32) {
        self.stdin = None;
        let rest = std::iter::from_fn(|| self.hear()).collect();
        (rest, self.child.wait().unwrap().code().unwrap_or(-1))
    }

    /// Waits for the end that a signal brings.
    fn gone(mut self) {
        let mut rest = String::new();
        let _ = std::io::Read::read_to_string(&mut self.stdout, &mut rest);
        self.child.wait().unwrap();
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = haft_testkit::command("kill")
            .args(["-s", name, &id])
            .status();
        assert!(sent.unwrap().success());
    }
}
