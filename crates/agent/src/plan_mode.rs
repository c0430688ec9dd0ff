//! Reminders about plan mode, and the reminders after a compaction. The engine enforces the mode.

use haft_contract::{ContextPatch, PermissionMode, SessionState};
use haft_engine::{Scheduler, SessionContext};

use crate::{InjectionSource, hooks::RunContext, recorded_conversation::RecordedConversation};

/// Tracks whether the model knows that plan mode is on.
#[derive(Debug, Default)]
pub(crate) struct PlanReminder {
    knows: bool,
}

impl PlanReminder {
    /// Adds a reminder if plan mode was switched on or off, but not by the model.
    pub(crate) fn remind_if_changed(
        &mut self,
        context: &SessionContext,
        dialogue: &mut RecordedConversation,
        to: RunContext<'_>,
    ) {
        let is_on = context.mode == PermissionMode::Plan;
        if std::mem::replace(&mut self.knows, is_on) == is_on {
            return;
        }
        let text = match is_on {
            true => plan_mode_text(context),
            false => "Plan mode is over: go ahead.".to_owned(),
        };
        dialogue.add_reminder(&text, InjectionSource::Mode, to);
    }

    /// Updates the state after calls. The result of a call that changes the mode says so.
    pub(crate) fn on_patches(&mut self, patches: &[ContextPatch], context: &SessionContext) {
        let is_told = |patch: &ContextPatch| {
            matches!(
                patch,
                ContextPatch::SetMode { .. } | ContextPatch::LeavePlan
            )
        };
        if patches.iter().any(is_told) {
            self.knows = context.mode == PermissionMode::Plan;
        }
    }

    /// Returns the reminders that the model needs again after a compaction.
    pub(crate) fn reminders_after_compaction(&mut self, scheduler: &Scheduler) -> Vec<String> {
        let kept = scheduler.engine().services().get::<SessionState>();
        let mut texts = kept.map(|kept| kept.reminders()).unwrap_or_default();
        let context = scheduler.context();
        self.knows = context.mode == PermissionMode::Plan;
        texts.extend(self.knows.then(|| plan_mode_text(&context)));
        texts
    }
}

fn plan_mode_text(context: &SessionContext) -> String {
    let place = match &context.plan_file {
        Some(file) => format!(
            " Write the plan to {}, the only file that may be written.",
            file.display()
        ),
        None => String::new(),
    };
    format!(
        "Plan mode is on: look at what you need and change nothing; what would change something is \
         refused.{place} When the plan is complete, have it approved with the tool made for that. Begin \
         the work only then."
    )
}
