//! Launchers of package managers and environments, which start the command in their arguments:
//! `poetry run pytest`, `npm exec -c 'eslint .'`.
//!
//! The command that a launcher starts is a part of the line, so that deny and ask rules apply to it. An
//! allow rule for the launcher covers that command too. If an option is not listed here, the position
//! of the command is uncertain: the launcher is opaque.

use super::{
    shells::{opaque, runs_text, runs_words},
    wrappers::starting,
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, EffectVerdict},
};

/// The grammar of one launcher.
#[derive(Clone, Copy)]
struct LauncherGrammar {
    names: &'static str,
    /// Words that must precede the command, each sequence joined by `+`. Empty: none.
    verbs: &'static str,
    /// Options without a value.
    flags: &'static str,
    /// Options with a value.
    values: &'static str,
    /// Options after which paths are relative to another directory, or that repeat the command in several.
    moves: &'static str,
    /// Options whose value is a text for a shell.
    texts: &'static str,
    /// Options after which the command is not a program: `uv run -m MODULE`.
    other: &'static str,
    /// Operands between the verb and the command.
    operands: usize,
    operand_form: OperandForm,
}

/// The position and syntax of the command in the operands of a launcher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandForm {
    /// Words.
    Words,
    /// Words after `--`; words in front of it are not the command.
    AfterDashes,
    /// Words that a shell joins.
    Joined,
    /// Each word is a text for a shell.
    Texts,
    /// Words after assignments.
    AfterAssignments,
    /// Words, the first with the name of an environment: `test:pytest`.
    Prefixed,
}

const fn grammar(names: &'static str, verbs: &'static str) -> LauncherGrammar {
    LauncherGrammar {
        names,
        verbs,
        flags: "",
        values: "",
        moves: "",
        texts: "",
        other: "",
        operands: 0,
        operand_form: OperandForm::Words,
    }
}

const NPM_FLAGS: &str = "-y --yes --no --no-install --silent -s -q --quiet --offline --prefer-offline \
                         --ignore-existing --include-workspace-root --ignore-scripts --verbose";
const NPM_VALUES: &str = "-p --package --node-options --registry --cache --loglevel --userconfig";
const NPM_MOVES: &str = "-w --workspace --prefix -C";

const UV_FLAGS: &str = "--isolated --active --no-sync --locked --frozen --no-project --all-extras \
                        --no-dev --dev --only-dev --all-groups --no-default-groups --all-packages \
                        --no-editable --exact --no-env-file --offline --no-cache -n -q --quiet -v \
                        --verbose -U --upgrade --reinstall --refresh --managed-python \
                        --no-managed-python --no-config --no-progress --native-tls --no-index \
                        --no-build --no-binary --show-resolution";
const UV_VALUES: &str = "--with --with-editable --with-requirements -p --python --project --env-file \
                         --extra --no-extra --group --no-group --only-group --package --index \
                         --default-index -i --index-url --extra-index-url -f --find-links \
                         --config-file --cache-dir -P --upgrade-package --reinstall-package --from \
                         --config-setting --link-mode --resolution --prerelease --color \
                         --exclude-newer --index-strategy --keyring-provider --allow-insecure-host \
                         -w -c --constraints --overrides";

const GRAMMARS: &[LauncherGrammar] = &[
    LauncherGrammar {
        flags: NPM_FLAGS,
        values: NPM_VALUES,
        moves: "-w --workspace --prefix -C -ws --workspaces",
        texts: "-c --call",
        ..grammar("npm", "exec x")
    },
    LauncherGrammar {
        flags: NPM_FLAGS,
        values: NPM_VALUES,
        moves: NPM_MOVES,
        texts: "-c --call",
        ..grammar("npx pnpx", "")
    },
    LauncherGrammar {
        flags: "--silent -s --parallel --no-bail --report-summary --stream",
        values: "--package --workspace-concurrency --allow-build --reporter",
        moves: "-C --dir -r --recursive --filter -F -w --workspace-root",
        other: "-c --shell-mode",
        ..grammar("pnpm", "exec dlx")
    },
    LauncherGrammar {
        flags: "-q --quiet -s --silent -T -B --top-level --binaries-only --verbose --inspect",
        values: "-p --package",
        moves: "--cwd",
        ..grammar("yarn yarnpkg", "exec dlx run")
    },
    LauncherGrammar {
        flags: "--bun -b --silent --verbose",
        values: "-p --package",
        moves: "--cwd --filter",
        ..grammar("bun", "x run")
    },
    LauncherGrammar {
        operand_form: OperandForm::Joined,
        ..grammar("bun", "exec")
    },
    LauncherGrammar {
        flags: "--bun -b --silent --verbose --no-install",
        values: "-p --package",
        ..grammar("bunx", "")
    },
    LauncherGrammar {
        flags: "-q --quiet -v -vv -vvv --verbose -n --no-interaction --ansi --no-ansi --no-plugins \
                --no-cache",
        values: "-P --project",
        moves: "-C --directory",
        ..grammar("poetry", "run")
    },
    LauncherGrammar {
        flags: "-q --quiet -v --verbose --clear --bare --three",
        values: "--python --pypi-mirror",
        ..grammar("pipenv", "run")
    },
    LauncherGrammar {
        flags: UV_FLAGS,
        values: UV_VALUES,
        moves: "--directory",
        other: "-m --module -s --script --gui-script",
        ..grammar("uv", "run tool+run")
    },
    LauncherGrammar {
        flags: UV_FLAGS,
        values: UV_VALUES,
        moves: "--directory",
        ..grammar("uvx", "")
    },
    LauncherGrammar {
        flags: "-q --quiet -v --verbose -s --site-packages --no-site-packages -I --ignore-python",
        values: "--venv",
        moves: "-p --project",
        ..grammar("pdm", "run")
    },
    LauncherGrammar {
        flags: "-l --list",
        moves: "--pyproject",
        ..grammar("rye", "run")
    },
    LauncherGrammar {
        flags: "-q --quiet -v --verbose --no-color --color --interactive --no-interactive",
        values: "-e --env -p --project --data-dir --cache-dir --config",
        operand_form: OperandForm::Prefixed,
        ..grammar("hatch", "run env+run")
    },
    LauncherGrammar {
        flags: "-q -v -r --recreate -n --notest --skip-pkg-install",
        values: "-e -c --conf --workdir --result-json --override -x",
        moves: "--root",
        operand_form: OperandForm::AfterDashes,
        ..grammar("tox", "exec e")
    },
    LauncherGrammar {
        flags: "--no-capture-output --live-stream -v -vv --verbose --debug-wrapper-scripts --dev",
        values: "-n --name -p --prefix -a --attach",
        moves: "--cwd",
        ..grammar("conda mamba micromamba", "run")
    },
    LauncherGrammar {
        flags: "-q --quiet -v --verbose --frozen --locked --clean-env --skip-deps --no-install \
                --as-is --force-activate",
        values: "-e --environment -s --spec -c --channel -p --platform --color",
        moves: "--manifest-path",
        ..grammar("pixi", "run exec x")
    },
    grammar(
        "pyenv rbenv nodenv goenv jenv plenv phpenv swiftenv luaenv exenv asdf",
        "exec",
    ),
    LauncherGrammar {
        texts: "-c --command",
        values: "-j --jobs",
        flags: "-q --quiet -v --verbose -y --yes --raw --fresh-env",
        moves: "-C --cd",
        operand_form: OperandForm::AfterDashes,
        ..grammar("mise rtx", "exec x")
    },
    LauncherGrammar {
        flags: "--keep-file-descriptors --no-keep-file-descriptors --verbose -V --no-color",
        values: "--gemfile -r --retry",
        ..grammar("bundle bundler", "exec e")
    },
    LauncherGrammar {
        flags: "--stream --parallel --no-bail --no-prefix --loglevel",
        moves: "--scope --ignore --since",
        operand_form: OperandForm::AfterDashes,
        ..grammar("lerna nx", "exec")
    },
    LauncherGrammar {
        flags: "-c --clear -q --quiet --poll --postpone --no-restart --why --watch-when-idle",
        values: "-w --watch -i --ignore -d --delay -x --exec -E --env",
        moves: "-C --workdir",
        texts: "-s --shell",
        operand_form: OperandForm::AfterDashes,
        ..grammar("cargo", "watch")
    },
    LauncherGrammar {
        flags: "watch -c --clear -q --quiet --poll --postpone --no-restart --why --watch-when-idle",
        values: "-w --watch -i --ignore -d --delay -x --exec -E --env",
        moves: "-C --workdir",
        texts: "-s --shell",
        operand_form: OperandForm::AfterDashes,
        ..grammar("cargo-watch", "")
    },
    LauncherGrammar {
        operand_form: OperandForm::AfterAssignments,
        ..grammar("cross-env", "")
    },
    LauncherGrammar {
        flags: "--no-override --silent --verbose --use-shell --expand-envs --recursive --fallback",
        values: "-f --file -e --environments -r --rc-file",
        ..grammar("env-cmd", "")
    },
    LauncherGrammar {
        flags: "-k --kill-others --kill-others-on-fail -r --raw --no-color --hide -g --group -t \
                --passthrough-arguments -P --timings",
        values: "-n --names -c --prefix-colors -p --prefix -l --prefix-length -m --max-processes -s \
                 --success --restart-tries --restart-after --name-separator --kill-signal \
                 --kill-timeout --timestamp-format",
        operand_form: OperandForm::Texts,
        ..grammar("concurrently conc", "")
    },
    LauncherGrammar {
        flags: "-N --shell=none -i --ignore-failure --show-output",
        values: "-w --warmup -m --min-runs -M --max-runs -r --runs -u --time-unit -n \
                 --command-name --style --export-json --export-csv --export-markdown -S --shell \
                 --input --output -L --parameter-list --reference-name --sort",
        texts: "-p --prepare -c --cleanup -s --setup --conclude --reference",
        operand_form: OperandForm::Texts,
        ..grammar("hyperfine", "")
    },
    LauncherGrammar {
        operands: 1,
        ..grammar("direnv", "exec")
    },
    LauncherGrammar {
        values: "--duration --region --mfa-token -t",
        flags: "-n --no-session --ecs-server --ec2-server --stdout -d --debug",
        operands: 1,
        ..grammar("aws-vault", "exec")
    },
    LauncherGrammar {
        texts: "--command",
        values: "-p --project -c --config -t --token --env-file --account",
        flags: "--no-masking --preserve-env --no-fallback --only-secrets",
        operand_form: OperandForm::AfterDashes,
        ..grammar("doppler op devbox", "run")
    },
    LauncherGrammar {
        values: "-f --file -e -c -v -p --env-file --convention -fk --env-keys-file",
        flags: "--override --no-override -o --overload --quiet -q --verbose",
        ..grammar("dotenv dotenvx", "run")
    },
    LauncherGrammar {
        values: "-f --file -e -c -v -p",
        flags: "--override --no-override -o --overload --quiet -q",
        operand_form: OperandForm::AfterDashes,
        ..grammar("dotenv", "")
    },
    LauncherGrammar {
        texts: "--run --command",
        values: "-p --packages -A --attr -I",
        flags: "--pure --impure -Q -v",
        other: "-E --expr -e",
        operand_form: OperandForm::AfterDashes,
        ..grammar("nix-shell", "")
    },
    // The table in `launchers` makes these opaque; the arguments after them are still a command.
    grammar(
        "fakeroot eatmydata unbuffer chronic catchsegv rlwrap torsocks proxychains proxychains4 \
         dbus-run-session linux32 linux64 tini dumb-init",
        "",
    ),
    LauncherGrammar {
        operands: 1,
        ..grammar("faketime gosu su-exec setarch setuidgid chpst", "")
    },
];

/// Adds the command that a launcher starts to its finding.
pub(super) fn with_command(name: &str, argv: &[Arg], finding: CommandFinding) -> CommandFinding {
    let grammars = GRAMMARS.iter();
    let mut grammars = grammars.filter(|grammar| has_word(grammar.names, name));
    if finding.verdict == EffectVerdict::ReadOnly || !finding.starts.is_empty() {
        return finding;
    }
    let words: Vec<&Arg> = argv.iter().skip(1).collect();
    if has_word("make gmake remake", name) && words.iter().any(|word| is_makefile_text(word)) {
        return opaque(finding, "it runs the commands in a makefile's text");
    }
    match grammars.find_map(|grammar| LauncherInvocation::parse(grammar, &words)) {
        Some(invocation) => invocation.apply(finding),
        None => finding,
    }
}

/// Returns whether a grammar describes the program.
pub(super) fn is_launcher(name: &str) -> bool {
    GRAMMARS.iter().any(|grammar| has_word(grammar.names, name))
}

/// Returns whether an argument of make contains makefile text: `--eval`, `-E`, and their abbreviations.
fn is_makefile_text(word: &Arg) -> bool {
    let text = match &word.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) => text,
        ArgValue::Unknown { prefix, .. } | ArgValue::Glob(prefix) => prefix,
    };
    let short = text.starts_with('-') && !text.starts_with("--");
    text.starts_with("--ev") || (short && text.contains('E'))
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// The arguments of a launcher, parsed.
struct LauncherInvocation<'a> {
    grammar: &'static LauncherGrammar,
    texts: Vec<&'a Arg>,
    /// The words from the command on.
    command: Vec<&'a Arg>,
    /// The reason for an uncertain command or directory.
    uncertain: Option<&'static str>,
}

impl<'a> LauncherInvocation<'a> {
    fn parse(grammar: &'static LauncherGrammar, words: &[&'a Arg]) -> Option<Self> {
        let mut found = Self {
            grammar,
            texts: Vec::new(),
            command: Vec::new(),
            uncertain: None,
        };
        let mut rest = found.options(words);
        if !grammar.verbs.is_empty() {
            let after = grammar.verbs.split_ascii_whitespace().find_map(|verb| {
                let mut after = rest;
                for word in verb.split('+') {
                    let (first, behind) = after.split_first()?;
                    after = first.is(word).then_some(behind)?;
                }
                Some(after)
            })?;
            rest = found.options(after);
        }
        let mut operands = grammar.operands;
        while operands > 0 && !rest.is_empty() {
            rest = found.options(&rest[1..]);
            operands -= 1;
        }
        let dashes = rest.iter().position(|word| word.is("--"));
        found.command = match (grammar.operand_form, dashes) {
            (OperandForm::AfterDashes, Some(index)) => rest[index + 1..].to_vec(),
            (OperandForm::AfterDashes, None) => Vec::new(),
            (_, Some(0)) => rest[1..].to_vec(),
            _ => rest.to_vec(),
        };
        if grammar.operand_form == OperandForm::AfterAssignments {
            let assigns = |word: &&Arg| {
                let text = match &word.value {
                    ArgValue::Literal(text) | ArgValue::Braced(text) => text,
                    ArgValue::Unknown { prefix, .. } | ArgValue::Glob(prefix) => prefix,
                };
                text.contains('=')
            };
            let count = found.command.iter().take_while(|word| assigns(word));
            let count = count.count();
            found.command.drain(..count);
        }
        Some(found)
    }

    /// Parses the options. Returns the rest, from the first operand or `--` on.
    fn options<'w>(&mut self, words: &'w [&'a Arg]) -> &'w [&'a Arg] {
        let grammar = self.grammar;
        let mut rest = words;
        while let Some((first, behind)) = rest.split_first() {
            let Some(text) = first.text() else {
                return rest;
            };
            if text == "--" || text == "-" || !text.starts_with('-') {
                return rest;
            }
            let (name, attached) = match text.split_once('=') {
                Some((name, _)) => (name, true),
                None => (text, false),
            };
            rest = behind;
            if has_word(grammar.other, name) {
                self.uncertain = Some("it runs what is not a plain command");
                continue;
            }
            let is_text = has_word(grammar.texts, name);
            let moves = has_word(grammar.moves, name);
            if moves {
                self.uncertain = Some("its paths may be relative to another directory");
            }
            if is_text || moves || has_word(grammar.values, name) {
                match (attached, is_text) {
                    (true, true) => self.texts.push(first),
                    (false, true) => self.texts.extend(rest.first().copied()),
                    (_, false) => {}
                }
                // Of the options that change the directory, these take no value.
                let takes =
                    !attached && !matches!(name, "-r" | "--recursive" | "-ws" | "--workspaces");
                rest = if takes {
                    rest.get(1..).unwrap_or_default()
                } else {
                    rest
                };
            } else if !has_word(grammar.flags, name) && !has_word(grammar.flags, text) {
                self.uncertain = Some("an option may say which command it starts");
            }
        }
        rest
    }

    fn apply(self, mut finding: CommandFinding) -> CommandFinding {
        finding.is_launcher = true;
        for text in self.texts {
            let value = attached_value(text);
            finding = runs_text(finding, value.as_ref().unwrap_or(text));
        }
        if let Some(why) = self.uncertain {
            finding = opaque(finding, why);
        }
        match self.grammar.operand_form {
            OperandForm::Joined => runs_words(finding, &self.command),
            OperandForm::Texts => self.command.into_iter().fold(finding, runs_text),
            OperandForm::Prefixed => {
                let mut words: Vec<Arg> = self.command.into_iter().cloned().collect();
                if let Some(ArgValue::Literal(text)) = words.first_mut().map(|word| &mut word.value)
                    && let Some((_, command)) = text.rsplit_once(':')
                {
                    *text = command.to_owned();
                }
                starting(finding, &words.iter().collect::<Vec<_>>())
            }
            OperandForm::Words | OperandForm::AfterDashes | OperandForm::AfterAssignments => {
                starting(finding, &self.command)
            }
        }
    }
}

/// Returns the value in `--call=TEXT` as an argument.
fn attached_value(arg: &Arg) -> Option<Arg> {
    let text = arg.text().filter(|text| text.starts_with('-'))?;
    let (_, value) = text.split_once('=')?;
    Some(Arg::literal(value, arg.span))
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{effects, find, starts};

    #[test]
    fn the_command_that_a_launcher_starts_is_a_part() {
        let cases = [
            ("npm exec -c 'rm p'", "script rm p"),
            ("npm x --call='rm p'", "script rm p"),
            ("npm exec -- rm p", "rm p"),
            ("npx -y rm p", "rm p"),
            ("pnpm dlx rm p", "rm p"),
            ("yarn run rm p", "rm p"),
            ("bun exec 'rm p'", "script rm p"),
            ("bunx --bun rm p", "rm p"),
            ("poetry run rm p", "rm p"),
            ("poetry -q run -- rm p", "rm p"),
            ("pipenv run rm p", "rm p"),
            ("uv run --with a --env-file e rm p", "rm p"),
            ("uv --offline tool run rm p", "rm p"),
            ("uvx rm p", "rm p"),
            ("pdm run rm p", "rm p"),
            ("hatch run test:rm p", "rm p"),
            ("tox exec -e py -- rm p", "rm p"),
            ("conda run -n base rm p", "rm p"),
            ("pixi run -e dev rm p", "rm p"),
            ("pyenv exec rm p", "rm p"),
            ("asdf exec rm p", "rm p"),
            ("mise exec node@20 -- rm p", "rm p"),
            ("mise x -c 'rm p'", "script rm p"),
            ("bundle exec --gemfile g rm p", "rm p"),
            ("lerna exec -- rm p", "rm p"),
            ("cargo watch -s 'rm p'", "script rm p"),
            ("cargo watch -- rm p", "rm p"),
            ("cross-env A=1 B=$C rm p", "rm p"),
            ("env-cmd -f e rm p", "rm p"),
            ("concurrently -k 'rm p'", "script rm p"),
            ("hyperfine -w 1 'rm p'", "script rm p"),
            ("direnv exec . rm p", "rm p"),
            ("aws-vault exec dev -- rm p", "rm p"),
            ("doppler run -- rm p", "rm p"),
            ("op run --env-file=e -- rm p", "rm p"),
            ("dotenv -e e -- rm p", "rm p"),
            ("dotenv run rm p", "rm p"),
            ("nix-shell --run 'rm p'", "script rm p"),
            ("fakeroot rm p", "rm p"),
            ("faketime 2020 rm p", "rm p"),
        ];
        for (line, expected) in cases {
            assert_eq!(starts(line), [expected], "{line}");
            assert!(find(line).is_launcher, "{line}");
        }
    }

    #[test]
    fn an_option_that_is_not_listed_is_opaque() {
        let is_opaque = |line: &str| effects(line).iter().any(|one| one.starts_with("opaque"));
        for line in [
            "npm exec --new-option rm p",
            "uv run --directory d rm p",
            "uv run -m rm p",
            "poetry run \"$X\"",
            "npx -c \"$X\"",
            "concurrently \"$X\"",
            "pnpm -r exec rm p",
            "make --eval 'x:;rm p'",
            "make -kE \"$X\"",
            "gmake --eval=\"$X\"",
        ] {
            assert!(is_opaque(line), "{line}: {:?}", effects(line));
        }
        for line in ["npm exec eslint", "poetry run pytest -q", "uv run pytest"] {
            assert!(!is_opaque(line), "{line}: {:?}", effects(line));
        }
    }

    #[test]
    fn other_verbs_start_nothing() {
        for line in [
            "npm test",
            "poetry install",
            "uv sync",
            "cargo build",
            "pyenv local 3",
        ] {
            assert!(starts(line).is_empty(), "{line}");
            assert!(!find(line).is_launcher, "{line}");
        }
    }
}
