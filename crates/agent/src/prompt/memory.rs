//! What people laid in folders for the model to know: memory files and skills.

use std::{path::Path, sync::Arc};

use haft_extensions::{
    Places, Skills,
    memory::{Memory, Options},
};

/// What people laid in folders for the model to know.
#[derive(Debug)]
pub struct Knowledge {
    pub(crate) memory: Memory,
    /// Those the model may call, where it has the tool for it.
    pub(crate) skills: Option<Arc<Skills>>,
}

impl Knowledge {
    /// These memory files.
    pub fn new(memory: Memory) -> Self {
        Self {
            memory,
            skills: None,
        }
    }

    /// The same with skills.
    #[must_use]
    pub fn with_skills(mut self, skills: Arc<Skills>) -> Self {
        self.skills = Some(skills);
        self
    }

    /// The memory files of a project, and nobody else's.
    pub(crate) fn of_project(cwd: &Path) -> Self {
        let places = Places::of_project(cwd);
        Self::new(Memory::new(places, Options::default()))
    }
}
