//! The paths that a command needs to use a service of the user, after the user agreed to it.

use std::{
    env, fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use haft_shell::OwnService;

use super::super::shell_facts::ShellFacts;
use haft_settings::real_path;

/// Returns the locations of a service's credentials, below the home directory.
fn stores(service: OwnService) -> &'static [&'static str] {
    match service {
        OwnService::CodeHost => &[".config/gh"],
        OwnService::Cluster => &[".kube", ".minikube"],
        OwnService::Containers => &[".docker"],
        OwnService::Init => &[],
    }
}

/// Returns the sockets of a service. Paths without a leading `/` are below the user's runtime
/// directory.
fn sockets(service: OwnService) -> &'static [&'static str] {
    match service {
        OwnService::CodeHost | OwnService::Cluster => &[],
        OwnService::Containers => &[
            "/run/docker.sock",
            "/run/podman/podman.sock",
            "docker.sock",
            "podman/podman.sock",
        ],
        OwnService::Init => &[
            "/run/dbus/system_bus_socket",
            "/run/systemd/private",
            "bus",
            "systemd/private",
        ],
    }
}

/// Returns the credentials of the services that a line uses, as real paths of those that exist.
pub(crate) fn stores_of(shell: &ShellFacts, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    let below = shell.services().flat_map(stores);
    let paths = below.map(|below| real_path::resolve_links(&home.join(below)));
    paths.filter(|path| path.exists()).collect()
}

/// Returns the sockets of the services that a line uses, as real paths of those that exist.
pub(super) fn sockets_of(shell: &ShellFacts, home: Option<&Path>) -> Vec<PathBuf> {
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut found = Vec::new();
    for service in shell.services() {
        let listed = sockets(service)
            .iter()
            .filter_map(|path| match path.starts_with('/') {
                true => Some(PathBuf::from(path)),
                false => Some(own.as_ref()?.join(path)),
            });
        let desktop = [".docker/run/docker.sock", ".docker/desktop/docker.sock"];
        let desktop = home
            .filter(|_| service == OwnService::Containers)
            .map(|home| desktop.map(|below| home.join(below)));
        for path in listed.chain(desktop.into_iter().flatten()) {
            let real = real_path::resolve_links(&path);
            if fs::metadata(&real).is_ok_and(|found| found.file_type().is_socket()) {
                found.push(real);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
