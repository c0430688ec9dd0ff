//! `Skill`: instructions for kinds of tasks.

mod skill_service;
mod tool;

pub use skill_service::{InvokedSkill, SkillCaller, SkillEffects, SkillService};
pub(crate) use tool::Skill;
