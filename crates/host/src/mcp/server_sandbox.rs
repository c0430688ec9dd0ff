//! How the process of a server is confined: as a command of the session would be.

use haft_mcp::client::SandboxOf;

use crate::settings::Permitted;

/// What such a process may touch.
#[cfg(feature = "shell")]
pub(super) fn of(permitted: &Permitted) -> Option<SandboxOf> {
    use haft_contract::{Confined, NetworkAccess};
    use haft_engine::permissions::confine_program;
    use haft_mcp::client::ServerSandbox;

    let policy = permitted.policy();
    Some(std::sync::Arc::new(move |wanted: ServerSandbox| {
        let confined = match wanted.is_read_only {
            true => Confined::ReadOnly,
            false => Confined::Workspace,
        };
        let network = match wanted.has_network {
            true => NetworkAccess::Anybody,
            false => NetworkAccess::Nobody,
        };
        haft_tools::sandbox::profile_of(&confine_program(&policy, confined, network))
    }))
}

/// A build without commands confines nothing, so that such a server is not started.
#[cfg(not(feature = "shell"))]
pub(super) fn of(_: &Permitted) -> Option<SandboxOf> {
    None
}
