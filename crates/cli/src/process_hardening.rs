//! Protects the secrets of this process from other processes of the same user.
//!
//! The process holds the provider's API key and may run for days next to arbitrary programs. It is
//! therefore marked as not dumpable: only root can attach to it, read its memory or get a core
//! file. Keys are removed from its environment, where `/proc` would expose them and children would
//! inherit them. Programs that it starts are dumpable again.

use haft::contract::secrets;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::show;

/// Hardens the process. Must run first, while there is only one thread.
pub(crate) fn harden_process() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        show::warn(&format!(
            "haft: your other programs can read the memory of this one, including keys: {error}"
        ));
    }
    match haft_sandbox::take_variables(secrets::is_secret) {
        Ok(taken) => secrets::store_removed(taken),
        Err(error) => show::warn(&format!(
            "haft: keys remain in the environment of this process, where your other programs can read them: {error}"
        )),
    }
}
