//! Matches deny and ask rules against calls. A rule matches if it matches any spelling of any part.

use std::{borrow::Cow, path::Path};

use haft_contract::RuleMatch;
use haft_shell::{Arg, Effect, LinePart, WriteKind, commands::is_known};
use serde_json::Value;

use super::{
    CallFacts, TouchedPath, named_operands,
    removed_trees::RemovedTree,
    rules::{DomainPattern, PathPattern, Rule, RuleClass, RuleContent, UrlTarget, WildcardPattern},
    shell_facts::{PathAccess, PathLocation, PathUse, ShellFacts},
};

/// A match of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleHit {
    /// The part of a command line, by its index.
    pub(super) part: Option<usize>,
    /// The matching text of the call; empty for the call as a whole.
    pub(super) what: String,
}

impl RuleHit {
    fn call() -> Self {
        Self {
            part: None,
            what: String::new(),
        }
    }

    fn on(what: impl Into<String>) -> Self {
        Self {
            part: None,
            what: what.into(),
        }
    }
}

/// Returns what a deny or ask rule matches in a call, if anything.
pub(super) fn match_rule(rule: &Rule, facts: &CallFacts) -> Option<RuleHit> {
    let own = facts.is_called(rule);
    // Rules for commands or paths apply to every tool that runs a command or touches a path.
    if !own && rule.class == RuleClass::Tool {
        return None;
    }
    match &*rule.resolve_content(facts)? {
        RuleContent::All => own.then(RuleHit::call),
        RuleContent::Command { pattern, .. } => match &facts.shell {
            Some(shell) => command_hit(pattern, shell),
            // A tool of this name without a known command parameter may run any command.
            None => (own && !facts.has_command()).then(RuleHit::call),
        },
        RuleContent::Path(pattern) => path_hit(rule, pattern, facts),
        RuleContent::Domain(domain) => domain_hit(domain, facts),
        RuleContent::Text(pattern) => {
            let subject = facts.subject.as_deref()?;
            (own && pattern.matches(subject)).then(|| RuleHit::on(subject))
        }
        RuleContent::Parameter { name, value } => {
            if !own {
                return None;
            }
            let given = scalar(facts.input.get(name)?)?;
            value
                .matches(&given)
                .then(|| RuleHit::on(format!("{name}: {given}")))
        }
        // It was resolved above.
        RuleContent::Unresolved(_) => None,
        // Only an allow rule has this content.
        RuleContent::ReadHost(_) => None,
    }
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Tries a pattern on every part, in every spelling.
fn command_hit(pattern: &WildcardPattern, shell: &ShellFacts) -> Option<RuleHit> {
    let line = shell.line.trim();
    if pattern.matches(line) {
        return Some(RuleHit::on(line));
    }
    if line.len() > haft_shell::MAX_LINE {
        // Trying every word of it takes too long; the line is undecidable.
        return None;
    }
    if shell.analysis.unreadable.is_some() {
        return guess_commands(line)
            .find_map(|text| pattern.matches(&text).then(|| RuleHit::on(text.clone())));
    }
    shell.spellings.iter().enumerate().find_map(|(at, texts)| {
        let text = texts.iter().find(|text| pattern.matches(text))?;
        Some(RuleHit {
            part: Some(at),
            what: text.clone(),
        })
    })
}

/// Returns all spellings of a part that mean the same.
pub(super) fn spellings(part: &LinePart) -> Vec<String> {
    let mut all = vec![part.text.clone()];
    let mut add = |text: String| {
        if !all.contains(&text) {
            all.push(text);
        }
    };
    add(part.words.clone());
    // The result of an expansion is not known before the command runs.
    let named = part
        .argv
        .first()
        .is_some_and(|first| first.text().is_some());
    if !named {
        return all;
    }
    let decoded: Vec<&str> = part.argv.iter().map(shown).collect();
    let name = part.base_name().unwrap_or_default();
    let rest = decoded.get(1..).unwrap_or_default();
    add(joined(name, rest));
    if name == "git" {
        add(joined(name, without_global_options(rest)));
    }
    all
}

fn joined(name: &str, rest: &[&str]) -> String {
    let mut text = name.to_owned();
    for word in rest {
        text.push(' ');
        text.push_str(word);
    }
    text
}

/// Returns an argument as text, or its known beginning.
pub(super) fn shown(arg: &Arg) -> &str {
    match &arg.value {
        haft_shell::ArgValue::Literal(text)
        | haft_shell::ArgValue::Braced(text)
        | haft_shell::ArgValue::Glob(text) => text,
        haft_shell::ArgValue::Unknown { prefix, .. } => prefix,
    }
}

/// Returns git's arguments after its global options.
pub(super) fn without_global_options<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += match *word {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path"
            | "--config-env" | "--super-prefix" => 2,
            word if word.starts_with('-') => 1,
            _ => break,
        };
    }
    words.get(at..).unwrap_or_default()
}

/// Returns possible commands in a line that bash would reject or that cannot be parsed: the text
/// after anything that may begin a command, without quotes.
fn guess_commands(line: &str) -> impl Iterator<Item = String> {
    let pieces = line.split([';', '|', '&', '\n', '(', ')', '{', '}', '`', '<', '>', '$']);
    pieces.flat_map(|piece| {
        let plain = piece.replace(['\'', '"', '\\'], "");
        let words: Vec<String> = plain.split_whitespace().map(str::to_owned).collect();
        // Another command may begin after each word: `sudo rm`, `A=1 rm`.
        (0..words.len()).map(move |from| {
            let name = words[from]
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            let rest: Vec<&str> = words[from + 1..].iter().map(String::as_str).collect();
            joined(&name, &rest)
        })
    })
}

/// Matches a path rule against the paths of any tool, including those of a command line.
fn path_hit(rule: &Rule, pattern: &PathPattern, facts: &CallFacts) -> Option<RuleHit> {
    // A rule with a tool's own name applies to all paths that the tool touches.
    let reading = rule.class != RuleClass::Edits;
    let covers = |touched: &TouchedPath| covers(pattern, touched);
    let shell = facts.shell.iter().flat_map(ShellFacts::parts);
    let stored = facts.shell.iter().flat_map(|shell| &shell.stored);
    for ((at, _, paths), stored) in shell.zip(stored) {
        for path in paths.iter().chain(stored) {
            let concerns = match path.access {
                // What may not be read may not be overwritten either.
                PathAccess::Write(_) => true,
                PathAccess::Read { .. } => reading,
            };
            let PathLocation::Known(places) = &path.place else {
                continue;
            };
            // A command that lists or walks a directory reads what is below it.
            let below = matches!(
                path.access,
                PathAccess::Read { walks: true, .. } | PathAccess::Read { content: false, .. }
            );
            let found = places
                .iter()
                .find(|touched| covers(touched) || (below && covers_below(pattern, touched)));
            if concerns && let Some(touched) = found {
                return Some(RuleHit {
                    part: Some(at),
                    what: touched.given.display().to_string(),
                });
            }
        }
    }
    // A `Read` rule does not restrict the files that a tool writes, unless the tool's profile
    // says so (`held_by_reads`).
    let spared = RuleMatch::Edits {
        held_by_reads: false,
    };
    let is_spared = rule.class == RuleClass::Reads && facts.rules == spared;
    let read = reading.then_some(&facts.reads).into_iter().flatten();
    let read = read.filter(|touched| !is_spared || !facts.writes.contains(touched));
    let write = (!is_spared).then_some(&facts.writes).into_iter().flatten();
    read.chain(write)
        .find(|touched| covers(touched) || (facts.searches && covers_below(pattern, touched)))
        .map(|touched| RuleHit::on(touched.given.display().to_string()))
}

fn covers(pattern: &PathPattern, touched: &TouchedPath) -> bool {
    touched
        .given_and_real()
        .into_iter()
        .any(|path| pattern.covers(path))
}

fn covers_below(pattern: &PathPattern, touched: &TouchedPath) -> bool {
    let below = |path: &Path| pattern.covers_all_below(path);
    touched.given_and_real().into_iter().any(below)
}

fn domain_hit(domain: &DomainPattern, facts: &CallFacts) -> Option<RuleHit> {
    let fetched = |target: &&UrlTarget| domain.matches(&target.host);
    if let Some(target) = facts.fetches.iter().find(fetched) {
        return Some(RuleHit::on(target.host.clone()));
    }
    let shell = facts.shell.as_ref()?;
    shell.parts().find_map(|(at, part, _)| {
        part.finding.effects.iter().find_map(|effect| match effect {
            Effect::Net(Some(host)) if domain.matches(host) => Some(RuleHit {
                part: Some(at),
                what: host.clone(),
            }),
            _ => None,
        })
    })
}

/// Returns why it is not known whether a command line touches something denied, and the part, if it
/// is known. Such a line must not run without asking. `open`: no sandbox prevents the access.
pub(super) fn undecidable(
    policy: &super::Policy,
    shell: &ShellFacts,
    open: bool,
) -> Option<(Option<usize>, String)> {
    if !policy.has_denials() {
        return None;
    }
    if let Some(problem) = &shell.analysis.unreadable {
        return Some((None, format!("it cannot be read: {problem}")));
    }
    let opaque = shell
        .parts()
        .find_map(|(at, part, _)| Some((at, part.opaque_reason()?.to_owned())));
    if let Some((at, why)) = opaque {
        return Some((Some(at), why));
    }
    if let Some(locale) = &shell.charset {
        let why = format!("the line may have another meaning in the character set of {locale}");
        return Some((None, why));
    }
    let commands = rules(policy).filter_map(|rule| match &rule.content {
        RuleContent::Command { pattern, .. } => Some(pattern),
        _ => None,
    });
    let commands: Vec<&WildcardPattern> = commands.collect();
    let handed_on = shell.parts().find_map(|(at, part, _)| {
        let text = passes_denied_command(&commands, part)?;
        Some((Some(at), format!("it may start {text}, which is denied")))
    });
    if handed_on.is_some() {
        return handed_on;
    }
    // What may not be read may not be overwritten either.
    let unread = denied_paths(policy, |rule| rule.class == RuleClass::Reads);
    let unwritten = denied_paths(policy, |_| true);
    if unwritten.is_empty() {
        return None;
    }
    if let Some((index, why)) = named_operands::undescribed(policy, &shell.named, open) {
        return Some((Some(index), why));
    }
    shell
        .parts()
        .zip(&shell.stored)
        .find_map(|((at, _, paths), stored)| {
            let mut uses = paths.iter().chain(stored);
            let unsure = uses.find(|path| may_reach(&unread, &unwritten, path))?;
            let shown = match unsure.text.as_str() {
                "" => "a path",
                text => text,
            };
            let what = match unsure.access {
                PathAccess::Read { .. } => "read",
                PathAccess::Write(_) => "changed",
            };
            let why = format!("{shown} may name a file that may not be {what}");
            Some((Some(at), why))
        })
}

/// Returns why a line must not run without asking if it removes or moves a directory with a denied
/// file.
pub(super) fn denied_in_removed(policy: &super::Policy, shell: &ShellFacts) -> Option<String> {
    let denied = denied_paths(policy, |_| true);
    let taken = |removed: &RemovedTree| {
        let path = removed.first_denied(&denied)?;
        Some(format!(
            "{} would be removed or moved with its directory",
            path.display()
        ))
    };
    shell.removed.iter().find_map(taken)
}

pub(super) fn denied_paths(policy: &super::Policy, speaks: fn(&Rule) -> bool) -> Vec<&PathPattern> {
    let rules = rules(policy).filter(|rule| speaks(rule));
    let patterns = rules.filter_map(|rule| match &rule.content {
        RuleContent::Path(pattern) => Some(&**pattern),
        _ => None,
    });
    patterns.collect()
}

fn rules(policy: &super::Policy) -> impl Iterator<Item = &Rule> {
    policy.rules.in_list(super::rules::List::Deny)
}

/// Known programs that may still start what their arguments name: `npm exec -c TEXT`, `make --eval
/// TEXT`, `poetry run COMMAND`, `go test -exec COMMAND`.
pub(super) const MAY_START: &[&str] = &[
    "ansible",
    "ant",
    "apt",
    "apt-get",
    "bun",
    "bundle",
    "bundler",
    "bunx",
    "cabal",
    "cargo",
    "cc",
    "cdk",
    "clang",
    "cmake",
    "composer",
    "conda",
    "corepack",
    "deno",
    "docker",
    "docker-compose",
    "dotnet",
    "dpkg",
    "fab",
    "flatpak",
    "fly",
    "flyctl",
    "g++",
    "gcc",
    "gcloud",
    "gmake",
    "go",
    "gradle",
    "gradlew",
    "hatch",
    "helm",
    "heroku",
    "husky",
    "invoke",
    "just",
    "kubectl",
    "lefthook",
    "lerna",
    "make",
    "mamba",
    "meson",
    "micromamba",
    "mill",
    "mix",
    "mvn",
    "mvnw",
    "ninja",
    "nox",
    "npm",
    "npx",
    "nx",
    "oc",
    "opam",
    "pdm",
    "pipenv",
    "pnpm",
    "pnpx",
    "podman",
    "podman-compose",
    "poetry",
    "pre-commit",
    "pulumi",
    "pyenv",
    "rake",
    "rebar3",
    "rpm",
    "rush",
    "rye",
    "salt",
    "sbt",
    "scons",
    "serverless",
    "skaffold",
    "snap",
    "ssh",
    "stack",
    "task",
    "terragrunt",
    "tox",
    "turbo",
    "uv",
    "vagrant",
    "yarn",
    "yarnpkg",
    "zig",
];

/// Returns a denied command in the arguments of an unknown program or of one that may start it.
fn passes_denied_command(denied: &[&WildcardPattern], part: &LinePart) -> Option<String> {
    let name = part.base_name()?;
    if denied.is_empty() || (is_known(name) && !MAY_START.contains(&name)) {
        return None;
    }
    let words: Vec<&str> = part.argv.iter().skip(1).map(shown).collect();
    // `EXEC:curl`, `--with=curl`, `.shell curl`, `!curl`
    let text = words.join(" ").replace([':', '=', '!', ','], ";");
    guess_commands(&text).find(|text| denied.iter().any(|pattern| pattern.matches(text)))
}

fn may_reach(unread: &[&PathPattern], unwritten: &[&PathPattern], path: &PathUse) -> bool {
    let (denied, walks) = match path.access {
        PathAccess::Read {
            content: true,
            walks,
        } => (unread, walks),
        PathAccess::Read { content: false, .. } => return false,
        PathAccess::Write(_) => (unwritten, false),
    };
    if denied.is_empty() {
        return false;
    }
    let reaches = |touched: &TouchedPath| {
        denied.iter().any(|pattern| {
            touched
                .given_and_real()
                .into_iter()
                .any(|path| pattern.reaches_below(path))
        })
    };
    match &path.place {
        PathLocation::Known(places) => walks && places.iter().any(reaches),
        PathLocation::Below(Some(places)) => places.iter().any(reaches),
        PathLocation::Below(None) => true,
    }
}

/// Returns the paths that a part creates, changes or removes.
pub(super) fn written(paths: &[PathUse]) -> impl Iterator<Item = (&PathUse, WriteKind)> {
    paths.iter().filter_map(|path| match path.access {
        PathAccess::Write(how) => Some((path, how)),
        PathAccess::Read { .. } => None,
    })
}
