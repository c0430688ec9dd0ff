//! What happens, and what is to be done.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use haft::{ApprovalAnswer, Content, PermissionMode};
use haft_agent::Prompt;
use haft_host::{Delivery, Exchanges, KeyReport, MemoryPlace, SessionEvent};
use haft_terminal::{
    HistoryItem, Key, ScreenSize, TerminalReply, TextLine, Theme, image::ImageProtocol,
    input::PasteResult, paint::TerminalControl,
};
use serde_json::Value;
use uuid::Uuid;

use crate::tui::{
    ask::TrustFacts,
    complete::{Completion, CompletionQuery},
    history_file::HistoryEntry,
    keybindings::Keybindings,
    overlay::ViewEffect,
    settings::TuiSettings,
};

/// Something that happened.
pub(crate) enum Input {
    /// A key, when it was read, and how many came with it.
    Key {
        key: Key,
        read_at: Instant,
        in_read: usize,
    },
    Paste(PasteResult),
    Focus(bool),
    Reply(TerminalReply),
    /// A region is on the screen since then.
    Written {
        stamp: u64,
        at: Instant,
    },
    Resized(ScreenSize),
    Session(Box<SessionEvent>),
    /// The settings were read.
    Settings(Box<TuiSettings>),
    /// There is a session: what is known of it.
    Opened(Box<OpenedSession>),
    /// There is none, and why.
    NotOpened(String),
    /// The session ended.
    Ended(Option<String>),
    /// Something was found out in the background.
    Found(Found),
    /// Time passed.
    Tick,
}

/// What is known of a session when it is opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenedSession {
    pub(crate) memory: Vec<MemoryPlace>,
    pub(crate) mode: PermissionMode,
    pub(crate) model: String,
    pub(crate) branch: Option<String>,
    pub(crate) may_bypass: bool,
    pub(crate) patience: Option<Duration>,
}

/// What was found out in the background.
pub(crate) enum Found {
    Warning(String),
    Remark(String),
    /// What a slash command answered.
    Answer {
        line: String,
        answer: Result<String, String>,
    },
    /// A slash command waits for its turn.
    Queued {
        id: Uuid,
        line: String,
    },
    /// A line that begins with a slash is no command.
    NoCommand(String),
    Completions {
        number: u64,
        found: Vec<Completion>,
    },
    /// What a picture became; `None`: it cannot be drawn.
    Drawn {
        number: u32,
        item: Option<HistoryItem>,
    },
    /// What was said before, from the file.
    Said(Vec<HistoryEntry>),
    KeptDraft(String),
    /// A picture for the draft, or why there is none and what was pasted.
    Picture {
        picture: Result<(String, Content), String>,
        pasted: Option<String>,
    },
    Copied {
        said: String,
        controls: Vec<TerminalControl>,
    },
    /// The draft as the person's editor left it.
    Edited(Result<String, String>),
    Theme(Box<(Theme, Option<String>)>),
    Keybindings(Keybindings),
    StatusRows(Vec<TextLine>),
    /// The end of the conversation that is taken up.
    Exchanges(Exchanges),
    NoKey(KeyReport),
    /// A directory is not trusted yet.
    Untrusted(TrustFacts),
    /// A job of the view is done.
    ViewData(Box<dyn std::any::Any + Send>),
}

/// What is to be done.
pub(crate) enum Effect {
    /// To the session.
    Say {
        prompt: Prompt,
        time: Delivery,
    },
    /// A slash command of the session's.
    Command(String),
    /// Finds out which directory is meant, and asks whether it is added.
    AskDirectory(String),
    /// A command line for the shell, and the id of its message.
    Shell {
        command: String,
        id: Uuid,
    },
    Remember {
        text: String,
        place: usize,
    },
    TakeBack(Uuid),
    /// Stops the run; what waits is not sent.
    Interrupt,
    Answer {
        id: u64,
        answer: ApprovalAnswer,
    },
    Trust(bool),
    SetMode(PermissionMode),
    SetThinking(bool),
    ToBackground,
    /// Opens a session; there is none.
    Open,
    /// Takes up another session.
    Resume(String),
    Complete {
        query: CompletionQuery,
        number: u64,
    },
    /// For the history on disk.
    KeepSaid(String),
    KeepDraft(String),
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
    /// Draws a picture for the history.
    DrawPicture {
        number: u32,
        name: String,
        content: Content,
        protocol: ImageProtocol,
    },
    /// The person looks elsewhere and is waited for: hooks are told.
    TellHooks(String),
    EditDraft(String),
    ChooseTheme,
    /// The command that writes the status row is another one.
    StatusLine,
    /// Something changed that the status row may show.
    Status,
    /// Opens a view.
    Show(ViewKind),
    OfView(ViewEffect),
    Terminal(Vec<TerminalControl>),
    ScrollAway,
    /// Lines are wanted instead of a screen.
    BecomePlain,
    /// Ctrl-Z.
    Suspend,
    Leave,
}

/// The views there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// Everything that was said and done.
    Transcript,
    Undo,
    Rewind,
    /// Other sessions.
    Resume,
    Tasks,
    Permissions,
    Keys,
}
