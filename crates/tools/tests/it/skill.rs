use std::sync::{Arc, Mutex};

use haft_contract::{
    AgentKind, AgentMessage, AgentReport, AgentStatus, BackgroundHandle, BoxFuture, CallContext,
    CancellationToken, Content, ContextPatch, HookVerdict, LaunchOutcome, LaunchRequest,
    MessageDelivery, NestedCallRunner, NestedCalls, NestedResult, RuleList, SubagentSpawner,
    Subagents, TokenCount, ToolError, ToolOutput, ToolPermission, ToolUse,
};
use haft_extensions::{EnabledSources, ExtensionPlaces, Skills, skills::SkillSettings};
use haft_testkit::TempProject;
use haft_tools::{SkillCaller, SkillService};
use serde_json::{Value, json};

use crate::session::{Session, text_of};

/// Skills of a project that is or is not trusted.
pub(crate) fn book(project: &TempProject, trusts_project: bool, settings: &Value) -> SkillService {
    let places = ExtensionPlaces {
        cwd: project.root().to_path_buf(),
        home: project.path("home"),
        user: project.path("home/.claude"),
        managed: project.path("managed"),
        directories: Vec::new(),
        plugins: Vec::new(),
        sources: EnabledSources::default(),
    };
    let (skills, warnings) = Skills::load(places, SkillSettings::from_settings(settings, |_| None));
    assert_eq!(warnings, []);
    SkillService {
        skills: Arc::new(skills),
        trusts_project,
        session: Arc::new(std::sync::RwLock::new("s".to_owned())),
        effort: None,
        records_reads: true,
        effects: haft_tools::SkillEffects::default(),
    }
}

/// Answers calls beside the model's own, and writes them down.
#[derive(Default)]
struct Fake(Mutex<Vec<(ToolUse, Vec<String>)>>);

impl NestedCallRunner for Fake {
    fn run<'a>(
        &'a self,
        call: ToolUse,
        allowed: &'a [String],
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, NestedResult> {
        let text = call.input["command"]
            .as_str()
            .or(call.input["file_path"].as_str())
            .unwrap()
            .to_owned();
        self.0.lock().unwrap().push((call, allowed.to_vec()));
        Box::pin(async move {
            NestedResult {
                is_error: text.contains("bad"),
                denied: text.contains("forbidden"),
                text: format!("<{text}>"),
                structured: None,
                hooks: HookVerdict::default(),
            }
        })
    }
}

fn session(files: &[(&str, &str)], trusts_project: bool, settings: &Value) -> Session {
    let mut session = Session::new(files.iter().copied());
    let book = book(&session.project, trusts_project, settings);
    session.services = session.services.clone().with(Arc::new(book));
    session
}

async fn call(session: &Session, input: Value) -> Result<ToolOutput, ToolError> {
    let (bound, mut cx) = (session.bind("Skill", input), session.context());
    cx.nested = NestedCalls::from_runner(Arc::new(Fake::default()));
    bound.check(&cx).await?;
    bound.call(&cx).await
}

fn said(output: &ToolOutput) -> &str {
    let [message] = output.messages.as_slice() else {
        panic!("one message: {output:?}");
    };
    message.content.first().and_then(Content::as_text).unwrap()
}

#[tokio::test]
async fn the_instructions_come_as_a_message_and_a_second_time_not() {
    let files = [(".claude/skills/greet/SKILL.md", "Greet $0.\n")];
    let session = session(&files, true, &json!({}));
    let input = json!({"command": "/greet", "args": "Ann"});
    let output = call(&session, input.clone()).await.unwrap();
    assert_eq!(
        text_of(&output),
        "The skill greet is loaded: its instructions follow."
    );
    assert_eq!(
        session.masked(said(&output)),
        "Skill directory: [root]/.claude/skills/greet\n\nGreet Ann."
    );
    assert_eq!(
        output.structured,
        Some(json!({"success": true, "commandName": "greet"}))
    );
    assert!(output.patches.is_empty());
    let again = call(&session, input).await.unwrap();
    assert!(again.messages.is_empty());
    assert!(text_of(&again).contains("in this conversation already"));
    let other = call(&session, json!({"skill": "greet", "args": "Bob"})).await;
    assert!(said(&other.unwrap()).ends_with("Greet Bob."));
}

#[tokio::test]
async fn vector_07_a_skill_for_people_is_refused_to_the_model() {
    let files = [(
        ".claude/skills/d/SKILL.md",
        "---\ndisable-model-invocation: true\n---\nx",
    )];
    let session = session(&files, true, &json!({}));
    let refused = session.say("Skill", json!({"skill": "d"})).await.refused();
    assert_eq!(
        refused,
        "The skill \"d\" can be called only by the user (disable-model-invocation), who types /d."
    );
    let book = session.services.get::<SkillService>().unwrap();
    let (aside, cancel) = (NestedCalls::default(), CancellationToken::new());
    let invoked = book.invoke("d", "", SkillCaller::User, &aside, &cancel);
    assert!(invoked.await.unwrap().text.ends_with("\n\nx"));
}

#[tokio::test]
async fn unknown_names_get_near_ones_and_forks_a_way_out() {
    let files = [
        (".claude/skills/deploy/SKILL.md", "x"),
        (".claude/skills/far/SKILL.md", "---\ncontext: fork\n---\nx"),
        (
            ".claude/skills/own/SKILL.md",
            "---\nuser-invocable: no\n---\nx",
        ),
    ];
    let session = session(&files, true, &json!({}));
    let refused = session.say("Skill", json!({"skill": "depoly"})).await;
    assert_eq!(
        refused.refused(),
        "No skill is called \"depoly\". Did you mean deploy?"
    );
    let refused = session
        .say("Skill", json!({"skill": "far"}))
        .await
        .refused();
    assert!(refused.contains("context: fork"), "{refused}");
    let book = session.services.get::<SkillService>().unwrap();
    assert!(book.find("own", SkillCaller::Model).is_ok());
    assert!(book.find("own", SkillCaller::User).is_err());
}

/// What is permitted without asking: text and nothing more.
#[tokio::test]
async fn only_a_plain_skill_needs_no_permission() {
    let files = [
        (".claude/skills/plain/SKILL.md", "x"),
        (".claude/skills/runs/SKILL.md", "!`ls`"),
        (
            ".claude/skills/grants/SKILL.md",
            "---\nallowed-tools: Bash\n---\nx",
        ),
    ];
    let session = session(&files, true, &json!({}));
    for (name, expected) in [
        ("plain", ToolPermission::Allow),
        ("runs", ToolPermission::ByEffects),
        ("grants", ToolPermission::ByEffects),
        ("none", ToolPermission::ByEffects),
    ] {
        let bound = session.bind("Skill", json!({"skill": name}));
        assert_eq!(bound.permission(&session.context()), expected, "{name}");
    }
}

#[tokio::test]
async fn vector_08_what_a_skill_permits_is_for_the_turn_and_only_where_the_project_is_trusted() {
    let head = "---\nallowed-tools: Bash(git add *) Read\ndisallowed-tools: Write\n---\nx";
    let files = [(".claude/skills/d/SKILL.md", head)];
    let rule = |list, rule: &str| ContextPatch::AddRuleForTurn {
        list,
        rule: rule.to_owned(),
    };
    let trusted = session(&files, true, &json!({}));
    let output = call(&trusted, json!({"skill": "d"})).await.unwrap();
    assert_eq!(
        output.patches,
        [
            rule(RuleList::Allow, "Bash(git add *)"),
            rule(RuleList::Allow, "Read"),
            rule(RuleList::Deny, "Write"),
        ]
    );
    let structured = output.structured.unwrap();
    assert_eq!(
        structured["allowedTools"],
        json!(["Bash(git add *)", "Read"])
    );
    let untrusted = session(&files, false, &json!({}));
    let output = call(&untrusted, json!({"skill": "d"})).await.unwrap();
    assert_eq!(output.patches, [rule(RuleList::Deny, "Write")]);
    assert!(text_of(&output).contains("this directory is not trusted"));
}

#[tokio::test]
async fn commands_run_by_the_rules_the_skill_brings_and_a_refusal_ends_it() {
    let good =
        "---\nallowed-tools: Bash(git *)\n---\nStatus: !`git status $0`\n```!\none\ntwo\n```\nend";
    let files = [
        (".claude/skills/good/SKILL.md", good),
        (".claude/skills/bad/SKILL.md", "a !`bad forbidden thing`"),
        (".claude/skills/worse/SKILL.md", "a !`bad thing`"),
        (
            ".claude/skills/power/SKILL.md",
            "---\nshell: powershell\n---\n!`x`",
        ),
    ];
    let session = session(&files, true, &json!({}));
    let fake = Arc::new(Fake::default());
    let book = session.services.get::<SkillService>().unwrap();
    let (aside, cancel) = (
        NestedCalls::from_runner(fake.clone()),
        CancellationToken::new(),
    );
    let invoke = |name: &'static str| book.invoke(name, "-s", SkillCaller::Model, &aside, &cancel);
    let text = invoke("good").await.unwrap().text;
    assert!(
        text.ends_with("\n\nStatus: <git status -s>\n<one\ntwo>\nend"),
        "{text}"
    );
    let calls = fake.0.lock().unwrap().clone();
    assert_eq!(calls[0].0.name, "Bash");
    assert_eq!(calls[0].1, ["Bash(git *)"]);
    assert_eq!(
        invoke("bad").await.unwrap_err(),
        "The skill \"bad\" was not loaded: its command `bad forbidden thing` was not permitted.\n\
         <bad forbidden thing>"
    );
    let error = invoke("worse").await.unwrap_err();
    assert!(error.contains("its command `bad thing` failed"), "{error}");
    assert!(invoke("power").await.unwrap_err().contains("only bash"));
}

#[tokio::test]
async fn settings_switch_off_commands() {
    let files = [(".claude/skills/runs/SKILL.md", "a !`ls` b")];
    let settings = json!({"disableSkillShellExecution": true});
    let session = session(&files, true, &settings);
    let output = call(&session, json!({"skill": "runs"})).await.unwrap();
    assert!(
        said(&output).ends_with("a [not run: ls: the settings switch off commands of skills] b")
    );
}

#[tokio::test]
async fn a_command_brings_the_files_it_mentions_and_a_skill_not() {
    let files = [
        (
            ".claude/commands/look.md",
            "Look at @notes.md, @bad and @$0.",
        ),
        (".claude/skills/s/SKILL.md", "Look at @notes.md"),
        ("notes.md", "n"),
    ];
    let session = session(&files, true, &json!({}));
    let input = json!({"skill": "look", "args": "bad-forbidden"});
    let output = call(&session, input).await.unwrap();
    assert_eq!(
        session.masked(said(&output)),
        "Look at @notes.md, @bad and @bad-forbidden.\n\nContents of [root]/notes.md:\n\
         <[root]/notes.md>\n\n[root]/bad-forbidden may not be read here."
    );
    let output = call(&session, json!({"skill": "s"})).await.unwrap();
    assert!(said(&output).ends_with("\n\nLook at @notes.md"));
}

#[tokio::test]
async fn without_skills_the_tool_is_not_offered() {
    let session = Session::new([]);
    let offers = |session: &Session| {
        let tools = haft_tools::usable(&session.services);
        tools.iter().any(|tool| tool.spec().name == "Skill")
    };
    assert!(!offers(&session));
    // Before there is a skill it costs nothing.
    let is_idle = |files: &[(&str, &str)]| {
        let session = self::session(files, true, &json!({}));
        assert!(offers(&session));
        let tools = haft_tools::usable(&session.services);
        let tool = tools.iter().find(|tool| tool.spec().name == "Skill");
        tool.unwrap().spec().profile.deferred
    };
    assert!(is_idle(&[]));
    assert!(!is_idle(&[(".claude/skills/a/SKILL.md", "a")]));
    let (cx, _) = CallContext::for_test(session.project.root());
    let bound = session.bind("Skill", json!({"skill": "x"}));
    assert!(matches!(
        bound.check(&cx).await,
        Err(ToolError::NoService(_))
    ));
}

/// Launches no one, and says what it was asked for.
#[derive(Default)]
struct Launches(Mutex<Vec<LaunchRequest>>);

impl SubagentSpawner for Launches {
    fn kinds(&self) -> Vec<AgentKind> {
        Vec::new()
    }

    fn check(&self, launch: &LaunchRequest) -> Result<(), ToolError> {
        match launch.kind.as_deref() {
            Some("none") => Err(ToolError::Refused("no such kind".to_owned())),
            _ => Ok(()),
        }
    }

    fn launch<'a>(
        &'a self,
        launch: LaunchRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<LaunchOutcome, ToolError>> {
        let failed = launch.prompt.contains("fail");
        let in_background = launch.background == Some(true);
        self.0.lock().unwrap().push(launch);
        Box::pin(async move {
            if in_background {
                return Ok(LaunchOutcome::InBackground(BackgroundHandle {
                    agent: "a2".to_owned(),
                    description: String::new(),
                    output_file: "/out".into(),
                    model: "m".to_owned(),
                }));
            }
            Ok(LaunchOutcome::Done(Box::new(AgentReport {
                agent: "a1".to_owned(),
                kind: "Explore".to_owned(),
                text: "Looked.".to_owned(),
                failed,
                problem: failed.then(|| "overloaded".to_owned()),
                model: "m".to_owned(),
                models_used: Vec::new(),
                tool_uses: 0,
                duration: std::time::Duration::ZERO,
                tokens: TokenCount::default(),
                worktree: None,
            })))
        })
    }

    fn send<'a>(
        &'a self,
        _: AgentMessage,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<MessageDelivery, ToolError>> {
        Box::pin(async { Err(ToolError::Failed("nobody is there".to_owned())) })
    }

    fn status(&self, _: &str) -> Option<AgentStatus> {
        None
    }

    fn wait<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn stop(&self, _: &str) {}
}

#[tokio::test]
async fn a_skill_that_forks_is_carried_out_by_a_subagent() {
    let fork = |more: &str| format!("---\ncontext: fork\n{more}\n---\nLook at $0.");
    let (explore, beside, none) = (
        fork("agent: Explore"),
        fork("background: yes"),
        fork("agent: none"),
    );
    let files = [
        (".claude/skills/look/SKILL.md", explore.as_str()),
        (".claude/skills/beside/SKILL.md", beside.as_str()),
        (".claude/skills/none/SKILL.md", none.as_str()),
    ];
    let mut session = session(&files, true, &json!({}));
    let launches = Arc::new(Launches::default());
    let subagents = Subagents(Arc::clone(&launches) as _);
    session.services = session.services.clone().with(Arc::new(subagents));
    let output = call(&session, json!({"skill": "look", "args": "it"}))
        .await
        .unwrap();
    assert!(output.messages.is_empty() && output.patches.is_empty());
    assert_eq!(
        text_of(&output),
        "The skill look was run by a subagent:\n\nLooked."
    );
    assert_eq!(
        output.structured,
        Some(
            json!({"success": true, "commandName": "look", "status": "forked",
                    "agentId": "a1", "result": "Looked."})
        )
    );
    let launched = launches.0.lock().unwrap().remove(0);
    assert_eq!(launched.kind.as_deref(), Some("Explore"));
    assert!(launched.prompt.ends_with("Look at it."));
    let failed = call(&session, json!({"skill": "look", "args": "fail"})).await;
    assert!(failed.unwrap_err().to_string().contains("overloaded"));
    let output = call(&session, json!({"skill": "beside"})).await.unwrap();
    assert!(text_of(&output).contains("in the background"));
    let refused = call(&session, json!({"skill": "none"})).await;
    assert!(matches!(refused, Err(ToolError::Refused(_))));
}
