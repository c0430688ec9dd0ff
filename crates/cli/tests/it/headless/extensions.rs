//! What people put in folders: skills, commands, agents, memory files.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{answer, call, kinds, lines, scripted, text};
use crate::binary::{Ran, haft};

/// A project in a home of its own.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(scene.path("p/.git")).unwrap();
        fs::create_dir_all(scene.path("home")).unwrap();
        for (name, text) in files {
            let path = scene.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    /// Trusts a folder, as a person does who has looked.
    fn trust(&self, folder: &str) {
        let mut command = haft(&self.path(folder));
        let trusted =
            answer(
                command
                    .env("HOME", self.path("home"))
                    .args(["permissions", "trust", "--yes"]),
            );
        assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    }

    /// Runs a prompt; with what was said to the model, in order.
    fn run(&self, turns: &Value, flags: &[&str]) -> (Ran, Vec<String>) {
        self.run_in("p", turns, flags)
    }

    fn run_in(&self, folder: &str, turns: &Value, flags: &[&str]) -> (Ran, Vec<String>) {
        let record = self.path("record.jsonl");
        let _ = fs::remove_file(&record);
        let mut command = scripted(&self.path(folder), turns);
        command
            .env("HOME", self.path("home"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .arg("--record")
            .arg(&record)
            .args(["-p", "--output-format", "stream-json"])
            .args(flags);
        let ran = answer(&mut command);
        let said = fs::read_to_string(&record).unwrap_or_default();
        let root = self.path("").display().to_string();
        let said = said
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["part"]["role"] == "user")
            .flat_map(|line| line["part"]["content"].as_array().unwrap().clone())
            .filter_map(|block| Some(block["text"].as_str()?.replace(&root, "/")))
            .collect();
        (ran, said)
    }
}

fn result(ran: &Ran) -> Value {
    lines(ran).pop().unwrap()
}

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("p/CLAUDE.md", "Use tabs. See @docs.md and `@no.md`."),
        ("p/docs.md", "The docs."),
        ("p/no.md", "Not this."),
        (
            "p/.claude/skills/greet/SKILL.md",
            "---\ndescription: Greets people: politely.\nallowed-tools: Bash(touch *)\n---\n\
             Greet $0. Here: !`ls docs.md`",
        ),
        (
            "p/.claude/commands/git/fix.md",
            "Fix $ARGUMENTS. See @docs.md",
        ),
        (
            "p/.claude/agents/r.md",
            "---\nname: reviewer\ndescription: Reviews.\n---\nYou review.",
        ),
        ("home/.claude/CLAUDE.md", "Be brief."),
        (
            "home/.claude/skills/mine/SKILL.md",
            "---\ndisable-model-invocation: true\n---\nMine.",
        ),
    ]
}

/// Vector G1: what a clone brings does nothing in the session that clones it, in a later session above it,
/// and in a session in it, also after a move.
#[test]
fn g1_files_of_a_clone_apply_only_after_the_user_trusts_it() {
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch \"$HOME/ran\""}]}]}});
    let scene = Scene::new(&[
        ("p/src/CLAUDE.md", "FROM-CLONE."),
        ("p/src/AGENTS.md", "FROM-CLONE."),
        ("p/src/docs/CLAUDE.md", "FROM-CLONE."),
        ("p/src/docs/a.txt", "a"),
        (
            "p/src/.claude/skills/s/SKILL.md",
            "---\ndescription: FROM-CLONE.\n---\n",
        ),
        (
            "p/src/.claude/agents/r.md",
            "---\nname: reviewer\ndescription: FROM-CLONE.\n---\n",
        ),
        ("p/src/.claude/settings.json", &hook.to_string()),
    ]);
    for line in [
        "init -q .",
        "add -A",
        "-c user.name=a -c user.email=a@b commit -qm x",
    ] {
        let mut git = haft_testkit::command("git");
        git.args(line.split(' ')).current_dir(scene.path("p/src"));
        git.env("HOME", scene.path("home"));
        assert!(git.status().unwrap().success());
    }
    scene.trust("p");
    let bash = |line: &str| call("Bash", json!({"command": line}));
    let read = |name: &str| call("Read", json!({"file_path": scene.path(name)}));
    let without = |folder: &str, turns: Value| {
        let (ran, said) = scene.run_in(
            folder,
            &turns,
            &["--allowedTools", "Bash", "Read", "--", "go"],
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let record = fs::read_to_string(scene.path("record.jsonl")).unwrap();
        assert!(!record.contains("FROM-CLONE"), "{folder}: {said:?}");
        let init = &lines(&ran)[0];
        assert_eq!(init["skills"], json!([]), "{folder}");
        assert!(!init["agents"].to_string().contains("reviewer"), "{folder}");
        assert!(!scene.path("home/ran").exists(), "{folder}");
    };
    without(
        "p",
        json!([
            [bash("git clone -q src ui")],
            [read("p/ui/docs/a.txt")],
            [text("done")]
        ]),
    );
    assert!(scene.path("p/ui/.claude/settings.json").exists());
    fs::rename(scene.path("p/ui"), scene.path("p/moved")).unwrap();
    without("p", json!([[read("p/moved/docs/a.txt")], [text("done")]]));
    without("p/moved", json!([[text("done")]]));
    without("p/moved/docs", json!([[text("done")]]));
    scene.trust("p/moved");
    let (ran, said) = scene.run_in("p/moved", &json!([[text("done")]]), &["go"]);
    assert!(said.join("\n").contains("FROM-CLONE"), "{said:?}");
    let all = lines(&ran);
    let init = all.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["skills"], json!(["s"]));
    assert!(scene.path("home/ran").exists());
}

#[test]
fn the_model_is_told_of_everything_and_so_is_whoever_reads_init() {
    let scene = Scene::new(&files());
    let (ran, said) = scene.run(&json!([[text("done")]]), &["/fix 12"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(said.join("\n=====\n"));
    let init = &lines(&ran)[0];
    let commands = init["slash_commands"].as_array().unwrap();
    for name in [
        "clear", "compact", "git:fix", "greet", "init", "mine", "undo",
    ] {
        assert!(commands.contains(&json!(name)), "{name}: {commands:?}");
    }
    assert_eq!(init["skills"], json!(["greet", "mine"]));
    assert_eq!(
        init["agents"],
        json!([
            "Explore",
            "Plan",
            "architect",
            "general-purpose",
            "reviewer"
        ])
    );
    assert_eq!(init["output_style"], "default");
}

#[test]
fn vector_15_a_name_that_nothing_has_is_an_error_and_no_model_is_asked() {
    let scene = Scene::new(&files());
    let (ran, said) = scene.run(&json!([]), &["/grete x"]);
    assert_eq!(ran.code, 1);
    assert!(said.is_empty());
    assert_eq!(
        kinds(&lines(&ran)),
        ["system/init", "result/error_during_execution"]
    );
    let result = result(&ran);
    assert_eq!(result["is_error"], true);
    assert_eq!(
        result["errors"],
        json!(["/grete: No skill is called \"grete\". Did you mean greet?"])
    );
    // A path is no name.
    let (ran, said) = scene.run(&json!([[text("done")]]), &["/etc/hosts is odd"]);
    assert_eq!(ran.code, 0);
    assert_eq!(said.last().unwrap(), "/etc/hosts is odd");
}

/// Vector 7: the model is refused, a person is not.
#[test]
fn vector_07_a_skill_for_people_works_by_its_name() {
    let scene = Scene::new(&files());
    let turns = json!([[call("Skill", json!({"skill": "mine"}))], [text("done")]]);
    let (ran, said) = scene.run(&turns, &["/mine"]);
    assert!(
        said.iter()
            .any(|text| text.ends_with("skills/mine\n\nMine.")),
        "{said:?}"
    );
    let refused = ran.stdout.contains("can be called only by the user");
    assert!(refused, "{}", ran.stdout);
}

/// Vector 8: what a skill permits counts where the project is trusted, for that turn.
#[test]
fn vector_08_what_a_skill_permits_counts_only_where_the_project_is_trusted() {
    let scene = Scene::new(&files());
    let touch = call("Bash", json!({"command": "touch made"}));
    let turns = json!([[touch], [text("done")]]);
    let made = scene.path("p/made");
    let (ran, said) = scene.run(&turns, &["/greet Ann"]);
    assert!(
        said.iter()
            .any(|text| text.ends_with("Greet Ann. Here: docs.md")),
        "{said:?}"
    );
    assert_eq!(
        result(&ran)["permission_denials"].as_array().unwrap().len(),
        1
    );
    assert!(!made.exists());
    // Naming the source is not trust: what only allows waits for a person, as rules do.
    let named = ["--setting-sources", "user,project", "/greet Ann"];
    scene.run(&turns, &named);
    assert!(!made.exists());
    scene.trust("p");
    let (ran, _) = scene.run(&turns, &["/greet Ann"]);
    assert_eq!(
        result(&ran)["permission_denials"],
        json!([]),
        "{}",
        ran.stdout
    );
    assert!(made.exists());
    fs::remove_file(&made).unwrap();
    let (_, _) = scene.run(&turns, &["hello"]);
    assert!(!made.exists());
}

#[test]
fn trust_in_a_project_says_nothing_about_additional_directories() {
    let skill = "---\nallowed-tools: Bash(touch *)\n---\nGo on.";
    let scene = Scene::new(&[
        ("other/.claude/skills/far/SKILL.md", skill),
        (
            "other/.claude/settings.json",
            r#"{"permissions": {"allow": ["Bash"]}, "env": {"A": "1"}}"#,
        ),
        (
            "other/.claude/settings.local.json",
            r#"{"permissions": {"allow": ["Bash"]}}"#,
        ),
        ("p/.claude/skills/near/SKILL.md", skill),
    ]);
    scene.trust("p");
    let touch = call("Bash", json!({"command": "touch made"}));
    let turns = json!([[touch], [text("done")]]);
    let other = scene.path("other").display().to_string();
    let made = scene.path("p/made");
    for prompt in ["/far", "go"] {
        let (ran, _) = scene.run(&turns, &[prompt, "--add-dir", &other]);
        let denied = result(&ran)["permission_denials"].as_array().unwrap().len();
        assert_eq!(denied, 1, "{prompt}: {}{}", ran.stdout, ran.stderr);
        assert!(!made.exists(), "{prompt}");
    }
    scene.run(&turns, &["/near", "--add-dir", &other]);
    assert!(made.exists(), "the project's own skill may");
}

#[test]
fn a_command_that_is_not_permitted_ends_the_call_and_nothing_is_said() {
    let scene = Scene::new(&[("p/.claude/skills/bad/SKILL.md", "x !`touch made`")]);
    let (ran, said) = scene.run(&json!([]), &["/bad"]);
    assert_eq!(ran.code, 1);
    assert!(said.is_empty() && !scene.path("p/made").exists());
    let error = result(&ran)["errors"][0].as_str().unwrap().to_owned();
    assert!(
        error.starts_with(
            "The skill \"bad\" was not loaded: its command `touch made` was not permitted."
        ),
        "{error}"
    );
}

/// The model calls a skill, and reads the files beside it without a question.
#[test]
fn the_model_calls_a_skill_and_reads_what_lies_beside_it() {
    let scene = Scene::new(&[
        (
            "home/.claude/skills/pdf/SKILL.md",
            "Read ${CLAUDE_SKILL_DIR}/forms.md.",
        ),
        ("home/.claude/skills/pdf/forms.md", "Forms."),
        ("home/secret.md", "Secret."),
    ]);
    let forms = scene.path("home/.claude/skills/pdf/forms.md");
    let turns = json!([
        [call("Skill", json!({"skill": "pdf"}))],
        [
            call("Read", json!({"file_path": forms})),
            call("Read", json!({"file_path": scene.path("home/secret.md")})),
        ],
        [text("done")],
    ]);
    let (ran, said) = scene.run(&turns, &["fill it in"]);
    assert!(
        said[0].contains("- pdf: Read ${CLAUDE_SKILL_DIR}/forms.md."),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|text| text.contains("Read /home/.claude/skills/pdf/forms.md.")),
        "{said:?}"
    );
    assert!(ran.stdout.contains("\\tForms."), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Secret."));
    assert_eq!(
        result(&ran)["permission_denials"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn switched_off_a_slash_is_a_slash() {
    let scene = Scene::new(&files());
    let turns = json!([[text("done")]]);
    let (ran, said) = scene.run(&turns, &["--disable-slash-commands", "/greet"]);
    assert_eq!(said.last().unwrap(), "/greet");
    assert!(said[0].contains("Use tabs."));
    assert!(!ran.stdout.contains("\"Skill\""));
    assert_eq!(lines(&ran)[0]["slash_commands"], json!([]));
    let (ran, said) = scene.run(&turns, &["--bare", "/greet"]);
    assert_eq!(said, ["/greet"]);
    assert_eq!(lines(&ran)[0]["slash_commands"], json!([]));
    let (_, said) = scene.run(&turns, &["--setting-sources", "user", "hi"]);
    assert!(
        said[0].contains("Be brief.") && !said[0].contains("Use tabs."),
        "{said:?}"
    );
    // Without the tool there is nothing to list.
    let (_, said) = scene.run(&turns, &["--tools", "Read", "hi"]);
    assert!(!said.iter().any(|text| text.contains("greet")), "{said:?}");
}

#[test]
fn what_we_bring_ourselves_is_answered_without_the_model() {
    let scene = Scene::new(&[]);
    for (prompt, expected) in [
        ("/cost", "Spent so far: $0.0000"),
        ("/model", "The model is scripted."),
        ("/model other", "From the next message on, other is asked."),
        ("/clear", "Started a new conversation."),
        (
            "/compact",
            "The conversation was not summarized: it is empty, a hook blocked it, or it was interrupted.",
        ),
    ] {
        let (ran, said) = scene.run(&json!([]), &[prompt]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(said.is_empty());
        assert_eq!(result(&ran)["result"], expected);
        assert_eq!(result(&ran)["num_turns"], 0);
    }
    let (ran, _) = scene.run(&json!([]), &["/context"]);
    let bar = result(&ran)["result"].as_str().unwrap().to_owned();
    assert!(bar.starts_with("Context 0 of 200k (0%) [....."), "{bar}");
    let (_, said) = scene.run(&json!([[text("done")]]), &["/init briefly"]);
    assert!(
        said[0].contains("write CLAUDE.md") && said[0].ends_with("briefly"),
        "{said:?}"
    );
}

#[test]
fn one_warning_for_a_bad_head_and_the_rest_works() {
    let scene = Scene::new(&[
        (
            "p/.claude/skills/bad/SKILL.md",
            "---\ndescription: [x\n---\nBad.",
        ),
        (
            "p/.claude/agents/bad.md",
            "---\nname: bad\ntools: {x\n---\nBad.",
        ),
        ("p/.claude/skills/good/SKILL.md", "Good."),
    ]);
    let (ran, said) = scene.run(&json!([[text("done")]]), &["hi"]);
    assert_eq!(ran.code, 0);
    let warnings: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("skills/bad/SKILL.md:2: the front matter is not valid YAML"));
    assert!(warnings[1].contains("agents/bad.md:3: the front matter is not valid YAML"));
    assert!(said[0].contains("- bad: Bad.\n- good: Good."), "{said:?}");
}

#[test]
fn an_output_style_takes_the_place_of_our_words_and_a_plugin_has_its_names() {
    let scene = Scene::new(&[
        (
            "p/.claude/output-styles/terse.md",
            "---\nname: Terse\n---\nSpeak in one word.",
        ),
        ("kit/.claude-plugin/plugin.json", "{\"name\": \"kit\"}"),
        ("kit/skills/x/SKILL.md", "X at ${CLAUDE_PLUGIN_ROOT}."),
        ("kit/agents/a.md", "---\nname: a\ndescription: d\n---\np"),
    ]);
    let kit = scene.path("kit").display().to_string();
    let flags = [
        "--settings",
        "{\"outputStyle\": \"terse\"}",
        "--plugin-dir",
        &kit,
        "/kit:x",
    ];
    let (ran, said) = scene.run(&json!([[text("done")]]), &flags);
    let init = &lines(&ran)[0];
    assert_eq!(init["output_style"], "Terse");
    assert!(init["agents"].as_array().unwrap().contains(&json!("kit:a")));
    assert!(said.last().unwrap().ends_with("X at /kit."), "{said:?}");
    let record = fs::read_to_string(scene.path("record.jsonl")).unwrap();
    assert!(record.contains("Speak in one word.") && !record.contains("You are a coding agent"));
}

#[test]
fn a_skill_that_forks_is_carried_out_by_a_subagent_that_knows_what_it_should() {
    let scene = Scene::new(&[
        ("home/.claude/CLAUDE.md", "Be brief."),
        (
            "p/.claude/skills/look/SKILL.md",
            "---\ncontext: fork\nagent: scout\n---\nLook for the entry point of $0.",
        ),
        ("p/.claude/skills/maps/SKILL.md", "How to read maps."),
        (
            "p/.claude/agents/scout.md",
            "---\nname: scout\ndescription: Scouts.\nskills: maps\ntools: Read\n---\nYou scout.",
        ),
    ]);
    let script = scene.path("script.json");
    let skill = call("Skill", json!({"skill": "look", "args": "it"}));
    let turns = json!({
        "turns": [{"content": [skill]}, {"content": [text("done")]}],
        "conversations": [{"when": "entry point of it", "turns": [{"content": [text("main.rs")]}]}],
    });
    fs::write(&script, turns.to_string()).unwrap();
    let record = scene.path("record.jsonl");
    let mut command = haft(&scene.path("p"));
    command
        .env("HOME", scene.path("home"))
        .arg("--script")
        .arg(&script)
        .arg("--record")
        .arg(&record)
        .args([
            "-p",
            "--output-format",
            "stream-json",
            "--allowedTools",
            "Skill",
            "--",
            "go",
        ]);
    let ran = answer(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = "The skill look was run by a subagent:\\n\\nmain.rs";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    let record = fs::read_to_string(record).unwrap();
    let system = record.lines().find(|line| line.contains("You scout."));
    assert!(system.unwrap().contains("How to read maps."), "{record}");
    let first = record
        .lines()
        .find(|line| line.contains("Look for the entry point of it"));
    assert!(first.unwrap().contains("Be brief."), "{record}");
    // It has not the tool to call them.
    assert!(!first.unwrap().contains("There are skills"), "{record}");
}

#[test]
fn a_skill_that_comes_to_light_brings_the_tool_that_calls_it() {
    let scene = Scene::new(&[
        ("p/deep/x.txt", "x"),
        ("p/deep/.claude/skills/dive/SKILL.md", "Dive to $0."),
    ]);
    let turns = json!([
        [call("Read", json!({"file_path": "deep/x.txt"}))],
        [call("Skill", json!({"skill": "dive", "args": "bottom"}))],
        [text("done")],
    ]);
    let (ran, said) = scene.run(&turns, &["go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        said.iter().any(|text| text.contains("- dive: Dive to $0.")),
        "{said:?}"
    );
    assert!(
        said.iter().any(|text| text.ends_with("Dive to bottom.")),
        "{said:?}"
    );
    let record = fs::read_to_string(scene.path("record.jsonl")).unwrap();
    let offers = record
        .lines()
        .filter(|line| line.starts_with("{\"part\":[{\"name\":"));
    let offers: Vec<bool> = offers
        .map(|line| line.contains("\"name\":\"Skill\""))
        .collect();
    assert_eq!(offers, [false, true], "{record}");
}
