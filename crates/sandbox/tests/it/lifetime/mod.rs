//! Nothing outlives whom it belongs to: no process its guard, no guard its keeper, no keeper our
//! process, however any of them ends.

mod abandoned;
mod asked;
mod deaths;
pub(crate) mod driver;
mod nasty;
mod rounds;
mod scarce;

use std::{ffi::OsString, fs, os::unix::fs::symlink, path::Path, sync::Arc, time::Duration};

use haft_sandbox::{
    CommandHandle, Mechanism, ProcessTimeouts, ResourceLimits, Sandbox, SandboxProfile,
    SandboxSetup, ShellCommand,
};
use tokio::{io::AsyncReadExt, time::timeout};

use crate::setting::{LONG, Place};

/// A place whose processes can be told from those of others by its path.
pub(crate) fn place(best: Mechanism) -> Place {
    place_with(best, ProcessTimeouts::default())
}

/// For tests that stop a guard or a keeper: they would only wait for what everyone else never sees.
pub(crate) const SOON: ProcessTimeouts = ProcessTimeouts {
    // Long enough for a machine with other work.
    start: Duration::from_secs(4),
    end: Duration::from_millis(500),
};

pub(crate) fn place_with(best: Mechanism, limits: ProcessTimeouts) -> Place {
    let dir = tempfile::Builder::new()
        .prefix("lifetime-")
        .tempdir()
        .unwrap();
    let sandbox = Sandbox::with_timeouts(setup(dir.path(), best), limits);
    Place { dir, sandbox }
}

/// A sandbox whose keepers have the folder's name in their command lines, and whose shells have it in
/// their environment.
pub(crate) fn sandbox(dir: &Path, best: Mechanism) -> Sandbox {
    Sandbox::new(setup(dir, best))
}

pub(crate) fn setup(dir: &Path, best: Mechanism) -> SandboxSetup {
    fs::create_dir_all(dir.join("project")).unwrap();
    let program = dir.join("keeper");
    if !program.exists() {
        symlink(env!("CARGO_BIN_EXE_haft-keeper"), &program).unwrap();
    }
    let mut env: Vec<(OsString, OsString)> = ["PATH", "HOME"]
        .into_iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect();
    env.push(("PLACE".into(), dir.into()));
    SandboxSetup {
        program,
        shell: "/bin/bash".into(),
        environment: Arc::new(move |_| env.clone()),
        gate: None,
        scratch: dir.join("scratch"),
        snapshot: None,
        strictest_mechanism: best,
        resource_limits: ResourceLimits::default(),
    }
}

pub(crate) fn line(place: &Place, text: &str) -> ShellCommand {
    ShellCommand {
        text: text.to_owned(),
        cwd: place.project(),
        source_file: None,
        name_policy: None,
    }
}

/// Every way in which commands run here, each with a place of its own. What the machine cannot do is
/// left out. How a command ends depends on the mechanism, hardly on what it may write.
pub(crate) async fn everywhere() -> Vec<(Place, SandboxProfile)> {
    everywhere_with(ProcessTimeouts::default()).await
}

pub(crate) async fn everywhere_with(limits: ProcessTimeouts) -> Vec<(Place, SandboxProfile)> {
    let mut found = Vec::new();
    for mechanism in [
        Mechanism::Namespaces,
        Mechanism::Bubblewrap,
        Mechanism::Reduced,
    ] {
        for kind in ["readonly", "workspace", "full"] {
            let place = place_with(mechanism, limits);
            let usual = mechanism == Mechanism::Namespaces;
            let profile = match kind {
                "readonly" if usual || haft_testkit::is_thorough() => Place::readonly(),
                "workspace" => place.workspace(),
                "full" if usual => SandboxProfile::Full,
                _ => continue,
            };
            if place.sandbox.prepare(&profile).await.unwrap() == mechanism {
                found.push((place, profile));
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// Reads what a command writes, until it wrote this.
pub(crate) async fn read_until(running: &mut CommandHandle, text: &str) {
    let mut heard = String::new();
    let mut buffer = [0; 4096];
    while !heard.contains(text) {
        let read = timeout(LONG, running.output.read(&mut buffer)).await;
        let count = read.expect("it never says it").unwrap();
        assert!(count > 0, "it ended: {heard}");
        heard += &String::from_utf8_lossy(&buffer[..count]);
    }
}

pub(crate) async fn gone(running: &mut CommandHandle) {
    timeout(LONG, running.wait_until_finished())
        .await
        .expect("it is not gone");
}
