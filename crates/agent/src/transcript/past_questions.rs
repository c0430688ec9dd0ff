//! Reads the calls about which the user was asked from transcripts, to try rules on them.
//!
//! A call was asked about if its result says how long it waited for the user, or that the user
//! denied it. Transcripts are read twice, line by line: first the results, which are few, then the
//! calls that they answer.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use haft_contract::CalendarTime;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ProjectSessions,
    line_format::{REFUSED, WAITED},
};

/// The maximum length of a line in bytes. Longer ones contain no command that users read.
const MAX_LINE: usize = 1 << 20;

/// A call about which the user was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PastQuestion {
    /// The name of the tool.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// The directory in which the call was made, if known.
    pub cwd: Option<PathBuf>,
    /// The time in seconds since 1970.
    pub time: i64,
    /// Whether the user denied the call.
    pub is_denied: bool,
}

/// The past questions of a project.
#[derive(Debug, Default)]
pub struct PastQuestions {
    /// The questions, newest first.
    pub questions: Vec<PastQuestion>,
    /// Whether a limit was reached, so that older questions are missing.
    pub is_truncated: bool,
}

impl PastQuestions {
    /// Reads the questions since a time, in seconds since 1970, from all sessions of a project and
    /// their subagents, the most recently changed first. Stops at `max` questions, or when
    /// `is_over` returns `true`. Unreadable files and lines are skipped.
    pub fn read(
        sessions: &ProjectSessions,
        since: i64,
        max: usize,
        is_over: &dyn Fn() -> bool,
    ) -> Self {
        let mut all = Self::default();
        // A fork copies the lines of its origin.
        let mut seen = HashSet::new();
        for file in files(sessions) {
            if all.questions.len() >= max || is_over() {
                all.is_truncated = true;
                break;
            }
            let found = read_file(&file, since, &mut seen, is_over).unwrap_or_default();
            all.questions.extend(found);
            all.is_truncated |= is_over();
        }
        all.questions.sort_by_key(|question| -question.time);
        if all.questions.len() > max {
            all.questions.truncate(max);
            all.is_truncated = true;
        }
        all
    }
}

/// Returns the different command lines of all calls since a time, in seconds since 1970. Returns
/// `None` if a limit was reached, or if no call is older: then the absence of a command means
/// nothing.
pub fn past_commands(
    projects: &[ProjectSessions],
    since: i64,
    max: usize,
    is_over: &dyn Fn() -> bool,
) -> Option<HashSet<String>> {
    let mut commands = HashSet::new();
    let mut has_older = false;
    for file in projects.iter().flat_map(files) {
        let read = each_line(&file, is_over, |line| {
            if !has_any(line, &["tool_use"]) {
                return;
            }
            let Ok(line) = serde_json::from_slice::<QuestionLine>(line) else {
                return;
            };
            match line.time() {
                Some(time) if time < since => has_older = true,
                Some(_) => {
                    let inputs = line.blocks().into_iter().filter_map(|block| block.input);
                    let texts = inputs.filter_map(|input| match input.get("command") {
                        Some(Value::String(text)) => Some(text.clone()),
                        _ => None,
                    });
                    commands.extend(texts);
                }
                None => {}
            }
        });
        if read.is_err() || is_over() || commands.len() > max {
            return None;
        }
    }
    has_older.then_some(commands)
}

/// Returns the transcripts of the sessions and of their subagents, most recently changed first.
fn files(sessions: &ProjectSessions) -> Vec<PathBuf> {
    let main = sessions.transcripts().unwrap_or_default();
    let mut files = Vec::new();
    for transcript in main {
        let folder = transcript.with_extension("").join("subagents");
        let entries = fs::read_dir(folder).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")));
        files.push(transcript);
    }
    // Reading a pipe would never end.
    let with_time = files.into_iter().filter_map(|path| {
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((metadata.modified().ok()?, path))
    });
    let mut with_time: Vec<_> = with_time.collect();
    with_time.sort_unstable_by(|a, b| b.cmp(a));
    with_time.into_iter().map(|(_, path)| path).collect()
}

/// Reads the questions of one transcript.
fn read_file(
    path: &Path,
    since: i64,
    seen: &mut HashSet<(String, String)>,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Vec<PastQuestion>> {
    let mut answered: HashMap<String, bool> = HashMap::new();
    each_line(path, is_over, |line| {
        if !has_any(line, &[WAITED, REFUSED]) {
            return;
        }
        let Ok(line) = serde_json::from_slice::<QuestionLine>(line) else {
            return;
        };
        let is_denied = line.refused && line.refused_because.is_none();
        if line.refused_because.is_some() || !(is_denied || line.waited.is_some()) {
            return;
        }
        for block in line.blocks() {
            if let Some(id) = block.tool_use_id {
                answered.insert(id, is_denied);
            }
        }
    })?;
    let mut found = Vec::new();
    if answered.is_empty() {
        return Ok(found);
    }
    each_line(path, is_over, |line| {
        if !has_any(line, &["tool_use"]) {
            return;
        }
        let Ok(line) = serde_json::from_slice::<QuestionLine>(line) else {
            return;
        };
        let Some(time) = line.time().filter(|time| *time >= since) else {
            return;
        };
        let (uuid, cwd) = (line.uuid.clone().unwrap_or_default(), line.cwd.clone());
        for block in line.blocks() {
            let (Some(id), Some(tool), Some(input)) = (block.id, block.name, block.input) else {
                continue;
            };
            let Some(is_denied) = answered.get(&id) else {
                continue;
            };
            if seen.insert((uuid.clone(), id)) {
                found.push(PastQuestion {
                    tool,
                    input,
                    cwd: cwd.clone(),
                    time,
                    is_denied: *is_denied,
                });
            }
        }
    })?;
    Ok(found)
}

/// Calls a function with each line that is not too long, until `is_over` returns `true`.
fn each_line(
    path: &Path,
    is_over: &dyn Fn() -> bool,
    mut on_line: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(chunk.len());
        if line.len() + taken > MAX_LINE {
            is_too_long = true;
        } else if !is_too_long {
            line.extend_from_slice(&chunk[..taken]);
        }
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            if !is_too_long {
                on_line(&line);
            }
            line.clear();
            is_too_long = false;
            if is_over() {
                break;
            }
        }
    }
    Ok(())
}

/// Returns whether a line contains any of these texts.
fn has_any(line: &[u8], texts: &[&str]) -> bool {
    str::from_utf8(line).is_ok_and(|line| texts.iter().any(|text| line.contains(text)))
}

/// The fields of a line that questions need.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionLine {
    uuid: Option<String>,
    timestamp: Option<String>,
    cwd: Option<PathBuf>,
    message: Option<Value>,
    #[serde(rename = "haftWaitedMs")]
    waited: Option<u64>,
    #[serde(rename = "haftRefused", default)]
    refused: bool,
    #[serde(rename = "haftRefusedBecause")]
    refused_because: Option<String>,
}

#[derive(Deserialize)]
struct QuestionBlock {
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    tool_use_id: Option<String>,
}

impl QuestionLine {
    fn time(&self) -> Option<i64> {
        let time = self.timestamp.as_deref().and_then(CalendarTime::parse);
        time?.to_unix_seconds()
    }

    /// Takes the blocks of the message.
    fn blocks(self) -> Vec<QuestionBlock> {
        let content = self.message.and_then(|mut message| {
            let content = message.get_mut("content")?.take();
            match content {
                Value::Array(blocks) => Some(blocks),
                _ => None,
            }
        });
        let blocks = content.unwrap_or_default().into_iter();
        blocks
            .filter_map(|block| serde_json::from_value(block).ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(uuid: &str, id: &str, command: &str, time: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "timestamp": time, "cwd": "/p", "message": {
            "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]}})
    }

    fn answer(id: &str, more: Value) -> Value {
        let mut line = json!({"type": "user", "uuid": format!("r{id}"), "message": {
            "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]}});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        line
    }

    fn write(path: &Path, lines: &[Value]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs::write(path, text.join("\n") + "\n").unwrap();
    }

    #[test]
    fn only_calls_that_a_user_was_asked_about_are_found_newest_first_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let id = "01a1e348-0000-4000-8000-000000000001";
        let main = folder.path().join(format!("{id}.jsonl"));
        let day = |day: u32| format!("2026-01-{day:02}T12:00:00.000Z");
        let lines = [
            call("a", "1", "old", &day(1)),
            answer("1", json!({"haftWaitedMs": 5})),
            call("b", "2", "waited", &day(20)),
            answer("2", json!({"haftWaitedMs": 5})),
            call("c", "3", "unasked", &day(20)),
            answer("3", json!({})),
            call("d", "4", "denied", &day(22)),
            answer("4", json!({"haftRefused": true})),
            call("e", "5", "by a rule", &day(22)),
            answer(
                "5",
                json!({"haftRefused": true, "haftRefusedBecause": "deny rule"}),
            ),
            json!({"long": "x".repeat(MAX_LINE)}),
        ];
        write(&main, &lines);
        let fork = "01a1e348-0000-4000-8000-000000000002";
        write(&folder.path().join(format!("{fork}.jsonl")), &lines);
        let agent = folder.path().join(id).join("subagents/agent-1.jsonl");
        write(
            &agent,
            &[
                call("f", "6", "of a subagent", &day(21)),
                answer("6", json!({"haftWaitedMs": 5})),
            ],
        );
        let sessions = ProjectSessions::new(folder.path());
        let since = CalendarTime::parse(&day(10))
            .unwrap()
            .to_unix_seconds()
            .unwrap();
        let commands = |max: usize, over: bool| {
            let read = PastQuestions::read(&sessions, since, max, &|| over);
            let commands = read.questions.iter().map(|one| {
                (
                    one.input["command"].as_str().unwrap().to_owned(),
                    one.is_denied,
                )
            });
            (commands.collect::<Vec<_>>(), read.is_truncated)
        };
        let all = [
            ("denied", true),
            ("of a subagent", false),
            ("waited", false),
        ];
        let all = all.map(|(command, denied)| (command.to_owned(), denied));
        assert_eq!(commands(100, false), (all.to_vec(), false));
        assert_eq!(commands(0, false), (Vec::new(), true));
        assert_eq!(commands(100, true), (Vec::new(), true));
        let used = |since: i64, max: usize| {
            let projects = std::slice::from_ref(&sessions);
            past_commands(projects, since, max, &|| false).map(|commands| commands.len())
        };
        assert_eq!(used(since, 100), Some(5));
        assert_eq!(used(since, 2), None, "too many");
        assert_eq!(used(0, 100), None, "none is older");
    }
}
