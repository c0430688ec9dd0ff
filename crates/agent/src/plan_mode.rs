//! Plan mode, as the model is told of it, and what else it must know again after a summary. What the
//! mode forbids is the engine's business.

use haft_contract::{Content, ContextPatch, PermissionMode, SessionState};
use haft_engine::SessionContext;

use crate::{Added, Agent, hooks::RunContext, prompt::reminder, transcript::Kind};

impl Agent {
    /// Tells the model that plan mode has begun or ended by another hand than its own.
    pub(crate) fn tell_plan(&mut self, to: RunContext<'_>) {
        let context = self.scheduler.context();
        let is_on = context.mode == PermissionMode::Plan;
        if std::mem::replace(&mut self.knows_plan, is_on) == is_on {
            return;
        }
        let text = match is_on {
            true => planning(&context),
            false => "Plan mode is over: go ahead.".to_owned(),
        };
        let content = vec![Content::text(reminder(&text))];
        self.add_told(content, Kind::Meta, Added::Mode, to);
    }

    /// A call that changes the mode says so in its result.
    pub(crate) fn heard_of_plan(&mut self, patches: &[ContextPatch]) {
        let is_told = |patch: &ContextPatch| {
            matches!(
                patch,
                ContextPatch::SetMode { .. } | ContextPatch::LeavePlan
            )
        };
        if patches.iter().any(is_told) {
            self.knows_plan = self.scheduler.context().mode == PermissionMode::Plan;
        }
    }

    /// What the model must know again when it has forgotten everything.
    pub(crate) fn still_holds(&mut self) -> Vec<String> {
        let engine = self.scheduler.engine();
        let kept = engine.services().get::<SessionState>();
        let mut texts = kept.map(|kept| kept.told()).unwrap_or_default();
        let context = self.scheduler.context();
        self.knows_plan = context.mode == PermissionMode::Plan;
        texts.extend(self.knows_plan.then(|| planning(&context)));
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
