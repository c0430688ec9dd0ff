//! How a command is to be confined, by a toy in the place of Bash.

use std::{fs, path::PathBuf, sync::Arc};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, Confinement, ConfinementProfile,
    ConfinementStrength, Effects, NetworkAccess, PRIVATE_DIRECTORY, PermissionMode,
    ProbeConfinement, Services,
};
use haft_engine::{
    Engine, Scheduler, ToolRegistry,
    hook_conditions::read,
    hooks::Hooks,
    permissions::{PermissionSettings, SandboxSettings, SettingsScope, sandbox::ExcludedCommand},
};
use haft_testkit::FakeBash;
use serde_json::{Value, json};

use crate::{
    machine::{Machine, PROJECT, USER, git},
    rig::tool_use,
};

/// Says yes to everything, and keeps why it was asked.
#[derive(Default)]
struct Yes(std::sync::Mutex<Vec<String>>);

impl Approver for Yes {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        assert!(
            question.offers.is_empty() || !question.reason.contains("outside the sandbox"),
            "no rule is offered for leaving the sandbox"
        );
        self.0.lock().unwrap().push(question.reason);
        Box::pin(async { ApprovalAnswer::Allow })
    }
}

mod files;
mod hosts;
mod prepared;
mod strength;

struct Session {
    machine: Machine,
    scheduler: Scheduler,
    bash: FakeBash,
    asked: Option<Arc<Yes>>,
}

struct Setup {
    mode: PermissionMode,
    sandbox: SandboxSettings,
    /// Someone is there, who says yes.
    person: bool,
    effects: Effects,
    /// The `hooks` of a settings file.
    hooks: Value,
    /// How commands are really confined, if that can be told.
    strength: Option<ConfinementStrength>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: PermissionMode::Default,
            sandbox: SandboxSettings::default(),
            person: true,
            effects: Effects::EXCLUSIVE,
            hooks: json!({}),
            strength: None,
        }
    }
}

/// Switched on, and enough.
fn on() -> SandboxSettings {
    SandboxSettings {
        enabled: Some(true),
        available: true,
        lets_through: true,
        ..SandboxSettings::default()
    }
}

impl Session {
    async fn new(machine: Machine, setup: Setup) -> Self {
        let context = machine.context().with_sandbox(setup.sandbox);
        let context = context.with_mode(setup.mode);
        let bash = FakeBash::with(setup.effects);
        let mut registry = ToolRegistry::new();
        registry.add(bash.clone()).unwrap();
        let asked = setup.person.then(Arc::<Yes>::default);
        let services = match &asked {
            Some(yes) => Services::none().with_approver(Arc::clone(yes) as Arc<dyn Approver>),
            None => Services::none(),
        };
        let services = match setup.strength {
            Some(strength) => services.with(Arc::new(
                Arc::new(strength::Machine(strength)) as Arc<dyn ProbeConfinement>
            )),
            None => services,
        };
        let (handlers, problems) = read(SettingsScope::User, None, &setup.hooks, &context.bases());
        assert_eq!(problems, []);
        let (engine, _) = Engine::builder(registry, machine.files.path("session"))
            .services(services)
            .hooks(Hooks::new(handlers, &machine.places.cwd))
            .build()
            .await;
        Self {
            machine,
            scheduler: engine.scheduler(context),
            bash,
            asked,
        }
    }

    /// With everything the settings files say.
    async fn of_settings(machine: Machine, available: bool) -> Self {
        let sandbox = SandboxSettings {
            available,
            ..machine.load().sandbox()
        };
        let setup = Setup {
            sandbox,
            ..Setup::default()
        };
        Self::new(machine, setup).await
    }

    /// What the model reads, and how the command was to be confined if it ran.
    async fn call(&mut self, input: Value) -> (String, Option<Confinement>) {
        let mut turn = self.scheduler.start_batch().await;
        turn.push(tool_use("Bash", input));
        let finished = turn.next().await.unwrap();
        (self.machine.plain(&finished.text()), self.bash.take())
    }

    /// How a line is confined that runs.
    async fn run(&mut self, line: &str) -> Confinement {
        let (said, confinement) = self.call(json!({ "command": line })).await;
        let confinement = confinement.unwrap_or_else(|| panic!("{line}: {said}"));
        is_sound(&confinement, line);
        confinement
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.as_ref().unwrap();
        std::mem::take(&mut *asked.0.lock().unwrap())
    }

    fn names(&self, paths: &[PathBuf]) -> Vec<String> {
        // This machine's own homes may hold keys too.
        let root = self.machine.files.root().canonicalize().unwrap();
        let paths = paths.iter().filter(|path| path.starts_with(&root));
        let texts = paths.map(|path| path.display().to_string());
        texts.map(|text| self.machine.plain(&text)).collect()
    }

    /// What it may write but for caches: which tools are installed differs between machines.
    fn writable(&self, confinement: &Confinement) -> Vec<String> {
        let writable = confinement.writable.iter();
        let writable = writable.filter(|path| !confinement.caches.contains(path));
        self.names(&writable.cloned().collect::<Vec<_>>())
    }
}

/// What every confinement keeps to.
fn is_sound(confinement: &Confinement, line: &str) {
    let lists = [
        &confinement.writable,
        &confinement.protected,
        &confinement.hidden,
    ];
    for list in lists {
        for (at, path) in list.iter().enumerate() {
            assert!(path.is_absolute(), "{line}: {path:?}");
            let mut others = list.iter().enumerate();
            let nested = others.any(|(other, above)| other != at && path.starts_with(above));
            assert!(!nested, "{line}: {list:?}");
        }
    }
    for path in confinement.protected.iter() {
        let mut writable = confinement.writable.iter();
        assert!(
            writable.any(|root| path.starts_with(root)),
            "{line}: {path:?}"
        );
        let mut writable = confinement.writable.iter();
        assert!(
            !writable.any(|root| root.starts_with(path)),
            "{line}: {path:?}"
        );
        assert!(path.exists(), "{line}: {path:?}");
    }
    // haft's own secrets are hidden before the first one is stored.
    let is_hidden = |path: &PathBuf| path.exists() || path.ends_with(PRIVATE_DIRECTORY);
    assert!(confinement.hidden.iter().all(is_hidden), "{line}");
    if confinement.profile != ConfinementProfile::Workspace {
        assert!(confinement.writable.is_empty() && confinement.protected.is_empty());
    }
}

fn network(confinement: &Confinement) -> &'static str {
    match confinement.network {
        NetworkAccess::Nobody => "nobody",
        NetworkAccess::ByRule(_) => "by rule",
        NetworkAccess::Only(_) => "only",
        NetworkAccess::Anybody => "anybody",
    }
}

#[tokio::test]
async fn the_verdict_and_the_settings_choose_the_profile() {
    use ConfinementProfile::{Full, ReadOnly, Workspace};
    use PermissionMode as Mode;
    let cases = [
        // (mode, sandbox.enabled, line, profile, network)
        (Mode::Default, None, "ls", ReadOnly, "nobody"),
        (Mode::Default, None, "make", Workspace, "anybody"),
        (Mode::Default, Some(true), "ls", ReadOnly, "nobody"),
        (Mode::Default, Some(true), "make", Workspace, "by rule"),
        (Mode::Default, Some(false), "ls", ReadOnly, "nobody"),
        (Mode::Default, Some(false), "make", Full, "anybody"),
        (Mode::AcceptEdits, None, "mkdir x", Workspace, "anybody"),
        (Mode::Plan, None, "make", Workspace, "anybody"),
        (Mode::BypassPermissions, None, "ls", ReadOnly, "nobody"),
        (Mode::BypassPermissions, None, "make", Full, "anybody"),
        (
            Mode::BypassPermissions,
            Some(true),
            "make",
            Workspace,
            "by rule",
        ),
        (
            Mode::BypassPermissions,
            Some(false),
            "ls",
            ReadOnly,
            "nobody",
        ),
    ];
    for (mode, enabled, line, profile, reachable) in cases {
        let sandbox = SandboxSettings {
            enabled,
            ..SandboxSettings::default()
        };
        let setup = Setup {
            mode,
            sandbox,
            ..Setup::default()
        };
        let mut session = Session::new(Machine::new([]), setup).await;
        let confinement = session.run(line).await;
        let got = (confinement.profile, network(&confinement));
        assert_eq!(got, (profile, reachable), "{mode:?} {enabled:?} {line}");
    }
}

#[tokio::test]
async fn a_repository_that_runs_programs_is_not_read_only_whatever_the_tool_says() {
    let machine = Machine::new([]);
    git(&machine.places.cwd, &["init", "-q"]);
    let setup = Setup {
        effects: Effects::READS,
        ..Setup::default()
    };
    let mut session = Session::new(machine, setup).await;
    let confinement = session.run("git status").await;
    assert_eq!(confinement.profile, ConfinementProfile::ReadOnly);
    assert_eq!(session.asked(), [""; 0]);
    let config = session.machine.files.path("p/.git/config");
    let mut text = fs::read_to_string(&config).unwrap();
    text += "[core]\n\tfsmonitor = ./evil\n";
    fs::write(&config, text).unwrap();
    let confinement = session.run("git status").await;
    assert_eq!(confinement.profile, ConfinementProfile::Workspace);
    let asked = session.asked();
    assert!(asked[0].contains("core.fsmonitor"), "{asked:?}");
    // A tool that claims to read does not make a line harmless either.
    session.run("make").await;
    assert_eq!(session.asked().len(), 1);
}

#[tokio::test]
async fn only_a_person_lets_a_command_out_of_the_sandbox() {
    use PermissionMode as Mode;
    let input = json!({"command": "make", "dangerouslyDisableSandbox": true});
    let allow = r#"{"permissions": {"allow": ["Bash"]}}"#;
    for (mode, enabled) in [
        (Mode::Default, None),
        (Mode::Default, Some(true)),
        (Mode::AcceptEdits, None),
        (Mode::Plan, Some(true)),
        (Mode::BypassPermissions, Some(true)),
    ] {
        let setup = |person| Setup {
            mode,
            person,
            sandbox: SandboxSettings { enabled, ..on() },
            ..Setup::default()
        };
        let mut session = Session::new(Machine::new([(USER, allow)]), setup(true)).await;
        let (_, confinement) = session.call(input.clone()).await;
        assert_eq!(
            confinement.unwrap().profile,
            ConfinementProfile::Full,
            "{mode:?}"
        );
        let asked = session.asked();
        assert_eq!(asked.len(), 1, "{mode:?}");
        assert!(asked[0].starts_with("it asks to run outside the sandbox"));
        // It is never remembered.
        session.call(input.clone()).await;
        assert_eq!(session.asked().len(), 1);

        let mut session = Session::new(Machine::new([(USER, allow)]), setup(false)).await;
        let (said, confinement) = session.call(input.clone()).await;
        assert!(confinement.is_none(), "{mode:?}: {said}");
        assert!(
            said.contains("again without dangerouslyDisableSandbox"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_hook_lets_no_command_out_of_the_sandbox() {
    let says = |said: Value| {
        let said = json!({ "hookSpecificOutput": said });
        json!([{"hooks": [{"type": "command", "command": format!("echo '{said}'")}]}])
    };
    let requested = says(json!({
        "hookEventName": "PermissionRequest", "decision": {"behavior": "allow"},
    }));
    let before = says(json!({
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
    }));
    // Nor does one that writes the wish into the call.
    let rewritten = says(json!({
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": {"command": "make", "dangerouslyDisableSandbox": true},
    }));
    let wish = json!({"command": "make", "dangerouslyDisableSandbox": true});
    for (hooks, input) in [
        (json!({"PermissionRequest": requested}), wish.clone()),
        (json!({"PreToolUse": before}), wish),
        (json!({"PreToolUse": rewritten}), json!({"command": "make"})),
    ] {
        for person in [true, false] {
            let setup = Setup {
                hooks: hooks.clone(),
                person,
                ..Setup::default()
            };
            let mut session = Session::new(Machine::new([]), setup).await;
            let (said, confinement) = session.call(input.clone()).await;
            assert_eq!(confinement.is_some(), person, "{hooks}: {said}");
            if person {
                assert_eq!(session.asked().len(), 1, "{hooks}");
            }
        }
    }
    // What it may do: let a confined one run.
    let setup = Setup {
        hooks: json!({"PermissionRequest": requested}),
        person: false,
        ..Setup::default()
    };
    let mut session = Session::new(Machine::new([]), setup).await;
    assert_eq!(
        session.run("make").await.profile,
        ConfinementProfile::Workspace
    );
}

#[tokio::test]
async fn a_wish_to_leave_the_sandbox_counts_only_where_there_is_one_and_it_may_be_left() {
    let input = |line: &str| json!({"command": line, "dangerouslyDisableSandbox": true});
    // Not to be left: as if nothing had been said.
    let sandbox = SandboxSettings {
        may_be_lifted: false,
        ..on()
    };
    let setup = Setup {
        sandbox,
        ..Setup::default()
    };
    let mut session = Session::new(Machine::new([]), setup).await;
    let (_, confinement) = session.call(input("make")).await;
    let confinement = confinement.unwrap();
    assert_eq!(confinement.profile, ConfinementProfile::Workspace);
    assert!(!confinement.may_be_lifted);
    assert_eq!(session.asked(), [""; 0]);
    // None there: nothing to ask.
    let setup = Setup {
        mode: PermissionMode::BypassPermissions,
        ..Setup::default()
    };
    let mut session = Session::new(Machine::new([]), setup).await;
    let (_, confinement) = session.call(input("make")).await;
    assert_eq!(confinement.unwrap().profile, ConfinementProfile::Full);
    assert_eq!(session.asked(), [""; 0]);
    // What only reads is asked about as well: it would no longer be held to it.
    let mut session = Session::new(Machine::new([]), Setup::default()).await;
    let (_, confinement) = session.call(input("ls")).await;
    assert_eq!(confinement.unwrap().profile, ConfinementProfile::Full);
    assert_eq!(session.asked().len(), 1);
    // Where no one is ever asked it is refused.
    let setup = Setup {
        mode: PermissionMode::DontAsk,
        ..Setup::default()
    };
    let mut session = Session::new(Machine::new([]), setup).await;
    let (said, confinement) = session.call(input("ls")).await;
    assert!(confinement.is_none());
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn an_excluded_command_takes_its_line_out_of_the_sandbox_and_into_the_regular_rules() {
    let sandbox = || SandboxSettings {
        excluded: vec![
            ExcludedCommand::new("docker *"),
            ExcludedCommand::new("make:*"),
        ],
        ..on()
    };
    let setup = Setup {
        sandbox: sandbox(),
        ..Setup::default()
    };
    let mut session = Session::new(Machine::new([]), setup).await;
    for (line, profile, questions) in [
        ("npm test", ConfinementProfile::Workspace, 0),
        ("docker run x", ConfinementProfile::Full, 1),
        ("npm test && docker run x", ConfinementProfile::Full, 1),
        ("make", ConfinementProfile::Full, 1),
        // It only reads, but from a service: that is asked about.
        ("docker ps", ConfinementProfile::Full, 1),
        ("docker --version", ConfinementProfile::Full, 0),
        ("timeout 5 make all", ConfinementProfile::Full, 1),
        // A file of that name is another program, and so is one whose name begins the same.
        ("./docker run x", ConfinementProfile::Workspace, 0),
        ("dockerd x", ConfinementProfile::Workspace, 0),
        ("echo docker run x > y", ConfinementProfile::Workspace, 0),
    ] {
        let confinement = session.run(line).await;
        assert_eq!(confinement.profile, profile, "{line}");
        assert_eq!(session.asked().len(), questions, "{line}");
    }
    // A rule lets it through like any other.
    let allow = r#"{"permissions": {"allow": ["Bash(docker run *)"]}}"#;
    let setup = Setup {
        sandbox: sandbox(),
        person: false,
        ..Setup::default()
    };
    let mut session = Session::new(Machine::new([(USER, allow)]), setup).await;
    assert_eq!(
        session.run("docker run x").await.profile,
        ConfinementProfile::Full
    );
    let (_, ran) = session.call(json!({"command": "docker rm x"})).await;
    assert!(ran.is_none());
}

#[tokio::test]
async fn a_sandbox_stands_in_for_consent_only_where_it_holds() {
    use PermissionMode as Mode;
    let cases = [
        ("it holds", Mode::Default, on(), true),
        (
            "nobody said so",
            Mode::Default,
            SandboxSettings {
                enabled: None,
                ..on()
            },
            false,
        ),
        (
            "the machine cannot",
            Mode::Default,
            SandboxSettings {
                available: false,
                ..on()
            },
            false,
        ),
        (
            "not wanted",
            Mode::Default,
            SandboxSettings {
                lets_through: false,
                ..on()
            },
            false,
        ),
        (
            "files are open",
            Mode::Default,
            SandboxSettings {
                files_open: true,
                ..on()
            },
            false,
        ),
        ("plan", Mode::Plan, on(), false),
        ("dontAsk", Mode::DontAsk, on(), true),
    ];
    for (what, mode, sandbox, runs) in cases {
        let setup = Setup {
            mode,
            sandbox,
            person: false,
            ..Setup::default()
        };
        let mut session = Session::new(Machine::new([]), setup).await;
        let (said, ran) = session.call(json!({"command": "make"})).await;
        assert_eq!(ran.is_some(), runs, "{what}: {said}");
    }
}

#[tokio::test]
async fn rows_102_and_103_by_settings_files() {
    let settings = json!({
        "sandbox": {"enabled": true},
        "permissions": {"ask": ["Bash"]},
    });
    let machine = || Machine::new([(USER, settings.to_string().as_str())]);
    let mut session = Session::of_settings(machine(), true).await;
    session.run("make").await;
    assert_eq!(session.asked(), [""; 0]);
    let mut session = Session::of_settings(machine(), false).await;
    session.run("make").await;
    assert_eq!(session.asked().len(), 1);
    let scoped = json!({
        "sandbox": {"enabled": true},
        "permissions": {"ask": ["Bash(git push *)"]},
    });
    let machine = Machine::new([(USER, scoped.to_string().as_str())]);
    let mut session = Session::of_settings(machine, true).await;
    session.run("git push").await;
    assert_eq!(session.asked().len(), 1);
}

#[tokio::test]
async fn with_files_open_only_the_network_is_confined() {
    let settings = r#"{"sandbox": {"enabled": true, "filesystem": {"disabled": true}}}"#;
    let machine = Machine::new([(USER, settings), ("p/.npmrc", "")]);
    let mut session = Session::of_settings(machine, true).await;
    let confinement = session.run("make").await;
    assert_eq!(*confinement.writable, [PathBuf::from("/")]);
    assert!(confinement.protected.is_empty() && confinement.hidden.is_empty());
    assert_eq!(network(&confinement), "by rule");
    assert_eq!(session.asked().len(), 1);
}

#[tokio::test]
async fn an_untrusted_project_may_switch_the_sandbox_on_but_not_let_commands_through() {
    let settings = r#"{"sandbox": {"enabled": true}}"#;
    let machine = || Machine::new([(PROJECT, settings)]);
    let mut session = Session::of_settings(machine(), true).await;
    let confinement = session.run("make").await;
    assert_eq!(network(&confinement), "by rule");
    assert_eq!(session.asked().len(), 1);
    let trusted = machine();
    trusted.trust();
    let mut session = Session::of_settings(trusted, true).await;
    session.run("make").await;
    assert_eq!(session.asked(), [""; 0]);
}
