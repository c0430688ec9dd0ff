//! `/help`: what there is.

use super::{Acts, BuiltIn, CommandSource, short, table};
use crate::SessionInput;

pub(super) static HELP: BuiltIn = BuiltIn {
    name: "help",
    hint: "",
    description: "List the commands",
    acts: Acts::Anytime(|input, _| Box::pin(async move { Ok(help(input)) })),
};

fn help(input: &SessionInput) -> String {
    let commands = input.commands();
    let (ours, others): (Vec<_>, Vec<_>) = commands
        .into_iter()
        .partition(|command| command.source == CommandSource::BuiltIn);
    let rows = |list: Vec<super::CommandInfo>| -> Vec<Vec<String>> {
        let rows = list.into_iter().map(|command| {
            let called = format!("/{} {}", command.name, command.argument_hint);
            vec![
                called.trim_end().to_owned(),
                short(&command.description, 80),
            ]
        });
        rows.collect()
    };
    let mut text = format!("Commands:\n{}", table(&rows(ours)));
    if !others.is_empty() {
        text += &format!(
            "\n\nOf yours, the project and servers:\n{}",
            table(&rows(others))
        );
    }
    text
}
