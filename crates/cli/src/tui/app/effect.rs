//! Inputs and effects of the `App`: events that it handles, and actions that it requests.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use haft::{ApprovalAnswer, Content, PermissionMode};
use haft_agent::Prompt;
use haft_host::{KeyReport, MemoryPlace, PromptDelivery, RecentExchanges, SessionEvent};
use haft_terminal::{
    HistoryItem, Key, ScreenSize, TerminalReply, TextLine, Theme, image::ImageProtocol,
    input::PasteResult, paint::TerminalControl,
};
use serde_json::Value;
use uuid::Uuid;

use crate::tui::{
    ask::{TrialOutcome, TrustFacts},
    complete::{CompletionEntry, CompletionQuery},
    history_file::PromptHistoryEntry,
    keybindings::Keybindings,
    overlay::ViewEffect,
    settings::TuiSettings,
};

/// An event that the app handles.
pub(crate) enum AppInput {
    /// A key press, the time at which it was read, and the number of keys in the same read.
    Key {
        key: Key,
        read_at: Instant,
        in_read: usize,
    },
    Paste(PasteResult),
    Focus(bool),
    Reply(TerminalReply),
    /// A drawn region has reached the screen.
    Written {
        stamp: u64,
        at: Instant,
    },
    Resized(ScreenSize),
    Session(Box<SessionEvent>),
    /// The settings have been loaded.
    Settings(Box<TuiSettings>),
    /// The session is open.
    Opened(Box<OpenedSession>),
    /// The session could not be opened, with the reason.
    NotOpened(String),
    /// The session has ended.
    Ended(Option<String>),
    /// A background job has a result.
    Found(JobResult),
    /// The user chose a session to resume, by its id.
    Resume(String),
    /// A timer tick.
    Tick,
}

/// Facts about a session that was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenedSession {
    pub(crate) memory: Vec<MemoryPlace>,
    pub(crate) mode: PermissionMode,
    pub(crate) model: String,
    pub(crate) branch: Option<String>,
    pub(crate) may_bypass: bool,
    pub(crate) question_timeout: Option<Duration>,
}

/// The result of a background job.
pub(crate) enum JobResult {
    Warning(String),
    Remark(String),
    /// The output of a slash command.
    Answer {
        line: String,
        answer: Result<String, String>,
    },
    /// A slash command was queued.
    Queued {
        id: Uuid,
        line: String,
    },
    /// A line that begins with a slash but is not a command.
    NoCommand(String),
    Completions {
        number: u64,
        found: Vec<CompletionEntry>,
    },
    /// A drawn image, or `None` if it cannot be drawn.
    Drawn {
        number: u32,
        item: Option<HistoryItem>,
    },
    /// The prompt history from the file.
    History(Vec<PromptHistoryEntry>),
    RecoveredDraft(String),
    /// An image for the draft, or the error and the pasted text.
    Picture {
        picture: Result<(String, Content), String>,
        pasted: Option<String>,
    },
    Copied {
        said: String,
        controls: Vec<TerminalControl>,
    },
    /// The draft as edited in the user's external editor.
    Edited(Result<String, String>),
    Theme(Box<(Theme, Option<String>)>),
    Keybindings(Keybindings),
    StatusRows(Vec<TextLine>),
    /// The last exchanges of the resumed conversation.
    Exchanges(RecentExchanges),
    NoKey(KeyReport),
    /// The directory is not trusted yet.
    Untrusted(TrustFacts),
    /// Rules were tried on past questions, for a question of the session.
    RuleTrial {
        id: u64,
        rules: Vec<String>,
        outcome: TrialOutcome,
    },
    /// The result of a job of the current view.
    ViewData(Box<dyn std::any::Any + Send>),
}

/// An action that the app requests.
pub(crate) enum AppEffect {
    /// Sends a prompt to the session.
    SendPrompt {
        prompt: Prompt,
        time: PromptDelivery,
    },
    /// Runs a slash command of the session.
    Command(String),
    /// Resolves the path of a directory and asks whether to add it.
    AskDirectory(String),
    /// Runs a shell command line; the id is that of its message.
    Shell {
        command: String,
        id: Uuid,
    },
    SaveNote {
        text: String,
        place: usize,
    },
    Withdraw(Uuid),
    /// Stops the run. Queued messages are not sent.
    Interrupt,
    Answer {
        id: u64,
        answer: ApprovalAnswer,
    },
    /// Tries rules on past questions, for a question of the session.
    TryRules {
        id: u64,
        rules: Vec<String>,
    },
    Trust(bool),
    SetMode(PermissionMode),
    SetThinking(bool),
    ToBackground,
    /// Opens a session, if none is open.
    Open,
    /// Resumes another session.
    Resume(String),
    Complete {
        query: CompletionQuery,
        number: u64,
    },
    /// Adds a prompt to the history file.
    SaveHistory(String),
    SaveDraft(String),
    SaveSetting {
        key: &'static str,
        value: Value,
    },
    Copy(String),
    LoadPicture {
        path: PathBuf,
        pasted: String,
    },
    ClipboardPicture,
    /// Draws an image for the history.
    DrawPicture {
        number: u32,
        name: String,
        content: Content,
        protocol: ImageProtocol,
    },
    /// Runs notification hooks, because haft waits for the user and another window has the focus.
    NotifyHooks(String),
    EditDraft(String),
    ChooseTheme,
    /// Restarts the status line command with the current settings.
    StatusLine,
    /// Updates the facts that the status line shows.
    Status,
    /// Opens a view.
    Show(ViewKind),
    RunViewEffect(ViewEffect),
    Terminal(Vec<TerminalControl>),
    ScrollAway,
    /// Switches to the plain line interface.
    BecomePlain,
    /// Suspends the process (Ctrl-Z).
    Suspend,
    Leave,
}

/// The kinds of views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// The complete conversation.
    Transcript,
    Undo,
    Rewind,
    /// The list of other sessions.
    Resume,
    Tasks,
    Permissions,
    Keys,
}
