//! Many questions, a line each.

use std::{
    io::{self, BufRead, BufReader},
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
};

use haft::{
    PermissionMode, Services, SessionContext, SessionId, ToolSpec,
    engine::permissions::{
        Bases, Facts, HookWord, List, Policy, RuleSource, Rules, Scope, decide,
        rules::{Target, target},
    },
};
use haft_shell::{LinePlace, analyze};
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Builder;

use super::judge::Judge;
use crate::{exit::Exit, show::ManyLines};

/// What a line is answered by: a word and a reason, or what is wrong with the line.
type Answer = Result<(&'static str, String), String>;

/// Answers each line of stdin by one of stdout: a word, a tab, a reason. What cannot be served is
/// answered by the cautious word; empty lines are passed over.
pub(super) fn run(answer: impl Fn(&str) -> Answer, cautious: &'static str) -> anyhow::Result<Exit> {
    let mut out = ManyLines::default();
    let mut input = BufReader::with_capacity(1 << 16, io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let answered = match str::from_utf8(line) {
            // A defect of ours is no reason to leave the next line without its answer.
            Ok(text) => panic::catch_unwind(AssertUnwindSafe(|| answer(text)))
                .unwrap_or_else(|_| Err("the line could not be judged".to_owned())),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        };
        let (word, reason) = answered.unwrap_or_else(|problem| (cautious, problem));
        let reason = reason.replace(|next: char| next.is_control(), " ");
        out.line(&format!("{word}\t{reason}"))?;
        // Whoever asks one by one waits for the answer; a pipe full of questions does not.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}

#[derive(Deserialize)]
struct CommandLine {
    #[serde(alias = "command")]
    cmd: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
}

pub(super) fn classify(line: &str) -> Answer {
    let command: CommandLine = read(line)?;
    let place = LinePlace {
        cwd: command.cwd.unwrap_or_else(|| PathBuf::from("/workspace")),
        home: Some(PathBuf::from("/home/user")),
    };
    let analysis = analyze(&command.cmd, &place);
    Ok((analysis.verdict.name(), analysis.reason))
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| format!("the line is not valid: {error}"))
}

#[derive(Deserialize)]
struct CallLine {
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

/// Decides on the call of each line.
pub(super) fn check_all() -> anyhow::Result<Exit> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Nothing is ever kept there.
    let folder = std::env::temp_dir().join(format!("haft-{}", SessionId::new()));
    let judge = runtime.block_on(Judge::new(Services::none(), folder))?;
    let specs = judge.specs();
    run(|line| runtime.block_on(check(line, &judge, &specs)), "deny")
}

async fn check(line: &str, judge: &Judge, specs: &[ToolSpec]) -> Answer {
    let call: CallLine = read(line)?;
    if !call.cwd.is_absolute() {
        return Err("the line is not valid: `cwd` must be an absolute path".to_owned());
    }
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
            let added = rules.add(list, text, RuleSource::of(scope), &bases);
            problems.extend(added.err());
        }
    }
    problems.extend(rules.understand(specs));
    let mut roots = vec![call.cwd.clone()];
    roots.extend(call.additional_dirs);
    let mut context = SessionContext::new(call.cwd)
        .with_mode(call.mode.unwrap_or_default())
        .with_home(home.clone())
        .with_rules(rules);
    for root in &roots {
        context = context.with_directory(root.clone());
    }
    let policy = Policy {
        rules: context.rules.clone(),
        ..Policy::of_directories(context.mode, &roots).with_home(home.as_deref())
    };
    let mut facts = judge.facts(&call.tool, call.input, &context).await?;
    match call.hook.as_deref() {
        Some("allow") => facts.hook = HookWord::Allow,
        Some("ask") => facts.hook = HookWord::Ask,
        Some("deny") => return Ok(("deny", "a hook decided so".to_owned())),
        _ => {}
    }
    if let Some(simulate) = &call.simulate {
        simulated(&mut facts, simulate);
    }
    let decision = decide(&policy, &facts);
    let mut reason = decision.because.to_string();
    for problem in problems {
        reason += &format!(" (rule {:?}: {})", problem.rule, problem.problem);
    }
    Ok((decision.behavior.name(), reason))
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
        let same_host = url.starts_with('/') && !url.starts_with("//");
        if !same_host {
            facts
                .fetches
                .push(target(&url).unwrap_or_else(Target::none));
        }
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
