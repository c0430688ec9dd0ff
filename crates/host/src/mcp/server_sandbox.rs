//! The confinement of server processes, which is that of a command of the session.

use haft_mcp::client::SandboxOf;

use crate::resolved_settings::ResolvedSettings;

/// Returns the function that computes the confinement of a server process.
#[cfg(feature = "shell")]
pub(super) fn sandbox_factory(permitted: &ResolvedSettings) -> Option<SandboxOf> {
    use haft_contract::{ConfinementProfile, NetworkAccess};
    use haft_engine::permissions::confine_program;
    use haft_mcp::client::ServerSandbox;

    let policy = permitted.policy();
    Some(std::sync::Arc::new(move |wanted: ServerSandbox| {
        let confined = match wanted.is_read_only {
            true => ConfinementProfile::ReadOnly,
            false => ConfinementProfile::Workspace,
        };
        let network = match wanted.has_network {
            true => NetworkAccess::Anybody,
            false => NetworkAccess::Nobody,
        };
        haft_tools::sandbox::profile_of(&confine_program(&policy, confined, network))
    }))
}

/// A build without commands cannot confine a server, so it is not started.
#[cfg(not(feature = "shell"))]
pub(super) fn sandbox_factory(_: &ResolvedSettings) -> Option<SandboxOf> {
    None
}
