//! cargo, rustc and rustup.

use crate::{
    arg::Arg,
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::{CommandFinding, Effect, RuleCoverage, StartedProgram},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("cargo", cargo),
    KnownCommand::Spec(&RUSTC),
    KnownCommand::Own("rustup", rustup),
];

const BUILDS: &str = "it runs build scripts, macros or tests of the workspace";

/// Options that every verb of cargo accepts.
macro_rules! everywhere {
    () => {
        " -vqh --verbose --quiet --color= --offline --locked --frozen --help --manifest-path< \
         --lockfile-path< "
    };
}

/// Options that select features and packages.
macro_rules! selection {
    () => {
        " -F: -p: --features= --all-features --no-default-features --package= --workspace --all \
         --exclude= "
    };
}

const REFUSED: &[UnsafeOption] = &[
    runs("--config=", "injects configuration"),
    runs("-Z: -C:", "changes what cargo does"),
];

const CARGO: VerbProgram = VerbProgram {
    before: CommandSpec::prints(
        "cargo",
        "-vqVh --verbose --quiet --version --list --help --offline --locked --frozen --color= \
         --explain=",
    )
    .refusing(REFUSED)
    .style(OptionStyle::Posix)
    .strict(),
    verbs: &[
        ask("version help", everywhere!()),
        ask(
            "metadata",
            concat!(
                everywhere!(),
                selection!(),
                " --no-deps --format-version= --filter-platform= "
            ),
        ),
        // The values of -i, -p and --target are optional: an argument after them is an
        // operand here.
        ask(
            "tree",
            concat!(
                " -id -p? -e: -f: --package=? --invert=? --edges= --prune= --depth= --prefix= \
                 --no-dedupe --duplicates --charset= --format= --target=? ",
                everywhere!(),
                selection!()
            ),
        ),
        ask("install", concat!(everywhere!(), " --list --root< ")).with_evaluator(install),
        ask(
            "locate-project pkgid read-manifest verify-project",
            concat!(everywhere!(), selection!(), " --message-format= "),
        ),
    ],
    others: &[
        unsure(
            "build b check c test t run r bench doc d clippy rustc rustdoc miri nextest",
            BUILDS,
        ),
        unsure("fmt", "it formats as the workspace says"),
        unsure("search info owner", "it queries a registry").contacting(),
        change("uninstall", "it changes the installed programs"),
        change(
            "add remove rm update fix vendor generate-lockfile",
            "it changes the project",
        ),
        change("new init", "it makes a project"),
        change("clean", "it deletes what was built"),
        change(
            "publish yank login logout package",
            "it talks to a registry",
        )
        .contacting(),
        change("fetch", "it downloads dependencies").contacting(),
    ],
    unknown: "what this verb does is not known, or it is an alias or another program",
};

const fn ask(names: &'static str, options: &'static str) -> CommandSpec {
    verb(names, options).refusing(REFUSED)
}

/// Analyzes `cargo install`, where `--list` shows what is installed.
fn install(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let asks = parsed.has("--help") || parsed.has("-h");
    match parsed.verdict() {
        None if asks || parsed.has("--list") && parsed.operands.is_empty() => {
            parsed.finding(OperandKind::Text)
        }
        Some(finding) if finding.coverage == RuleCoverage::Exact => finding,
        _ => CommandFinding::mutating("it changes the installed programs").with(Effect::Net(None)),
    }
}

fn cargo(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&CARGO, argv)
}

static RUSTC: CommandSpec = CommandSpec::prints(
    "rustc",
    "-Vvh --version --verbose --help --print= --explain= --target= --edition=",
)
.strict()
.with_evaluator(rustc);

fn rustc(parsed: &ParsedArguments<'_>) -> CommandFinding {
    // `--print=sysroot` prints, `--print=KIND=FILE` writes.
    let prints = ["-V", "--version", "-h", "--help", "--print", "--explain"];
    let writes = parsed.options.iter().any(|given| {
        let text = given.value.as_ref().and_then(Arg::text);
        given.name == "--print" && text.is_none_or(|text| text.contains('='))
    });
    let only = prints.iter().any(|name| parsed.has(name)) && parsed.operands.is_empty() && !writes;
    match parsed.verdict() {
        None if !only => CommandFinding::unknown("it compiles"),
        _ => parsed.finding(OperandKind::Text),
    }
}

const RUSTUP: VerbProgram = VerbProgram {
    before: CommandSpec::prints("rustup", "-vqVh --verbose --quiet --version --help")
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[
        verb(
            "show show/active-toolchain show/home show/profile toolchain/list override/list which help \
             completions",
            "-vh --verbose --help --toolchain= --quiet",
        ),
        verb(
            "target/list component/list",
            "-qh --installed --quiet --toolchain= --help",
        ),
        verb("default", "--help").with_evaluator(default),
        verb("run", "--install")
            .style(OptionStyle::Posix)
            .with_evaluator(run),
    ],
    others: &[
        unsure("check", "it queries a registry").contacting(),
        unsure("doc man", "it opens a viewer"),
        change(
            "install uninstall toolchain update target component override self set",
            "it changes the installed toolchains",
        )
        .contacting(),
    ],
    unknown: "what this verb does is not known",
};

fn rustup(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&RUSTUP, argv)
}

fn default(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match parsed.operands.first() {
        Some(_) => CommandFinding::mutating("it changes the default toolchain"),
        None => parsed.finding(OperandKind::Text),
    }
}

/// Analyzes `rustup run TOOLCHAIN COMMAND…`.
fn run(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = CommandFinding::unknown("it runs a command with another toolchain");
    let argv: Vec<Arg> = parsed
        .operands
        .iter()
        .skip(1)
        .map(|arg| (*arg).clone())
        .collect();
    if argv.is_empty() {
        return finding;
    }
    finding.starting(StartedProgram::Command { argv, more: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::EffectVerdict};

    #[test]
    fn questions_are_read_only() {
        assert_read_only(&[
            "cargo --version",
            "cargo -V",
            "cargo --list",
            "cargo metadata --no-deps --format-version 1",
            "cargo --offline metadata",
            "cargo tree",
            "cargo tree -i serde",
            "cargo tree -d --depth 1",
            "cargo tree -p haft -e features --offline",
            "cargo locate-project",
            "cargo pkgid",
            "cargo install --list",
            "cargo build --help",
            "cargo help",
            "rustc --version",
            "rustc -vV",
            "rustc --print sysroot",
            "rustc --print=target-list",
            "rustc --explain E0308",
            "rustup show",
            "rustup toolchain list",
            "rustup target list --installed",
            "rustup --version",
            "rustup which cargo",
            "rustup default",
        ]);
    }

    #[test]
    fn builds_and_changes_are_not() {
        assert_not_read_only(&[
            "cargo build",
            "cargo check",
            "cargo test",
            "cargo clippy",
            "cargo fmt --check",
            "cargo run -- --help",
            "cargo install x",
            "cargo add x",
            "cargo clean",
            "cargo publish --dry-run",
            "cargo search x",
            "cargo +nightly tree",
            "cargo --config x tree",
            "cargo tree --config x",
            "cargo metadata -Z x",
            "cargo my-alias",
            "cargo tree $x",
            "rustc x.rs",
            "rustc -V x.rs",
            "rustc --print=sysroot=f",
            "rustc -o x --version",
            "rustup update",
            "rustup default nightly",
            "rustup run stable ls",
            "rustup doc",
            "rustup component add x",
        ]);
        assert!(matches!(
            &find("rustup run stable rm -r x").starts[..],
            [StartedProgram::Command { argv, .. }] if argv.len() == 3
        ));
        assert_eq!(find("cargo clean").verdict, EffectVerdict::Mutating);
    }

    #[test]
    fn tables_are_well_formed() {
        CARGO.assert_well_formed();
        RUSTUP.assert_well_formed();
        assert_well_formed(&[RUSTC]);
    }
}
