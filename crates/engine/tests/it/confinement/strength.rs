//! What a command is permitted that cannot be confined.

use haft_contract::{BoxFuture, ConfinementStrength, PermissionMode, ProbeConfinement};
use haft_engine::permissions::SandboxSettings;
use serde_json::json;

use super::{Confinement, Session, Setup, USER, on};

/// Says of every command the same.
pub(super) struct Machine(pub(super) ConfinementStrength);

impl ProbeConfinement for Machine {
    fn strength<'a>(&'a self, _: &'a Confinement) -> BoxFuture<'a, Option<ConfinementStrength>> {
        Box::pin(async { Some(self.0) })
    }

    fn is_witnessed<'a>(
        &'a self,
        _: &'a Confinement,
        _: &'a haft_contract::CallContext,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async { self.0 == ConfinementStrength::Whole })
    }

    fn prepare<'a>(&'a self, _: &'a Confinement) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// Was it asked about, and may it run without a sandbox?
async fn tried(setup: Setup, line: &str) -> (bool, Option<bool>) {
    let rules = json!({"permissions": {"allow": ["Bash(make)"]}}).to_string();
    let machine = crate::machine::Machine::new([(USER, rules.as_str()), ("p/a", "")]);
    let person = setup.person;
    let mut session = Session::new(machine, setup).await;
    let (_, confinement) = session.call(json!({ "command": line })).await;
    let asked = person && !session.asked().is_empty();
    (
        asked,
        confinement.map(|confinement| !confinement.only_confined),
    )
}

fn setup(strength: ConfinementStrength, sandbox: SandboxSettings) -> Setup {
    Setup {
        strength: Some(strength),
        sandbox,
        ..Setup::default()
    }
}

#[tokio::test]
async fn what_counts_on_being_confined_asks_where_nothing_confines() {
    use ConfinementStrength::{Nothing, Reduced, Whole};
    for (strength, sandbox, line, expected) in [
        (
            Whole,
            SandboxSettings::default(),
            "cat a",
            (false, Some(false)),
        ),
        (
            Reduced,
            SandboxSettings::default(),
            "cat a",
            (false, Some(false)),
        ),
        (
            Nothing,
            SandboxSettings::default(),
            "cat a",
            (true, Some(true)),
        ),
        (
            Nothing,
            SandboxSettings::default(),
            "cat a | wc",
            (true, Some(true)),
        ),
        // A rule stands for itself, but for nothing beside it.
        (
            Whole,
            SandboxSettings::default(),
            "make",
            (false, Some(false)),
        ),
        (
            Nothing,
            SandboxSettings::default(),
            "make",
            (false, Some(true)),
        ),
        (
            Nothing,
            SandboxSettings::default(),
            "cat a; make",
            (true, Some(true)),
        ),
        // What the sandbox would have let through.
        (Whole, on(), "touch b", (false, Some(false))),
        (Nothing, on(), "touch b", (true, Some(true))),
        (Nothing, on(), "cat a", (true, Some(true))),
    ] {
        let tried = tried(setup(strength, sandbox), line).await;
        assert_eq!(tried, expected, "{strength:?} {line}");
    }
}

/// The mode `auto` relies on a sandbox that sees every change, also where it has become weaker since
/// the start.
#[tokio::test]
async fn auto_asks_about_commands_where_the_sandbox_is_weaker() {
    use ConfinementStrength::{Nothing, Reduced, Whole};
    for (strength, line, expected) in [
        (Whole, "touch b", (false, Some(false))),
        (Whole, "git push", (true, Some(true))),
        (Reduced, "touch b", (true, Some(true))),
        (Reduced, "cat a", (false, Some(false))),
        (Nothing, "touch b", (true, Some(true))),
    ] {
        let setup = Setup {
            mode: PermissionMode::Auto,
            ..setup(strength, SandboxSettings::default())
        };
        assert_eq!(tried(setup, line).await, expected, "{strength:?} {line}");
    }
    // Without a probe nobody knows.
    let setup = Setup {
        mode: PermissionMode::Auto,
        ..Setup::default()
    };
    assert_eq!(tried(setup, "touch b").await, (true, Some(true)));
}

#[tokio::test]
async fn where_no_one_can_be_asked_it_does_not_run() {
    for mode in [
        PermissionMode::Default,
        PermissionMode::DontAsk,
        PermissionMode::Plan,
    ] {
        let setup = Setup {
            person: false,
            mode,
            ..setup(ConfinementStrength::Nothing, SandboxSettings::default())
        };
        assert_eq!(tried(setup, "cat a").await, (false, None), "{mode:?}");
    }
}
