//! An editor that talks with `haft acp`, and what a scripted model says to it.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::binary::{Conversation, haft};

/// What it answers to a request about a file, by method and params: a result, or an error; `None`: nothing at all.
pub(super) type FileAnswers = Box<dyn FnMut(&str, &Value) -> Option<Result<Value, Value>>>;

/// An editor, with what it was told.
pub(super) struct Editor {
    pub(super) talk: Conversation,
    pub(super) next: u64,
    /// Updates and questions since the last request, in their order.
    pub(super) seen: Vec<Value>,
    /// What it answers to questions for permission, by option; the last one again and again.
    pub(super) answers: Vec<&'static str>,
    pub(super) session: String,
    /// What it says of files; without it, it has no part in them.
    pub(super) files: Option<FileAnswers>,
}

impl Editor {
    pub(super) fn start(cwd: &Path, flags: &[&str]) -> Self {
        let talk = Conversation::start(haft(cwd).arg("acp").args(flags));
        Self {
            talk,
            next: 0,
            seen: Vec::new(),
            answers: vec!["allow"],
            session: String::new(),
            files: None,
        }
    }

    /// One that has introduced itself.
    pub(super) fn begun(cwd: &Path, flags: &[&str]) -> Self {
        let mut editor = Self::start(cwd, flags);
        let begun = editor.ask("initialize", json!({"protocolVersion": 1}));
        assert_eq!(begun["result"]["protocolVersion"], 1, "{begun}");
        editor
    }

    /// One with a session, whose model says this.
    pub(super) fn with_turns(dir: &TempDir, turns: &[Value]) -> Self {
        let script = script(dir.path(), turns);
        let mut editor = Self::begun(dir.path(), &["--script", &script]);
        editor.opens(dir.path());
        editor
    }

    /// One with a session, which says what it has of files and can write them.
    pub(super) fn with_files(
        dir: &TempDir,
        turns: &[Value],
        can: Value,
        files: impl FnMut(&str, &Value) -> Option<Result<Value, Value>> + 'static,
    ) -> Self {
        let script = script(dir.path(), turns);
        let mut editor = Self::start(dir.path(), &["--script", &script]);
        let can = json!({"fs": can});
        editor.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": can}),
        );
        editor.opens(dir.path());
        editor.files = Some(Box::new(files));
        editor
    }

    pub(super) fn opens(&mut self, cwd: &Path) {
        let opened = self.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let id = opened["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{opened}"))
            .clone_into(&mut self.session);
    }

    pub(super) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.talk
            .say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(super) fn note(&mut self, method: &str, params: Value) {
        self.talk
            .say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The answer to a request; what comes before it is kept.
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(super) fn hear(&mut self) -> Value {
        let message = self.talk.hear();
        if message["method"] == "session/request_permission" {
            let answer = match self.answers.len() {
                0 => None,
                1 => Some(self.answers[0]),
                _ => Some(self.answers.remove(0)),
            };
            if let Some(answer) = answer {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": answer}});
                self.talk
                    .say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
            }
        }
        let method = message["method"].as_str().unwrap_or_default();
        if method.starts_with("fs/") {
            let answers = self.files.as_mut();
            let answer = answers.and_then(|answers| answers(method, &message["params"]));
            let mut said = json!({"jsonrpc": "2.0", "id": message["id"]});
            match answer {
                Some(Ok(result)) => said["result"] = result,
                Some(Err(error)) => said["error"] = error,
                None => {}
            }
            if said.get("result").is_some() || said.get("error").is_some() {
                self.talk.say(&said);
            }
        }
        if message.get("method").is_some() {
            self.seen.push(message.clone());
        }
        message
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.seen.clear();
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(super) fn prompt(&mut self, text: &str) -> Value {
        let params = self.prompt_of(json!([{"type": "text", "text": text}]));
        self.ask("session/prompt", params)
    }

    pub(super) fn prompt_of(&self, blocks: Value) -> Value {
        json!({"sessionId": self.session, "prompt": blocks})
    }

    /// Until an update of this kind comes.
    pub(super) fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1000 {
            let message = self.hear();
            if is_it(&message) {
                return message;
            }
        }
        panic!("no {what} among {:#?}", self.seen);
    }

    pub(super) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// The states that a call was in.
    pub(super) fn states(&self) -> Vec<&str> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates
            .filter(|update| update["toolCallId"].is_string())
            .filter_map(|update| update["status"].as_str())
            .collect()
    }

    pub(super) fn said(&self, kind: &str) -> String {
        let chunks = self.updates(kind).into_iter();
        chunks
            .filter_map(|chunk| chunk["content"]["text"].as_str())
            .collect()
    }

    /// Requests about files, as method and name.
    pub(super) fn asked_files(&self) -> Vec<(&str, &str)> {
        let all = self.seen.iter();
        all.filter_map(|message| {
            let method = message["method"].as_str()?.strip_prefix("fs/")?;
            let path = message["params"]["path"].as_str()?;
            Some((method, path.rsplit('/').next().unwrap_or_default()))
        })
        .collect()
    }

    /// What the last call was answered with, as the model reads it.
    pub(super) fn results(&self) -> Vec<String> {
        let ends = self.updates("tool_call_update");
        let ends = ends
            .into_iter()
            .filter(|update| matches!(update["status"].as_str(), Some("completed" | "failed")));
        ends.map(Value::to_string).collect()
    }

    pub(super) fn questions(&self) -> Vec<&Value> {
        let asked = |message: &&Value| message["method"] == "session/request_permission";
        self.seen.iter().filter(asked).collect()
    }
}

pub(super) fn script(cwd: &Path, turns: &[Value]) -> String {
    let path = cwd.join(".script.json");
    let turn = |block: &Value| match block["type"].is_string() {
        true => json!({"content": [block]}),
        false => block.clone(),
    };
    let turns: Vec<Value> = turns.iter().map(turn).collect();
    fs::write(&path, json!({"turns": turns}).to_string()).unwrap();
    path.display().to_string()
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": name, "input": input})
}

pub(super) fn edit(file: &str, old: &str, new: &str) -> Value {
    call(
        "Edit",
        json!({"file_path": file, "old_string": old, "new_string": new}),
    )
}

pub(super) fn read() -> Value {
    call("Read", json!({"file_path": "a"}))
}

pub(super) fn project() -> TempDir {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a"), "one\ntwo\nthree\n").unwrap();
    dir
}

pub(super) fn code(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}
