//! `/diff`: the changes since a message.

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking};
use crate::{SessionInput, UndoWhich};

pub(super) static DIFF: BuiltInCommand = BuiltInCommand {
    name: "diff",
    hint: "[number of messages back | message id]",
    description: "Show what changed since a message; without one, in the whole session",
    acts: CommandAction::Anytime(|input, arguments| {
        let (input, arguments) = (input.clone(), arguments.trim().to_owned());
        Box::pin(blocking(move || diff(&input, &arguments)))
    }),
};

fn diff(input: &SessionInput, arguments: &str) -> CommandAnswer {
    let said = input.user_prompts();
    let since = match arguments {
        "" => said.first().map(|one| one.uuid),
        text => match (text.parse::<usize>(), text.parse()) {
            (Ok(back), _) => said
                .iter()
                .rev()
                .nth(back.saturating_sub(1))
                .map(|one| one.uuid),
            (_, Ok(uuid)) => Some(uuid),
            _ => {
                return Err(format!(
                    "{text:?} is not a message: give the number of messages back, or an id"
                ));
            }
        },
    };
    let Some(since) = since else {
        return Ok("No message was sent yet, and nothing changed.".to_owned());
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
            let haft_contract::CardSection::Diff(hunks) = piece else {
                continue;
            };
            for hunk in hunks {
                // The cards show the undo, which is the inverse of the changes.
                text += &format!(
                    "@@ -{},{} +{},{} @@\n",
                    hunk.new_start, hunk.new_lines, hunk.old_start, hunk.old_lines
                );
                text += &turned(&hunk.lines);
            }
        }
    }
    for (path, why) in &report.left {
        text += &format!("{}: {why}\n", path.display());
    }
    Ok(text.trim_end().to_owned())
}

/// Inverts the lines of a diff; of changed lines, the old ones come first.
fn turned(lines: &[String]) -> String {
    let (mut text, mut new) = (String::new(), String::new());
    for line in lines {
        match line.split_at_checked(1) {
            Some(("-", rest)) => new += &format!("+{rest}\n"),
            Some(("+", rest)) => text += &format!("-{rest}\n"),
            _ => {
                text += &std::mem::take(&mut new);
                text += &format!("{line}\n");
            }
        }
    }
    text + &new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_undo_would_do_is_what_was_done_the_other_way_round() {
        let undo = [" a", "-new 1", "-new 2", "+old", " b", "-more"].map(str::to_owned);
        assert_eq!(turned(&undo), " a\n-old\n+new 1\n+new 2\n b\n+more\n");
    }
}
