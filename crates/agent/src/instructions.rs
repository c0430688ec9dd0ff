//! What people laid in folders for the model to know, and when it is told.
//!
//! Memory files and the list of skills stand before the first words. What is for certain files, or lies
//! in a directory below, comes after the call that first touched such a file. When the conversation is summed up, all of
//! it is read anew.

use std::path::PathBuf;

use haft_contract::{Content, ContextPatch, NestedCalls, ToolRole};
use haft_extensions::{
    Skill, Skills, Warning,
    memory::{MemoryFile, MemoryReason, tell},
};
use haft_models::Conversation;

use crate::{
    Added, Agent, Instructions, NoticeLevel, compaction::Room, hooks::RunContext, prompt::reminder,
    transcript::Kind,
};

/// What stands before the list of skills.
const SKILLS: &str = "There are skills: instructions for kinds of tasks. When what you are asked is what \
                      one of these is for, call the Skill tool with its name before you begin:";

/// What stands before skills that came to light later.
const MORE_SKILLS: &str = "There are further skills for the files you work with:";

impl Agent {
    /// What stands before the first words of a session, each as a reminder. `why` is for hooks.
    pub(crate) async fn recall(&mut self, why: &'static str, to: RunContext<'_>) -> Vec<String> {
        if std::mem::replace(&mut self.has_recalled, true) {
            return Vec::new();
        }
        let mut texts = Vec::new();
        if self.memory {
            let (files, warnings) = self.knowledge.memory.start();
            tell_warnings(&warnings, to);
            texts.extend(self.take_in(&files, why, to).await);
        }
        if let Some(skills) = self.skills() {
            let listing = skills.listing(self.settings.window);
            texts.extend(listing.map(|listing| format!("{SKILLS}\n\n{listing}")));
        }
        texts
    }

    /// The same after the conversation was summed up, with the skills that were called.
    pub(crate) async fn recall_all(&mut self, to: RunContext<'_>) -> Vec<String> {
        self.has_recalled = false;
        let mut texts = self.recall("compact", to).await;
        texts.extend(self.counted().and_then(|skills| skills.carry_over()));
        texts
    }

    /// What there is to say about files that calls have touched just now.
    pub(crate) async fn tell_touched(&mut self, to: RunContext<'_>) {
        let touched = self.transcript.take_touched();
        let files = touched.reads.into_iter().chain(touched.writes);
        let files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
        let mut texts = Vec::new();
        let mut found = Vec::new();
        for file in &files {
            if self.memory {
                let (memory, warnings) = self.knowledge.memory.touched(file);
                tell_warnings(&warnings, to);
                found.extend(memory);
            }
        }
        texts.extend(self.take_in(&found, "nested_traversal", to).await);
        if let Some(skills) = self.counted() {
            let mut new = Vec::new();
            for file in &files {
                let (more, warnings) = skills.touched(file);
                tell_warnings(&warnings, to);
                new.extend(more);
            }
            let new: Vec<&Skill> = new.iter().map(AsRef::as_ref).collect();
            let listing = skills.told(&new, self.settings.window);
            if let Some(listing) = listing {
                texts.push(format!("{MORE_SKILLS}\n\n{listing}"));
                // Where there were none before, the tool was not offered in full.
                let pool = self.scheduler.engine().pool();
                let loads = pool.with_role(ToolRole::LoadsSkills);
                let names = loads.map(|tool| tool.spec().name.clone());
                self.scheduler.apply(&ContextPatch::ActivateTools {
                    names: names.into_iter().collect(),
                });
            }
        }
        if texts.is_empty() {
            return;
        }
        let texts = texts.iter().map(|text| Content::text(reminder(text)));
        self.add_told(texts.collect(), Kind::Meta, Added::Knowledge, to);
    }

    /// Changes the session for the next run, until the person speaks again: what a skill permits that
    /// they called.
    pub fn permit(&mut self, patches: Vec<ContextPatch>) {
        self.permitted = patches;
    }

    /// A person speaks: what a skill permitted is over, and what they just called counts.
    pub(crate) fn speaks_again(&mut self) {
        self.scheduler.apply(&ContextPatch::EndRulesOfTurn);
        for patch in std::mem::take(&mut self.permitted) {
            self.scheduler.apply(&patch);
        }
    }

    /// Forgets the conversation: the next words are the first. What was spent stays, and so do the files.
    pub fn clear(&mut self) {
        self.conversation = Conversation::new();
        self.room = Room::default();
        self.transcript.set_last(None);
        self.has_recalled = false;
        if let Some(skills) = self.counted() {
            skills.forget_read();
        }
    }

    /// Calls beside the model's own, by the rules of this session.
    pub fn aside(&self) -> NestedCalls {
        self.scheduler.aside()
    }

    /// The one place that every memory file passes on its way to the model: hooks hear of each.
    async fn take_in(
        &self,
        files: &[MemoryFile],
        start: &'static str,
        to: RunContext<'_>,
    ) -> Option<String> {
        for file in files {
            let Some(path) = file.path.clone() else {
                continue;
            };
            let mut loaded = Instructions {
                path,
                kind: file.owner.name(),
                reason: start,
                globs: file.patterns.clone(),
                ..Instructions::default()
            };
            match &file.reason {
                MemoryReason::Start => {}
                MemoryReason::Nested(trigger) => {
                    loaded.reason = "nested_traversal";
                    loaded.trigger = Some(trigger.clone());
                }
                MemoryReason::Pattern(trigger) => {
                    loaded.reason = "path_glob_match";
                    loaded.trigger = Some(trigger.clone());
                }
                MemoryReason::Import(parent) => {
                    loaded.reason = "include";
                    loaded.parent = Some(parent.clone());
                }
            }
            self.hook_instructions(&loaded, to).await;
        }
        tell(files)
    }

    /// The skills, if the model may call them.
    fn skills(&self) -> Option<&Skills> {
        self.knowledge
            .skills
            .as_deref()
            .filter(|_| self.knowledge.lists)
    }

    /// The same, if it is kept count of what the model has read of them.
    fn counted(&self) -> Option<&Skills> {
        self.skills().filter(|_| self.knowledge.counts)
    }
}

fn tell_warnings(warnings: &[Warning], to: RunContext<'_>) {
    for warning in warnings {
        to.notice(NoticeLevel::Warning, warning.to_string());
    }
}
