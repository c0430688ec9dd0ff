//! Planning: the task list and plan mode.
//!
//! # Layout
//! - `task_list_state`: the task list of a session, which survives compaction and resuming; `hooks`:
//!   hooks on its changes
//! - `task_create`, `task_get`, `task_list`, `task_update`: the tools for single tasks;
//!   `todo_write`: the older tool that replaces the whole list; `task_list_choice`: the choice of
//!   the interface for a session
//! - `enter_plan_mode`, `exit_plan_mode`: starting and ending plan mode, which forbids
//!   changes

mod enter_plan_mode;
mod exit_plan_mode;
mod hooks;
mod task_create;
mod task_get;
mod task_list;
mod task_list_choice;
mod task_list_state;
mod task_update;
mod todo_write;

pub(crate) use enter_plan_mode::EnterPlanMode;
pub(crate) use exit_plan_mode::ExitPlanMode;
pub(crate) use task_create::TaskCreate;
pub(crate) use task_get::TaskGet;
pub(crate) use task_list::TaskList;
pub(crate) use task_update::TaskUpdate;
pub(crate) use todo_write::TodoWrite;
