//! The system prompt.
//!
//! It has a part that is the same in all sessions, and a part about the session
//! ([`PromptEnvironment`]). Both are created once, so that every request begins with the same bytes
//! and hits the provider's cache. The project's instructions ([`InstructionSources`]) are in the first
//! message, because they differ by project and may be long.

mod environment;
mod instruction_sources;

use haft_models::SystemBlock;

pub use environment::{PromptEnvironment, branch};
pub use instruction_sources::InstructionSources;

/// The base prompt for all models.
const BASE: &str = include_str!("base.md");

/// The system prompt of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// The text that replaces our base prompt; empty for none.
    pub base: Option<String>,
    /// The text that is appended.
    pub append: Option<String>,
    /// The description of the environment; `None` omits it.
    pub environment: Option<PromptEnvironment>,
}

impl SystemPrompt {
    /// Creates a prompt with our base prompt and this environment.
    pub fn new(environment: PromptEnvironment) -> Self {
        Self {
            base: None,
            append: None,
            environment: Some(environment),
        }
    }

    /// Returns the parts; the part that is the same in all sessions comes first.
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

/// Marks a text that was not written by the user.
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
