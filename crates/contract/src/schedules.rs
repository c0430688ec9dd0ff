//! Prompts that are to be said later: at times of a calendar, or after a while. Tools know only this; who keeps
//! the time stands above them.

use std::{fmt, sync::Arc};

use crate::ToolError;

/// Keeps the schedules of one session. Its methods may wait for the disk: not for a task that others wait for.
pub trait KeepSchedules: Send + Sync {
    /// Would this expression make sense? The error is for the model.
    fn check(&self, cron: &str) -> Result<(), ToolError>;

    /// Takes a schedule in.
    fn create(&self, new: NewSchedule) -> Result<ScheduleInfo, ToolError>;

    /// Forgets one.
    fn delete(&self, id: &str) -> Result<(), ToolError>;

    /// All of them, the oldest first; without wake-ups.
    fn list(&self) -> Result<Vec<ScheduleInfo>, ToolError>;

    /// Those that are known without a look at the disk.
    fn known(&self) -> Vec<ScheduleInfo>;

    /// Says something after a while.
    fn wake(&self, wakeup: NewWakeup) -> Result<WakeupInfo, ToolError>;

    /// Forgets all wake-ups; how many there were.
    fn cancel_wakeups(&self) -> usize;
}

/// The service by which calls reach schedules.
#[derive(Clone)]
pub struct Schedules(pub Arc<dyn KeepSchedules>);

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedules")
    }
}

/// A schedule that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSchedule {
    /// When: five fields, local time.
    pub cron: String,
    /// What is said then.
    pub prompt: String,
    /// Every time, and not only the next time.
    pub recurring: bool,
    /// It outlives the session.
    pub durable: bool,
}

/// What is known of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleInfo {
    /// Its id.
    pub id: String,
    /// When, as it was given; empty for a wake-up.
    pub cron: String,
    /// The same in words.
    pub words: String,
    /// What is said then.
    pub prompt: String,
    /// Every time, and not only the next time.
    pub recurring: bool,
    /// It outlives the session.
    pub durable: bool,
    /// When it is due next: a moment as ISO writes it, with the offset of the local time.
    pub next: String,
}

/// A wake-up that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWakeup {
    /// After so many seconds.
    pub seconds: u64,
    /// Why, in a few words.
    pub reason: String,
    /// What is said then.
    pub prompt: String,
}

/// What is known of a wake-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeupInfo {
    /// Its id.
    pub id: String,
    /// When it is due, in milliseconds since 1970.
    pub due_ms: i64,
    /// The same as ISO writes it, with the offset of the local time.
    pub due: String,
}
