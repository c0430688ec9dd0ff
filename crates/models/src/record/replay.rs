//! Replays a recording.

use std::{
    fmt,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::CancellationToken;
use serde_json::Value;

use super::{RecordingLine, VERSION, parts};
use crate::{
    EventStream, Model, ModelError, ModelEvent, ModelRequest,
    stream_block::{StreamSender, generate},
};

/// The maximum length of the recorded and the current text that a divergence shows, in characters.
const SHOWN: usize = 60;

/// A model that replays the recorded replies and records each request that differs from the
/// recording.
#[derive(Debug, Clone)]
pub struct Replay {
    tape: Arc<Mutex<ReplayTape>>,
    is_strict: bool,
}

#[derive(Debug, Default)]
struct ReplayTape {
    parts: Vec<Value>,
    requests: Vec<RecordedRequest>,
    divergences: Vec<ReplayDivergence>,
}

#[derive(Debug, Default)]
struct RecordedRequest {
    parts: Vec<usize>,
    events: Vec<ModelEvent>,
    error: Option<ModelError>,
    /// Whether the recording contains the end of the reply.
    is_whole: bool,
    is_used: bool,
}

/// A request that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayDivergence {
    /// The number of the recorded request, from 1.
    pub request: usize,
    /// The first part that differs.
    pub part: String,
    /// The recorded text around the difference; empty if the part was not recorded.
    pub recorded: String,
    /// The current text around the difference; empty if the part is missing now.
    pub now: String,
}

impl fmt::Display for ReplayDivergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            request,
            part,
            recorded,
            now,
        } = self;
        write!(
            f,
            "request {request} differs from the recording in {part}: "
        )?;
        match (recorded.as_str(), now.as_str()) {
            ("", now) => write!(f, "it was not there, now it is {now}"),
            (recorded, "") => write!(f, "it was {recorded}, now it is not there"),
            (recorded, now) => write!(f, "it was {recorded}, now it is {now}"),
        }
    }
}

impl Replay {
    /// Reads a recording from a file.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let named = |error: &dyn fmt::Display| {
            ModelError::local(format!("the recording {}: {error}", path.display()))
        };
        let file = File::open(path).map_err(|error| named(&error))?;
        Self::read(BufReader::new(file)).map_err(|error| named(&error))
    }

    /// Reads a recording from its lines.
    pub fn read(lines: impl BufRead) -> Result<Self, ModelError> {
        let mut tape = ReplayTape::default();
        for (index, line) in lines.lines().enumerate() {
            let bad = |why: String| ModelError::local(format!("line {}: {why}", index + 1));
            let line = line.map_err(|error| bad(error.to_string()))?;
            let line: RecordingLine =
                serde_json::from_str(&line).map_err(|error| bad(error.to_string()))?;
            tape.take(line).map_err(bad)?;
        }
        Ok(Self {
            tape: Arc::new(Mutex::new(tape)),
            is_strict: false,
        })
    }

    /// Makes requests that differ from the recording fail.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Returns the differences found so far.
    pub fn divergences(&self) -> Vec<ReplayDivergence> {
        self.tape().divergences.clone()
    }

    /// Returns the number of recorded requests that were not made again.
    pub fn unused(&self) -> usize {
        let tape = self.tape();
        let unused = tape.requests.iter().filter(|request| !request.is_used);
        unused.count()
    }

    fn tape(&self) -> MutexGuard<'_, ReplayTape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(
        self,
        request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let found = self.tape().find(&request, self.is_strict);
        let (events, ended) = found?;
        for event in events {
            if cancel.is_cancelled() {
                return Err(ModelError::cancelled());
            }
            out.send(event).await;
        }
        ended
    }
}

/// The events of a recorded reply, and how it ended.
type ReplayedReply = (Vec<ModelEvent>, Result<(), ModelError>);

impl ReplayTape {
    fn take(&mut self, line: RecordingLine) -> Result<(), String> {
        match line {
            RecordingLine::Version(VERSION) => {}
            RecordingLine::Version(other) => {
                return Err(format!("version {other} is not known; this is {VERSION}"));
            }
            RecordingLine::Part(part) => self.parts.push(part),
            RecordingLine::Request { request, parts } => {
                if request != self.requests.len()
                    || parts.iter().any(|part| *part >= self.parts.len())
                {
                    return Err("a request that does not fit what comes before".to_owned());
                }
                self.requests.push(RecordedRequest {
                    parts,
                    ..RecordedRequest::default()
                });
            }
            RecordingLine::Event { request, event } => self.request(request)?.events.push(event),
            RecordingLine::Error { request, error } => self.request(request)?.error = Some(error),
            RecordingLine::End { request } => self.request(request)?.is_whole = true,
        }
        Ok(())
    }

    fn request(&mut self, number: usize) -> Result<&mut RecordedRequest, String> {
        let unknown = || format!("request {number} was not started");
        self.requests.get_mut(number).ok_or_else(unknown)
    }

    /// Returns the recorded reply to an identical request; the order does not matter, because
    /// requests of subagents come in any order. If no request is identical, returns the next reply
    /// and records the difference.
    fn find(
        &mut self,
        request: &ModelRequest,
        is_strict: bool,
    ) -> Result<ReplayedReply, ModelError> {
        let now = parts(request);
        let unused = |recorded: &&RecordedRequest| !recorded.is_used;
        let difference =
            |recorded: &RecordedRequest| first_difference(&self.parts, &recorded.parts, &now);
        let same = |recorded: &RecordedRequest| !recorded.is_used && difference(recorded).is_none();
        let number = self.requests.iter().position(same).or_else(|| {
            let next = self.requests.iter().find(unused)?;
            self.requests
                .iter()
                .position(|other| std::ptr::eq(other, next))
        });
        let Some(number) = number else {
            let count = self.requests.len();
            let message = format!("the recording has ended: it has {count} requests");
            return Err(ModelError::local(message));
        };
        if let Some((part, recorded, now)) = difference(&self.requests[number]) {
            let divergence = ReplayDivergence {
                request: number + 1,
                part,
                recorded,
                now,
            };
            self.divergences.push(divergence.clone());
            if is_strict {
                return Err(ModelError::local(divergence.to_string()));
            }
        }
        let recorded = &mut self.requests[number];
        recorded.is_used = true;
        let ended = match (recorded.error.take(), recorded.is_whole) {
            (Some(error), _) => Err(error),
            (None, true) => Ok(()),
            // The recorded session was interrupted here.
            (None, false) => Err(ModelError::local(
                "the recording stops in the middle of this reply",
            )),
        };
        Ok((std::mem::take(&mut recorded.events), ended))
    }
}

fn first_difference(
    known: &[Value],
    recorded: &[usize],
    now: &[(String, Value)],
) -> Option<(String, String, String)> {
    let pairs = recorded.iter().zip(now);
    for (number, (name, now)) in pairs {
        if known[*number] != *now {
            let (was, is) =
                excerpts_around_difference(&known[*number].to_string(), &now.to_string());
            return Some((name.clone(), was, is));
        }
    }
    let shortened = |value: &Value| excerpts_around_difference(&value.to_string(), "").0;
    let common = recorded.len().min(now.len());
    if let Some((name, part)) = now.get(common) {
        return Some((name.clone(), String::new(), shortened(part)));
    }
    let part = recorded.get(common)?;
    let name = format!("message {}", common - 2);
    Some((name, shortened(&known[*part]), String::new()))
}

/// Returns both texts from shortly before their first difference.
fn excerpts_around_difference(a: &str, b: &str) -> (String, String) {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(SHOWN / 3);
    let shown = |text: &str| {
        let before = if start > 0 { "…" } else { "" };
        let after = if text.chars().count() > start + SHOWN {
            "…"
        } else {
            ""
        };
        let middle: String = text.chars().skip(start).take(SHOWN).collect();
        format!("{before}{middle}{after}")
    };
    (shown(a), shown(b))
}

impl Model for Replay {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let replay = self.clone();
        generate(move |out| replay.run(request, cancel, out))
    }
}
