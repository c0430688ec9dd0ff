//! What people put in folders, and when the model is told.

use std::sync::Arc;

use haft_agent::{EndReason, ResultSubtype, prompt::InstructionSources};
use haft_contract::{ContextPatch, RuleList};
use haft_extensions::{
    ExtensionPlaces, Skills,
    memory::{Memory, MemoryOptions},
    skills::SkillSettings,
};
use serde_json::{Value, json};

use crate::rig::{Rig, scripted, shown};

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn peeks(path: &str) -> Value {
    json!({"content": [{"type": "tool_use", "name": "Peek", "input": {"path": path}}]})
}

fn knowledge(rig: &Rig) -> (InstructionSources, Arc<Skills>) {
    let places = ExtensionPlaces::for_project(&rig.project.path("work"));
    let (skills, _) = Skills::load(places.clone(), SkillSettings::default());
    let skills = Arc::new(skills);
    let knowledge = InstructionSources::new(Memory::new(places, MemoryOptions::default()));
    (knowledge.with_skills(Arc::clone(&skills)), skills)
}

#[tokio::test]
async fn memory_and_skills_open_the_first_message_and_more_comes_with_the_files_it_is_for() {
    let rig = Rig::new();
    let write = |name: &str, text: &str| rig.project.write(&format!("work/{name}"), text);
    write("CLAUDE.md", "Use tabs. See @more.md");
    write("more.md", "More.");
    write(".claude/skills/greet/SKILL.md", "Greets people.");
    write(
        ".claude/rules/txt.md",
        "---\npaths: '**/*.txt'\n---\nPlain words.",
    );
    write("deep/CLAUDE.md", "Deep.");
    write("deep/.claude/skills/dive/SKILL.md", "Dives.");
    write("deep/x.md", "x");
    write(".claude/rules/bad.md", "---\npaths: [\n---\nBad head.");
    let model = scripted(&json!({"turns": [
        peeks("a.txt"), peeks("a.txt"), peeks("deep/x.md"), says("done"), says("again"),
    ]}));
    let (knowledge, _) = knowledge(&rig);
    let mut agent = rig
        .builder(model)
        .await
        .instruction_sources(knowledge)
        .build();
    agent.run("go", &rig.ear).await;
    agent.run("on", &rig.ear).await;
    let root = rig.project.root().display().to_string();
    let shown = shown(agent.conversation().messages()).join("\n");
    insta::assert_snapshot!(shown.replace(&root, "PROJECT"));
    let told: Vec<String> = rig.ear.lines();
    let warnings = told.iter().filter(|line| line.contains("bad.md")).count();
    assert_eq!(warnings, 1, "{told:?}");
}

#[tokio::test]
async fn after_a_summary_it_is_all_read_anew_and_called_skills_come_along() {
    let rig = Rig::new();
    rig.project.write("work/CLAUDE.md", "First.");
    rig.project.write(
        "work/.claude/rules/t.md",
        "---\npaths: '*.txt'\n---\nPlain words.",
    );
    let model = scripted(&json!({"turns": [
        peeks("a.txt"), says("one"), says("in short"), peeks("a.txt"), says("two"),
    ]}));
    let (knowledge, skills) = knowledge(&rig);
    let mut agent = rig
        .builder(model)
        .await
        .instruction_sources(knowledge)
        .build();
    agent.run("go", &rig.ear).await;
    assert!(skills.record_read("greet", "Greet them."));
    rig.project.write("work/CLAUDE.md", "Second.");
    assert!(agent.compact("", &rig.ear).await.unwrap());
    agent.run("on", &rig.ear).await;
    let shown = shown(agent.conversation().messages()).join("\n");
    assert!(
        shown.contains("Second.") && !shown.contains("First."),
        "{shown}"
    );
    assert!(shown.contains("The skill greet was called before:\n\nGreet them."));
    assert_eq!(shown.matches("Plain words.").count(), 1, "{shown}");
}

/// Vector 8: allowed in the turn that called the skill, refused in the next.
#[tokio::test]
async fn what_a_skill_permits_ends_when_the_person_speaks_again() {
    let rig = Rig::new();
    let append = json!({"content": [{"type": "tool_use", "name": "Append",
                                     "input": {"path": "b.txt", "line": "x"}}]});
    let model = scripted(&json!({"turns": [append, says("one"), append, says("two")]}));
    let mut agent = rig.builder(model).await.build();
    agent
        .control()
        .set_permission_mode(haft_contract::PermissionMode::Default);
    agent.set_next_run_patches(vec![ContextPatch::AddRuleForTurn {
        list: RuleList::Allow,
        rule: "Append".to_owned(),
    }]);
    let first = agent.run("go", &rig.ear).await;
    assert!(first.permission_denials.is_empty(), "{first:?}");
    let second = agent.run("on", &rig.ear).await;
    assert_eq!(second.permission_denials.len(), 1);
}

#[tokio::test]
async fn answers_without_the_model_and_a_conversation_that_is_forgotten() {
    let rig = Rig::new();
    rig.project.write("work/CLAUDE.md", "Use tabs.");
    let model = scripted(&json!({"turns": [says("one"), says("two")]}));
    let mut agent = rig.agent(model).await;
    agent.announce_run(&rig.ear);
    let ended = agent.answer_without_model(Err("No command is called /x.".to_owned()));
    assert_eq!(
        (ended.subtype, ended.reason),
        (ResultSubtype::DuringExecution, EndReason::Refused)
    );
    assert_eq!(ended.errors, ["No command is called /x."]);
    assert!(ended.is_error() && ended.num_turns == 0);
    assert!(!agent.answer_without_model(Ok("fine".to_owned())).is_error());
    agent.run("go", &rig.ear).await;
    let (before, lines) = (agent.session(), rig.lines().len());
    let next = haft_agent::OpenTranscript::in_memory(haft_contract::SessionId::new());
    let id = next.id();
    agent.clear(next, &rig.ear).await;
    agent.run("on", &rig.ear).await;
    assert!(agent.session() == id && id != before);
    assert_eq!(rig.lines().len(), lines, "the old transcript has ended");
    let shown = shown(agent.conversation().messages());
    assert!(shown[0].contains("Use tabs."), "{shown:?}");
    assert_eq!(shown[1..], ["user: on", "model: two"]);
}
