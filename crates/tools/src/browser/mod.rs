//! `Browser`: viewing and testing pages in Chromium.
//!
//! The program runs in its own sandbox: it sees neither the home directory nor the project, writes
//! only to its scratch folder, and its only connection to the network is our gate (`hosts`), which
//! checks each connection against the host rules. Project files for pages are served one by one,
//! subject to the rules for reading (`files`), at `http://haft.localhost/`.
//!
//! - `tool`: the tool's interface, and the permission that its calls need; `actions`, `logs`: the
//!   actions
//! - `session`: the one browser of a session; `agent_tab`: the tab of each agent; `program`,
//!   `process`: the program and how it is started
//! - `hosts`: permission for hosts; `output`: results with page content
//! - `secrets`: secrets that are typed into pages but never shown

mod actions;
mod agent_tab;
mod files;
mod hosts;
mod logs;
mod output;
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
