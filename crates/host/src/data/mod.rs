//! Queries about a session that return data. Front ends display it, and commands format it as text.

mod costs;
mod first_run;
mod memory_files;
mod rules;
mod sessions;
mod tasks;
mod todos;
mod undo;

pub use costs::{CostLine, CostReport};
pub(crate) use first_run::stored_key;
pub use first_run::{
    KeyPlace, KeyReport, TrustItem, TrustReport, accept_trust, key_report, outside_imports,
    remove_key, store_key, trust_changes, trust_report,
};
pub use memory_files::{MemoryPlace, MemoryScope};
pub use rules::RuleInfo;
pub use sessions::{
    ExchangePart, PromptExchange, RecentExchanges, SessionEntry, exchanges, session_entries,
};
pub(crate) use sessions::{TranscriptPrompt, prompts};
pub use tasks::RunningTask;
pub use todos::{TodoBoard, TodoEntry, TodoStatus};
pub use undo::{
    ChangedFile, FileChangeKind, RewindKind, RewindPoint, UndoEntry, UndoReport, UndoWhich,
};
