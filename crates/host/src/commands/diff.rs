//! `/diff`: what changed since a message.

use super::{Acts, BuiltIn, CommandAnswer, blocking};
use crate::{SessionInput, UndoWhich};

pub(super) static DIFF: BuiltIn = BuiltIn {
    name: "diff",
    hint: "[number of messages back | message id]",
    description: "Show what changed since a message; without one, in the whole session",
    acts: Acts::Anytime(|input, arguments| {
        let (input, arguments) = (input.clone(), arguments.trim().to_owned());
        Box::pin(blocking(move || diff(&input, &arguments)))
    }),
};

fn diff(input: &SessionInput, arguments: &str) -> CommandAnswer {
    let said = input.said();
    let since = match arguments {
        "" => said.first().map(|one| one.uuid),
        text => match (text.parse::<usize>(), text.parse()) {
            (Ok(back), _) => said
                .iter()
                .rev()
                .nth(back.saturating_sub(1))
                .map(|one| one.uuid),
            (_, Ok(uuid)) => Some(uuid),
            _ => return Err(format!("{text:?} is no message: give its number or its id")),
        },
    };
    let Some(since) = since else {
        return Ok("Nothing was said, and nothing changed.".to_owned());
    };
    let report = match input.undo(&UndoWhich::Since(since), true) {
        Ok(report) => report,
        Err(why) if why.contains("othing") => return Ok("Nothing changed since.".to_owned()),
        Err(why) => return Err(why),
    };
    let mut text = String::new();
    for card in &report.cards {
        text += &format!("{}\n", card.subject);
        for piece in &card.body {
            let haft_contract::CardPiece::Diff(hunks) = piece else {
                continue;
            };
            for hunk in hunks {
                // The undo goes the other way.
                text += &format!(
                    "@@ -{},{} +{},{} @@\n",
                    hunk.new_start, hunk.new_lines, hunk.old_start, hunk.old_lines
                );
                for line in &hunk.lines {
                    let turned = match line.split_at_checked(1) {
                        Some(("-", rest)) => format!("+{rest}"),
                        Some(("+", rest)) => format!("-{rest}"),
                        _ => line.clone(),
                    };
                    text += &format!("{turned}\n");
                }
            }
        }
    }
    for (path, why) in &report.left {
        text += &format!("{}: {why}\n", path.display());
    }
    Ok(text.trim_end().to_owned())
}
