//! go and gofmt.

use crate::{
    arg::Arg,
    commands::{
        options::{ParsedArguments, written},
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, writes},
        verbs::{self, VerbProgram, change, unsure},
    },
    effect::{CommandFinding, WriteKind},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("go", evaluate_go),
    KnownCommand::Spec(&GOFMT),
];

const GO: VerbProgram = VerbProgram {
    before: CommandSpec::prints("go", "-h --help")
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[
        CommandSpec::prints("version", "-m -v -json")
            .operands(OperandKind::Files)
            .style(OptionStyle::Words)
            .strict(),
        CommandSpec::prints("env", "-json -changed")
            .refusing(&[writes("-w -u", "changes the settings of go")])
            .style(OptionStyle::Words)
            .strict(),
        CommandSpec::prints("help", "").strict(),
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

fn evaluate_go(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&GO, argv)
}

static GOFMT: CommandSpec = CommandSpec::reads("gofmt", "-d -e -l -s -r:")
    .refusing(&[
        writes("-w", "changes the files in place"),
        writes("-cpuprofile>", "writes a profile"),
    ])
    .style(OptionStyle::Words)
    .strict()
    .with_evaluator(gofmt);

/// Analyzes `gofmt`, which has no configuration and prints unless an option makes it write.
fn gofmt(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = parsed.finding(OperandKind::Files);
    if parsed.has("-w") {
        // For a directory, gofmt writes every Go file below it.
        let writes = parsed.operands.iter().flat_map(|arg| {
            [WriteKind::OperandWrite, WriteKind::Tree].map(|how| written(arg, how))
        });
        finding.effects.extend(writes);
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn versions_and_inventories_are_read_only() {
        assert_read_only(&[
            "go version",
            "go env GOPATH",
            "go env",
            "go env -json GOOS GOARCH",
            "go version -m ./x",
            "go help build",
            "gofmt -l .",
            "gofmt -d x.go",
        ]);
    }

    #[test]
    fn registries_changes_and_scripts_are_not() {
        assert_not_read_only(&[
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
        ]);
        assert_eq!(
            effects("gofmt -w x.go"),
            ["read x.go", "OperandWrite x.go", "Tree x.go"]
        );
    }

    #[test]
    fn tables_are_well_formed() {
        GO.assert_well_formed();
        assert_well_formed(&[GOFMT]);
    }
}
