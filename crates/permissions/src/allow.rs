//! Decides whether a call is allowed: a rule, the mode or its read-only verdict must cover every
//! effect.

use haft_contract::{PermissionMode, RuleMatch};
use haft_shell::{Effect, EffectVerdict, LinePart, RuleCoverage, WriteKind};

use super::{
    CallFacts, DecisionReason, Policy, TouchedPath,
    accepted_edits::{has_safe_assignments, is_accepted, writes_private_files},
    command_spelling,
    reversible::{self, ReversibleProblem},
    rule_matching,
    rules::{List, Rule, RuleClass, RuleContent, UrlTarget, collapse},
    shell_facts::{MAX_LENGTH, PathLocation, PathUse, ShellFacts},
};

/// The reason why a read-only part needs permission on a machine without confinement.
const UNCONFINED: &str = "nothing confines commands on this machine, so commands that only read \
                          need permission too";

/// The coverage of a part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartCoverage {
    /// The part is read-only and needs no rule.
    ReadOnly,
    /// A rule or another reason allows the part.
    Allowed(DecisionReason),
    /// Not covered. Contains the reason why the part is not read-only.
    Uncovered(String),
}

/// Returns whether every part of the line is read-only here.
pub(super) fn is_read_only(policy: &Policy, shell: &ShellFacts) -> bool {
    shell.is_read_only()
        && shell
            .parts()
            .all(|(at, part, _)| read_only_problem(policy, shell, at, part).is_none())
}

/// Returns whether the line changes nothing, but sends requests to one of the user's services. It
/// then runs with access to exactly those services.
pub(super) fn reads_network(policy: &Policy, shell: &ShellFacts) -> bool {
    let at_most = EffectVerdict::ReadsNetwork;
    shell.analysis.verdict == at_most
        && shell.line.len() <= MAX_LENGTH
        && shell
            .parts()
            .all(|(at, part, _)| verdict_doubt(policy, shell, at, part, at_most).is_none())
}

/// Returns why a part is not read-only here, if it is not.
fn read_only_problem(
    policy: &Policy,
    shell: &ShellFacts,
    at: usize,
    part: &LinePart,
) -> Option<String> {
    if part.finding.verdict != EffectVerdict::ReadOnly {
        return Some(part.finding.reason.to_string());
    }
    verdict_doubt(policy, shell, at, part, EffectVerdict::ReadOnly)
}

/// Returns why a part may do something else here than its analysis says, if it may.
pub(super) fn verdict_doubt(
    policy: &Policy,
    shell: &ShellFacts,
    at: usize,
    part: &LinePart,
    at_most: EffectVerdict,
) -> Option<String> {
    if let Some(locale) = &shell.charset {
        return Some(format!(
            "the line may have another meaning in the character set of {locale}"
        ));
    }
    let received = |one: &&haft_shell::SetVariable| {
        policy.sandbox.env.contains_key(&one.name) && !haft_shell::is_safe_variable(&one.name)
    };
    if let Some(one) = part.assignments.iter().find(received) {
        return Some(format!(
            "commands receive {} from the settings, and setting it may change what runs",
            one.name
        ));
    }
    let trusted = policy.sandbox.trusted;
    let chosen = shell
        .programs
        .problem(at, trusted, |file| policy.is_inside(file));
    if chosen.is_some() {
        return chosen;
    }
    if part.base_name() == Some("git") {
        if part.after_cd {
            return Some(
                "git in another directory runs what that directory's settings say".to_owned(),
            );
        }
        if let Some(problem) = &shell.git {
            return Some(problem.clone());
        }
    }
    let wrapper =
        part.finding.coverage != RuleCoverage::Transparent && !part.finding.starts.is_empty();
    if wrapper && !shell.starts_only(at, at_most) {
        return Some("it starts a command that is not harmless".to_owned());
    }
    None
}

/// Decides on a whole line. The error is the reason why the user must be asked: an irreversible
/// part, otherwise the first part that nothing covers.
pub(super) fn evaluate_line(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
) -> Result<DecisionReason, DecisionReason> {
    if let Some(because) = whole_line_rule(policy, facts, shell) {
        return Ok(because);
    }
    let refuse = |why: String| {
        Err(DecisionReason::Command {
            part: String::new(),
            why,
        })
    };
    if shell.analysis.unreadable.is_some() {
        return refuse(shell.analysis.reason.clone());
    }
    // The length limits only what a rule may allow.
    if shell.line.len() > MAX_LENGTH && !reversible::runs_reversibly(policy, facts) {
        return refuse(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    let mut allowed = DecisionReason::ReadOnly;
    let mut asks = None;
    for (at, covered) in part_coverage(policy, facts, shell) {
        match covered {
            PartCoverage::ReadOnly => {}
            PartCoverage::Allowed(because) if allowed != DecisionReason::Reversible => {
                allowed = because;
            }
            PartCoverage::Allowed(_) => {}
            PartCoverage::Uncovered(why) => {
                let reason = uncovered_reason(policy, facts, &shell.analysis.parts[at], why);
                if matches!(reason, DecisionReason::Irreversible { .. }) {
                    return Err(reason);
                }
                asks = asks.or(Some(reason));
            }
        }
    }
    asks.map_or(Ok(allowed), Err)
}

/// Returns why the user must be asked about a part that nothing covers.
fn uncovered_reason(
    policy: &Policy,
    facts: &CallFacts,
    part: &LinePart,
    why: String,
) -> DecisionReason {
    let text = part.text.clone();
    match reversible::problem(policy, facts, part) {
        Some(ReversibleProblem::Irreversible(why)) => {
            DecisionReason::Irreversible { part: text, why }
        }
        Some(ReversibleProblem::NewHost(why)) => DecisionReason::Address(why),
        Some(ReversibleProblem::NeedsService(_)) | None => {
            DecisionReason::Command { part: text, why }
        }
    }
}

/// Returns why a rule allows the line as a whole, if one does: a rule for the whole tool, or for
/// exactly this text.
fn whole_line_rule(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
) -> Option<DecisionReason> {
    let line = shell.line.trim();
    let collapsed = collapse(line);
    let rule =
        allowing(policy, facts).find(|rule| match rule.resolve_content(facts).as_deref() {
            Some(RuleContent::All) => true,
            Some(RuleContent::Command { pattern, text }) => {
                pattern.is_exact() && (pattern.matches(line) || *text == collapsed)
            }
            _ => false,
        })?;
    Some(DecisionReason::rule(rule, String::new()))
}

/// Returns the allow rules that apply to this tool.
fn allowing<'a>(policy: &'a Policy, facts: &'a CallFacts) -> impl Iterator<Item = &'a Rule> {
    policy.rules.in_list(List::Allow).filter(|rule| {
        let applies =
            facts.is_called(rule) || (facts.has_command() && rule.class == RuleClass::Commands);
        applies && !reversible::is_suspended(policy, rule)
    })
}

/// Returns the coverage of each part, in order.
pub(super) fn part_coverage(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
) -> Vec<(usize, PartCoverage)> {
    let mut exactly: Vec<bool> = Vec::new();
    let mut all = Vec::new();
    for (at, part, paths) in shell.parts() {
        let by_outer = part.outer.is_some_and(|outer| exactly[outer]);
        let (covered, exact) = if by_outer {
            (
                PartCoverage::Allowed(DecisionReason::Tool(
                    "the command that starts it is allowed as written".to_owned(),
                )),
                true,
            )
        } else if shell.is_launched(at) && reversible::is_launch_covered(policy, shell, at, &all) {
            let reason = "its launcher is evaluated instead".to_owned();
            (PartCoverage::Allowed(DecisionReason::Tool(reason)), false)
        } else {
            cover_part(policy, facts, shell, at, part, paths)
        };
        exactly.push(exact);
        all.push((at, covered));
    }
    all
}

/// Returns whether a rule or the mode covers one part, without the commands around it.
pub(super) fn is_part_covered(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
    index: usize,
) -> bool {
    let mut parts = shell.parts();
    parts
        .find(|(at, _, _)| *at == index)
        .is_some_and(|(at, part, paths)| {
            let (covered, _) = cover_part(policy, facts, shell, at, part, paths);
            !matches!(covered, PartCoverage::Uncovered(_))
        })
}

/// Returns the coverage of one part, and whether a rule matches exactly its text.
fn cover_part(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
    at: usize,
    part: &LinePart,
    paths: &[PathUse],
) -> (PartCoverage, bool) {
    let why = match read_only_problem(policy, shell, at, part) {
        Some(why) => why,
        None if policy.sandbox.unconfined => UNCONFINED.to_owned(),
        None => return (PartCoverage::ReadOnly, false),
    };
    if writes_private_files(policy, facts, shell, at, part, paths) {
        let why = "it writes only temporary files of this session".to_owned();
        return (PartCoverage::Allowed(DecisionReason::Tool(why)), false);
    }
    let by_mode = || {
        policy.mode == PermissionMode::AcceptEdits
            && is_accepted(policy, facts, shell, at, part, paths)
    };
    if part.argv.is_empty() {
        let covered = match by_edit_rules(policy, part, paths, why) {
            PartCoverage::Uncovered(_) if by_mode() => {
                PartCoverage::Allowed(DecisionReason::Mode(policy.mode))
            }
            PartCoverage::Uncovered(why) => reversible::coverage(policy, facts, part, why),
            covered => covered,
        };
        return (covered, false);
    }
    let mut written = vec![collapse(&part.text)];
    let words = command_spelling::canonical_command(&part.argv);
    // Variables before the command may change what it does. Then the rule must contain them, too.
    if has_safe_assignments(part) {
        written.push(collapse(&part.words));
        written.extend(words.clone());
    }
    let mut texts: Vec<String> = prefix_texts(policy, part)
        .iter()
        .map(|text| collapse(text))
        .collect();
    // `"npm" test` is `npm test`: rules are also compared with the unquoted arguments.
    texts.extend(words.filter(|_| has_safe_assignments(part)));
    for rule in allowing(policy, facts) {
        let meaning = rule.resolve_content(facts);
        let Some(RuleContent::Command { pattern, text }) = meaning.as_deref() else {
            continue;
        };
        let quoted = command_spelling::canonical_rule(text);
        let matches = |text: &String| {
            pattern.matches(text) || quoted.as_ref().is_some_and(|quoted| quoted.matches(text))
        };
        if pattern.is_exact() && written.iter().any(matches) {
            return (
                PartCoverage::Allowed(DecisionReason::rule(rule, part.text.clone())),
                true,
            );
        }
        let fits = texts.iter().any(matches);
        if fits && fits_a_prefix(policy, part, paths) {
            return (
                PartCoverage::Allowed(DecisionReason::rule(rule, part.text.clone())),
                false,
            );
        }
    }
    if by_mode() {
        return (
            PartCoverage::Allowed(DecisionReason::Mode(policy.mode)),
            false,
        );
    }
    (reversible::coverage(policy, facts, part, why), false)
}

/// Returns the texts that a prefix rule is compared with. Empty if a variable before the command
/// may change what it does.
fn prefix_texts(policy: &Policy, part: &LinePart) -> Vec<String> {
    if !has_safe_assignments(part) {
        return Vec::new();
    }
    let mut texts = vec![part.words.clone()];
    if let Some(text) = git_without_harmless_options(policy, part) {
        texts.push(text);
    }
    texts
}

/// Returns `git log` for `git -C inside log`, so that a rule for `git log` allows it, too.
fn git_without_harmless_options(policy: &Policy, part: &LinePart) -> Option<String> {
    if part.command_name() != Some("git") {
        return None;
    }
    let mut rest = part.argv.get(1..)?.iter();
    let mut words = vec!["git"];
    let mut skipped = false;
    while let Some(arg) = rest.next() {
        match arg.text()? {
            "--no-pager" | "-P" => skipped = true,
            "-C" => {
                skipped = true;
                let directory = rest.next()?.text()?;
                for place in part.cwd.as_deref()? {
                    if !policy
                        .is_inside(&haft_settings::real_path::normalize(&place.join(directory)))
                    {
                        return None;
                    }
                }
            }
            word => {
                words.push(word);
                // An unknown argument is still an argument: `git push $X` is not `git push`.
                words.extend(rest.map(|arg| arg.text().unwrap_or("…")));
                break;
            }
        }
    }
    skipped.then(|| words.join(" "))
}

/// Returns whether a prefix or wildcard rule may allow this part. If not, the part may do more than
/// its arguments show.
fn fits_a_prefix(policy: &Policy, part: &LinePart, paths: &[PathUse]) -> bool {
    let certain = part.command_name().is_some() && part.finding.coverage != RuleCoverage::Exact;
    let hidden = part.finding.starts.iter().any(|start| match start {
        haft_shell::StartedProgram::Script(text) => text.text().is_none(),
        haft_shell::StartedProgram::Command { .. } => false,
    });
    let git_elsewhere = part.base_name() == Some("git") && part.after_cd;
    certain
        && !hidden
        && !git_elsewhere
        && rule_matching::written(paths).all(|(path, how)| match how {
            WriteKind::OperandWrite | WriteKind::Removal | WriteKind::Tree => {
                is_inside(policy, path)
            }
            WriteKind::OptionWrite | WriteKind::Redirect => {
                let private = |touched: &TouchedPath| policy.is_private(&touched.real);
                let is_private = matches!(&path.place, PathLocation::Known(places)
                    if policy.may_write_private() && places.iter().all(private));
                is_private || may_edit(policy, path)
            }
        })
}

fn is_inside(policy: &Policy, path: &PathUse) -> bool {
    match &path.place {
        // Paths outside were already checked, or one of the user's rules covers them.
        PathLocation::Known(_) | PathLocation::Below(Some(_)) => true,
        PathLocation::Below(None) => policy.roots.is_empty(),
    }
}

/// Returns whether Edit rules cover every possible location of this path.
fn may_edit(policy: &Policy, path: &PathUse) -> bool {
    match &path.place {
        PathLocation::Known(places) => places
            .iter()
            .all(|touched| edit_rule(policy, touched).is_some()),
        PathLocation::Below(_) => false,
    }
}

fn edit_rule<'a>(policy: &'a Policy, touched: &TouchedPath) -> Option<&'a Rule> {
    policy.rules.in_list(List::Allow).find(|rule| {
        rule.class == RuleClass::Edits
            && match &rule.content {
                RuleContent::All => true,
                RuleContent::Path(pattern) => touched
                    .given_and_real()
                    .into_iter()
                    .all(|path| pattern.covers(path)),
                _ => false,
            }
    })
}

/// Returns the coverage of a part that only redirects. Only Edit rules for the files can allow it.
fn by_edit_rules(policy: &Policy, part: &LinePart, paths: &[PathUse], why: String) -> PartCoverage {
    let only_writes = part
        .finding
        .effects
        .iter()
        .all(|effect| matches!(effect, Effect::Write(_)));
    if !only_writes || part.finding.effects.is_empty() || part.after_cd {
        return PartCoverage::Uncovered(why);
    }
    let mut because = None;
    for path in paths {
        let PathLocation::Known(places) = &path.place else {
            return PartCoverage::Uncovered(why);
        };
        for touched in places {
            match edit_rule(policy, touched) {
                Some(rule) => because = Some(DecisionReason::rule(rule, path.text.clone())),
                None => return PartCoverage::Uncovered(why),
            }
        }
    }
    because.map_or(PartCoverage::Uncovered(why), PartCoverage::Allowed)
}

/// Returns why a call of a tool without a command line is allowed, if it is.
pub(super) fn evaluate_call(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    let found = allowing(policy, facts).find_map(|rule| {
        let fits = match &*rule.resolve_content(facts)? {
            RuleContent::All => true,
            RuleContent::Text(pattern) => {
                let subject = facts.subject.as_deref()?;
                pattern.matches(subject)
            }
            // Each fetched host and each path needs its own rule, which is checked below.
            RuleContent::Domain(_) | RuleContent::ReadHost(_) | RuleContent::Path(_) => false,
            RuleContent::Command { .. } | RuleContent::Parameter { .. } => false,
            RuleContent::Unresolved(_) => false,
        };
        fits.then(|| DecisionReason::rule(rule, facts.subject.clone().unwrap_or_default()))
    });
    found
        .or_else(|| fetched(policy, facts))
        .or_else(|| edited(policy, facts))
}

fn fetched(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    let mut because = None;
    for target in &facts.fetches {
        let rule = fetch_rule(policy, facts, target)?;
        because = Some(DecisionReason::rule(rule, target.host.clone()));
    }
    because
}

/// Returns the first address that no rule allows the call to fetch.
pub(super) fn not_fetched<'a>(policy: &Policy, facts: &'a CallFacts) -> Option<&'a UrlTarget> {
    let mut targets = facts.fetches.iter();
    targets.find(|target| fetch_rule(policy, facts, target).is_none())
}

fn fetch_rule<'a>(policy: &'a Policy, facts: &CallFacts, target: &UrlTarget) -> Option<&'a Rule> {
    policy
        .rules
        .in_list(List::Allow)
        .filter(|rule| facts.is_called(rule))
        .find(|rule| match rule.resolve_content(facts).as_deref() {
            Some(RuleContent::Domain(domain)) => {
                target.odd.is_none() && domain.matches(&target.host)
            }
            _ => false,
        })
}

/// Returns the last rule that allows the call's paths, if every path has one: an `Edit` rule for
/// each written path, or a rule with the tool's own name for each path that the call touches.
fn edited(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    if facts.opaque || facts.writes.is_empty() {
        return None;
    }
    let touched: Vec<&TouchedPath> = match facts.rules {
        RuleMatch::Edits { .. } => facts.writes.iter().collect(),
        RuleMatch::Paths => facts.writes.iter().chain(&facts.reads).collect(),
        _ => return None,
    };
    let mut because = None;
    for touched in touched {
        let rule = match facts.rules {
            RuleMatch::Paths => own_path_rule(policy, facts, touched)?,
            _ => edit_rule(policy, touched)?,
        };
        because = Some(DecisionReason::rule(
            rule,
            touched.given.display().to_string(),
        ));
    }
    because
}

fn own_path_rule<'a>(
    policy: &'a Policy,
    facts: &CallFacts,
    touched: &TouchedPath,
) -> Option<&'a Rule> {
    let mut rules = policy.rules.in_list(List::Allow);
    rules.find(|rule| {
        facts.is_called(rule)
            && match rule.resolve_content(facts).as_deref() {
                Some(RuleContent::Path(pattern)) => touched
                    .given_and_real()
                    .into_iter()
                    .all(|path| pattern.covers(path)),
                _ => false,
            }
    })
}
