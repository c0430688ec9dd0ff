use std::fs;

use serde_json::json;

use super::*;
use crate::extension_places::{ExtensionPlugin, tests::places};

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn agent(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nprompt of {description}\n")
}

#[test]
fn the_strongest_of_one_name_counts_and_the_nearest_of_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = places(folder.path());
    let root = places.cwd.clone();
    places.cwd = root.join("below");
    fs::create_dir_all(&places.cwd).unwrap();
    let other = folder.path().join("other");
    places.directories.push(other.clone());
    places.plugins.push(ExtensionPlugin {
        version: None,
        name: "kit".to_owned(),
        root: folder.path().join("kit"),
    });
    let folders = [
        ("managed", places.managed.join(".claude/agents")),
        ("near", places.cwd.join(".claude/agents")),
        ("far", root.join(".claude/agents/deep/er")),
        ("added", other.join(".claude/agents")),
        ("user", places.user.join("agents")),
        ("plugin", folder.path().join("kit/agents/sub")),
    ];
    for (at, (from, path)) in folders.iter().enumerate() {
        for name in ["a", "b", "c", "d", "e", "f"].iter().take(at + 1) {
            write(&path.join(format!("{name}.md")), &agent(name, from));
        }
    }
    let options = AgentOptions {
        given: match json!({"b": {"description": "given", "prompt": "p"}}) {
            Value::Object(map) => map,
            _ => panic!(),
        },
        ..AgentOptions::default()
    };
    let (agents, warnings) = Agents::load(&places, &options);
    assert_eq!(warnings, []);
    let found: Vec<(&str, &str, ExtensionOrigin)> = agents
        .list()
        .iter()
        .filter(|agent| agent.origin != ExtensionOrigin::BuiltIn)
        .map(|agent| {
            (
                agent.name.as_str(),
                agent.description.as_str(),
                agent.origin,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("a", "managed", ExtensionOrigin::Managed),
            ("b", "given", ExtensionOrigin::Given),
            ("c", "far", ExtensionOrigin::Project),
            ("d", "added", ExtensionOrigin::Project),
            ("e", "user", ExtensionOrigin::User),
            ("kit:sub:a", "plugin", ExtensionOrigin::Plugin),
            ("kit:sub:b", "plugin", ExtensionOrigin::Plugin),
            ("kit:sub:c", "plugin", ExtensionOrigin::Plugin),
            ("kit:sub:d", "plugin", ExtensionOrigin::Plugin),
            ("kit:sub:e", "plugin", ExtensionOrigin::Plugin),
            ("kit:sub:f", "plugin", ExtensionOrigin::Plugin),
        ]
    );
    assert_eq!(agents.get("a").unwrap().prompt, "prompt of managed");
    places.sources.project = false;
    places.sources.user = false;
    let (agents, _) = Agents::load(&places, &AgentOptions::default());
    assert!(agents.get("c").is_none() && agents.get("e").is_none());
    assert!(agents.get("a").is_some());
}

/// Vector 9, and the other reasons why a file is no agent.
#[test]
fn vector_09_what_is_no_agent_is_left_out_and_the_rest_works() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let path = |name: &str| places.cwd.join(".claude/agents").join(name);
    write(&path("a.md"), "---\nname: a\n---\nprompt\n");
    write(&path("b.md"), &agent("-b", "x"));
    write(&path("c.md"), &agent("c:d", "x"));
    write(
        &path("d.md"),
        "---\nname: d\ndescription: x\ntools: [Read\n---\nprompt\n",
    );
    write(&path("README.md"), "# About\n");
    write(&path("good.md"), &agent("good", "x"));
    let (agents, warnings) = Agents::load(&places, &AgentOptions::default());
    let names: Vec<&str> = agents
        .list()
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["Explore", "Plan", "architect", "general-purpose", "good"]
    );
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let told = told.join("\n");
    let root = places.cwd.display().to_string();
    insta::assert_snapshot!(told.replace(&root, "PROJECT"));
}

#[test]
fn everything_an_agent_can_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = places(folder.path());
    let text = "---
name: reviewer
description: Use this agent when code was written. Examples:\\n<example>user: \"x\"</example>
tools: Read, Grep, mcp__github__*, Agent(a, b)
disallowedTools: [Bash]
model: sonnet
permissionMode: plan
maxTurns: 20
skills: one, two
mcpServers:
  - github
  - db: {command: x}
hooks:
  Stop:
    - hooks: [{type: command, command: echo}]
memory: project
background: yes
effort: high
isolation: worktree
color: purple
initialPrompt: begin
---

You review.
";
    write(&places.cwd.join(".claude/agents/r.md"), text);
    let kit = folder.path().join("kit");
    write(&kit.join("agents/r.md"), text);
    places.plugins.push(ExtensionPlugin {
        version: None,
        name: "kit".to_owned(),
        root: kit,
    });
    let (agents, warnings) = Agents::load(&places, &AgentOptions::default());
    assert_eq!(warnings, []);
    let agent = agents.get("reviewer").unwrap();
    assert_eq!(
        agent.memory_folder(&places).unwrap(),
        places.cwd.join(".claude/agent-memory/reviewer")
    );
    insta::assert_debug_snapshot!(AgentDefinition {
        file: None,
        ..agent.clone()
    });
    let foreign = agents.get("kit:reviewer").unwrap();
    assert_eq!(foreign.permission_mode, None);
    assert_eq!(foreign.hooks, None);
    assert!(foreign.mcp_servers.is_empty());
}

#[test]
fn tools_absent_all_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let given = json!({
        "absent": {"description": "d", "prompt": "p"},
        "star": {"description": "d", "prompt": "p", "tools": ["*"]},
        "none": {"description": "d", "prompt": "p", "tools": []},
        "inherit": {"description": "d", "prompt": "p", "model": "inherit", "maxTurns": 3},
        "no-prompt": {"description": "d"},
        "text": "d",
    });
    let Value::Object(given) = given else {
        panic!()
    };
    let options = AgentOptions {
        given,
        ..AgentOptions::default()
    };
    let (agents, warnings) = Agents::load(&places, &options);
    assert_eq!(agents.get("absent").unwrap().tools, None);
    assert_eq!(agents.get("star").unwrap().tools, None);
    assert_eq!(agents.get("none").unwrap().tools, Some(vec![]));
    assert_eq!(agents.get("inherit").unwrap().model, None);
    assert_eq!(agents.get("inherit").unwrap().max_turns, Some(3));
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "the agent \"no-prompt\" has no `prompt`: it is left out",
            "the agent \"text\" is not an object: it is left out"
        ]
    );
}

#[test]
fn the_kinds_we_bring_can_be_left_out_or_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let names = |options: &AgentOptions| -> Vec<String> {
        let (agents, _) = Agents::load(&places, options);
        agents
            .list()
            .iter()
            .map(|agent| agent.name.clone())
            .collect()
    };
    let variable = |set: &'static str| move |name: &str| (name == set).then(|| "1".to_owned());
    let options =
        AgentOptions::from_environment(variable("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"));
    assert!(names(&options).is_empty());
    let options =
        AgentOptions::from_environment(variable("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS"));
    assert_eq!(names(&options), ["architect", "general-purpose"]);
    write(&places.user.join("agents/x.md"), &agent("Explore", "mine"));
    let (agents, _) = Agents::load(&places, &AgentOptions::default());
    assert_eq!(agents.get("Explore").unwrap().origin, ExtensionOrigin::User);
    assert!(
        agents
            .get("Plan")
            .unwrap()
            .disallowed_tools
            .contains(&"Edit".to_owned())
    );
}
