//! Editors, and programs that open a file in another program.

use super::{
    hosts,
    options::{self, ParsedArguments},
    spec::{CommandSpec, KnownCommand, OperandKind, UnsafeOption, runs},
};
use crate::effect::{CommandFinding, Effect, FileWrite, WriteKind};

pub(super) const ENTRIES: &[KnownCommand] =
    &[KnownCommand::Spec(&EDITORS), KnownCommand::Spec(&OPENERS)];

const REFUSED: &[UnsafeOption] = &[runs(
    "-c: -S: -s: -u: -w: -W: -i: -T: --cmd= --eval= --script= --load= --funcall= --rcfile=",
    "runs commands of the editor",
)];

static EDITORS: CommandSpec = CommandSpec::prints(
    "vi vim nvim view vimdiff gvim ex ed red nano pico rnano emacs emacsclient joe jed micro mcedit mg \
     helix hx kak code codium subl gedit kate mousepad xed zed",
    "",
)
.refusing(REFUSED)
.with_evaluator(edit);

fn edit(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if matches!(parsed.argv, [_, only] if only.is("--version") || only.is("--help")) {
        return CommandFinding::read_only("it only prints");
    }
    let finding = match parsed.verdict() {
        Some(refused) if refused.coverage == crate::effect::RuleCoverage::Exact => refused,
        _ => CommandFinding::unknown("it is an editor that waits for input"),
    };
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    let files = parsed.operands.iter();
    let files = files.filter(|arg| {
        arg.text()
            .is_none_or(|text| !text.starts_with('+') && text != "-")
    });
    for file in files {
        finding.effects.push(options::content(file));
        finding.effects.push(Effect::Write(FileWrite {
            path: (*file).clone(),
            kind: WriteKind::OperandWrite,
        }));
    }
    finding
}

static OPENERS: CommandSpec = CommandSpec::unsure(
    "open xdg-open gio gnome-open kde-open exo-open wslview start sensible-browser x-www-browser \
     www-browser firefox chromium chromium-browser google-chrome osascript",
    "it opens another program",
)
.with_evaluator(open);

fn open(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::unknown("it opens another program");
    for arg in parsed.operands.iter().copied() {
        let url = arg.text().is_some_and(|text| text.contains("://"));
        if url {
            finding
                .effects
                .extend(hosts::contacts(arg, hosts::url_host));
        } else {
            finding.effects.push(options::content(arg));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use crate::{commands::testing::*, effect::RuleCoverage};

    #[test]
    fn editors_are_unknown_and_their_files_are_named() {
        assert_read_only(&["vim --version", "nano --version", "emacs --version"]);
        assert_not_read_only(&[
            "vim f",
            "vi",
            "nano f",
            "emacs -nw f",
            "ed f",
            "ex -s f",
            "code .",
            "open f",
            "xdg-open https://example.com",
            "vim --version f",
        ]);
        assert_eq!(
            effects("vim +10 f"),
            [
                "read f",
                "OperandWrite f",
                "opaque it can hand a line to a shell"
            ]
        );
        assert_eq!(
            effects("xdg-open https://Example.com/x"),
            ["net example.com"]
        );
        assert_eq!(effects("open f"), ["read f"]);
        assert_eq!(find("vim -c x f").coverage, RuleCoverage::Exact);
        assert_eq!(find("emacs --eval x").coverage, RuleCoverage::Exact);
    }
}
