//! Keeps what this process knows from other processes of the same user.
//!
//! It holds the provider's key, and it may work for days beside programs of every kind. So it cannot
//! be looked into: no one but root may attach to it, read its memory or find it in a core file, and
//! keys do not stand in its environment, where `/proc` would show them and children find them. A
//! program that is started is an ordinary one again.

use haft::contract::secrets;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::show;

/// The first thing that happens, while there is one thread.
pub(crate) fn begin() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        show::warn(&format!(
            "haft: other programs of yours can look into this one, keys included: {error}"
        ));
    }
    match haft_sandbox::take_variables(secrets::is_secret) {
        Ok(taken) => secrets::keep(taken),
        Err(error) => show::warn(&format!(
            "haft: keys stay in its environment, where other programs may find them: {error}"
        )),
    }
}
