//! Sources of instructions for the model: memory files and skills.

use std::{path::Path, sync::Arc};

use haft_contract::SessionId;
use haft_extensions::{
    ExtensionPlaces, Skills,
    memory::{Memory, MemoryOptions},
    skills::{SkillCall, SkillPart, render},
};

/// The memory files and skills that the model may read.
#[derive(Debug)]
pub struct InstructionSources {
    pub(crate) memory: Memory,
    pub(crate) skills: Option<Arc<Skills>>,
    /// Whether the model may call the skills.
    pub(crate) offers_skills: bool,
    /// Whether these are the main agent's instructions, so that the skills it has read are tracked.
    pub(crate) tracks_skills: bool,
}

impl InstructionSources {
    /// Creates sources with these memory files and without skills.
    pub fn new(memory: Memory) -> Self {
        Self {
            memory,
            skills: None,
            offers_skills: true,
            tracks_skills: true,
        }
    }

    /// Adds skills.
    #[must_use]
    pub fn with_skills(mut self, skills: Arc<Skills>) -> Self {
        self.skills = Some(skills);
        self
    }

    /// Returns the sources for a new subagent. `lists` is set if the subagent may call skills.
    pub(crate) fn for_subagent(&self, lists: bool) -> Self {
        Self {
            memory: self.memory.for_new_conversation(),
            skills: self.skills.clone(),
            offers_skills: lists,
            tracks_skills: false,
        }
    }

    /// Returns the texts of these skills, for a subagent that has them preloaded. Commands in the
    /// skills are not run.
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
            let read = skills.get(name).map(|skill| skill.reload());
            let Some(Ok((skill, body))) = read else {
                tracing::warn!(name, "a skill to preload into a subagent is not available");
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

    /// Returns sources with the memory files of a project and without skills.
    pub(crate) fn for_project(cwd: &Path) -> Self {
        let places = ExtensionPlaces::for_project(cwd);
        Self::new(Memory::new(places, MemoryOptions::default()))
    }
}
