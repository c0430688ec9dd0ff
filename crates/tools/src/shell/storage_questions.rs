//! Decides about files that a command is about to change and that undo cannot store.
//!
//! The limits apply to the session, so a command first gets more of them. If they are used up, or the
//! file cannot be stored for another reason, the command continues without undo for it if the user, a
//! rule or a hook allowed the command. If it runs only because undo can restore what it changes, the
//! user is asked before the file changes; if no user can be asked, the change is refused.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, CallContext, CallId, PermissionMode,
    ProgressSender, ProgressUpdate, ToolUse, approval::Approver,
};
use haft_journal::{Journal, StoredBytes};
use haft_sandbox::{
    StorageAnswer, StorageFuture, StorageLease, StoragePolicy, UnstoredFile, WitnessLimits,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::host_questions::NamedCall;
use crate::{blocking::blocking, paths::shown};

/// The maximum number of refused files that are recorded, and that a result names.
const NAMED: usize = 5;
/// The bytes that are copied per second, for the estimate in a question.
const COPY_SPEED: u64 = 1 << 30;
/// The labels of the answers.
const STORE: &str = "Store a copy first";
const CONTINUE: &str = "Continue without undo for it";
const CONTINUE_ALL: &str = "Continue without undo for all further files";
const REFUSE: &str = "Refuse";

/// The questions of one command.
pub(crate) struct StorageQuestions {
    journal: Arc<Journal>,
    /// The name of the command's unit in the journal.
    unit: String,
    limits: WitnessLimits,
    /// Asks the user. `None`: the command continues without undo for files that cannot be stored.
    asker: Option<StorageAsker>,
    cwd: Arc<Path>,
    progress: ProgressSender,
    /// The number of open questions, during which the timeout of the command is paused.
    open: watch::Sender<usize>,
    /// Ensures that only one question is open, because its answer may also decide the next one.
    asking: tokio::sync::Mutex<()>,
    state: Mutex<StorageQuestionState>,
}

#[derive(Clone)]
struct StorageAsker {
    approver: Arc<dyn Approver>,
    call: CallId,
    tool_use_id: Arc<str>,
    named: NamedCall,
    /// Whether the permission mode forbids questions.
    is_silent: bool,
}

#[derive(Default)]
struct StorageQuestionState {
    /// The answer that applies to all further files.
    all: Option<UserChoice>,
    /// The number of questions so far.
    asked: usize,
    /// The first refused files with their reasons, and the number of all.
    refused: BTreeMap<PathBuf, String>,
    refused_count: usize,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserChoice {
    Store,
    Continue,
    Refuse,
}

impl StorageQuestions {
    /// Creates the questions of a command. `relies_on_undo`: it runs only because undo can restore
    /// what it changes.
    pub(crate) fn new(
        (journal, unit): (Arc<Journal>, String),
        limits: WitnessLimits,
        cx: &CallContext,
        named: NamedCall,
        relies_on_undo: bool,
    ) -> Self {
        Self {
            journal,
            unit,
            limits,
            asker: relies_on_undo.then(|| StorageAsker {
                approver: Arc::clone(cx.services.approver()),
                call: cx.call,
                tool_use_id: Arc::clone(&cx.tool_use_id),
                named,
                is_silent: cx.permissions.mode == PermissionMode::DontAsk,
            }),
            cwd: Arc::clone(&cx.cwd),
            progress: cx.progress.clone(),
            open: watch::Sender::new(0),
            asking: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Returns the number of open questions.
    pub(crate) fn open_questions(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }

    /// Returns the note about the changes that were refused, for the model.
    pub(crate) fn refused_note(&self) -> Option<String> {
        let state = self.state();
        let mut files: Vec<String> = (state.refused.iter())
            .map(|(path, why)| format!("{}: {why}", shown(path, &self.cwd)))
            .collect();
        if files.is_empty() {
            return None;
        }
        if let more @ 1.. = state.refused_count.saturating_sub(files.len()) {
            files.push(format!("and {more} more files"));
        }
        Some(format!(
            "The command ran without a question because undo can restore what it changes. Changes that \
             undo cannot restore were refused: {}. The user can raise the limit in their own settings.",
            files.join("; ")
        ))
    }

    async fn answer(&self, file: UnstoredFile) -> StorageAnswer {
        if let Some(lease) = self.lease(&file).await {
            return StorageAnswer::Lease(lease);
        }
        let why = self.reason(&file);
        let Some(asker) = &self.asker else {
            return StorageAnswer::Skip(why);
        };
        let _one_at_a_time = self.asking.lock().await;
        let earlier = self.state().all;
        let choice = match earlier {
            Some(choice) => Some(choice),
            None => self.ask(asker, &file, &why).await,
        };
        let refused = |by: &str| {
            let mut state = self.state();
            state.refused_count += 1;
            // A command may try any number of files.
            if state.refused.len() < NAMED {
                let path = file.path.clone();
                state.refused.insert(path, format!("{why}; {by}"));
            }
            StorageAnswer::Refuse
        };
        match choice {
            Some(UserChoice::Store) => {
                let more = StoredBytes {
                    copied: file.copy_bytes,
                    pinned: 0,
                };
                self.journal.exceed_storage_lease(&self.unit, more);
                StorageAnswer::Copy
            }
            Some(UserChoice::Continue) => {
                StorageAnswer::Skip(format!("{why}; the user continued without it"))
            }
            Some(UserChoice::Refuse) => refused("the user refused the change"),
            None => refused("no user can be asked"),
        }
    }

    /// Returns more bytes for the command, if the limits of the session allow that.
    async fn lease(&self, file: &UnstoredFile) -> Option<StorageLease> {
        let copied = file.copy_bytes;
        let can_copy = file.error.is_none() && copied <= self.limits.file_bytes;
        let (pinned, journal) = (file.link_bytes, Arc::clone(&self.journal));
        let unit = self.unit.clone();
        let lease = blocking(move || {
            let extend = |copied, pinned| {
                journal.extend_storage_lease(&unit, StoredBytes { copied, pinned })
            };
            let pins = pinned.and_then(|pinned| extend(0, pinned));
            pins.or_else(|| extend(copied, 0).filter(|_| can_copy))
        });
        let lease = lease.await.ok()??;
        Some(StorageLease {
            copy_bytes: lease.copied,
            pin_bytes: lease.pinned,
        })
    }

    /// Returns the reason why a file cannot be stored.
    fn reason(&self, file: &UnstoredFile) -> String {
        if let Some(error) = &file.error {
            return error.clone();
        }
        let bytes = file.copy_bytes;
        let session = self.journal.undo_limits().unwrap_or_default();
        let (limit, scope, setting) = match (file.link_bytes, bytes > self.limits.file_bytes) {
            (Some(_), _) => (session.pinned, "of removed files in a session", "pinBytes"),
            (None, true) => (self.limits.file_bytes, "of a file", "fileBytes"),
            (None, false) => (session.bytes, "in a session", "copyBytes"),
        };
        format!(
            "it has {}, and undo stores at most {} {scope} (setting `undo.{setting}`)",
            readable(bytes),
            readable(limit)
        )
    }

    /// Asks the user. Returns `None` if no user can be asked.
    async fn ask(
        &self,
        asker: &StorageAsker,
        file: &UnstoredFile,
        why: &str,
    ) -> Option<UserChoice> {
        if asker.is_silent || !asker.approver.is_available() {
            return None;
        }
        let _open = OpenQuestion::new(&self.open);
        let is_first = {
            let mut state = self.state();
            state.asked += 1;
            state.asked == 1
        };
        let name = shown(&file.path, &self.cwd);
        let question = format!(
            "The command is about to change {name}, and undo does not cover that: {why}. It waits for \
             your answer."
        );
        let mut options = Vec::new();
        if file.error.is_none() {
            let seconds = file.copy_bytes.div_ceil(COPY_SPEED);
            let cost = format!("{}, about {seconds} s", readable(file.copy_bytes));
            options.push(json!({"label": STORE, "description": cost}));
        }
        options.push(json!({"label": CONTINUE, "description": "The change cannot be undone"}));
        if !is_first {
            options.push(json!({"label": CONTINUE_ALL, "description": "No further questions"}));
        }
        let refusing = "This and all further changes like it fail";
        options.push(json!({"label": REFUSE, "description": refusing}));
        let request = |kind, asked| ApprovalRequest {
            kind,
            call: asker.call,
            card: asker.named.card.clone(),
            asked,
            ..ApprovalRequest::default()
        };
        let form = json!({
            "questions": [{"question": question, "header": "Undo", "options": options}],
        });
        let asked = ToolUse {
            id: asker.tool_use_id.to_string(),
            name: "AskUserQuestion".to_owned(),
            input: form,
        };
        let form = ApprovalRequest {
            tool: asked.name.clone(),
            reason: question.clone(),
            ..request(ApprovalKind::Question, Some(asked))
        };
        let choice = match asker.approver.ask(form).await {
            ApprovalAnswer::InputEdited { input }
            | ApprovalAnswer::Updated {
                input: Some(input), ..
            } => self.choice(&input["answers"][&question]),
            ApprovalAnswer::Unavailable => {
                // This front end only knows yes and no.
                let permission = ApprovalRequest {
                    tool: "Bash".to_owned(),
                    reason: format!("{question} If you allow it, it continues without undo for it"),
                    ..request(ApprovalKind::Permission, Some(asker.named.asked.clone()))
                };
                match asker.approver.ask(permission).await {
                    ApprovalAnswer::Allow
                    | ApprovalAnswer::AllowAlways
                    | ApprovalAnswer::Updated { input: None, .. } => UserChoice::Continue,
                    ApprovalAnswer::Unavailable => return None,
                    _ => self.refuse_all(),
                }
            }
            _ => self.refuse_all(),
        };
        Some(choice)
    }

    /// Returns the choice that an answer names. Any other answer refuses the change.
    fn choice(&self, answer: &Value) -> UserChoice {
        match answer.as_str() {
            Some(STORE) => UserChoice::Store,
            Some(CONTINUE) => UserChoice::Continue,
            Some(CONTINUE_ALL) => {
                self.state().all = Some(UserChoice::Continue);
                UserChoice::Continue
            }
            _ => self.refuse_all(),
        }
    }

    /// Refuses all further changes, too: the user should not refuse each file of a directory.
    fn refuse_all(&self) -> UserChoice {
        self.state().all = Some(UserChoice::Refuse);
        UserChoice::Refuse
    }

    fn state(&self) -> MutexGuard<'_, StorageQuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoragePolicy for StorageQuestions {
    fn decide(self: Arc<Self>, file: UnstoredFile) -> StorageFuture {
        Box::pin(async move { self.answer(file).await })
    }

    fn on_slow_copy(&self, path: &Path, bytes: u64) {
        let name = shown(path, &self.cwd);
        let text = format!("storing {name} for undo, {}", readable(bytes));
        self.progress.report(ProgressUpdate::Note { text });
    }
}

impl fmt::Debug for StorageQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StorageQuestions")
    }
}

/// Counts an open question until it is dropped.
struct OpenQuestion<'a>(&'a watch::Sender<usize>);

impl<'a> OpenQuestion<'a> {
    fn new(open: &'a watch::Sender<usize>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Returns a number of bytes for reading.
fn readable(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut unit = 0;
    let mut scale = 1;
    while bytes / scale >= 1024 && unit + 1 < UNITS.len() {
        scale *= 1024;
        unit += 1;
    }
    let tenths = u128::from(bytes) * 10 / u128::from(scale);
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        part => format!("{}.{part} {}", tenths / 10, UNITS[unit]),
    }
}
