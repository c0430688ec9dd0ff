//! The sandboxes that are set up before the first command.

use std::sync::Arc;

use haft_contract::{
    BoxFuture, ConfinementProfile, ConfinementStrength, ProbeConfinement, Services,
};
use haft_engine::{Engine, Scheduler, ToolRegistry};
use haft_testkit::FakeBash;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Confinement, Effects};
use crate::machine::Machine;

/// Reports the profile of each sandbox that it is to set up.
struct PreparationLog(UnboundedSender<ConfinementProfile>);

impl ProbeConfinement for PreparationLog {
    fn strength<'a>(&'a self, _: &'a Confinement) -> BoxFuture<'a, Option<ConfinementStrength>> {
        Box::pin(async { Some(ConfinementStrength::Whole) })
    }

    fn is_witnessed<'a>(
        &'a self,
        _: &'a Confinement,
        _: &'a haft_contract::CallContext,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }

    fn prepare<'a>(&'a self, confinement: &'a Confinement) -> BoxFuture<'a, ()> {
        Box::pin(async { self.0.send(confinement.profile).unwrap() })
    }
}

/// Returns a session and the profiles of the sandboxes that it sets up.
async fn session(
    machine: &Machine,
    has_bash: bool,
) -> (Scheduler, UnboundedReceiver<ConfinementProfile>) {
    let (sender, prepared) = unbounded_channel();
    let probe = Arc::new(PreparationLog(sender)) as Arc<dyn ProbeConfinement>;
    let mut registry = ToolRegistry::new();
    if has_bash {
        registry.add(FakeBash::with(Effects::EXCLUSIVE)).unwrap();
    }
    let (engine, _) = Engine::builder(registry, machine.files.path("session"))
        .services(Services::none().with(Arc::new(probe)))
        .build()
        .await;
    (engine.scheduler(machine.context()), prepared)
}

#[tokio::test]
async fn sandboxes_for_reading_and_writing_are_set_up_once() {
    let machine = Machine::new([("p/a", "")]);
    let (mut scheduler, mut prepared) = session(&machine, true).await;
    for _ in 0..2 {
        scheduler.start_batch().await.prepare_sandboxes();
    }
    assert_eq!(prepared.recv().await, Some(ConfinementProfile::ReadOnly));
    assert_eq!(prepared.recv().await, Some(ConfinementProfile::Workspace));
    drop(scheduler);
    assert_eq!(prepared.recv().await, None);
}

#[tokio::test]
async fn without_bash_no_sandbox_is_set_up() {
    let machine = Machine::new([("p/a", "")]);
    let (mut scheduler, mut prepared) = session(&machine, false).await;
    scheduler.start_batch().await.prepare_sandboxes();
    drop(scheduler);
    assert_eq!(prepared.recv().await, None);
}
