//! A deterministic order of tools, so that the same session always sends the same bytes.

use std::{collections::HashSet, sync::Arc};

use haft_contract::DynTool;

use super::registry::own_names;

/// Merges the built-in tools, sorted by name, and the others, sorted by name. If names or aliases
/// clash, the built-in tool wins, so that an external tool cannot replace `Read`.
pub(super) fn merge(
    mut built_in: Vec<Arc<dyn DynTool>>,
    mut external: Vec<Arc<dyn DynTool>>,
) -> Vec<Arc<dyn DynTool>> {
    {
        let taken: HashSet<&str> = built_in
            .iter()
            .flat_map(|tool| own_names(tool.spec()))
            .collect();
        external.retain(|tool| !taken.contains(tool.spec().name.as_str()));
    }
    let by_name = |a: &Arc<dyn DynTool>, b: &Arc<dyn DynTool>| a.spec().name.cmp(&b.spec().name);
    built_in.sort_by(by_name);
    external.sort_by(by_name);
    built_in.append(&mut external);
    built_in
}
