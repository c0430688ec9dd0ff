//! What a command reaches that asks a service of the user's own, once that was agreed to.

use std::{
    env, fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use haft_shell::OwnService;

use super::super::shell_facts::ShellFacts;
use haft_settings::resolve;

/// Where the credentials for a service are, below a home.
fn stores(service: OwnService) -> &'static [&'static str] {
    match service {
        OwnService::CodeHost => &[".config/gh"],
        OwnService::Cluster => &[".kube", ".minikube"],
        OwnService::Containers => &[".docker"],
        OwnService::Init => &[],
    }
}

/// Where it listens; below the directory of the user's own sockets, if it does not begin with `/`.
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

/// The credentials of the services that a line asks: real paths of what is there.
pub(crate) fn stores_of(shell: &ShellFacts, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    let below = shell.services().flat_map(stores);
    let paths = below.map(|below| resolve::real(&home.join(below)));
    paths.filter(|path| path.exists()).collect()
}

/// The sockets of the services that a line asks: real paths of those that are there.
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
            let real = resolve::real(&path);
            if fs::metadata(&real).is_ok_and(|found| found.file_type().is_socket()) {
                found.push(real);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
