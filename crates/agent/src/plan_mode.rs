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
        conversation: &mut RecordedConversation,
        cx: RunContext<'_>,
    ) {
        let is_on = context.mode == PermissionMode::Plan;
        if std::mem::replace(&mut self.knows, is_on) == is_on {
            return;
        }
        let text = match is_on {
            true => plan_mode_text(context),
            false => "Plan mode is off: you can make changes now.".to_owned(),
        };
        conversation.add_reminder(&text, InjectionSource::Mode, cx);
    }

    /// Updates the state after calls. The result of a call that changes the mode already informs the
    /// model.
    pub(crate) fn on_patches_applied(
        &mut self,
        patches: &[ContextPatch],
        context: &SessionContext,
    ) {
        let changes_mode = |patch: &ContextPatch| {
            matches!(
                patch,
                ContextPatch::SetMode { .. } | ContextPatch::LeavePlan
            )
        };
        if patches.iter().any(changes_mode) {
            self.knows = context.mode == PermissionMode::Plan;
        }
    }

    /// Returns the reminders that the model needs again after a compaction.
    pub(crate) fn reminders_after_compaction(&mut self, scheduler: &Scheduler) -> Vec<String> {
        let state = scheduler.engine().services().get::<SessionState>();
        let mut texts = state.map(|state| state.reminders()).unwrap_or_default();
        let context = scheduler.context();
        self.knows = context.mode == PermissionMode::Plan;
        texts.extend(self.knows.then(|| plan_mode_text(&context)));
        texts
    }
}

fn plan_mode_text(context: &SessionContext) -> String {
    let plan_file_hint = match &context.plan_file {
        Some(file) => format!(
            " Write the plan to {}, the only file that may be written.",
            file.display()
        ),
        None => String::new(),
    };
    format!(
        "Plan mode is on: read what you need, but change nothing. Calls that would change anything are \
         refused.{plan_file_hint} When the plan is complete, request approval with the tool for that. Start \
         the work only after the approval."
    )
}
