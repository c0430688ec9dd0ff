//! Tools that affect only the session and the user: `AskUserQuestion`, `Config`,
//! `PushNotification`, `ReportFindings`, `Sleep`, `Think`, `ToolSearch`, `WaitForMcpServers`.

mod ask_user_question;
mod config;
mod push_notification;
mod report_findings;
mod sleep;
mod think;
mod tool_ranking;
mod tool_search;
mod wait_for_mcp_servers;

pub(crate) use ask_user_question::AskUserQuestion;
pub(crate) use config::Config;
pub(crate) use push_notification::PushNotification;
pub(crate) use report_findings::ReportFindings;
pub(crate) use sleep::Sleep;
pub(crate) use think::Think;
pub(crate) use tool_search::ToolSearch;
pub(crate) use wait_for_mcp_servers::WaitForMcpServers;
