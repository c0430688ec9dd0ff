//! Plan mode, as the model reads it, and what else it must know again after a summary. What the
//! mode forbids is the engine's business.

use haft_contract::{ContextPatch, PermissionMode, SessionState};
use haft_engine::{Scheduler, SessionContext};

use crate::{Added, dialogue::Dialogue, hooks::RunContext};

/// Whether the model knows that plan mode is on.
#[derive(Debug, Default)]
pub(crate) struct PlanReminder {
    knows: bool,
}

impl PlanReminder {
    /// Tells the model that plan mode has begun or ended by another hand than its own.
    pub(crate) fn tell(
        &mut self,
        context: &SessionContext,
        dialogue: &mut Dialogue,
        to: RunContext<'_>,
    ) {
        let is_on = context.mode == PermissionMode::Plan;
        if std::mem::replace(&mut self.knows, is_on) == is_on {
            return;
        }
        let text = match is_on {
            true => planning(context),
            false => "Plan mode is over: go ahead.".to_owned(),
        };
        dialogue.remind(&text, Added::Mode, to);
    }

    /// A call that changes the mode says so in its result.
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

    /// What the model must know again when it has forgotten everything.
    pub(crate) fn still_holds(&mut self, scheduler: &Scheduler) -> Vec<String> {
        let kept = scheduler.engine().services().get::<SessionState>();
        let mut texts = kept.map(|kept| kept.told()).unwrap_or_default();
        let context = scheduler.context();
        self.knows = context.mode == PermissionMode::Plan;
        texts.extend(self.knows.then(|| planning(&context)));
        texts
    }
}

fn planning(context: &SessionContext) -> String {
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
