//! npm, and the package managers of other languages: go, gem.

use crate::{
    arg::Arg,
    commands::{
        options::Parsed,
        spec::{Entry, Operands, Refused, Spec, Style, runs, writes},
        verbs::{self, Program, change, unsure, verb},
    },
    effect::{Effect, Finding, How, Write},
};

pub(in crate::commands) const ENTRIES: &[Entry] = &[
    Entry::Own("npm", npm),
    Entry::Own("go", go),
    Entry::Spec(&GOFMT),
    Entry::Own("gem", gem),
];

/// npm takes its options anywhere.
macro_rules! everywhere {
    () => {
        " -gahlpsvdq -w: --global --all --long --json --parseable --silent --quiet --verbose --depth= \
         --omit= --include= --only= --prod --production --dev --link --package-lock-only --unicode \
         --no-unicode --workspace= --workspaces --include-workspace-root --install-links --prefix< \
         --loglevel= --color=? --no-color --no-update-notifier --offline --help --version "
    };
}

const REFUSED: &[Refused] = &[runs(
    "--script-shell= --userconfig= --globalconfig= --registry= --viewer= --browser= --editor= \
     --node-options= --git=",
    "injects configuration",
)];

const NPM: Program = Program {
    before: Spec::prints("npm", everywhere!())
        .refusing(REFUSED)
        .style(Style::Posix)
        .strict(),
    verbs: &[
        ask("ls list la ll explain why query root prefix bin fund help-search"),
        ask("config/get config/list config/ls c/get c/list c/ls get"),
        ask("pkg/get"),
        ask("version").judged(version),
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

const fn ask(names: &'static str) -> Spec {
    verb(names, everywhere!()).refusing(REFUSED)
}

fn npm(argv: &[Arg]) -> Finding {
    verbs::judge(&NPM, argv)
}

/// `npm version` shows versions, `npm version patch` makes one.
fn version(parsed: &Parsed<'_>) -> Finding {
    match parsed.operands.first() {
        Some(_) => Finding::mutating("it makes a new version"),
        None => parsed.finding(Operands::Text),
    }
}

const GO: Program = Program {
    before: Spec::prints("go", "-h --help").style(Style::Posix).strict(),
    verbs: &[
        Spec::prints("version", "-m -v -json")
            .operands(Operands::Files)
            .style(Style::Words)
            .strict(),
        Spec::prints("env", "-json -changed")
            .refusing(&[writes("-w -u", "changes the settings of go")])
            .style(Style::Words)
            .strict(),
        Spec::prints("help", "").strict(),
    ],
    others: &[
        unsure(
            "list doc mod/graph mod/why mod/verify",
            "it may fetch modules or another toolchain",
        ),
        unsure(
            "build test run vet generate tool bug fix",
            "it runs or builds what the workspace says",
        ),
        change("fmt", "it changes files"),
        change("get install mod work", "it changes modules").contacting(),
        change("clean", "it deletes what was built"),
        change("telemetry", "it changes a setting"),
    ],
    unknown: "what this verb does is not known",
};

fn go(argv: &[Arg]) -> Finding {
    verbs::judge(&GO, argv)
}

static GOFMT: Spec = Spec::reads("gofmt", "-d -e -l -s -r:")
    .refusing(&[
        writes("-w", "changes the files in place"),
        writes("-cpuprofile>", "writes a profile"),
    ])
    .style(Style::Words)
    .strict()
    .judged(gofmt);

/// It formats by no configuration, and prints unless it is told to write.
fn gofmt(parsed: &Parsed<'_>) -> Finding {
    let mut finding = parsed.finding(Operands::Files);
    if parsed.has("-w") {
        let writes = parsed.operands.iter().map(|arg| {
            Effect::Write(Write {
                path: (*arg).clone(),
                how: How::Twist,
            })
        });
        finding.effects.extend(writes);
    }
    finding
}

const GEM: Program = Program {
    before: Spec::prints("gem", "-vh --version --help").style(Style::Posix).strict(),
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

const REMOTE: &[Refused] = &[runs(
    "-rbu -s: --remote --both --update-sources --source= --http-proxy=",
    "queries a registry",
)];

fn gem(argv: &[Arg]) -> Finding {
    verbs::judge(&GEM, argv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::Verdict};

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
            "go version",
            "go env GOPATH",
            "go env",
            "go env -json GOOS GOARCH",
            "go version -m ./x",
            "go help build",
            "gofmt -l .",
            "gofmt -d x.go",
            "gem list",
            "gem --version",
            "gem env",
            "gem which json",
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
            "go env -w A=b",
            "go env -u A",
            "go list ./...",
            "go build ./...",
            "go vet",
            "go doc fmt",
            "go mod tidy",
            "go run x.go",
            "go version $x",
            "gofmt -w x.go",
            "gofmt -cpuprofile f x.go",
            "gem install x",
            "gem list -r",
            "gem search x",
        ]);
        assert_eq!(effects("gofmt -w x.go"), ["read x.go", "Twist x.go"]);
    }

    #[test]
    fn tables_are_well_formed() {
        for program in [&NPM, &GO, &GEM] {
            program.assert_well_formed();
        }
        assert_well_formed(&[GOFMT]);
        assert_eq!(find("npm ci").verdict, Verdict::Mutating);
    }
}
