//! What people put in folders for the model to know: memory files and skills.

use std::{path::Path, sync::Arc};

use haft_contract::SessionId;
use haft_extensions::{
    ExtensionPlaces, Skills,
    memory::{Memory, MemoryOptions},
    skills::{SkillCall, SkillPart, render},
};

/// What people put in folders for the model to know.
#[derive(Debug)]
pub struct Knowledge {
    pub(crate) memory: Memory,
    pub(crate) skills: Option<Arc<Skills>>,
    /// The model may call them.
    pub(crate) lists: bool,
    /// It is the main agent's, whose skills are kept count of.
    pub(crate) counts: bool,
}

impl Knowledge {
    /// These memory files.
    pub fn new(memory: Memory) -> Self {
        Self {
            memory,
            skills: None,
            lists: true,
            counts: true,
        }
    }

    /// The same with skills.
    #[must_use]
    pub fn with_skills(mut self, skills: Arc<Skills>) -> Self {
        self.skills = Some(skills);
        self
    }

    /// The same for a subagent, which has read nothing yet. `lists`: it may call skills.
    pub(crate) fn of_subagent(&self, lists: bool) -> Self {
        Self {
            memory: self.memory.another(),
            skills: self.skills.clone(),
            lists,
            counts: false,
        }
    }

    /// What these skills say, for a subagent that is to know them from the start. Commands in them are
    /// not run.
    pub(crate) fn preloaded(&self, names: &[String], session: SessionId) -> Vec<String> {
        let Some(skills) = &self.skills else {
            return Vec::new();
        };
        let session = session.to_string();
        let project = skills.places().project();
        let given = SkillCall {
            arguments: "",
            session: &session,
            effort: None,
            project: &project,
            plugin_data: None,
        };
        let mut texts = Vec::new();
        for name in names {
            let read = skills.get(name).map(|skill| skill.again());
            let Some(Ok((skill, body))) = read else {
                tracing::warn!(name, "a skill that a subagent is to know cannot be had");
                continue;
            };
            let parts = render(&skill, &body, given).into_iter();
            let text: String = parts
                .map(|part| match part {
                    SkillPart::Text(text) => text,
                    SkillPart::Command { line, .. } => format!("[not run: {line}]"),
                })
                .collect();
            texts.push(format!("You know the skill {name}:\n\n{text}"));
        }
        texts
    }

    /// The memory files of a project, and no one else's.
    pub(crate) fn of_project(cwd: &Path) -> Self {
        let places = ExtensionPlaces::of_project(cwd);
        Self::new(Memory::new(places, MemoryOptions::default()))
    }
}
