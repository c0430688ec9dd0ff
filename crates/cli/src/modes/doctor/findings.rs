//! The results of the checks, rendered as text and as JSON.

use serde_json::{Value, json};

use crate::{
    exit::Exit,
    show::{self, ConsoleStyle},
};

/// The results of all checks.
pub(super) struct DoctorFindings {
    pub(super) sections: Vec<DoctorSection>,
}

/// A group of related checks.
pub(super) struct DoctorSection {
    pub(super) name: &'static str,
    pub(super) rows: Vec<DoctorRow>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DoctorRow {
    pub(super) name: String,
    pub(super) state: CheckState,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckState {
    /// Correct.
    Good,
    /// Worth knowing.
    Note,
    /// A requested feature is not available.
    Bad,
}

impl CheckState {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

impl DoctorRow {
    pub(super) fn new(name: impl Into<String>, state: CheckState, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state,
            text: text.into(),
        }
    }
}

impl DoctorFindings {
    /// Returns the sections that have rows.
    pub(super) fn sections(&self) -> impl Iterator<Item = &DoctorSection> {
        self.sections
            .iter()
            .filter(|section| !section.rows.is_empty())
    }

    fn is_good(&self) -> bool {
        let mut rows = self.sections().flat_map(|section| &section.rows);
        !rows.any(|row| row.state == CheckState::Bad)
    }

    pub(super) fn exit(&self) -> Exit {
        if self.is_good() {
            Exit::Success
        } else {
            Exit::Usage
        }
    }

    pub(super) fn text(&self, style: ConsoleStyle) -> String {
        let mut text = String::new();
        for section in self.sections() {
            text += &format!("{}\n", style.bold(section.name));
            let width = section.rows.iter().map(|row| row.name.chars().count());
            let width = width.max().unwrap_or_default();
            for DoctorRow {
                name,
                state,
                text: said,
            } in &section.rows
            {
                let name = format!("{name:width$}");
                let mark = match state {
                    CheckState::Good => ' ',
                    CheckState::Note => '-',
                    CheckState::Bad => '!',
                };
                text += &format!("{mark} {}  {}\n", style.dim(&name), show::clean(said));
            }
        }
        text.trim_end().to_owned()
    }

    pub(super) fn json(&self) -> Value {
        let sections: Vec<Value> = self
            .sections()
            .map(|section| {
                let rows: Vec<Value> = section
                    .rows
                    .iter()
                    .map(|row| json!({"name": row.name, "state": row.state.name(), "text": row.text}))
                    .collect();
                json!({"name": section.name, "rows": rows})
            })
            .collect();
        json!({"ok": self.is_good(), "sections": sections})
    }
}
