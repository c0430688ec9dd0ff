//! Can commands be confined here at all?

use std::path::Path;

use crate::{Mechanism, Profile, Reading, protocol::Plan, scratch, world};

/// The best way of confining commands that works here and leaves no hole: found out by setting a
/// sandbox up and taking it down again, which takes some milliseconds. `program` is as in
/// [`Setup`](crate::Setup); a folder for the trial is made below `among`.
pub fn available(program: &Path, among: &Path) -> Option<Mechanism> {
    let folder = among.join(format!("haft-trial-{}", std::process::id()));
    scratch::make(&folder).ok()?;
    let found = [Mechanism::Namespaces, Mechanism::Bubblewrap]
        .into_iter()
        .find(|mechanism| {
            let plan = Plan {
                profile: Profile::ReadOnly(Reading::default()),
                mechanism: *mechanism,
                own_processes: true,
                mediates: true,
                shell: crate::system_shell().unwrap_or_default(),
                env: Vec::new(),
                scratch: folder.clone(),
                snapshot: None,
                sockets: Vec::new(),
            };
            world::stands(program, &plan)
        });
    scratch::remove(&folder);
    found
}
