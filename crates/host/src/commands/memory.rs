//! `/memory`: lists the memory files.

use super::{BuiltInCommand, CommandAction, table};
use crate::SessionInput;

pub(super) static MEMORY: BuiltInCommand = BuiltInCommand {
    name: "memory",
    hint: "",
    description: "List the memory files",
    acts: CommandAction::Anytime(|input, _| Box::pin(async move { Ok(list(input)) })),
};

fn list(input: &SessionInput) -> String {
    let rows = input.memory_files().into_iter().map(|place| {
        let state = if place.exists { "" } else { "not there yet" };
        vec![
            place.scope.name().to_owned(),
            place.path.display().to_string(),
            state.to_owned(),
        ]
    });
    table(&rows.collect::<Vec<_>>())
}
