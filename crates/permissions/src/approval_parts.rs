//! Texts that explain a permission question to the user: the parts of the command line, the reasons
//! for asking, and the confinement. `haft permissions explain` shows the same texts.

use std::path::{Path, PathBuf};

use haft_contract::{ApprovalPart, ConfinementProfile, NetworkAccess};
use haft_settings::real_path;
use haft_shell::{Arg, ArgValue, Effect, LinePart, WriteKind};

use super::{
    CallFacts, DecisionReason, PartCoverage, Policy, TouchedPath, profile,
    reversible::IRREVERSIBLE, sandbox, uncovered_parts,
};

/// The maximum length of a meaning, in characters.
const MAX_LENGTH: usize = 160;

/// Returns the parts of a call's command line and what each does.
pub fn parts(policy: &Policy, facts: &CallFacts) -> Vec<ApprovalPart> {
    let Some(shell) = &facts.shell else {
        return Vec::new();
    };
    let all = &shell.analysis.parts;
    uncovered_parts(policy, facts)
        .into_iter()
        .map(|(at, covered)| ApprovalPart {
            text: part_text(&all[at], &shell.line).to_owned(),
            meaning: describe_part(&all[at], &covered),
            depth: part_depth(all, &all[at]),
            asks: matches!(covered, PartCoverage::Uncovered(_)),
        })
        .collect()
}

/// Returns the paths of a call that resolve to other paths: as given, and resolved. Ignores a
/// difference that exists only because the working directory is reached through a symlink.
pub fn resolved_elsewhere(facts: &CallFacts, cwd: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut home = None;
    let mut found = Vec::new();
    for touched in facts.writes.iter().chain(&facts.reads) {
        let [given, real] = touched.given_and_real();
        if given == real {
            continue;
        }
        let home = home.get_or_insert_with(|| real_path::resolve_links(cwd));
        let is_here = given
            .strip_prefix(cwd)
            .is_ok_and(|inside| home.join(inside) == *real);
        let pair = (given.to_path_buf(), real.to_path_buf());
        if !is_here && !found.contains(&pair) {
            found.push(pair);
        }
    }
    found
}

/// Returns why the user is asked about a call, one line each: the reason itself, then every part
/// that nothing allows.
pub fn ask_reasons(because: &DecisionReason, parts: &[ApprovalPart]) -> Vec<String> {
    let named = match because {
        DecisionReason::Command { part, .. } => Some(part.as_str()),
        _ => None,
    };
    let others = parts
        .iter()
        .filter(|part| part.asks && Some(part.text.as_str()) != named)
        .map(|part| format!("no rule for {}", part.text));
    std::iter::once(because.to_string()).chain(others).collect()
}

/// Returns a short text about how a call's command would be confined; `None` if the call runs no
/// command.
pub fn confinement_text(policy: &Policy, facts: &CallFacts) -> Option<String> {
    let (confined, reason) = profile(policy, facts)?;
    let approved = sandbox::approved_access(policy, facts);
    let network = match sandbox::network(policy, confined, &reason, approved.as_ref()) {
        NetworkAccess::Nobody => "none",
        NetworkAccess::ByRule(_) => "by rule",
        NetworkAccess::Only(hosts) if hosts.lists().allowed.is_empty() => "none",
        NetworkAccess::Only(_) => "only the named hosts",
        NetworkAccess::Anybody => "open",
    };
    Some(match confined {
        ConfinementProfile::Full => format!("not confined: {reason}"),
        _ => {
            let access = approved.and_then(|approved| approved.text(policy.home.as_deref()));
            let access = access.map_or_else(String::new, |access| format!("; with {access}"));
            format!("profile {}, network {network}{access}", confined.name())
        }
    })
}

/// Returns the access that a call's command gets in addition once it is approved.
pub fn approved_access_text(policy: &Policy, facts: &CallFacts) -> Option<String> {
    sandbox::approved_access(policy, facts)?.text(policy.home.as_deref())
}

/// Returns the kind of coverage of a part, and the details if any. No part is denied on its own,
/// because a deny rule applies to the whole call.
pub fn part_decision(covered: &PartCoverage) -> (&'static str, Option<String>) {
    match covered {
        PartCoverage::ReadOnly => ("harmless", None),
        // The mode `auto` allows changes in this profile only.
        PartCoverage::Allowed(DecisionReason::Reversible) => {
            let profile = ConfinementProfile::Workspace.name();
            ("reversible", Some(format!("{profile}, undo exact")))
        }
        PartCoverage::Allowed(because) => ("allowed", Some(because.to_string())),
        PartCoverage::Uncovered(why) => match why.strip_prefix(IRREVERSIBLE) {
            Some(why) => ("irreversible", Some(why.to_owned())),
            None => ("asks", Some(why.clone())),
        },
    }
}

/// Returns a part as written in the line.
pub fn part_text<'a>(part: &'a LinePart, line: &'a str) -> &'a str {
    match part.text.is_empty() {
        true => line.get(part.span.start..part.span.end).unwrap_or_default(),
        false => &part.text,
    }
}

/// Returns the nesting depth of a part: the number of parts around it, each of which starts the
/// next.
pub fn part_depth(parts: &[LinePart], part: &LinePart) -> usize {
    let mut depth = 0;
    let mut outer = part.outer;
    while let Some(at) = outer {
        depth += 1;
        outer = parts[at].outer;
    }
    depth
}

fn describe_part(part: &LinePart, covered: &PartCoverage) -> String {
    let does = || -> Option<String> {
        let effects = part.finding.effects.iter();
        // Reading is not mentioned if there are other effects.
        let telling = effects.filter(|effect| !matches!(effect, Effect::Read(_) | Effect::Env(_)));
        let texts: Vec<String> = telling.map(effect_text).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let text = match covered {
        PartCoverage::ReadOnly => "harmless".to_owned(),
        PartCoverage::Allowed(because) => match does() {
            Some(does) => format!("{does}; {because}"),
            None => because.to_string(),
        },
        PartCoverage::Uncovered(why) => does().unwrap_or_else(|| why.clone()),
    };
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns a short description of an effect.
pub fn effect_text(effect: &Effect) -> String {
    match effect {
        Effect::Read(read) if read.is_recursive => {
            format!("reads everything below {}", arg_text(&read.path))
        }
        Effect::Read(read) if read.content => format!("reads {}", arg_text(&read.path)),
        Effect::Read(read) => format!("inspects {}", arg_text(&read.path)),
        Effect::Write(write) => match write.kind {
            WriteKind::Removal => format!("removes {}", arg_text(&write.path)),
            WriteKind::Tree => format!("writes what is below {}", arg_text(&write.path)),
            WriteKind::OperandWrite | WriteKind::OptionWrite | WriteKind::Redirect => {
                format!("writes {}", arg_text(&write.path))
            }
        },
        Effect::Net(Some(host)) => format!("contacts {host}"),
        Effect::Net(None) => "contacts a host".to_owned(),
        Effect::Service(service) => service.reason().trim_start_matches("it ").to_owned(),
        Effect::Env(name) => format!("sets {name}"),
        Effect::Irreversible(why) => why.trim_start_matches("it ").to_owned(),
        Effect::Opaque(why) => format!("runs unknown code: {why}"),
    }
}

/// Returns the text of an argument, or its known beginning.
pub fn arg_text(arg: &Arg) -> String {
    match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => text.clone(),
        ArgValue::Unknown { prefix, .. } => format!("{prefix}…"),
    }
}

/// Returns a path as given and, if it resolves to another path, that path.
pub fn touched_text(touched: &TouchedPath) -> String {
    let [given, real] = touched
        .given_and_real()
        .map(|path| path.display().to_string());
    match given == real {
        true => given,
        false => format!("{given}, which is {real}"),
    }
}
