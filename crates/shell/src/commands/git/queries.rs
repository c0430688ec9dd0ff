//! Subcommands that show references, configuration or settings, but change them with other
//! arguments.

use super::paths::{self, ShownPaths};
use crate::{
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, OperandKind, OptionStyle, runs, writes},
    },
    effect::{CommandFinding, Effect, FileWrite, StartedProgram, WriteKind},
};

/// Options that select references and format the list. The commit of `--contains` and similar
/// options is optional, so it is a value only after `=`; an argument after them is an operand.
macro_rules! references {
    () => {
        " --contains=? --no-contains=? --with=? --without=? --merged=? --no-merged=? --points-at=? \
         --sort= --no-sort --format= --color=? --no-color --ignore-case --omit-empty "
    };
}

pub(super) const SUBCOMMANDS: &[CommandSpec] = &[
    ask(
        "branch",
        concat!(
            " -vraliq --verbose --no-verbose --remotes --all --list --show-current --abbrev=? \
             --no-abbrev --column=? --no-column --quiet ",
            references!()
        ),
    )
    .refusing(&[
        writes("-dD --delete", "deletes branches"),
        writes("-mM --move", "renames a branch"),
        writes("-cC --copy", "copies a branch"),
        writes(
            "-t? -u: -f --track=? --set-upstream --set-upstream-to= --unset-upstream --force \
             --create-reflog --edit-description --recurse-submodules",
            "changes a branch",
        ),
    ])
    .with_evaluator(branch),
    ask(
        "tag",
        concat!(" -li -n? --list --column=? --no-column ", references!()),
    )
    .refusing(&[
        writes("-d --delete", "deletes tags"),
        writes(
            "-aesf -m: -F< -u: --annotate --message= --file< --trailer= --edit --sign --cleanup= \
             --local-user= --force --create-reflog",
            "makes a tag",
        ),
        runs("-v --verify", "starts gpg"),
    ])
    .with_evaluator(tag),
    ask(
        "for-each-ref",
        concat!(
            " -sp --shell --perl --python --tcl --count= --exclude= --stdin --include-root-refs ",
            references!()
        ),
    )
    .with_evaluator(list_references),
    ask(
        "show-ref",
        "-dq -s? --tags --heads --branches --exists --verify --head --dereference --hash=? --abbrev=? \
         --quiet --exclude-existing=?",
    ),
    ask("symbolic-ref", "-q --quiet --short --no-recurse --recurse")
        .refusing(&[
            writes("-d --delete", "deletes a reference"),
            writes("-m:", "changes a reference"),
        ])
        .with_evaluator(symbolic_ref),
    ask(
        "show-branch",
        "-ar -g? --all --remotes --color=? --no-color --more=? --list --no-name --current --sha1-name \
         --merge-base --independent --topo-order --topics --sparse --date-order --reflog=?",
    ),
    ask(
        "rev-parse",
        "-q --parseopt --sq-quote --sq --keep-dashdash --stop-at-non-option --stuck-long --revs-only \
         --no-revs --flags --no-flags --default= --prefix= --verify --quiet --short=? --not \
         --abbrev-ref=? --symbolic --symbolic-full-name --path-format=? --git-dir --git-common-dir \
         --absolute-git-dir --resolve-git-dir= --git-path= --show-toplevel \
         --show-superproject-working-tree --show-prefix --show-cdup --shared-index-path \
         --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository \
         --local-env-vars --disambiguate=? --all --branches=? --tags=? --remotes=? --glob=? \
         --exclude=? --exclude-hidden=? --since=? --after=? --until=? --before=? \
         --show-object-format=? --show-ref-format --bisect",
    ),
    ask("remote", "-v --verbose --push --all").with_evaluator(remote),
    ask("reflog/exists reflog/list", ""),
    ask("worktree/list", "-vz --porcelain --verbose --expire="),
    ask("notes", "--ref=").with_evaluator(notes),
    ask("sparse-checkout/list", ""),
    ask("submodule", "-q --quiet --cached --recursive").with_evaluator(submodule),
    ask("rerere/status rerere/diff rerere/remaining", ""),
    ask("bisect/log", ""),
    ask(
        "bisect/terms",
        "--term-good --term-old --term-bad --term-new",
    ),
    ask(
        "config",
        "-lz -t: -f< --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list \
         --null --name-only --show-origin --show-scope --show-names --global --system --local \
         --worktree --file< --blob= --type= --bool --int --bool-or-int --bool-or-str --path \
         --expiry-date --includes --no-includes --default= --fixed-value --no-type --all --regexp \
         --value= --url=",
    )
    .refusing(&[
        writes(
            "--add --append --replace-all --unset --unset-all --rename-section --remove-section \
             --comment=",
            "changes the configuration",
        ),
        runs("-e --edit", "starts an editor"),
    ])
    // `git config a.b --list` sets `a.b`: options after the first operand are not options.
    .style(OptionStyle::Posix)
    .with_evaluator(config),
    ask("var", "-l"),
    ask("version", "--build-options"),
    ask(
        "help",
        "-agcv --all --guides --config --no-external-commands --no-aliases --verbose",
    )
    .with_evaluator(help),
    ask(
        "column",
        "--command= --mode=? --raw-mode= --width= --indent= --nl= --padding=",
    ),
    ask("stripspace", "-sc --strip-comments --comment-lines"),
    ask("check-mailmap", "--stdin --mailmap-file< --mailmap-blob="),
    ask(
        "check-ref-format",
        "--normalize --print --allow-onelevel --no-allow-onelevel --refspec-pattern --branch=",
    ),
    ask(
        "fmt-merge-msg",
        "-m: -F< --log=? --no-log --message= --into-name= --file<",
    ),
    ask(
        "interpret-trailers",
        "--trim-empty --where= --if-exists= --if-missing= --only-trailers --only-input --unfold \
         --parse --no-divider",
    )
    .refusing(&[
        writes("--in-place", "changes the files in place"),
        runs("--trailer=", "starts the commands that the configuration names"),
    ])
    .with_evaluator(trailers),
    CommandSpec::unsure("verify-commit verify-tag", "it starts gpg"),
    CommandSpec::unsure(
        "credential credential-store credential-cache",
        "it prints or stores credentials",
    ),
];

const fn ask(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::prints(names, options).strict()
}

fn finding(parsed: &ParsedArguments<'_>) -> CommandFinding {
    parsed.finding(OperandKind::Text)
}

/// Options that make git list, regardless of the operands.
const LISTS: &[&str] = &[
    "--contains",
    "--no-contains",
    "--with",
    "--without",
    "--merged",
    "--no-merged",
    "--points-at",
    "--list",
    "-l",
];

fn branch(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let lists = LISTS.iter().any(|name| parsed.has(name)) || parsed.has("--show-current");
    if parsed.verdict().is_none() && !parsed.operands.is_empty() && !lists {
        return CommandFinding::mutating("it makes a branch");
    }
    list_references(parsed)
}

fn tag(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let lists = LISTS.iter().any(|name| parsed.has(name)) || parsed.has("-n");
    if parsed.verdict().is_none() && !parsed.operands.is_empty() && !lists {
        return CommandFinding::mutating("it makes a tag");
    }
    list_references(parsed)
}

fn list_references(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let signature = parsed.options.iter().find(|given| {
        let text = given.value.as_ref().and_then(|value| value.text());
        matches!(given.name, "--format" | "--sort")
            && text.is_none_or(|text| text.contains("signature"))
    });
    if let (None, Some(given)) = (parsed.verdict(), signature) {
        return CommandFinding::unknown("a signature in the format starts gpg")
            .with_span(given.span);
    }
    // git takes the argument after these options as their value even if it looks like an option.
    let swallowed = parsed.argv.windows(2).find(|pair| {
        let takes = pair[0].text().is_some_and(|text| {
            !text.contains('=')
                && text.starts_with("--")
                && LISTS.iter().any(|name| {
                    name.starts_with("--") && *name != "--list" && name.starts_with(text)
                })
        });
        takes && pair[1].text().is_none_or(|text| text.starts_with('-'))
    });
    if let (None, Some(pair)) = (parsed.verdict(), swallowed) {
        return CommandFinding::unknown("an option may be the value of another")
            .with_span(pair[1].span);
    }
    finding(parsed)
}

fn symbolic_ref(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if parsed.verdict().is_none() && parsed.operands.len() > 1 {
        return CommandFinding::mutating("it changes a reference");
    }
    finding(parsed)
}

fn remote(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match verb(parsed) {
        None | Some("get-url") => finding(parsed),
        Some("show" | "prune" | "update")
            if parsed.operands.len() > 1 || verb(parsed) != Some("show") =>
        {
            CommandFinding::unknown("it contacts the remote").with(Effect::Net(None))
        }
        Some("show") => finding(parsed),
        Some(_) => CommandFinding::mutating("it changes the list of remotes"),
    }
}

fn notes(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match verb(parsed) {
        None | Some("list" | "show" | "get-ref") => finding(parsed),
        Some(_) => CommandFinding::mutating("it changes notes"),
    }
}

fn submodule(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match verb(parsed) {
        None | Some("status") => {
            let mut finding = finding(parsed);
            finding
                .effects
                .extend(paths::reads(parsed, ShownPaths::Names, 1));
            finding
        }
        Some("summary") => CommandFinding::unknown("what it does is not known"),
        Some("foreach") => {
            let words = &parsed.operands[1..];
            let starts = match words {
                [] => None,
                [script] => Some(StartedProgram::Script((*script).clone())),
                words => Some(StartedProgram::Command {
                    argv: words.iter().map(|arg| (*arg).clone()).collect(),
                    more: false,
                }),
            };
            let mut finding = CommandFinding::unknown("it runs a command in each submodule");
            finding.starts.extend(starts);
            finding
        }
        Some("add" | "update") => {
            CommandFinding::mutating("it fetches submodules").with(Effect::Net(None))
        }
        Some(_) => CommandFinding::mutating("it changes submodules"),
    }
}

fn config(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let asks = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--get-colorbool",
        "--list",
        "-l",
    ];
    let asked = asks.iter().any(|name| parsed.has(name));
    let reads = asked
        || match verb(parsed) {
            Some("list" | "get") => true,
            Some("set" | "unset" | "rename-section" | "remove-section" | "edit") => false,
            // `git config user.name` prints the value; with a second operand it sets the value.
            _ => parsed.operands.len() <= 1,
        };
    if parsed.verdict().is_none() && !reads {
        return parsed.with_effects(
            CommandFinding::mutating("it changes the configuration"),
            OperandKind::Text,
        );
    }
    finding(parsed)
}

fn help(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if parsed.operands.is_empty() {
        finding(parsed)
    } else {
        CommandFinding::unknown("it opens a manual in a viewer")
    }
}

fn trailers(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if !parsed.has("--in-place") {
        return parsed.finding(OperandKind::Files);
    }
    let mut finding = finding(parsed);
    let writes = parsed.operands.iter().map(|arg| {
        Effect::Write(FileWrite {
            path: (*arg).clone(),
            kind: WriteKind::OptionWrite,
        })
    });
    finding.effects.extend(writes);
    finding
}

/// Returns the first operand. `None` means that the command certainly has no operand; an unknown
/// operand is `""`.
fn verb<'a>(parsed: &'a ParsedArguments<'_>) -> Option<&'a str> {
    parsed.operands.first().map(|arg| arg.text().unwrap_or(""))
}
