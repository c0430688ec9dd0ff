use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use super::*;
use crate::extension_places::{ExtensionPlugin, tests::places};

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn load(places: &ExtensionPlaces) -> Skills {
    let (skills, warnings) = Skills::load(places.clone(), SkillSettings::default());
    assert_eq!(warnings, []);
    skills
}

fn names(skills: &Skills) -> Vec<String> {
    skills
        .all()
        .iter()
        .map(|skill| skill.name.clone())
        .collect()
}

#[test]
fn vector_05_a_skill_without_a_head_has_its_folders_name_and_its_first_paragraph() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let file = places.cwd.join(".claude/skills/foo/SKILL.md");
    write(&file, "# Foo\n\nDoes the foo.\nWell.\n\nMore.\n");
    let skill = load(&places).get("foo").unwrap();
    assert_eq!(skill.description, "Does the foo. Well.");
    assert_eq!(skill.origin, ExtensionOrigin::Project);
    assert!(skill.model_invocable && skill.user_invocable && skill.is_plain());
}

#[test]
fn vector_06_the_users_own_skill_wins_over_the_projects() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    write(&places.cwd.join(".claude/skills/d/SKILL.md"), "project");
    write(&places.user.join("skills/d/SKILL.md"), "personal");
    assert_eq!(load(&places).get("d").unwrap().description, "personal");
    write(&places.managed.join(".claude/skills/d/SKILL.md"), "managed");
    assert_eq!(load(&places).get("d").unwrap().description, "managed");
}

#[test]
fn vector_08_the_rules_a_skill_brings_are_two() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let file = places.cwd.join(".claude/skills/d/SKILL.md");
    write(&file, "---\nallowed-tools: Bash(git add *) Read\n---\nx");
    let skill = load(&places).get("d").unwrap();
    assert_eq!(skill.allowed_tools, ["Bash(git add *)", "Read"]);
    assert!(!skill.is_plain());
}

#[test]
fn everything_a_skill_can_say() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let root = places.cwd.join(".claude/skills/pdf");
    write(
        &root.join("SKILL.md"),
        "---
name: PDF Tools
description: Works with PDFs: reads and fills them.
when_to_use: When a file ends in .pdf
argument-hint: [file] [page]
arguments: file page
disable-model-invocation: no
user-invocable: off
allowed-tools:
  - Read
  - Bash(${CLAUDE_SKILL_DIR}/run.sh *)
disallowed-tools: Write, Edit
model: inherit
effort: high
context: fork
agent: Explore
background: yes
hooks: {Stop: []}
shell: bash
license: MIT
metadata: {version: 1}
---
Body
",
    );
    let skill = load(&places).get("pdf").unwrap();
    assert_eq!(skill.title.as_deref(), Some("PDF Tools"));
    assert_eq!(
        skill.purpose(),
        "Works with PDFs: reads and fills them. When a file ends in .pdf"
    );
    assert_eq!(skill.argument_hint.as_deref(), Some("[file] [page]"));
    assert_eq!(skill.arguments, ["file", "page"]);
    assert!(skill.model_invocable && !skill.user_invocable);
    let script = format!("Bash({}/run.sh *)", root.display());
    assert_eq!(skill.allowed_tools, ["Read", script.as_str()]);
    assert_eq!(skill.disallowed_tools, ["Write", "Edit"]);
    assert_eq!(skill.model, None);
    assert_eq!(skill.effort.as_deref(), Some("high"));
    assert_eq!(skill.fork.as_deref(), Some("Explore"));
    assert_eq!(skill.background, Some(true));
    assert!(skill.hooks.is_some());
}

#[test]
fn a_bad_head_is_one_warning_and_the_rest_works() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let file = places.cwd.join(".claude/skills/bad/SKILL.md");
    write(&file, "---\ndescription: [x\n---\nThe text.\n");
    write(&places.cwd.join(".claude/skills/good/SKILL.md"), "Good.");
    let (skills, warnings) = Skills::load(places, SkillSettings::default());
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let [told] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(
        told,
        &format!(
            "{}:2: the front matter is not valid YAML: unclosed bracket '[': only the text below it is used",
            file.display()
        )
    );
    assert_eq!(skills.get("bad").unwrap().description, "The text.");
    assert_eq!(skills.get("good").unwrap().description, "Good.");
}

#[test]
fn commands_are_found_by_both_names_and_a_skill_beats_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = places(folder.path());
    let commands = places.cwd.join(".claude/commands");
    write(
        &commands.join("fix.md"),
        "---\nname: other\npaths: x\n---\nFix it.",
    );
    write(&commands.join("git/commit.md"), "Commit.");
    write(&commands.join("both.md"), "command");
    write(&places.cwd.join(".claude/skills/both/SKILL.md"), "skill");
    let kit = folder.path().join("kit");
    write(
        &kit.join("skills/x/SKILL.md"),
        "---\nname: y\n---\n${CLAUDE_PLUGIN_ROOT}",
    );
    write(&kit.join("commands/sub/z.md"), "z");
    places.plugins.push(ExtensionPlugin {
        version: None,
        name: "kit".to_owned(),
        root: kit,
    });
    let skills = load(&places);
    assert_eq!(
        names(&skills),
        ["both", "fix", "git:commit", "kit:sub:z", "kit:y"]
    );
    assert_eq!(skills.get("both").unwrap().description, "skill");
    assert_eq!(skills.get("commit").unwrap().name, "git:commit");
    assert!(skills.get("fix").unwrap().paths.is_empty());
    assert!(skills.get("z").is_none());
    // Of the same parent as the user's skills, but another's to name.
    assert_eq!(
        skills.get("kit:y").unwrap().reload().unwrap().0.name,
        "kit:y"
    );
}

#[test]
fn parents_up_to_the_root_links_once_and_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = places(folder.path());
    let root = places.cwd.clone();
    places.cwd = root.join("a");
    write(&root.join(".claude/skills/top/SKILL.md"), "top");
    write(&root.join("a/.claude/skills/near/SKILL.md"), "near");
    write(&root.join(".claude/skills/synced/SKILL.md"), "reserved");
    write(
        &folder.path().join(".claude/skills/above/SKILL.md"),
        "above",
    );
    symlink(
        root.join(".claude/skills/top"),
        root.join("a/.claude/skills/again"),
    )
    .unwrap();
    let skills = load(&places);
    assert_eq!(names(&skills), ["again", "near"]);
    assert!(skills.get("new").is_none());
    write(&root.join(".claude/skills/new/SKILL.md"), "new");
    assert_eq!(skills.get("new").unwrap().description, "new");
    let near = skills.get("near").unwrap();
    write(&near.file, "changed $0");
    assert_eq!(near.reload().unwrap().1, "changed $0");
    fs::remove_file(&near.file).unwrap();
    assert!(near.reload().unwrap_err().ends_with("no longer exists"));
    assert_eq!(skills.similar_names("naer"), ["near"]);
}

#[test]
fn nested_skills_and_those_with_patterns_come_to_light_when_a_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let cwd = &places.cwd;
    write(&cwd.join(".claude/skills/d/SKILL.md"), "top");
    write(
        &cwd.join(".claude/skills/ts/SKILL.md"),
        "---\npaths: \"src/**/*.ts\"\n---\nts",
    );
    write(&cwd.join("web/app/.claude/skills/d/SKILL.md"), "nested");
    write(&cwd.join("web/app/.claude/skills/e/SKILL.md"), "nested too");
    let skills = load(&places);
    assert_eq!(skills.listing(0).unwrap(), "- d: top\n");
    let new = |path: &str| -> Vec<String> {
        let (new, warnings) = skills.on_file_touched(&cwd.join(path));
        assert_eq!(warnings, []);
        new.iter().map(|skill| skill.name.clone()).collect()
    };
    assert!(new("web/x.rs").is_empty());
    assert_eq!(new("web/app/deep/x.rs"), ["web/app:d", "e"]);
    assert!(new("web/app/y.rs").is_empty());
    assert_eq!(new("src/a/b.ts"), ["ts"]);
    assert!(new("src/a/b.ts").is_empty());
    assert_eq!(
        skills.listing(0).unwrap(),
        "- d: top\n- e: nested too\n- ts: ts\n- web/app:d: nested\n"
    );
    assert_eq!(
        skills.get("web/app:d").unwrap().reload().unwrap().1,
        "nested"
    );
}

#[test]
fn settings_hide_and_shorten() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    for name in ["a", "b", "c", "d"] {
        let file = places.user.join(format!("skills/{name}/SKILL.md"));
        write(&file, &format!("{name} {}", "word ".repeat(40)));
    }
    let settings = json!({
        "skillOverrides": {"a": "off", "b": "name-only", "c": "user-invocable-only", "d": "on"},
        "skillListingMaxDescChars": 30,
        "disableSkillShellExecution": true,
    });
    let settings = SkillSettings::from_settings(&settings, |_| None);
    assert!(settings.without_commands);
    let (skills, _) = Skills::load(places.clone(), settings);
    assert_eq!(
        skills.listing(0).unwrap(),
        "- b\n- d: d word word word word word wo…\n"
    );
    assert!(!skills.get("c").unwrap().reload().unwrap().0.model_invocable);
    assert!(skills.get("a").is_none());

    let variable = |_: &str| Some("200".to_owned());
    let (skills, _) = Skills::load(places, SkillSettings::from_settings(&json!({}), variable));
    let listing = skills.listing(0).unwrap();
    assert!(listing.chars().count() <= 200);
    insta::assert_snapshot!(listing);
}

#[test]
fn folders_of_the_users_skills_may_be_read_and_what_a_project_links_to_not() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    write(&places.user.join("skills/a/SKILL.md"), "a");
    let elsewhere = folder.path().join("elsewhere");
    write(&elsewhere.join("SKILL.md"), "b");
    fs::create_dir_all(places.cwd.join(".claude/skills")).unwrap();
    symlink(&elsewhere, places.cwd.join(".claude/skills/b")).unwrap();
    let skills = load(&places);
    assert_eq!(names(&skills), ["a", "b"]);
    let own = fs::canonicalize(places.user.join("skills/a")).unwrap();
    assert_eq!(skills.readable_folders(), [own]);
}
