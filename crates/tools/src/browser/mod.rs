//! `Browser`: pages looked at and tested in Chromium.
//!
//! The program runs in a sandbox of its own: it sees neither the home nor the project, writes to its scratch folder
//! alone, and its only way out is our gate (`hosts`), which judges each connection by the rules for hosts. What pages
//! of the project need is handed to it file by file under the rules for reading (`files`), at
//! `http://haft.localhost/`.
//!
//! - `tool`: what a model calls, and what of it needs permission; `actions`, `logs`: what each action does
//! - `session`: the one browser of a session; `agent_tab`: the tab that each agent has in it; `program`, `process`:
//!   which program, and how it is started
//! - `hosts`: where pages go and what they load; `answer`: how a model reads what a page says
//! - `secrets`: what is typed into pages and shown to no one

mod actions;
mod agent_tab;
mod answer;
mod files;
mod hosts;
mod logs;
mod process;
mod program;
mod secrets;
mod session;
mod tool;

pub(crate) use agent_tab::AgentTab;
pub use program::BrowserProgram;
pub use secrets::{PageSecret, PageSecrets, SecretSource};
pub use session::BrowserSession;
pub(crate) use tool::Browser;
