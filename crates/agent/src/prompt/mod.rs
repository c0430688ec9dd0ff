//! The system prompt.
//!
//! Two parts: one that is the same for everyone, one about this session ([`PromptEnvironment`]). Both are made
//! once, so every request begins with the same bytes and the provider's cache holds. What the project
//! wants the model to know ([`Knowledge`]) goes into the first message, because it differs by project and
//! may be long.

mod environment;
mod memory;

use haft_models::SystemBlock;

pub use environment::{PromptEnvironment, branch};
pub use memory::Knowledge;

/// What every model reads.
const BASE: &str = include_str!("base.md");

/// The system prompt of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// In place of our own words; empty for none at all.
    pub base: Option<String>,
    /// After everything else.
    pub append: Option<String>,
    /// Where the session runs; `None` leaves it out.
    pub environment: Option<PromptEnvironment>,
}

impl SystemPrompt {
    /// Our own words, and where the session runs.
    pub fn new(environment: PromptEnvironment) -> Self {
        Self {
            base: None,
            append: None,
            environment: Some(environment),
        }
    }

    /// Its parts, what is the same for everyone first.
    pub fn blocks(&self) -> Vec<SystemBlock> {
        let base = self.base.as_deref().unwrap_or(BASE);
        let mut blocks = vec![SystemBlock::stable(base)];
        if let Some(environment) = &self.environment {
            blocks.push(SystemBlock::new(environment.to_string()));
        }
        if let Some(append) = &self.append {
            blocks.push(SystemBlock::new(append));
        }
        blocks.retain(|block| !block.text.trim().is_empty());
        blocks
    }
}

/// Text that is not the user's own, marked as such.
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> PromptEnvironment {
        PromptEnvironment {
            cwd: "/home/user/project".into(),
            directories: vec!["/home/user/other".into()],
            branch: Some("main".to_owned()),
            is_repository: true,
            system: "linux x86_64".to_owned(),
            date: "2026-01-31".to_owned(),
        }
    }

    #[test]
    fn what_the_model_is_told() {
        let blocks = SystemPrompt::new(environment()).blocks();
        let texts: Vec<String> = blocks
            .iter()
            .map(|block| format!("[stable: {}]\n{}", block.stable, block.text))
            .collect();
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn an_empty_base_is_no_base() {
        let prompt = SystemPrompt {
            base: Some(String::new()),
            append: Some("Be brief.".to_owned()),
            environment: None,
        };
        assert_eq!(prompt.blocks(), [SystemBlock::new("Be brief.")]);
    }
}
