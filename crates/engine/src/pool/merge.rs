//! The last layer: one order, the same bytes for the same session.

use std::{collections::HashSet, sync::Arc};

use haft_contract::DynTool;

use super::registry::own_names;

/// Built-ins sorted by name as one block, then the others sorted by name. A built-in wins a clash,
/// whether by name or by alias, so that nothing from outside can take the place of `Read`.
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
