//! npm.

use crate::{
    arg::Arg,
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::CommandFinding,
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("npm", npm)];

/// The options that npm accepts anywhere.
macro_rules! everywhere {
    () => {
        " -gahlpsvdq -w: --global --all --long --json --parseable --silent --quiet --verbose --depth= \
         --omit= --include= --only= --prod --production --dev --link --package-lock-only --unicode \
         --no-unicode --workspace= --workspaces --include-workspace-root --install-links --prefix< \
         --loglevel= --color=? --no-color --no-update-notifier --offline --help --version "
    };
}

const REFUSED: &[UnsafeOption] = &[runs(
    "--script-shell= --userconfig= --globalconfig= --registry= --viewer= --browser= --editor= \
     --node-options= --git=",
    "injects configuration",
)];

const NPM: VerbProgram = VerbProgram {
    before: CommandSpec::prints("npm", everywhere!())
        .refusing(REFUSED)
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[
        ask("ls list la ll explain why query root prefix bin fund help-search"),
        ask("config/get config/list config/ls c/get c/list c/ls get"),
        ask("pkg/get"),
        ask("version").with_evaluator(version),
        ask("completion"),
    ],
    others: &[
        unsure(
            "view v info show outdated search s find audit ping whoami doctor org team access owner \
             profile star stars dist-tag/ls sbom",
            "it queries a registry",
        )
        .contacting(),
        unsure("token", "it prints tokens"),
        unsure("help docs home bugs repo", "it opens a viewer"),
        unsure(
            "run run-script rum urn test t tst start stop restart exec x explore",
            "it runs what the workspace says",
        ),
        change(
            "install i in ins inst add ci clean-install install-ci-test cit install-test it uninstall un \
             unlink remove rm r update up upgrade udpate dedupe ddp prune link ln rebuild rb shrinkwrap",
            "it changes the installed packages",
        )
        .contacting(),
        change("publish unpublish deprecate dist-tag login logout adduser", "it changes the registry")
            .contacting(),
        change("init create innit pkg set config c edit cache pack", "it changes the project or the settings"),
    ],
    unknown: "what this verb does is not known",
};

const fn ask(names: &'static str) -> CommandSpec {
    verb(names, everywhere!()).refusing(REFUSED)
}

fn npm(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&NPM, argv)
}

/// `npm version` shows versions, `npm version patch` creates one.
fn version(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match parsed.operands.first() {
        Some(_) => CommandFinding::mutating("it makes a new version"),
        None => parsed.finding(OperandKind::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn versions_and_inventories_are_read_only() {
        assert_read_only(&[
            "npm --version",
            "npm -v",
            "npm ls",
            "npm ls --depth=0",
            "npm ls -g --depth 0 --json",
            "npm list react",
            "npm -g ls",
            "npm root -g",
            "npm prefix",
            "npm bin",
            "npm config get registry",
            "npm config list",
            "npm explain react",
            "npm why react",
            "npm pkg get version",
            "npm version",
            "npm install --help",
        ]);
    }

    #[test]
    fn registries_changes_and_scripts_are_not() {
        assert_not_read_only(&[
            "npm view react",
            "npm outdated",
            "npm audit",
            "npm search x",
            "npm whoami",
            "npm install",
            "npm i -D x",
            "npm ci",
            "npm run build",
            "npm run",
            "npm test",
            "npm exec x",
            "npm publish --dry-run",
            "npm version patch",
            "npm config set a b",
            "npm token list",
            "npm help ls",
            "npm pkg set a=b",
            "npm ls --script-shell=x",
            "npm ls $x",
            "npm made-up",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        NPM.assert_well_formed();
    }
}
