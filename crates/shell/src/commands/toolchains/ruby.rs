//! gem.

use crate::{
    arg::Arg,
    commands::{
        spec::{CommandSpec, KnownCommand, OptionStyle, UnsafeOption, runs},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::CommandFinding,
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("gem", gem)];

const GEM: VerbProgram = VerbProgram {
    before: CommandSpec::prints("gem", "-vh --version --help").style(OptionStyle::Posix).strict(),
    verbs: &[
        verb(
            "list query",
            "-laide -v: --local --all --installed --details --no-details --exact --versions \
             --no-versions --prerelease --no-prerelease --name-matches= --version= --quiet --silent --help",
        )
        .refusing(REMOTE),
        verb("contents which", "-la -v: --all --version= --prefix --no-prefix --lib-only --help")
            .refusing(REMOTE),
        verb("environment env", "--help"),
        verb("help", ""),
    ],
    others: &[
        unsure("search info outdated dependency specification fetch sources", "it may query a registry")
            .contacting(),
        change("install i uninstall update cleanup push yank owner signin signout build", "it changes the installed gems"),
    ],
    unknown: "what this verb does is not known",
};

const REMOTE: &[UnsafeOption] = &[runs(
    "-rbu -s: --remote --both --update-sources --source= --http-proxy=",
    "queries a registry",
)];

fn gem(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&GEM, argv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn versions_and_inventories_are_read_only() {
        assert_read_only(&["gem list", "gem --version", "gem env", "gem which json"]);
    }

    #[test]
    fn registries_changes_and_scripts_are_not() {
        assert_not_read_only(&["gem install x", "gem list -r", "gem search x"]);
    }

    #[test]
    fn tables_are_well_formed() {
        GEM.assert_well_formed();
    }
}
