//! Many questions, a line each.

use std::{
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::PathBuf,
};

use haft::{
    PermissionMode,
    engine::permissions::{
        Bases, Facts, HookWord, List, Policy, Rules, Scope, Setting, Source, decide, rules::target,
    },
};
use haft_shell::{Place, analyze};
use serde::Deserialize;
use serde_json::Value;

use crate::exit::Exit;

/// Answers each line of stdin by one of stdout: a word, a tab, a reason.
pub(super) fn run(answer: fn(&str) -> (&'static str, String)) -> anyhow::Result<Exit> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut input = BufReader::with_capacity(1 << 16, io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let (word, reason) = answer(text);
        let reason = reason.replace(['\n', '\r', '\t'], " ");
        writeln!(out, "{word}\t{reason}")?;
        // Whoever asks one by one waits for the answer; a pipe full of questions does not.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}

#[derive(Deserialize)]
struct Command {
    #[serde(alias = "command")]
    cmd: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
}

pub(super) fn classify(line: &str) -> (&'static str, String) {
    let command: Command = match serde_json::from_str(line) {
        Ok(command) => command,
        Err(error) => return ("unknown", format!("the line is not valid: {error}")),
    };
    let place = Place {
        cwd: command.cwd.unwrap_or_else(|| PathBuf::from("/workspace")),
        home: Some(PathBuf::from("/home/user")),
    };
    let analysis = analyze(&command.cmd, &place);
    (analysis.verdict.name(), analysis.reason)
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    rules: RuleTexts,
    tool: String,
    #[serde(default)]
    input: Value,
    cwd: PathBuf,
    #[serde(default)]
    home: Option<PathBuf>,
    #[serde(default)]
    mode: Option<PermissionMode>,
    #[serde(default)]
    additional_dirs: Vec<PathBuf>,
    #[serde(default)]
    rule_source: Option<String>,
    #[serde(default)]
    hook: Option<String>,
    #[serde(default)]
    simulate: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RuleTexts {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

pub(super) fn check(line: &str) -> (&'static str, String) {
    let call: Call = match serde_json::from_str(line) {
        Ok(call) => call,
        Err(error) => return ("deny", format!("the line is not valid: {error}")),
    };
    let home = call
        .home
        .or_else(|| std::env::var_os("HOME").map(PathBuf::from));
    let scope = match call.rule_source.as_deref() {
        Some(source) if source.starts_with("user") => Scope::User,
        _ => Scope::Project,
    };
    let bases = Bases {
        cwd: call.cwd.clone(),
        home: home.clone().unwrap_or_else(|| call.cwd.clone()),
        slash: match (&home, scope) {
            (Some(home), Scope::User) => home.join(".claude"),
            _ => call.cwd.clone(),
        },
    };
    let mut rules = Rules::default();
    let mut problems = Vec::new();
    for (list, texts) in [
        (List::Deny, &call.rules.deny),
        (List::Ask, &call.rules.ask),
        (List::Allow, &call.rules.allow),
    ] {
        for text in texts {
            let added = rules.add(list, text, Source::of(scope), &bases);
            if let Ok(Some(problem)) | Err(problem) = added {
                problems.push(format!("rule {:?}: {}", problem.rule, problem.problem));
            }
        }
    }
    let mut roots = vec![call.cwd.clone()];
    roots.extend(call.additional_dirs);
    let policy = Policy {
        home: home.clone(),
        rules: rules.into(),
        ..Policy::of_directories(call.mode.unwrap_or_default(), &roots)
    };
    let setting = Setting {
        cwd: call.cwd,
        home,
    };
    let mut facts = Facts::named(&call.tool, &call.input, &setting);
    match call.hook.as_deref() {
        Some("allow") => facts.hook = HookWord::Allow,
        Some("ask") => facts.hook = HookWord::Ask,
        Some("deny") => return ("deny", "a hook decided so".to_owned()),
        _ => {}
    }
    if let Some(simulate) = &call.simulate {
        simulated(&mut facts, simulate);
    }
    let decision = decide(&policy, &facts);
    let mut reason = decision.because.to_string();
    for problem in problems {
        reason += &format!(" ({problem})");
    }
    (decision.behavior.name(), reason)
}

/// Takes over what the world would answer.
fn simulated(facts: &mut Facts, simulate: &Value) {
    let texts = |names: &[&str]| -> Vec<String> {
        let named = names.iter().filter_map(|name| simulate.get(name));
        named
            .flat_map(|value| match value {
                Value::String(text) => vec![text.clone()],
                Value::Array(several) => {
                    let texts = several.iter().filter_map(Value::as_str);
                    texts.map(str::to_owned).collect()
                }
                _ => Vec::new(),
            })
            .collect()
    };
    for url in texts(&[
        "redirect",
        "redirect_to",
        "redirect_target",
        "redirects",
        "location",
    ]) {
        facts.fetches.extend(target(&url));
    }
    let addresses = texts(&[
        "address",
        "addresses",
        "resolved",
        "resolved_address",
        "resolves_to",
        "ip",
    ]);
    for address in addresses {
        facts.resolved.push(address);
    }
}
