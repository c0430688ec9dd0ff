//! `/permissions`: lists, changes and tests rules.

use haft_contract::{RuleList, RuleScope};
use serde_json::json;

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking, table};
use crate::SessionInput;

pub(super) static PERMISSIONS: BuiltInCommand = BuiltInCommand {
    name: "permissions",
    hint: "[try COMMAND | allow|ask|deny RULE [in local|project|user|session] | remove RULE]",
    description: "List the permission rules, try a command, add or remove a rule",
    acts: CommandAction::AnytimeIf(only_reads, |input, arguments| {
        Box::pin(permissions(input, arguments))
    }),
};

fn only_reads(arguments: &str) -> bool {
    let arguments = arguments.trim();
    arguments.is_empty() || first_word(arguments).0 == "try"
}

fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

async fn permissions(input: &SessionInput, arguments: &str) -> CommandAnswer {
    let arguments = arguments.trim().to_owned();
    let shared = input.clone();
    let (word, rest) = first_word(&arguments);
    let rest = rest.to_owned();
    match word {
        "" => blocking(move || list(&shared)).await,
        "try" => input.explain("Bash", json!({"command": rest})).await,
        "remove" => blocking(move || remove(&shared, &rest)).await,
        "allow" => blocking(move || add(&shared, RuleList::Allow, &rest)).await,
        "ask" => blocking(move || add(&shared, RuleList::Ask, &rest)).await,
        "deny" => blocking(move || add(&shared, RuleList::Deny, &rest)).await,
        // A rule without a list is an allow rule.
        _ => blocking(move || add(&shared, RuleList::Allow, &arguments)).await,
    }
}

fn list(input: &SessionInput) -> CommandAnswer {
    let rules = input.rules()?;
    let mode = format!("mode {}", input.mode().name());
    if rules.is_empty() {
        return Ok(format!(
            "{mode}\nno rules: reads inside the working directories and read-only commands run; everything else asks"
        ));
    }
    let rows = rules.into_iter().map(|rule| {
        let place = match (rule.file, rule.line) {
            (Some(file), Some(line)) => format!("{}:{line}", file.display()),
            (Some(file), None) => file.display().to_string(),
            (None, _) => rule.scope,
        };
        vec![rule.list.name().to_owned(), rule.rule, place]
    });
    Ok(format!("{mode}\n{}", table(&rows.collect::<Vec<_>>())))
}

fn add(input: &SessionInput, list: RuleList, rest: &str) -> CommandAnswer {
    let (rule, scope) = match rest.rsplit_once(" in ") {
        Some((rule, place)) if scope(place).is_some() => (rule.trim(), scope(place)),
        _ => (rest, None),
    };
    if rule.is_empty() {
        return Err(format!("say the rule: /permissions {} RULE", list.name()));
    }
    let kept = input.save_rule(list, rule, scope.unwrap_or_default())?;
    let list = list.name();
    Ok(match kept {
        Some(file) => format!(
            "Added the {list} rule {rule} and saved it in {}.",
            file.display()
        ),
        None => format!("Added the {list} rule {rule} for this session."),
    })
}

fn scope(name: &str) -> Option<RuleScope> {
    let all = [
        RuleScope::Local,
        RuleScope::Project,
        RuleScope::User,
        RuleScope::Session,
    ];
    all.into_iter().find(|scope| scope.name() == name.trim())
}

fn remove(input: &SessionInput, rule: &str) -> CommandAnswer {
    let mut files = Vec::new();
    for scope in [RuleScope::Local, RuleScope::Project, RuleScope::User] {
        for list in [RuleList::Allow, RuleList::Ask, RuleList::Deny] {
            if let Ok(file) = input.remove_rule(list, rule, scope) {
                files.push(file.display().to_string());
            }
        }
    }
    if files.is_empty() && input.end_timed_rule(rule) {
        return Ok(format!("Ended the permission for {rule}."));
    }
    match files.is_empty() {
        true => Err(format!("none of your settings files has a rule {rule}")),
        false => Ok(format!(
            "Removed {rule} from {}. It still applies in this session.",
            files.join(" and ")
        )),
    }
}
