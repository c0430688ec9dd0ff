//! `/help`: lists the commands.

use super::{BuiltInCommand, CommandAction, CommandInfo, CommandSource, short};
use crate::SessionInput;

/// The usual width of a name with its arguments.
const NAMES: usize = 24;

pub(super) static HELP: BuiltInCommand = BuiltInCommand {
    name: "help",
    hint: "",
    description: "List the commands",
    acts: CommandAction::Anytime(|input, _| Box::pin(async move { Ok(help(input)) })),
};

fn help(input: &SessionInput) -> String {
    let commands = input.commands();
    let (ours, others): (Vec<_>, Vec<_>) = commands
        .into_iter()
        .partition(|command| command.source == CommandSource::BuiltIn);
    let rows = |list: Vec<CommandInfo>| -> String {
        let rows = list.into_iter().map(|command| {
            let called = format!("/{} {}", command.name, command.argument_hint);
            let description = short(&command.description, 80);
            // A long name does not move the column of the others.
            format!("{:NAMES$}  {description}", called.trim_end())
        });
        rows.collect::<Vec<_>>().join("\n")
    };
    let mut text = format!("Commands:\n{}", rows(ours));
    if !others.is_empty() {
        text += &format!("\n\nOf yours, the project and servers:\n{}", rows(others));
    }
    text
}
