//! Lists the deferred tools of MCP servers for the model, each name once.
//!
//! The names are sent in messages instead of tool definitions, because servers come and go while
//! the cached prefix must not change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use haft_contract::ToolRole;
use haft_engine::{Pool, Scheduler};

/// The maximum number of characters of names in a listing. Tools beyond it can be found by
/// searching.
const MAX_LENGTH: usize = 8_000;

/// The names that the model has already received.
#[derive(Debug, Default)]
pub(crate) struct DeferredListing {
    listed: BTreeSet<String>,
    /// The most recently listed pool.
    seen: Option<Arc<Pool>>,
}

impl DeferredListing {
    /// Returns a listing of new tools for the model, if any.
    pub(crate) fn take_new_listing(&mut self, scheduler: &Scheduler) -> Option<String> {
        let pool = scheduler.engine().pool();
        if self
            .seen
            .as_ref()
            .is_some_and(|seen| Arc::ptr_eq(seen, &pool))
        {
            return None;
        }
        self.seen = Some(Arc::clone(&pool));
        let finder = pool.with_role(ToolRole::FindsTools)?;
        let activated = scheduler.context().activated;
        let mut new: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for tool in pool.deferred() {
            let spec = tool.spec();
            if let Some(server) = spec.profile.origin.server()
                && !activated.contains(&spec.name)
                && self.listed.insert(spec.name.clone())
            {
                let names = new.entry(server.to_owned()).or_default();
                names.push(spec.name.clone());
            }
        }
        (!new.is_empty()).then(|| listing(&finder.spec().name, &new))
    }
}

fn listing(finder: &str, servers: &BTreeMap<String, Vec<String>>) -> String {
    let mut text = format!(
        "These tools of MCP servers can be loaded. Call {finder} with `select:NAME` or with words before you \
         call one of them:\n"
    );
    let mut room = MAX_LENGTH;
    for (server, names) in servers {
        let fitting = names.iter().take_while(|name| {
            let fits = name.len() + 2 <= room;
            room = if fits { room - name.len() - 2 } else { 0 };
            fits
        });
        let fitting: Vec<&str> = fitting.map(String::as_str).collect();
        let rest = names.len() - fitting.len();
        let shown = fitting.join(", ");
        text += &match (fitting.is_empty(), rest) {
            (false, 0) => format!("\n- {server}: {shown}"),
            (false, rest) => format!("\n- {server}: {shown}, and {rest} more"),
            (true, rest) => format!("\n- {server}: {rest} tools"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_reads() {
        let names = |server: &str, count: usize| -> Vec<String> {
            let number = 0..count;
            number
                .map(|number| format!("mcp__{server}__tool_{number}"))
                .collect()
        };
        let few = BTreeMap::from([
            ("git".to_owned(), names("git", 2)),
            ("web".to_owned(), names("web", 1)),
        ]);
        insta::assert_snapshot!(listing("ToolSearch", &few), @r"
        These tools of MCP servers can be loaded. Call ToolSearch with `select:NAME` or with words before you call one of them:

        - git: mcp__git__tool_0, mcp__git__tool_1
        - web: mcp__web__tool_0
        ");
        let many = BTreeMap::from([
            ("git".to_owned(), names("git", 9_999)),
            ("web".to_owned(), names("web", 3)),
        ]);
        let text = listing("ToolSearch", &many);
        assert!(text.len() < MAX_LENGTH + 500, "{}", text.len());
        assert!(text.contains(" more\n- web: 3 tools"), "{text}");
    }
}
