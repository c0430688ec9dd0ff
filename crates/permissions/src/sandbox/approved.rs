//! The access of approved commands in the mode `auto`: the hosts, credentials and sockets of their
//! services.
//!
//! In this mode, commands reach only hosts that something allows, and no credentials. A command of
//! the table of irreversible ones could not work like this. It runs only after the user, a rule or a
//! hook has allowed it, so it gets what its program needs, and the question names that.

use std::{
    env, fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use haft_contract::PermissionMode;
use haft_settings::{
    git_repository::{self, GitDiscovery},
    real_path,
};
use haft_shell::{Effect, LinePart, git_config};

use super::{SettingsHost, SettingsHosts, services};
use crate::{
    CallFacts, DecisionReason, Policy, decide::reason_to_ask, git_audit, read_file::read_regular,
    reversible,
};

/// The needs of some programs.
struct ProgramNeeds {
    /// The programs' names, separated by spaces.
    names: &'static str,
    /// The credentials, below the home directory.
    stores: &'static [&'static str],
    /// The hosts. Empty: the line and the settings of the program name them.
    hosts: &'static [&'static str],
    /// Whether the program does not use the proxy.
    direct: bool,
    /// Whether the program uses the ssh agent.
    agent: bool,
}

const PROGRAMS: &[ProgramNeeds] = &[
    by_proxy(
        "gh hub",
        &[".config/gh"],
        &["github.com", "*.github.com", "*.githubusercontent.com"],
    ),
    by_proxy("glab", &[".config/glab-cli"], &[]),
    by_proxy(
        "npm pnpm yarn bun",
        &[".npmrc"],
        &["registry.npmjs.org", "registry.yarnpkg.com"],
    ),
    by_proxy(
        "cargo",
        &[".cargo/credentials.toml", ".cargo/credentials"],
        &["crates.io", "*.crates.io"],
    ),
    by_proxy(
        "twine uv poetry flit hatch pdm rye maturin python python3",
        &[".pypirc", ".config/pypoetry"],
        &["pypi.org", "*.pypi.org"],
    ),
    by_proxy("gem", &[".gem"], &["rubygems.org", "*.rubygems.org"]),
    by_proxy(
        "docker podman docker-compose podman-compose",
        &[".docker"],
        &[],
    ),
    by_proxy("kubectl oc helm", &[".kube"], &[]),
    by_proxy("aws", &[".aws"], &["*.amazonaws.com", "*.aws.amazon.com"]),
    by_proxy(
        "gcloud bq gsutil",
        &[".config/gcloud"],
        &["*.googleapis.com", "accounts.google.com"],
    ),
    by_proxy("az", &[".azure"], &[]),
    by_proxy(
        "terraform tofu terragrunt pulumi cdk cdktf",
        &[
            ".terraform.d",
            ".pulumi",
            ".aws",
            ".config/gcloud",
            ".azure",
        ],
        &[],
    ),
    ProgramNeeds {
        direct: true,
        agent: true,
        ..by_proxy(
            "ssh slogin mosh autossh scp sftp rsync ssh-copy-id sshfs ansible ansible-playbook",
            &[".ssh"],
            &[],
        )
    },
    ProgramNeeds {
        direct: true,
        ..by_proxy(
            "psql pg_restore pg_dump createdb dropdb mysql mariadb mysqladmin mysqlimport mysqldump \
             mongosh mongo redis-cli valkey-cli sqlcmd sqlplus clickhouse-client cqlsh",
            &[".pgpass", ".my.cnf"],
            &[],
        )
    },
    ProgramNeeds {
        direct: true,
        ..by_proxy(
            "mail mailx sendmail mutt neomutt msmtp swaks nc ncat netcat socat telnet ftp lftp",
            &[],
            &[],
        )
    },
];

/// The credentials that git uses for hosts that it contacts over HTTPS.
const GIT_STORES: &[&str] = &[".git-credentials", ".config/git/credentials", ".config/gh"];

const fn by_proxy(
    names: &'static str,
    stores: &'static [&'static str],
    hosts: &'static [&'static str],
) -> ProgramNeeds {
    ProgramNeeds {
        names,
        stores,
        hosts,
        direct: false,
        agent: false,
    }
}

/// The access that an approved command gets in addition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ApprovedAccess {
    /// The credentials, as real paths of those that exist.
    pub(crate) stores: Vec<PathBuf>,
    /// The sockets, as real paths of those that exist.
    pub(super) sockets: Vec<PathBuf>,
    /// The hosts.
    pub(super) hosts: Vec<String>,
    /// Whether it may contact every host through the proxy, because nothing names its hosts.
    any_host: bool,
    /// Whether it contacts hosts without the proxy.
    pub(super) direct: bool,
}

impl ApprovedAccess {
    /// Adds the hosts to those in force. Settings that deny all others still do.
    pub(super) fn add_hosts(&self, hosts: &mut SettingsHosts) {
        if hosts.closed {
            return;
        }
        let any = self.any_host.then_some("*");
        let named = self.hosts.iter().map(String::as_str).chain(any);
        hosts
            .allowed
            .extend(named.filter_map(|host| SettingsHost::new(host).ok()));
    }

    /// Returns the access as text for the question; `None`: no access.
    pub(crate) fn text(&self, home: Option<&Path>) -> Option<String> {
        let mut all: Vec<String> = match (self.direct, self.any_host) {
            (true, _) => vec!["the network of this machine".to_owned()],
            (false, true) => vec!["every host through the proxy".to_owned()],
            (false, false) => self.hosts.clone(),
        };
        all.extend(self.stores.iter().map(|store| {
            let below = home.and_then(|home| store.strip_prefix(home).ok());
            below.map_or_else(
                || store.display().to_string(),
                |below| format!("~/{}", below.display()),
            )
        }));
        let sockets = self.sockets.iter();
        all.extend(sockets.map(|socket| socket.display().to_string()));
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Returns what the command of this call gets in addition, if it may run. Reads the file system.
pub(crate) fn approved_access(policy: &Policy, facts: &CallFacts) -> Option<ApprovedAccess> {
    if policy.mode != PermissionMode::Auto {
        return None;
    }
    let shell = facts.shell.as_ref()?;
    let home = policy.home.as_deref();
    let mut access = ApprovedAccess::default();
    for part in &shell.analysis.parts {
        let is_service = |effect: &Effect| matches!(effect, Effect::Service(_));
        let uses_service = part.finding.effects.iter().any(is_service);
        if part.irreversible_reason().is_some() || uses_service {
            access.add_part(part, home);
        }
    }
    if access != ApprovedAccess::default() {
        access.sockets.extend(services::sockets_of(shell, home));
    }
    // The question named the hosts.
    let parts = shell.analysis.parts.iter();
    let mut new = parts
        .flat_map(|part| reversible::new_hosts(policy, facts, part))
        .peekable();
    if new.peek().is_some()
        && matches!(
            reason_to_ask(policy, facts),
            DecisionReason::Address(_) | DecisionReason::Irreversible { .. }
        )
    {
        access.hosts.extend(new.map(str::to_owned));
    }
    access.hosts.sort_unstable();
    access.hosts.dedup();
    access.stores.sort_unstable();
    access.stores.dedup();
    (access != ApprovedAccess::default()).then_some(access)
}

impl ApprovedAccess {
    fn add_part(&mut self, part: &LinePart, home: Option<&Path>) {
        let name = part.base_name().unwrap_or_default();
        if name == "git" {
            self.add_git(part, home);
            return;
        }
        let named = part
            .finding
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Net(Some(host)) => Some(host.clone()),
                _ => None,
            });
        let named: Vec<String> = named.collect();
        let mut programs = PROGRAMS.iter();
        let needs = programs.find(|needs| needs.names.split(' ').any(|one| one == name));
        if let Some(needs) = needs {
            self.add_stores(needs.stores, home);
            self.hosts
                .extend(needs.hosts.iter().map(|host| (*host).to_owned()));
            self.direct |= needs.direct;
            if needs.agent {
                self.add_agent();
            }
        }
        let knows_hosts = needs.is_some_and(|needs| !needs.hosts.is_empty());
        self.any_host |= !self.direct && named.is_empty() && !knows_hosts;
        self.hosts.extend(named);
    }

    fn add_git(&mut self, part: &LinePart, home: Option<&Path>) {
        match remote_url(part) {
            Some(url) if is_ssh(&url) => {
                self.direct = true;
                self.add_stores(&[".ssh"], home);
                self.add_agent();
            }
            Some(url) => {
                self.add_stores(GIT_STORES, home);
                // A local repository has no host.
                self.hosts.extend(url_host(&url));
            }
            None => {
                self.any_host = true;
                self.add_stores(GIT_STORES, home);
            }
        }
    }

    fn add_stores(&mut self, stores: &[&str], home: Option<&Path>) {
        let Some(home) = home else { return };
        let paths = stores
            .iter()
            .map(|below| real_path::resolve_links(&home.join(below)));
        self.stores.extend(paths.filter(|path| path.exists()));
    }

    fn add_agent(&mut self) {
        let Some(socket) = env::var_os("SSH_AUTH_SOCK").map(PathBuf::from) else {
            return;
        };
        let real = real_path::resolve_links(&socket);
        if fs::metadata(&real).is_ok_and(|found| found.file_type().is_socket()) {
            self.sockets.push(real);
        }
    }
}

/// Returns the address to which `git push` sends: the first operand, or the remote that it names.
fn remote_url(part: &LinePart) -> Option<String> {
    let mut operands = part
        .argv
        .iter()
        .skip(1)
        .skip_while(|arg| !arg.is("push"))
        .skip(1);
    let operand = operands.find(|arg| arg.text().is_none_or(|text| !text.starts_with('-')));
    let name = match operand {
        None => "origin",
        Some(operand) => operand.text()?,
    };
    if name.contains([':', '/']) {
        return Some(name.to_owned());
    }
    let directories = git_audit::directories(part)?;
    let [directory] = directories.as_slice() else {
        return None;
    };
    let GitDiscovery::Found(repository) = git_repository::discover(directory) else {
        return None;
    };
    let bytes = read_regular(&repository.git_dir.join("config")).ok()?;
    let settings = git_config::parse(&String::from_utf8_lossy(&bytes)).ok()?;
    // Other settings may rewrite the address.
    if settings.iter().any(|setting| setting.section == "url") {
        return None;
    }
    let of_remote = |key: &str| {
        let mut settings = settings.iter().filter(|setting| {
            setting.section == "remote"
                && setting.subsection.as_deref() == Some(name)
                && setting.key == key
        });
        settings.next().and_then(|setting| setting.value.clone())
    };
    of_remote("pushurl").or_else(|| of_remote("url"))
}

fn is_ssh(url: &str) -> bool {
    match url.split_once("://") {
        Some((scheme, _)) => scheme.contains("ssh"),
        // `git@host:path`; `./a:b` is a path.
        None => url
            .split_once(':')
            .is_some_and(|(host, _)| !host.contains('/')),
    }
}

fn url_host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.starts_with("http") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    Some(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_remotes_are_told_apart() {
        for ssh in [
            "git@github.com:a/b",
            "ssh://git@h/x",
            "git+ssh://h/x",
            "h:x",
        ] {
            assert!(is_ssh(ssh), "{ssh}");
        }
        for other in [
            "https://github.com/a/b",
            "/srv/x",
            "./a:b",
            "../x",
            "file:///x",
        ] {
            assert!(!is_ssh(other), "{other}");
        }
        assert_eq!(
            url_host("https://u@GitHub.com/a/b").as_deref(),
            Some("github.com")
        );
        assert_eq!(url_host("http://h:8080/a").as_deref(), Some("h:8080"));
        assert_eq!(url_host("/srv/x"), None);
    }
}
