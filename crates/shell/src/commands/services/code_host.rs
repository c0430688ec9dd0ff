//! gh and glab.

use crate::{
    arg::Arg,
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::{CommandFinding, Effect, EffectVerdict},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] =
    &[KnownCommand::Own("gh", gh), KnownCommand::Own("glab", glab)];

/// Options that most verbs accept: another repository of the same host, and the output format.
macro_rules! printing {
    () => {
        " -R: -q: -t: -L: --repo= --jq= --json= --template= --limit= --help "
    };
}

/// Options that filter a search.
macro_rules! filters {
    () => {
        " --app= --archived=? --assignee= --author= --author-date= --author-email= --author-name= \
         --base= --checks= --closed= --commenter= --comments= --committer= --committer-date= \
         --committer-email= --committer-name= --created= --draft=? --extension= --filename= \
         --followers= --forks= --good-first-issues= --hash= --head= --help-wanted-issues= \
         --include-forks= --include-prs --interactions= --involves= --label= --language= --license= \
         --locked=? --match= --mentions= --merge=? --merged=? --merged-at= --milestone= --no-assignee \
         --no-label --no-milestone --no-project --number-topics= --order= --owner= --parent= \
         --project= --reactions= --review= --review-requested= --reviewed-by= --size= --sort= \
         --stars= --state= --team-mentions= --topic= --tree= --updated= --visibility= "
    };
}

const REFUSED: &[UnsafeOption] = &[runs("--web", "opens a browser")];

const GH: VerbProgram = VerbProgram {
    before: CommandSpec::prints("gh", "--version --help")
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[
        ask("version help", ""),
        ask("completion", "-s: --shell= --help"),
        ask(
            "pr/list pr/ls issue/list issue/ls",
            concat!(
                printing!(),
                " -a: -A: -B: -d -H: -l: -S: -s: -m: --app= --assignee= --author= --base= --draft=? \
                 --head= --label= --search= --state= --mention= --milestone= "
            ),
        ),
        ask(
            "pr/view issue/view pr/status issue/status",
            concat!(printing!(), " -c --comments --conflict-status "),
        ),
        ask(
            "pr/diff",
            concat!(printing!(), " --color= --name-only --patch --exclude= "),
        ),
        ask(
            "pr/checks",
            concat!(
                printing!(),
                " -i: --interval= --required --watch --fail-fast "
            ),
        ),
        // In `gh run list`, `-w` is a workflow.
        ask(
            "run/list run/ls",
            concat!(
                printing!(),
                " -a -b: -c: -e: -s: -u: -w: --all --branch= --commit= --created= --event= --status= \
                 --user= --workflow= "
            ),
        ),
        ask(
            "run/view run/watch",
            concat!(
                printing!(),
                " -v -j: -a: -i: --exit-status --job= --log --log-failed --verbose --attempt= --compact \
                 --interval= "
            ),
        ),
        ask(
            "repo/view repo/list repo/ls",
            concat!(
                " -l: ",
                printing!(),
                " -b: --branch= --archived --fork --language= --no-archived --source --topic= \
                 --visibility= "
            ),
        ),
        ask(
            "release/list release/ls release/view",
            concat!(
                printing!(),
                " -O: --exclude-drafts --exclude-pre-releases --order= "
            ),
        ),
        ask(
            "workflow/list workflow/ls workflow/view",
            concat!(printing!(), " -ay -r: --all --ref= --yaml "),
        ),
        ask(
            "label/list label/ls cache/list cache/ls variable/list variable/ls variable/get \
             secret/list secret/ls",
            concat!(
                printing!(),
                " -O: -S: -k: -r: -a: -e: -o: -u --order= --search= --sort= --key= --ref= --app= --env= \
                 --org= --user "
            ),
        ),
        ask(
            "gist/list gist/ls gist/view",
            concat!(
                " -f: -r ",
                printing!(),
                " --filename= --files --raw --public --secret --filter= --include-content "
            ),
        ),
        ask(
            "ruleset/list ruleset/ls ruleset/view ruleset/check",
            concat!(" -p -o: ", printing!(), " --parents --org= --default "),
        ),
        ask(
            "project/list project/ls project/view project/item-list project/field-list",
            concat!(printing!(), " --owner= --format= --closed "),
        ),
        ask("org/list org/ls ssh-key/list gpg-key/list", printing!()),
        ask(
            "codespace/list codespace/ls",
            concat!(" -o: -u: ", printing!(), " --org= --user= "),
        ),
        ask(
            "search/prs search/issues search/repos search/commits search/code",
            concat!(" -B: -H: ", printing!(), filters!()),
        ),
        ask("status", " -e: -o: --exclude= --org= --help "),
        ask("alias/list alias/ls extension/list extension/ls", "--help"),
        ask("config/list config/ls config/get", "--help").with_evaluator(config),
        verb("auth/status", "-a --active --help").refusing(&[
            runs("-t --show-token", "prints a token"),
            runs("-h: --hostname=", "chooses another endpoint"),
        ]),
        verb(
            "api",
            "-i -H: -X: -p: -t: -q: -f: -F: --field= --raw-field= --cache= --header= --include --jq= --method= --paginate \
             --preview= --silent --slurp --template= --verbose --help",
        )
        .refusing(&[
            runs("--input=", "sends data"),
            runs("--hostname=", "chooses another endpoint"),
        ])
        .with_evaluator(api),
    ],
    others: &[
        unsure("auth/token", "it prints a token"),
        unsure("browse", "it opens a browser"),
        change("auth", "it changes credentials"),
        change(
            "pr issue release gist repo label secret variable workflow run cache ssh-key gpg-key \
             project codespace ruleset",
            "it changes data at the code host or downloads from it",
        )
        .contacting()
        .groups(),
        change(
            "alias config extension",
            "it changes the configuration of gh",
        ),
    ],
    unknown: "what this verb does is not known, or it is an alias or extension",
};

const fn ask(names: &'static str, options: &'static str) -> CommandSpec {
    verb(names, options).refusing(REFUSED).with_evaluator(judge)
}

fn gh(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&GH, argv)
}

/// Returns whether `pr/list` and similar verbs of gh only read.
pub(in crate::commands) fn is_reading_verb(verb: &str) -> bool {
    // The arguments of `gh api` select what it does.
    verb != "api" && GH.verbs.iter().any(|spec| spec.is_called(verb))
}

fn glab(argv: &[Arg]) -> CommandFinding {
    match argv {
        [_, only] if only.is("--version") || only.is("version") || only.is("--help") => {
            CommandFinding::read_only("it only prints")
        }
        _ => CommandFinding::unknown("it talks to a code host").with(Effect::Net(None)),
    }
}

fn judge(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    if finding.verdict != EffectVerdict::ReadOnly {
        return finding;
    }
    let repositories = parsed.options.iter();
    let repositories = repositories.filter(|given| matches!(given.name, "-R" | "--repo"));
    let repositories = repositories.filter_map(|given| given.value.as_ref());
    let mut all = repositories.chain(parsed.operands.iter().copied());
    match all.find(|arg| names_host(arg)) {
        Some(arg) => CommandFinding::unknown("it names a host").with_span(arg.span),
        None => finding,
    }
}

/// Returns whether `HOST/OWNER/REPO` or a URL names a host other than the usual one.
fn names_host(arg: &Arg) -> bool {
    let Some(text) = arg.text() else { return true };
    let usual = ["https://github.com/", "github.com/"];
    let rest = usual.iter().find_map(|usual| text.strip_prefix(usual));
    rest.is_none() && (text.contains("://") || text.contains('@') || text.matches('/').count() > 1)
}

fn config(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let token = parsed
        .operands
        .iter()
        .find(|arg| arg.text().is_some_and(|text| text.contains("token")));
    match token {
        Some(arg) => CommandFinding::unknown("it prints a token").with_span(arg.span),
        None => judge(parsed),
    }
}

/// Analyzes `gh api`. The request is certainly a GET if it has no data, no other method, and a path
/// on the usual host.
fn api(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text).with(Effect::Net(None));
    if finding.verdict != EffectVerdict::ReadOnly {
        return finding;
    }
    let unclear = parsed.options.iter().find(|given| {
        let text = given.value.as_ref().and_then(Arg::text).unwrap_or_default();
        let lower = text.to_ascii_lowercase();
        match given.name {
            "-X" | "--method" => !matches!(lower.trim_start_matches('='), "get" | "head"),
            "-H" | "--header" => {
                let lower = lower.trim_start_matches('=');
                !lower.starts_with("accept:") && !lower.starts_with("x-github-api-version:")
            }
            _ => false,
        }
    });
    // Fields turn the request into a POST, unless the line requests a GET.
    let asked = parsed.has("-X") || parsed.has("--method");
    let unclear = unclear.or_else(|| {
        let mut fields = parsed.options.iter();
        fields.find(|given| {
            let text = given.value.as_ref().and_then(Arg::text);
            let from_file = text.is_none_or(|text| text.contains("=@"));
            matches!(given.name, "-f" | "-F" | "--field" | "--raw-field") && (!asked || from_file)
        })
    });
    if let Some(given) = unclear {
        return CommandFinding::unknown("it may be more than a GET")
            .with_span(given.span)
            .with(Effect::Net(None));
    }
    match parsed.operands[..] {
        [path]
            if path.text().is_some_and(|text| {
                text.trim_matches('/') != "graphql" && !text.contains("://")
            }) =>
        {
            CommandFinding::read_only("it only reads")
        }
        _ => CommandFinding::unknown("it may be more than a GET").with(Effect::Net(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn reading_verbs_are_read_only() {
        assert_only_reads(&[
            "gh --version",
            "gh pr list",
            "gh pr list --state open --limit 5 --json number,title -q '.[]'",
            "gh pr list -H branch -A me",
            "gh pr view 12 --comments",
            "gh pr view https://github.com/a/b/pull/1",
            "gh pr status",
            "gh pr diff 12 --name-only",
            "gh pr checks 12 --watch",
            "gh issue list -l bug -R a/b",
            "gh issue view 3 --json body",
            "gh run list -w ci.yml -L 3",
            "gh run view 123 --log-failed",
            "gh repo view a/b",
            "gh release list",
            "gh workflow view ci.yml --yaml",
            "gh search issues foo --owner a --state open",
            "gh auth status",
            "gh api repos/a/b/pulls",
            "gh api /user --jq .login",
            "gh api -X GET repos/a/b --paginate",
            "gh api -X GET search/issues -f q=bug",
            "gh api -H 'Accept: application/json' user",
            "gh label list",
            "gh config get editor",
            "gh pr create --help",
        ]);
    }

    #[test]
    fn changes_browsers_tokens_and_other_hosts_are_not() {
        assert_not_read_only(&[
            "gh pr create -t x",
            "gh pr merge 12",
            "gh pr checkout 12",
            "gh pr view 12 --web",
            "gh pr view -w",
            "gh pr list -R other.com/a/b",
            "gh pr view https://other.com/a/b/pull/1",
            "gh issue close 3",
            "gh run rerun 1",
            "gh run download 1",
            "gh release download v1",
            "gh repo clone a/b",
            "gh auth token",
            "gh auth status -t",
            "gh auth status --show-token",
            "gh auth status -h other.com",
            "gh auth login",
            "gh api graphql",
            "gh api -X POST x",
            "gh api --method=DELETE x",
            "gh api x -f a=b",
            "gh api -X GET x -F a=@f",
            "gh api x --input f",
            "gh api https://other.com/x",
            "gh api --hostname other.com x",
            "gh api -H 'X-HTTP-Method-Override: DELETE' x",
            "gh api",
            "gh browse",
            "gh config get -h github.com oauth_token",
            "gh config get oauth_token",
            "gh config set editor x",
            "gh my-alias",
            "gh pr list $x",
            "gh pr list --unknown",
            "glab mr list",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        GH.assert_well_formed();
    }
}
