//! `Skill`: instructions that people wrote for kinds of tasks.

mod book;
mod tool;

pub use book::{Caller, Invoked, SkillBook};
pub(crate) use tool::Skill;
