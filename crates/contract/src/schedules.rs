//! Schedules: prompts that are submitted later, at calendar times or after a delay. Tools know only
//! these types; the timekeeping is implemented in another crate.

use std::{fmt, sync::Arc};

use crate::ToolError;

/// Stores the schedules of one session. Its methods may block on disk I/O: do not call them on an
/// async task that others wait for.
pub trait ScheduleStore: Send + Sync {
    /// Checks a cron expression. The error is text for the model.
    fn check(&self, cron: &str) -> Result<(), ToolError>;

    /// Adds a schedule.
    fn create(&self, new: NewSchedule) -> Result<ScheduleInfo, ToolError>;

    /// Deletes a schedule.
    fn delete(&self, id: &str) -> Result<(), ToolError>;

    /// Returns all schedules, the oldest first, without wake-ups.
    fn list(&self) -> Result<Vec<ScheduleInfo>, ToolError>;

    /// Returns the schedules that are in memory, without reading the disk.
    fn list_cached(&self) -> Vec<ScheduleInfo>;

    /// Schedules a wake-up: a prompt after a delay.
    fn schedule_wakeup(&self, wakeup: NewWakeup) -> Result<WakeupInfo, ToolError>;

    /// Cancels all wake-ups and returns their number.
    fn cancel_wakeups(&self) -> usize;
}

/// The service through which calls use schedules.
#[derive(Clone)]
pub struct Schedules(pub Arc<dyn ScheduleStore>);

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedules")
    }
}

/// A schedule to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSchedule {
    /// The cron expression: five fields, local time.
    pub cron: String,
    /// The prompt to submit.
    pub prompt: String,
    /// The schedule repeats; otherwise it fires only once.
    pub recurring: bool,
    /// It outlives the session.
    pub durable: bool,
}

/// An existing schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleInfo {
    /// Its id.
    pub id: String,
    /// The cron expression, as given; empty for a wake-up.
    pub cron: String,
    /// The time as human-readable text.
    pub words: String,
    /// The prompt to submit.
    pub prompt: String,
    /// The schedule repeats; otherwise it fires only once.
    pub recurring: bool,
    /// It outlives the session.
    pub durable: bool,
    /// The next time it fires, in ISO 8601 with the local offset.
    pub next: String,
}

/// A wake-up to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWakeup {
    /// The delay in seconds.
    pub seconds: u64,
    /// A short reason.
    pub reason: String,
    /// The prompt to submit.
    pub prompt: String,
}

/// An existing wake-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeupInfo {
    /// Its id.
    pub id: String,
    /// The time it fires, in milliseconds since 1970.
    pub due_ms: i64,
    /// The time it fires, in ISO 8601 with the local offset.
    pub due: String,
}
