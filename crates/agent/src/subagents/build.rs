//! Creates subagents: each has a part of its parent's engine and its own system prompt.

use std::sync::Arc;

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BackgroundTasks, BoxFuture, Subagents, ToolError,
    ToolRole, Worktrees, approval::NoApprover,
};
use haft_engine::{
    SessionContext, SubagentEngineParts,
    hooks::{AgentIdentity, HookEventKind, HookHandler},
};
use haft_extensions::{AgentDefinition, ExtensionOrigin};

use super::{
    handle::SubagentHandle,
    mode,
    server_tools::PendingServerTools,
    spawner::{LaunchPlan, SubagentLauncher},
};
use crate::{
    Agent, OpenTranscript, RunLimits,
    prompt::{PromptEnvironment, SystemPrompt},
};

/// The part of the system prompt that all subagents share.
const NOTE: &str = "You work for another agent, which handed you one task. It sees nothing of your work but \
your last message: put all that it needs into it, with full paths where files are meant.";

impl SubagentLauncher {
    /// Creates the agent. Also returns the tools of its MCP servers, which are still
    /// connecting.
    pub(super) fn build_subagent(
        &self,
        plan: LaunchPlan,
        member: &SubagentHandle,
        session: OpenTranscript,
    ) -> Result<(Agent, Option<PendingServerTools>), ToolError> {
        let host = self.host()?;
        let gone = || ToolError::Failed("the session has ended".to_owned());
        let context = host.context.get().ok_or_else(gone)?;
        let kind = &member.kind;
        let mode = mode::stricter_mode(context.mode, kind.permission_mode.as_deref());
        let own = (self.shared.own)(kind);
        let level = Arc::new(self.child_level());
        let parents = plan.engine.services();
        let approver: Arc<dyn Approver> = match mode.asks {
            true => Arc::new(SubagentApprover {
                agent: member.tag.id.clone(),
                approver: Arc::clone(parents.approver()),
            }),
            false => Arc::new(NoApprover),
        };
        let services = (self.shared.fork)(parents)
            // Ended background tasks are reported to the main agent, so the subagent gets its own
            // empty service.
            .with(Arc::new(BackgroundTasks::default()))
            .with(Arc::new(Subagents(Arc::clone(&level) as _)))
            .with_approver(approver);
        if let (Some(worktree), Ok(maker)) = (&member.worktree, services.get::<Worktrees>()) {
            maker.0.confine(worktree.path());
        }
        let calls_skills = plan.pool.with_role(ToolRole::LoadsSkills).is_some();
        let known = host
            .instruction_sources
            .preloaded(&kind.skills, plan.engine.session());
        let engine = plan.engine.for_subagent(SubagentEngineParts {
            pool: plan.pool,
            services,
            model: plan.settings.name.as_str().into(),
            agent: AgentIdentity {
                id: Some(member.tag.id.clone()),
                kind: Some(member.tag.kind.clone()),
            },
            handlers: own.handlers.into_iter().map(to_subagent_hook).collect(),
        });
        let tools = (self.shared.own_tools)(kind).map(|tools| PendingServerTools {
            engine: Arc::clone(&engine),
            tools,
        });
        let context = SessionContext {
            mode: mode.mode,
            activated: Vec::new(),
            // Overrides of the model for one turn apply only to the parent.
            turn_model: None,
            turn_effort: None,
            ..context
        };
        let context = match &member.worktree {
            Some(worktree) => context.for_worktree_agent(worktree.main_checkout(), worktree.path()),
            None => context,
        };
        let system = SystemPrompt {
            base: Some(kind.prompt.clone()),
            append: Some(
                [
                    Some(NOTE),
                    own.prompt.as_deref(),
                    self.shared.append.as_deref(),
                ]
                .into_iter()
                .flatten()
                .chain(known.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("\n\n"),
            ),
            environment: Some(PromptEnvironment::detect(&context)),
        };
        let limits = RunLimits {
            max_turns: kind.max_turns,
            ..host.limits.clone()
        };
        let model = self.shared.model.as_ref().unwrap_or(&host.model);
        let mut builder =
            Agent::builder(engine.scheduler(context), Arc::clone(model), plan.settings)
                .limits(limits)
                .prices(host.prices.clone())
                .session(session)
                .system_prompt(system)
                .control(member.control.clone())
                .version(host.version.as_str())
                .shared_usage(host.usage.clone())
                .spawner(level);
        builder = builder.instruction_sources(host.instruction_sources.for_subagent(calls_skills));
        if !host.memory || is_brief(kind) {
            builder = builder.without_memory();
        }
        Ok((builder.build(), tools))
    }
}

/// Converts the Stop hooks of an agent kind to SubagentStop hooks.
fn to_subagent_hook(handler: HookHandler) -> HookHandler {
    match handler.event {
        HookEventKind::STOP => HookHandler {
            event: HookEventKind::SUBAGENT_STOP,
            ..handler
        },
        _ => handler,
    }
}

/// Returns whether a kind is one of our read-only ones, which do not need the project's
/// instructions.
fn is_brief(kind: &AgentDefinition) -> bool {
    kind.origin == ExtensionOrigin::BuiltIn && !kind.disallowed_tools.is_empty()
}

/// Asks the parent's approver and adds the id of the subagent.
struct SubagentApprover {
    agent: String,
    approver: Arc<dyn Approver>,
}

impl Approver for SubagentApprover {
    fn is_available(&self) -> bool {
        self.approver.is_available()
    }

    fn ask(&self, mut question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        // A nested subagent asks through both approvers: the innermost one is named.
        question.agent.get_or_insert_with(|| self.agent.clone());
        self.approver.ask(question)
    }
}
