//! python, pip, uv, conda.

use crate::{
    arg::Arg,
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs, writes},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::CommandFinding,
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("python python2 python3 pypy pypy3", python),
    KnownCommand::Own("pip pip2 pip3", pip),
    KnownCommand::Own("uv", uv),
    KnownCommand::Own("conda mamba micromamba", conda),
];

fn python(argv: &[Arg]) -> CommandFinding {
    let prints = |arg: &Arg| {
        [
            "--version",
            "-V",
            "-VV",
            "--help",
            "-h",
            "--help-env",
            "--help-all",
            "--help-xoptions",
        ]
        .iter()
        .any(|word| arg.is(word))
    };
    match argv {
        [_, only] if prints(only) => CommandFinding::read_only("it only prints"),
        [_, first, ..] if first.is("-m") => CommandFinding::unknown("it runs a module"),
        _ => CommandFinding::unknown("it runs a program"),
    }
}

/// Options that every verb of pip accepts.
macro_rules! everywhere {
    () => {
        " -hvq --help --verbose --quiet --no-input --no-color --disable-pip-version-check --isolated \
         --debug --require-virtualenv --no-python-version-warning --no-cache-dir --retries= --timeout= "
    };
}

const REFUSED: &[UnsafeOption] = &[
    writes("--log>", "appends to a file"),
    runs("--python=", "chooses the interpreter"),
    runs(
        "--proxy= --cert= --client-cert= --trusted-host= --keyring-provider= --cache-dir= --use-feature= \
         --use-deprecated= --exists-action=",
        "injects configuration",
    ),
];

const LIST_REFUSED: &[UnsafeOption] = &[
    REFUSED[0],
    REFUSED[1],
    REFUSED[2],
    runs(
        "-ou -i: -f: --outdated --uptodate --index-url= --extra-index-url= --find-links=",
        "queries a package index",
    ),
];

const PIP: VerbProgram = VerbProgram {
    before: CommandSpec::prints("pip", concat!(" -V --version ", everywhere!()))
        .refusing(REFUSED)
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[
        CommandSpec::prints(
            "list",
            concat!(
                everywhere!(),
                " -el --editable --local --user --path< --pre --format= --not-required \
                 --exclude-editable --include-editable --exclude= --no-index "
            ),
        )
        .refusing(LIST_REFUSED)
        .strict(),
        CommandSpec::prints("show", concat!(everywhere!(), " -f --files "))
            .refusing(REFUSED)
            .strict(),
        CommandSpec::prints(
            "freeze",
            concat!(
                everywhere!(),
                " -l -r< --requirement< --local --user --path< --all --exclude-editable --exclude= "
            ),
        )
        .refusing(REFUSED)
        .strict(),
        CommandSpec::prints(
            "check help inspect debug",
            concat!(everywhere!(), " --local --user --path< "),
        )
        .refusing(REFUSED)
        .strict(),
        CommandSpec::prints(
            "config/list config/get config/debug cache/dir cache/info cache/list",
            concat!(everywhere!(), " --user --global --site --format= "),
        )
        .refusing(REFUSED)
        .strict(),
        CommandSpec::reads("hash", concat!(everywhere!(), " -a: --algorithm= "))
            .refusing(REFUSED)
            .strict(),
    ],
    others: &[
        unsure("index search", "it queries a package index").contacting(),
        change("install", "it installs packages").contacting(),
        change("uninstall", "it removes packages"),
        change("download wheel lock", "it downloads packages").contacting(),
        change("config cache", "it changes settings or the cache"),
    ],
    unknown: "what this verb does is not known",
};

fn pip(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&PIP, argv)
}

const UV: VerbProgram = VerbProgram {
    before: CommandSpec::prints(
        "uv",
        "-Vhqv --version --help --quiet --verbose --offline --no-progress --color=",
    )
    .style(OptionStyle::Posix)
    .strict(),
    verbs: &[verb(
        "help self/version cache/dir tool/dir python/dir",
        "-h --help --short",
    )],
    others: &[
        // uv queries the interpreter that it finds in the workspace.
        unsure(
            "pip/list pip/show pip/freeze pip/check pip/tree python/list python/find tool/list tree \
                version export",
            "it starts the interpreter of the workspace",
        ),
        unsure("run tool x", "it runs a program"),
        change(
            "add remove sync lock venv init build publish pip python cache self",
            "it changes the project or the installed packages",
        )
        .contacting(),
    ],
    unknown: "what this verb does is not known",
};

fn uv(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&UV, argv)
}

const CONDA: VerbProgram = VerbProgram {
    before: CommandSpec::prints("conda", "-Vh --version --help").style(OptionStyle::Posix).strict(),
    verbs: &[
        verb(
            "list",
            "-n: -p: -cefhvq --name= --prefix= --json --canonical --export --explicit --md5 --revisions \
             --full-name --no-pip --show-channel-urls --reverse --help --verbose --quiet",
        ),
        verb("info env/list", "-aesh --all --base --envs --system --json --unsafe-channels --help"),
        verb("config", "--show=? --show-sources --get=? --describe=? --validate --json --help --env --system")
            .with_evaluator(conda_config),
    ],
    others: &[
        unsure("search outdated", "it queries a package index").contacting(),
        unsure("run", "it runs a program"),
        change(
            "install remove uninstall update upgrade create env clean init activate deactivate rename \
             build",
            "it changes environments",
        )
        .contacting(),
    ],
    unknown: "what this verb does is not known",
};

fn conda(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&CONDA, argv)
}

fn conda_config(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let asks = ["--show", "--show-sources", "--get", "--describe", "--help"];
    if parsed.verdict().is_none() && !asks.iter().any(|name| parsed.has(name)) {
        return CommandFinding::mutating("it changes the configuration");
    }
    parsed.finding(OperandKind::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn versions_and_inventories_are_read_only() {
        assert_read_only(&[
            "python --version",
            "python3 -V",
            "pip --version",
            "pip list",
            "pip list --format=json",
            "pip3 list --format freeze -v",
            "pip show requests",
            "pip show -f requests",
            "pip freeze",
            "pip freeze --local -r req.txt",
            "pip check",
            "pip config list",
            "pip cache dir",
            "pip install --help",
            "uv --version",
            "uv cache dir",
            "conda list",
            "conda info --envs",
            "conda env list",
            "conda config --show channels",
        ]);
    }

    #[test]
    fn programs_indexes_and_changes_are_not() {
        assert_not_read_only(&[
            "python",
            "python x.py",
            "python -c 1",
            "python -m json.tool",
            "python -m pip list",
            "python3 --version x.py",
            "pip install x",
            "pip uninstall x",
            "pip list -o",
            "pip list --outdated",
            "pip list --outd",
            "pip list --index-url x",
            "pip list --log f",
            "pip --log=f list",
            "pip --python x list",
            "pip index versions x",
            "pip download x",
            "pip config set a b",
            "pip list $x",
            "uv pip list",
            "uv run x",
            "uv add x",
            "uv sync",
            "conda install x",
            "conda search x",
            "conda config --add channels x",
            "conda run x",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        for program in [&PIP, &UV, &CONDA] {
            program.assert_well_formed();
        }
    }
}
