//! Sends memory files and skills to the model.
//!
//! Memory files and the list of skills are sent before the first prompt. Instructions that apply
//! only to certain files, or that are in a subdirectory, are sent after the first call that touches
//! one of these files. After a compaction everything is loaded again.

use std::path::PathBuf;

use haft_contract::{Content, ContextPatch, ToolRole};
use haft_engine::Scheduler;
use haft_extensions::{
    ExtensionWarning, Skill, Skills,
    memory::{MemoryFile, MemoryReason, format_for_model},
};

use crate::{
    InjectionSource, LoadedInstructions, NoticeLevel,
    deferred_listing::DeferredListing,
    hooks::{HookRunner, RunContext},
    prompt::{InstructionSources, reminder},
    recorded_conversation::RecordedConversation,
    transcript::UserLineKind,
};

/// The heading of the list of skills.
const SKILLS: &str = "There are skills: instructions for kinds of tasks. When what you are asked is what \
                      one of these is for, call the Skill tool with its name before you begin:";

/// The heading of a list of skills that were found later.
const MORE_SKILLS: &str = "There are further skills for the files you work with:";

/// The instructions that the model reads in addition to prompts.
pub(crate) struct InstructionSender {
    sources: InstructionSources,
    /// Whether memory files are sent.
    with_memory: bool,
    /// Whether the opening was already sent in this conversation.
    opening_sent: bool,
    /// Context from hooks to send before the first prompt.
    opening: Vec<String>,
    /// The deferred tools that the model knows.
    deferred: DeferredListing,
}

impl InstructionSender {
    pub(crate) fn new(
        sources: InstructionSources,
        with_memory: bool,
        opening: Vec<String>,
    ) -> Self {
        Self {
            sources,
            with_memory,
            opening_sent: false,
            opening,
            deferred: DeferredListing::default(),
        }
    }

    /// Queues context to send before the next prompt.
    pub(crate) fn queue_opening(&mut self, texts: Vec<String>) {
        self.opening.extend(texts);
    }

    /// Sends the memory files, the list of skills and the context from hooks before the first
    /// prompt.
    pub(crate) async fn send_opening(
        &mut self,
        window: u64,
        conversation: &mut RecordedConversation,
        hooks: &HookRunner,
        cx: RunContext<'_>,
    ) {
        let is_new = conversation.is_empty();
        let texts = self.load_opening("session_start", window, hooks, cx).await;
        let texts = texts.into_iter().filter(|_| is_new);
        let all_texts = texts.chain(std::mem::take(&mut self.opening));
        let content: Vec<_> = all_texts
            .map(|text| Content::text(reminder(&text)))
            .collect();
        if !content.is_empty() {
            conversation.add(content, UserLineKind::Meta, None);
        }
    }

    /// Loads the texts to send before the first prompt of a session. Hooks receive the `reason`.
    async fn load_opening(
        &mut self,
        reason: &'static str,
        window: u64,
        hooks: &HookRunner,
        cx: RunContext<'_>,
    ) -> Vec<String> {
        if std::mem::replace(&mut self.opening_sent, true) {
            return Vec::new();
        }
        let mut texts = Vec::new();
        if self.with_memory {
            let (files, warnings) = self.sources.memory.start();
            report_warnings(&warnings, cx);
            texts.extend(format_memory_files(&files, reason, hooks, cx).await);
        }
        if let Some(skills) = self.skills() {
            let listing = skills.listing(window);
            texts.extend(listing.map(|listing| format!("{SKILLS}\n\n{listing}")));
        }
        texts
    }

    /// Like [`load_opening`](Self::load_opening), but after a compaction: also returns the skills that
    /// were called.
    pub(crate) async fn reload_after_compaction(
        &mut self,
        window: u64,
        hooks: &HookRunner,
        cx: RunContext<'_>,
    ) -> Vec<String> {
        self.opening_sent = false;
        self.deferred = DeferredListing::default();
        let mut texts = self.load_opening("compact", window, hooks, cx).await;
        texts.extend(self.tracked_skills().and_then(|skills| skills.carry_over()));
        texts
    }

    /// Sends instructions for files that calls have just touched.
    pub(crate) async fn send_for_touched_files(
        &self,
        window: u64,
        conversation: &mut RecordedConversation,
        scheduler: &mut Scheduler,
        hooks: &HookRunner,
        cx: RunContext<'_>,
    ) {
        let touched = conversation.transcript.take_touched();
        let files = touched.reads.into_iter().chain(touched.writes);
        let files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
        let mut texts = Vec::new();
        let mut found = Vec::new();
        for file in files.iter().filter(|_| self.with_memory) {
            let (memory, warnings) = self.sources.memory.on_file_touched(file);
            report_warnings(&warnings, cx);
            found.extend(memory);
        }
        texts.extend(format_memory_files(&found, "nested_traversal", hooks, cx).await);
        if let Some(skills) = self.tracked_skills() {
            let mut new = Vec::new();
            for file in &files {
                let (more, warnings) = skills.on_file_touched(file);
                report_warnings(&warnings, cx);
                new.extend(more);
            }
            let new: Vec<&Skill> = new.iter().map(AsRef::as_ref).collect();
            let listing = skills.listing_for(&new, window);
            if let Some(listing) = listing {
                texts.push(format!("{MORE_SKILLS}\n\n{listing}"));
                // If there were no skills before, the skill tool was not fully offered.
                let pool = scheduler.engine().pool();
                let loads = pool.with_role(ToolRole::LoadsSkills);
                let names = loads.map(|tool| tool.spec().name.clone());
                scheduler.apply(&ContextPatch::ActivateTools {
                    names: names.into_iter().collect(),
                });
            }
        }
        if texts.is_empty() {
            return;
        }
        let texts = texts.iter().map(|text| Content::text(reminder(text)));
        conversation.add_and_report(
            texts.collect(),
            UserLineKind::Meta,
            InjectionSource::Instructions,
            cx,
        );
    }

    /// Reloads the skills after hooks prepared the project.
    pub(crate) fn reload_skills(&self, cx: RunContext<'_>) {
        if let Some(skills) = &self.sources.skills {
            report_warnings(&skills.reload(), cx);
        }
    }

    /// Reloads skills whose files have changed, unless hooks block the change.
    pub(crate) async fn reload_changed_skills(&self, hooks: &HookRunner, cx: RunContext<'_>) {
        let Some(skills) = self.tracked_skills() else {
            return;
        };
        let changed = skills.changed_files();
        for file in &changed {
            let is_blocked = hooks.config_changed("skills", file, cx).await;
            skills.set_vetoed(file, is_blocked);
        }
        if !changed.is_empty() {
            report_warnings(&skills.reload(), cx);
        }
    }

    /// Lists the deferred tools that the model does not know yet.
    pub(crate) fn list_deferred_tools(
        &mut self,
        scheduler: &Scheduler,
        conversation: &mut RecordedConversation,
    ) {
        if let Some(text) = self.deferred.take_new_listing(scheduler) {
            let content = vec![Content::text(reminder(&text))];
            conversation.add(content, UserLineKind::Meta, None);
        }
    }

    /// Starts over: the opening is sent again before the next prompt.
    pub(crate) fn reset(&mut self) {
        self.opening_sent = false;
        self.deferred = DeferredListing::default();
        if let Some(skills) = self.tracked_skills() {
            skills.clear_read();
        }
    }

    /// Returns the skills, if the model may call them.
    fn skills(&self) -> Option<&Skills> {
        self.sources
            .skills
            .as_deref()
            .filter(|_| self.sources.offers_skills)
    }

    /// Like [`skills`](Self::skills), but only if the session tracks which skills the model has
    /// read.
    fn tracked_skills(&self) -> Option<&Skills> {
        self.skills().filter(|_| self.sources.tracks_skills)
    }
}

/// Converts memory files to text for the model and fires the hook event for each of them. Every
/// memory file that is sent to the model passes through this function.
async fn format_memory_files(
    files: &[MemoryFile],
    start_reason: &'static str,
    hooks: &HookRunner,
    cx: RunContext<'_>,
) -> Option<String> {
    for file in files {
        let Some(path) = file.path.clone() else {
            continue;
        };
        let mut loaded = LoadedInstructions {
            path,
            kind: file.owner.name(),
            reason: start_reason,
            globs: file.patterns.clone(),
            ..LoadedInstructions::default()
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
        hooks.instructions(&loaded, cx).await;
    }
    format_for_model(files)
}

fn report_warnings(warnings: &[ExtensionWarning], cx: RunContext<'_>) {
    for warning in warnings {
        cx.notice(NoticeLevel::Warning, warning.to_string());
    }
}
