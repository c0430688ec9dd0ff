//! The status row: mode, folder, model, context window, cost.

use std::path::Path;

use haft::PermissionMode;
use haft_host::SessionInput;
use haft_terminal::{TextLine, editor::ViMode};

use super::{
    app::App,
    status_line::{
        StatusContext, StatusCost, StatusFacts, StatusModel, StatusName, StatusRow, StatusThinking,
        StatusVim, StatusWorkspace, status_row,
    },
    ui_style::UiStyle,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct StatusBar {
    pub(crate) mode: PermissionMode,
    /// The number of hosts that commands may contact, in the mode `auto`.
    pub(crate) allowed_hosts: usize,
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    pub(crate) model: String,
    /// The used part of the model's context window and its size, in tokens.
    pub(crate) context: Option<(u64, u64)>,
    pub(crate) cost: f64,
    /// The session id.
    pub(crate) session: Option<String>,
}

impl StatusBar {
    pub(crate) fn new(cwd: &Path) -> Self {
        let name = cwd.file_name().unwrap_or(cwd.as_os_str());
        Self {
            folder: name.to_string_lossy().into_owned(),
            ..Self::default()
        }
    }

    /// Returns the mode, and in the mode `auto` what commands may do.
    fn mode_text(&self) -> String {
        let name = self.mode.name();
        match (self.mode, self.allowed_hosts) {
            (PermissionMode::Auto, 1) => format!("{name} · undo on · 1 host"),
            (PermissionMode::Auto, count) => format!("{name} · undo on · {count} hosts"),
            _ => name.to_owned(),
        }
    }

    pub(crate) fn row(&self, look: &UiStyle, vi: Option<ViMode>) -> TextLine {
        let context = self
            .context
            .filter(|(_, window)| *window > 0)
            .map(|(used, window)| used * 100 / window);
        let row = StatusRow {
            mode: self.mode_text(),
            folder: self.folder.clone(),
            branch: self.branch.clone(),
            model: self.model.clone(),
            context,
            cost_usd: self.cost,
            vi: vi.map(|mode| format!("{mode:?}").to_lowercase()),
        };
        status_row(&row, look)
    }
}

impl App {
    /// Returns the JSON input of the user's status line command.
    pub(crate) fn status_facts(&self, session: &SessionInput) -> StatusFacts {
        let usage = session.context_usage();
        let percent = self
            .status
            .context
            .filter(|(_, window)| *window > 0)
            .map(|(used, window)| used as f64 * 100.0 / window as f64);
        let cwd = self.cwd.display().to_string();
        let path = session.transcript_path();
        StatusFacts {
            session_id: self.status.session.clone().unwrap_or_default(),
            transcript_path: path
                .map(|path| path.display().to_string())
                .unwrap_or_default(),
            cwd: cwd.clone(),
            version: crate::VERSION.to_owned(),
            model: StatusModel {
                id: self.status.model.clone(),
                display_name: self.status.model.clone(),
            },
            workspace: StatusWorkspace {
                current_dir: cwd.clone(),
                project_dir: cwd,
                added_dirs: Vec::new(),
            },
            output_style: StatusName {
                name: "default".to_owned(),
            },
            cost: StatusCost {
                total_cost_usd: self.status.cost,
                ..StatusCost::default()
            },
            context_window: StatusContext {
                total_input_tokens: usage.total,
                context_window_size: usage.window,
                used_percentage: percent,
                remaining_percentage: percent.map(|percent| 100.0 - percent),
                ..StatusContext::default()
            },
            exceeds_200k_tokens: usage.total > 200_000,
            thinking: StatusThinking {
                enabled: self.is_thinking_enabled,
            },
            vim: self.editor.vi_mode().map(|mode| StatusVim {
                mode: format!("{mode:?}").to_uppercase(),
            }),
            size: (self.look.size.columns, self.look.size.rows),
            ..StatusFacts::default()
        }
    }
}
