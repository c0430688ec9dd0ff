//! What is to be done, and in which order: the task list and plan mode.
//!
//! # Layout
//! - `list`: the task list of a session, which outlives a summary and a resume; `hooks`: who has a say
//! - `task_create`, `task_get`, `task_list`, `task_update`: the tools that work on it; `todo_write`: the
//!   older one that replaces it as a whole; `offered`: which of the two a session has
//! - `enter_plan_mode`, `exit_plan_mode`: into the mode in which nothing is changed, and out of it

mod enter_plan_mode;
mod exit_plan_mode;
mod hooks;
mod list;
mod offered;
mod task_create;
mod task_get;
mod task_list;
mod task_update;
mod todo_write;

pub(crate) use enter_plan_mode::EnterPlanMode;
pub(crate) use exit_plan_mode::ExitPlanMode;
pub(crate) use task_create::TaskCreate;
pub(crate) use task_get::TaskGet;
pub(crate) use task_list::TaskList;
pub(crate) use task_update::TaskUpdate;
pub(crate) use todo_write::TodoWrite;
