//! Subcommands that write files of the working tree that the line does not name.

use super::paths;
use crate::{arg::Arg, commands::options::ParsedArguments};

/// Subcommands that may write any file of the working tree, regardless of their arguments.
const ALWAYS: &str = "merge rebase cherry-pick revert am pull bisect sparse-checkout read-tree \
                      checkout-index";

/// Options of `git reset` that leave the files unchanged.
const MOVES_ONLY: &str = "--soft --mixed -q --quiet -N --intent-to-add -p --patch --no-refresh --";

/// Verbs of `git stash` that leave the files unchanged.
const KEPT_ASIDE: &str = "drop clear create store list show export import";

/// Returns whether the subcommand may write any file of the working tree.
pub(super) fn is_changed(name: &str, parsed: &ParsedArguments<'_>) -> bool {
    let words = parsed.argv.get(1..).unwrap_or_default();
    let all = |table: &str, words: &[Arg]| {
        let known = |word: &Arg| word.text().is_some_and(|text| listed(table, text));
        words.iter().all(known)
    };
    let dashed: Vec<Arg> = words
        .iter()
        .filter(|word| word.text().is_none_or(|text| text.starts_with('-')))
        .cloned()
        .collect();
    match name {
        "checkout" => checks_out(parsed),
        // A new branch at the same commit leaves the files unchanged.
        "switch" => {
            let creates = "-c -C --create --force-create";
            let named = words.len() - dashed.len();
            !(named <= 1 && !dashed.is_empty() && all(creates, &dashed))
        }
        "reset" => !all(MOVES_ONLY, &dashed),
        "stash" => {
            let verb = words.first().and_then(Arg::text);
            !verb.is_some_and(|verb| listed(KEPT_ASIDE, verb))
        }
        "apply" => !parsed.has("--cached"),
        "submodule" => {
            let verb = parsed.operands.first().and_then(|verb| verb.text());
            !matches!(verb, Some("init" | "sync" | "foreach"))
        }
        _ => listed(ALWAYS, name),
    }
}

/// Returns whether `git checkout x` switches branches. It does not if the operands can only be
/// paths.
fn checks_out(parsed: &ParsedArguments<'_>) -> bool {
    let operands = &parsed.operands;
    if let Some(before) = parsed.before_dashes {
        return operands.len() == before;
    }
    let creates = ["-b", "-B", "--orphan"]
        .iter()
        .any(|option| parsed.has(option));
    let forces = ["-f", "--force", "-m", "--merge"]
        .iter()
        .any(|option| parsed.has(option));
    match operands.as_slice() {
        [] => forces || !creates || parsed.has("--orphan"),
        [one] => !paths::is_path(one),
        // After a branch or path, further operands are paths.
        [_, ..] => creates || operands.iter().any(|operand| operand.text().is_none()),
    }
}

fn listed(table: &str, text: &str) -> bool {
    table.split_ascii_whitespace().any(|word| word == text)
}
