//! The permission decision, as one pure function.
//!
//! The order is fixed. First, deny rules deny. Then these always ask: leaving the sandbox, doubts
//! about denied objects, critical removals, protected objects, paths outside the working
//! directories, private addresses, ask rules. Then these allow: a hook, the mode, the read-only
//! verdict, the sandbox, a rule. A deny rule overrides an ask rule, and an ask rule overrides an
//! allow rule, regardless of their settings files.

use std::{
    cell::LazyCell,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use haft_contract::{PermissionMode, ToolPermission};
use haft_shell::WriteKind;

use super::{
    CallFacts, Decision, DecisionBehavior, DecisionReason, Policy, TouchedPath,
    allow::{self, PartCoverage},
    credentials, offline,
    protected_files::sensitive,
    read_domains, reversible, rule_matching,
    rules::{List, RuleClass, RuleContent, UrlTarget, in_url},
    sandbox,
    shell_facts::{PathAccess, PathLocation, PathUse, ShellFacts},
    system_files, tree_writes,
};
use haft_settings::real_path;

/// Decides on a call. Has no side effects, and the same arguments always give the same decision.
pub fn decide(policy: &Policy, facts: &CallFacts) -> Decision {
    let decision = decide_before_dont_ask(policy, facts);
    // In `dontAsk` mode, calls that would need the user are denied.
    if decision.behavior == DecisionBehavior::Ask && policy.mode == PermissionMode::DontAsk {
        return Decision {
            behavior: DecisionBehavior::Deny,
            ..decision
        };
    }
    decision
}

fn decide_before_dont_ask(policy: &Policy, facts: &CallFacts) -> Decision {
    let answer = |behavior, because| Decision {
        behavior,
        reason: because,
    };
    if let Some(because) = deny_reason(policy, facts) {
        return answer(DecisionBehavior::Deny, because);
    }
    if let Some(because) = ask_reason(policy, facts) {
        return answer(DecisionBehavior::Ask, because);
    }
    match allow_reason(policy, facts) {
        Ok(because) => answer(DecisionBehavior::Allow, because),
        Err(because) => answer(DecisionBehavior::Ask, because),
    }
}

fn deny_reason(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    if let ToolPermission::Deny(reason) = &facts.tool_permission {
        return Some(DecisionReason::Tool(reason.clone()));
    }
    policy.rules.in_list(List::Deny).find_map(|rule| {
        let hit = rule_matching::match_rule(rule, facts)?;
        Some(DecisionReason::rule(rule, hit.what))
    })
}

/// Returns why the user must be asked, even if a rule or mode would allow the call.
fn ask_reason(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    if let Some(shell) = &facts.shell {
        // First, so that the user agrees to exactly this.
        if sandbox::is_lifted(policy, facts) {
            return Some(DecisionReason::Unconfined);
        }
        let open = sandbox::is_open(policy, facts);
        if let Some((_, why)) = rule_matching::undecidable(policy, shell, open) {
            return Some(DecisionReason::Undecidable(why));
        }
        if let Some(path) = critical(policy, shell) {
            return Some(DecisionReason::Critical(path));
        }
        if let Some(why) = rule_matching::denied_in_removed(policy, shell) {
            return Some(DecisionReason::Undecidable(why));
        }
        // In a sandbox, no command can write denied files.
        if open && let Some(why) = tree_writes::denied_below(policy, shell) {
            return Some(DecisionReason::Undecidable(why));
        }
    }
    if policy.mode != PermissionMode::BypassPermissions
        && let Some(because) =
            protected_reason(policy, facts).or_else(|| outside_reason(policy, facts))
    {
        return Some(because);
    }
    if policy.mode != PermissionMode::BypassPermissions
        && let Some(address) = facts.resolved.iter().find(|address| is_private(address))
    {
        let why = format!("its host is at {address}, which is not on the public network");
        return Some(DecisionReason::Address(why));
    }
    let asked = policy.rules.in_list(List::Ask).find_map(|rule| {
        // An ask rule for all commands does not apply to a command that the sandbox allows.
        let hit = rule_matching::match_rule(rule, facts)?;
        if rule.is_bare() && sandbox::is_enough(policy, facts) {
            return None;
        }
        Some(DecisionReason::rule(rule, hit.what))
    });
    if asked.is_some() {
        return asked;
    }
    if facts.interactive && facts.hook != super::HookPermission::Answer {
        return Some(match &facts.tool_permission {
            ToolPermission::Ask(reason) => DecisionReason::Tool(reason.clone()),
            _ => DecisionReason::Interactive,
        });
    }
    if facts.interactive {
        return None;
    }
    if let ToolPermission::Ask(reason) = &facts.tool_permission {
        return Some(DecisionReason::Tool(reason.clone()));
    }
    (facts.hook == super::HookPermission::Ask).then_some(DecisionReason::Hook)
}

/// Returns why the call is allowed. The error is the reason why it is not.
fn allow_reason(policy: &Policy, facts: &CallFacts) -> Result<DecisionReason, DecisionReason> {
    use PermissionMode as Mode;
    if matches!(
        facts.hook,
        super::HookPermission::Allow | super::HookPermission::Answer
    ) {
        return Ok(DecisionReason::Hook);
    }
    let harmless = match &facts.shell {
        Some(shell) => allow::is_read_only(policy, shell) && !policy.sandbox.unconfined,
        None => facts.is_read_only(),
    };
    if policy.mode == Mode::BypassPermissions {
        return Ok(DecisionReason::Mode(policy.mode));
    }
    if harmless && facts.subject.is_none() {
        return Ok(DecisionReason::ReadOnly);
    }
    if policy.mode == Mode::Plan && writes_only_plan(policy, facts) {
        return Ok(DecisionReason::Tool("it writes the plan".to_owned()));
    }
    let needs_none = || DecisionReason::Tool("the tool needs no permission".to_owned());
    if harmless && facts.tool_permission == ToolPermission::Allow {
        return Ok(needs_none());
    }
    if policy.mode == Mode::Plan {
        return Err(DecisionReason::Mode(policy.mode));
    }
    if let Some(shell) = &facts.shell {
        if policy.mode != Mode::Auto
            && sandbox::is_enough(policy, facts)
            && !sandbox::uses_secret(policy, facts)
        {
            return Ok(DecisionReason::Sandboxed);
        }
        return allow::evaluate_line(policy, facts, shell).or_else(|because| {
            if let Some(reason) = offline::reason(policy, facts) {
                return Ok(DecisionReason::Offline(reason));
            }
            let (hosts, rule) = read_domains::permitted(policy, facts).ok_or(because)?;
            Ok(DecisionReason::rule(rule, hosts.join(", ")))
        });
    }
    if let Some(because) = allow::evaluate_call(policy, facts) {
        return Ok(because);
    }
    // The mode applies to files: it allows no connections.
    if policy.mode == Mode::AcceptEdits && !facts.opaque && facts.fetches.is_empty() {
        return Ok(DecisionReason::Mode(policy.mode));
    }
    if policy.mode == Mode::Auto && reversible::is_reversible_edit(facts) {
        return match reversible::unstored_file(policy, facts) {
            Some(why) => Err(DecisionReason::Tool(why)),
            None => Ok(DecisionReason::Reversible),
        };
    }
    if facts.tool_permission == ToolPermission::Allow {
        return Ok(needs_none());
    }
    match allow::not_fetched(policy, facts) {
        Some(UrlTarget { odd: Some(odd), .. }) => Err(DecisionReason::Address((*odd).to_owned())),
        Some(target) => Err(DecisionReason::Address(format!(
            "it contacts {}",
            in_url(&target.host)
        ))),
        None => Err(DecisionReason::Changes(
            facts.writes.first().map(|touched| touched.real.clone()),
        )),
    }
}

/// Returns whether the call writes the plan and nothing else.
fn writes_only_plan(policy: &Policy, facts: &CallFacts) -> bool {
    let only_files = facts.shell.is_none() && !facts.opaque && facts.fetches.is_empty();
    let mut writes = facts.writes.iter();
    only_files && !facts.writes.is_empty() && writes.all(|touched| policy.is_plan(touched))
}

/// Returns whether the address is invalid, of this machine or of a private network.
fn is_private(address: &str) -> bool {
    match address.trim().trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(v4)) => is_private_v4(v4),
        Ok(IpAddr::V6(v6)) => match v6.to_ipv4_mapped() {
            Some(v4) => is_private_v4(v4),
            None => {
                v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_unique_local()
                    || v6.is_unicast_link_local()
                    || v6.is_multicast()
            }
        },
        Err(_) => true,
    }
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    let [first, second, ..] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_unspecified()
        || v4.is_broadcast()
        || v4.is_multicast()
        || first == 0
        // Addresses that carriers share are not public either.
        || (first == 100 && (64..128).contains(&second))
}

/// Returns the first removal that no rule may allow, as written.
fn critical(policy: &Policy, shell: &ShellFacts) -> Option<String> {
    shell.parts().find_map(|(_, part, paths)| {
        let removed = rule_matching::written(paths).filter(|(_, how)| *how == WriteKind::Removal);
        removed
            .map(|(path, _)| path)
            .find(|path| {
                is_critical(policy, path) && !reversible::is_cleanup(policy, shell, part, path)
            })
            .map(|path| path.text.clone())
    })
}

/// Returns whether removing this path would destroy the system, the home or the project.
pub(super) fn is_critical(policy: &Policy, path: &PathUse) -> bool {
    let home = policy.home.as_deref();
    let start = policy.roots.first();
    let root = |path: &Path| path.parent().is_none_or(|parent| parent == Path::new("/"));
    let itself = |path: &Path| {
        root(path) || Some(path) == home || start.is_some_and(|start| start.starts_with(path))
    };
    let all_below = |path: &Path| {
        path.parent().is_none()
            || Some(path) == home
            || start.is_some_and(|start| start != path && start.starts_with(path))
            || policy.roots.iter().skip(1).any(|root| root == path)
    };
    match &path.place {
        // A variable with the path of a temporary file is empty if that could not be created.
        PathLocation::Known(places) | PathLocation::Below(Some(places))
            if is_below_a_variable(&path.text)
                && places
                    .iter()
                    .any(|touched| policy.is_private(&touched.real)) =>
        {
            true
        }
        PathLocation::Known(places) => places
            .iter()
            .any(|touched| touched.given_and_real().into_iter().any(itself)),
        // `*` directly below a critical directory.
        PathLocation::Below(Some(places)) => {
            let whole =
                path.text.trim_matches(['"', '\'']).ends_with("/*") || path.text.starts_with('*');
            whole
                && places
                    .iter()
                    .any(|touched| touched.given_and_real().into_iter().any(all_below))
        }
        PathLocation::Below(None) => is_below_a_variable(&path.text),
    }
}

/// Returns whether the text means everything if a variable is empty: `"$DIR"/*`, `$DIR/`.
fn is_below_a_variable(text: &str) -> bool {
    let plain = text.replace(['"', '\''], "");
    let before = plain.trim_end_matches(['*', '.']);
    let Some(variable) = before.strip_suffix('/') else {
        // For an unknown text, the worst case is assumed.
        return plain.is_empty();
    };
    variable.starts_with('$') && !variable.contains('/')
}

/// Returns the first touched path that needs the user: files that control other programs, keys,
/// devices, processes.
fn protected_reason(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    touched(facts).find_map(|(touched, written)| {
        let found = sensitive_reason(policy, touched, written)?;
        let expected = is_named(policy, touched, written) || policy.is_plan(touched);
        (!expected).then_some(found)
    })
}

/// Returns all known paths that a call touches, and whether it writes them.
fn touched(facts: &CallFacts) -> impl Iterator<Item = (&TouchedPath, bool)> {
    let written = facts.writes.iter().map(|touched| (touched, true));
    let read = facts.reads.iter().map(|touched| (touched, false));
    let shell = facts.shell.iter().flat_map(ShellFacts::parts);
    let shell = shell.flat_map(|(_, _, paths)| paths).flat_map(|path| {
        let places = match &path.place {
            PathLocation::Known(places) | PathLocation::Below(Some(places)) => places.as_slice(),
            PathLocation::Below(None) => &[],
        };
        let written = matches!(path.access, PathAccess::Write(_));
        places.iter().map(move |touched| (touched, written))
    });
    written.chain(read).chain(shell)
}

/// Returns why a path is sensitive, if it is. Checks the resolved path first, because the call
/// opens that one.
fn sensitive_reason(
    policy: &Policy,
    touched: &TouchedPath,
    written: bool,
) -> Option<DecisionReason> {
    let paths = [&touched.real, &touched.given];
    let several = usize::from(touched.given != touched.real);
    let paths = paths.into_iter().take(1 + several);
    let own = &policy.sandbox.own_directory;
    let is_own = |path: &Path| own.iter().any(|own| real_path::is_below(path, own));
    let controls = |path: &Path| {
        touched.controls_repository || (written && (policy.is_control(path) || is_own(path)))
    };
    let protected = paths.clone().find(|path| controls(path));
    if let Some(path) = protected {
        return Some(DecisionReason::Protected(path.clone()));
    }
    let mut paths = paths;
    paths.find_map(|path| {
        let what = sensitive(path, policy.store_places())?;
        Some(DecisionReason::Sensitive(path.clone(), what))
    })
}

/// Returns the stores of keys that the call may use: those that its line names, those that a rule
/// names, and the one that a link leads to if the user was asked about it. Only for a call that may
/// run.
pub(super) fn stores_allowed(policy: &Policy, facts: &CallFacts) -> Vec<PathBuf> {
    let home = policy.home.as_deref();
    let places = policy.store_places();
    let stores = credentials::existing_stores(places);
    let is_store = |path: &Path| {
        credentials::is_store(path, places) || stores.iter().any(|store| path.starts_with(store))
    };
    let bypass = policy.mode == PermissionMode::BypassPermissions;
    let mut asked = None;
    let mut allowed = named_stores(policy, &is_store);
    // The question covered the credentials that a service requires.
    if let Some(shell) = &facts.shell
        && allow::reads_network(policy, shell)
    {
        allowed.extend(sandbox::stores_of(shell, home));
    }
    if let Some(approved) = sandbox::approved_access(policy, facts) {
        allowed.extend(approved.stores);
    }
    for (touched, written) in touched(facts) {
        if !is_store(&touched.real) {
            continue;
        }
        let plain = is_store(&touched.given) || bypass || is_named(policy, touched, written);
        let asked = asked.get_or_insert_with(|| path_to_ask_about(policy, facts));
        if plain || asked.as_ref() == Some(&touched.real) {
            allowed.push(touched.real.clone());
        }
    }
    allowed
}

/// Returns the reason for the decision, before the mode turns a question into a denial.
pub(super) fn reason_to_ask(policy: &Policy, facts: &CallFacts) -> DecisionReason {
    decide_before_dont_ask(policy, facts).reason
}

/// Returns the path that the user is asked about, if the question is about a path.
pub(super) fn path_to_ask_about(policy: &Policy, facts: &CallFacts) -> Option<PathBuf> {
    match decide_before_dont_ask(policy, facts).reason {
        DecisionReason::Sensitive(path, _) | DecisionReason::Outside(path) => Some(path),
        _ => None,
    }
}

/// Returns the stores that the user's rules name exactly. They are allowed for every call, even if
/// its reads are unknown.
fn named_stores(policy: &Policy, is_store: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let rules = policy.rules.in_list(List::Allow);
    let rules = rules.filter(|rule| rule.source.scope.is_users());
    let mut named = Vec::new();
    for rule in rules.filter(|rule| matches!(rule.class, RuleClass::Reads | RuleClass::Edits)) {
        if let RuleContent::Path(pattern) = &rule.content {
            let paths = pattern.fixed_paths().into_iter().flatten();
            let paths = paths.filter(|path| pattern.names(path) && is_store(path));
            named.extend(paths.map(|path| real_path::resolve_links(&path)));
        }
    }
    named
}

/// Returns whether one of the user's rules names exactly this path.
fn is_named(policy: &Policy, touched: &TouchedPath, written: bool) -> bool {
    policy.rules.in_list(List::Allow).any(|rule| {
        let fits = rule.class == RuleClass::Edits || (!written && rule.class == RuleClass::Reads);
        match &rule.content {
            RuleContent::Path(pattern) => {
                fits && rule.source.scope.is_users()
                    && touched
                        .given_and_real()
                        .into_iter()
                        .all(|path| pattern.names(path))
            }
            _ => false,
        }
    })
}

/// Returns the first touched path outside the working directories, written paths first. Checks
/// resolved paths.
fn outside_reason(policy: &Policy, facts: &CallFacts) -> Option<DecisionReason> {
    let found = |touched: &TouchedPath| DecisionReason::Outside(touched.real.clone());
    let reaches = |touched: &TouchedPath, written: bool| {
        policy.is_plan(touched) || reaches_outside(policy, touched, written)
    };
    for touched in &facts.writes {
        if !policy.is_inside(&touched.real) && !reaches(touched, true) {
            return Some(found(touched));
        }
    }
    for touched in &facts.reads {
        if !policy.may_read(&touched.real) && !reaches(touched, false) {
            return Some(found(touched));
        }
    }
    let system = LazyCell::new(|| system_files::are_readable(policy, facts));
    let shell = facts.shell.iter().flat_map(ShellFacts::parts);
    for (_, part, paths) in shell {
        for path in paths {
            let (places, written) = match (&path.place, path.access) {
                (
                    PathLocation::Known(places) | PathLocation::Below(Some(places)),
                    PathAccess::Write(_),
                ) => (places, true),
                (
                    PathLocation::Known(places) | PathLocation::Below(Some(places)),
                    PathAccess::Read { .. },
                ) => (places, false),
                // The target of a `cd` must be known; the paths of other reads need not be.
                (PathLocation::Below(None), PathAccess::Read { .. })
                    if matches!(part.base_name(), Some("cd" | "pushd")) =>
                {
                    return Some(DecisionReason::Outside(PathBuf::from(&path.text)));
                }
                (PathLocation::Below(None), PathAccess::Write(WriteKind::Redirect)) => {
                    return Some(DecisionReason::Command {
                        part: path.text.clone(),
                        why: "the line does not show where it writes".to_owned(),
                    });
                }
                (PathLocation::Below(None), _) => continue,
            };
            for touched in places {
                let inside = if written {
                    policy.is_inside(&touched.real)
                } else {
                    policy.may_read(&touched.real) || (system_files::has(touched) && *system)
                };
                if !inside && !reaches(touched, written) {
                    return Some(found(touched));
                }
            }
        }
    }
    None
}

/// Returns whether one of the user's rules with an absolute path covers this path.
fn reaches_outside(policy: &Policy, touched: &TouchedPath, written: bool) -> bool {
    policy.rules.in_list(List::Allow).any(|rule| {
        let fits = rule.class == RuleClass::Edits || (!written && rule.class == RuleClass::Reads);
        match &rule.content {
            RuleContent::Path(pattern) => {
                fits && rule.source.scope.is_users()
                    && pattern.is_absolute()
                    && touched
                        .given_and_real()
                        .into_iter()
                        .all(|path| pattern.covers(path))
            }
            _ => false,
        }
    })
}

/// Returns the coverage of all parts of a line, including those that nothing allows.
pub fn uncovered_parts(policy: &Policy, facts: &CallFacts) -> Vec<(usize, PartCoverage)> {
    facts
        .shell
        .as_ref()
        .map(|shell| allow::part_coverage(policy, facts, shell))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(path: &str) -> Vec<TouchedPath> {
        vec![TouchedPath {
            given: path.into(),
            real: path.into(),
            controls_repository: false,
        }]
    }

    /// Every mode against every kind of call, so that a change of one cell shows.
    #[test]
    fn the_whole_table() {
        use PermissionMode as Mode;
        let rules = haft_contract::RuleMatch::default();
        let nothing = CallFacts::without_effects("T", rules, serde_json::Value::Null);
        let calls = [
            ("touches nothing", nothing.clone()),
            (
                "reads inside",
                CallFacts {
                    reads: touched("/p/a"),
                    ..nothing.clone()
                },
            ),
            (
                "reads a kept result",
                CallFacts {
                    reads: touched("/s/r"),
                    ..nothing.clone()
                },
            ),
            (
                "reads outside",
                CallFacts {
                    reads: touched("/etc/passwd"),
                    ..nothing.clone()
                },
            ),
            (
                "reads a sibling",
                CallFacts {
                    reads: touched("/p2/a"),
                    ..nothing.clone()
                },
            ),
            (
                "writes inside",
                CallFacts {
                    writes: touched("/p/a"),
                    ..nothing.clone()
                },
            ),
            (
                "writes a kept result",
                CallFacts {
                    writes: touched("/s/r"),
                    ..nothing.clone()
                },
            ),
            (
                "writes outside",
                CallFacts {
                    writes: touched("/etc/passwd"),
                    ..nothing.clone()
                },
            ),
            (
                "writes by a link",
                CallFacts {
                    writes: vec![TouchedPath {
                        given: "/p/link".into(),
                        real: "/etc/x".into(),
                        controls_repository: false,
                    }],
                    ..nothing.clone()
                },
            ),
            (
                "writes a control file",
                CallFacts {
                    writes: touched("/p/.git/config"),
                    ..nothing.clone()
                },
            ),
            (
                "opaque",
                CallFacts {
                    opaque: true,
                    ..nothing.clone()
                },
            ),
            (
                "opaque, tool allows",
                CallFacts {
                    opaque: true,
                    tool_permission: ToolPermission::Allow,
                    ..nothing.clone()
                },
            ),
            (
                "tool asks",
                CallFacts {
                    tool_permission: ToolPermission::Ask("why".into()),
                    ..nothing.clone()
                },
            ),
            (
                "tool denies",
                CallFacts {
                    tool_permission: ToolPermission::Deny("why".into()),
                    ..nothing
                },
            ),
        ];
        let modes = [
            Mode::Default,
            Mode::AcceptEdits,
            Mode::Plan,
            Mode::Auto,
            Mode::DontAsk,
            Mode::BypassPermissions,
        ];
        let mut table = String::new();
        for (what, facts) in &calls {
            table += &format!("{what:22}");
            for mode in modes {
                let policy = Policy {
                    readable: vec!["/s".into()],
                    ..Policy::new(mode, vec!["/p".into()])
                };
                let Decision { behavior, .. } = decide(&policy, facts);
                table += &format!("{:7}", format!("{behavior:?}"));
            }
            table = format!("{}\n", table.trim_end());
        }
        insta::assert_snapshot!(table);
    }
}
