//! The requests of one agent to its model: settings, tools and usage.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_engine::{Scheduler, pool::ToolOffer};
use haft_models::{
    Conversation, Model, ModelRequest, Prices, RequestPrefix, SystemBlock, ToolDefinition, Usage,
};

use crate::{
    ModelSettings, UsageLedger, agent_handle::PendingChanges, compaction::text_tokens,
    cost::SharedUsage, prompt::SystemPrompt, subagents::MainAgentModel,
};

/// A model with its settings, its prices and the prefix of every request.
pub(crate) struct ModelClient {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: ModelSettings,
    prices: Prices,
    usage: SharedUsage,
    /// The agent's name in the usage ledger.
    agent: String,
    system: Vec<SystemBlock>,
    tools: ToolOffer,
    prefix: Arc<RequestPrefix>,
}

impl ModelClient {
    /// Creates a client that offers the tools of this scheduler.
    pub(crate) fn new(
        model: Arc<dyn Model>,
        settings: ModelSettings,
        (prices, usage): (Prices, SharedUsage),
        system: Vec<SystemBlock>,
        scheduler: &Scheduler,
    ) -> Self {
        let tools = scheduler.offer();
        Self {
            model,
            settings,
            prices,
            usage,
            agent: name_of(scheduler),
            prefix: prefix(&system, &tools),
            system,
            tools,
        }
    }

    /// Changes the system prompt, and offers the tools that the scheduler has now.
    pub(crate) fn set_main_agent(&mut self, system: &SystemPrompt, scheduler: &Scheduler) {
        self.agent = name_of(scheduler);
        self.system = system.blocks();
        self.tools = scheduler.offer();
        self.prefix = prefix(&self.system, &self.tools);
    }

    /// Changes the model.
    pub(crate) fn set_model(&mut self, model: &MainAgentModel) {
        let settings = &mut self.settings;
        settings.name.clone_from(&model.name);
        settings.plan_name.clone_from(&model.plan_name);
        settings.window = model.window;
        settings.effort.clone_from(&model.effort);
    }

    /// Returns the next request.
    pub(crate) fn request(
        &mut self,
        conversation: &Conversation,
        scheduler: &Scheduler,
    ) -> ModelRequest {
        self.offer_tools(scheduler);
        let plan_model = self.settings.plan_name.as_ref();
        let context = scheduler.context();
        let plan_model = plan_model.filter(|_| context.mode == PermissionMode::Plan);
        let turn_model = context.turn_model.as_ref();
        let name = turn_model
            .or(plan_model)
            .unwrap_or(&self.settings.name)
            .clone();
        let prefix = Arc::clone(&self.prefix);
        let mut request = ModelRequest::new(name, prefix, conversation.history());
        request.max_tokens = self.settings.max_tokens;
        request.thinking = self.settings.thinking;
        let effort = context.turn_effort.as_ref();
        request.effort = effort.or(self.settings.effort.as_ref()).cloned();
        request
    }

    /// Offers tools that were added or activated. They are appended, so that the provider's cache
    /// stays valid.
    fn offer_tools(&mut self, scheduler: &Scheduler) {
        let tools = scheduler.offer();
        if tools != self.tools {
            self.prefix = prefix(&self.system, &tools);
            self.tools = tools;
        }
    }

    /// Applies the changes that were requested through the handle.
    pub(crate) fn apply_changes(&mut self, changes: &PendingChanges) {
        for (model, usage) in &changes.spent {
            self.record_usage(model, usage);
        }
        if let Some(model) = &changes.model {
            self.settings.name.clone_from(model);
            self.settings.plan_name = None;
        }
        if let Some(window) = changes.window {
            self.settings.window = window;
        }
        if let Some(thinking) = changes.thinking {
            self.settings.thinking = thinking;
        }
        if let Some(effort) = &changes.effort {
            self.settings.effort.clone_from(effort);
        }
    }

    /// Adds the usage of a request.
    pub(crate) fn record_usage(&self, model: &str, usage: &Usage) {
        self.usage.add(model, &self.agent, usage, &self.prices);
    }

    pub(crate) fn total_cost(&self) -> f64 {
        self.usage.total_cost()
    }

    pub(crate) fn usage(&self) -> SharedUsage {
        self.usage.clone()
    }

    pub(crate) fn ledger(&self) -> UsageLedger {
        self.usage.ledger()
    }

    /// Returns the approximate number of tokens in the system prompt and in each tool definition.
    pub(crate) fn prefix_sizes(&self) -> (u64, Vec<(String, u64)>) {
        let system = self.system.iter();
        let system = system.map(|block| text_tokens(block.text.len())).sum();
        let tools = self.tools.iter().map(|tool| {
            let tool = tool.spec();
            let bytes = tool.name.len() + tool.description.len();
            let schema = tool.input_schema.to_string().len();
            (tool.name.clone(), text_tokens(bytes + schema))
        });
        (system, tools.collect())
    }
}

/// Returns the agent's name in the usage ledger.
fn name_of(scheduler: &Scheduler) -> String {
    let kind = scheduler.engine().agent().kind;
    kind.unwrap_or_else(|| "main".to_owned())
}

fn prefix(system: &[SystemBlock], tools: &ToolOffer) -> Arc<RequestPrefix> {
    let tools = tools.iter().map(|tool| ToolDefinition::from(tool.spec()));
    Arc::new(RequestPrefix::new(system.to_vec(), tools.collect()))
}
