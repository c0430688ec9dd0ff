//! `Skill`: instructions for kinds of tasks.

mod skill_service;
mod tool;

pub use skill_service::{SkillCaller, InvokedSkill, SkillService, SkillEffects};
pub(crate) use tool::Skill;
