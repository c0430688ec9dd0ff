//! Where keys, tokens and passwords are kept: below a home directory, or where a variable says.

use std::{
    collections::{HashMap, HashSet},
    env,
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::protected::folded;
use haft_settings::resolve;

/// Below a home directory, in small letters: files, and directories with everything in them.
const STORES: &[&str] = &[
    // Secure shell, keyrings, password stores.
    ".1password",
    ".age",
    ".config/1password",
    ".config/age",
    ".config/bitwarden",
    ".config/bitwarden cli",
    ".config/keepassxc",
    ".config/op",
    ".config/sops",
    ".gnupg",
    ".local/share/gnupg",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/password-store",
    ".local/share/pass",
    ".kde/share/apps/kwallet",
    ".password-store",
    ".pki",
    ".putty",
    ".shosts",
    ".ssh",
    ".vault-token",
    // Clouds, clusters, infrastructure.
    ".aliyun",
    ".aws",
    ".azure",
    ".bluemix",
    ".boto",
    ".config/azure",
    ".config/configstore",
    ".config/doctl",
    ".config/fly",
    ".config/flyctl",
    ".config/gcloud",
    ".config/hcloud",
    ".config/heroku",
    ".config/helm",
    ".config/linode-cli",
    ".config/netlify",
    ".config/ngrok",
    ".config/packer",
    ".config/pulumi",
    ".config/rclone",
    ".config/scw",
    ".config/vercel",
    ".config/wrangler",
    ".config/.wrangler",
    ".fly",
    ".heroku",
    ".kube",
    ".local/share/com.vercel.cli",
    ".minikube",
    ".mc",
    ".ngrok2",
    ".oci",
    ".openstack",
    ".pulumi",
    ".rclone.conf",
    ".s3cfg",
    ".terraform.d",
    ".terraformrc",
    ".wrangler",
    // Version control and code hosts.
    ".config/gh",
    ".config/glab",
    ".config/glab-cli",
    ".config/git/credentials",
    ".config/hub",
    ".config/jj/credentials",
    ".config/tea",
    ".git-credential-cache",
    ".git-credentials",
    ".subversion/auth",
    // Packages and registries.
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".conan/.conan.db",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/nuget",
    ".config/pip",
    ".config/pypoetry/auth.toml",
    ".config/uv/credentials",
    ".config/uv/uv.toml",
    ".docker/config.json",
    ".docker/contexts",
    ".dockercfg",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".hex/hex.config",
    ".ivy2/.credentials",
    ".local/share/containers/auth.json",
    ".local/share/gem/credentials",
    ".local/share/uv/credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".npmrc",
    ".nuget/nuget",
    ".pip",
    ".pypirc",
    ".sbt/.credentials",
    ".sbt/credentials",
    ".yarnrc",
    ".yarnrc.yml",
    // Networks, mail, databases.
    ".authinfo",
    ".authinfo.gpg",
    ".cifscredentials",
    ".config/msmtp",
    ".fetchmailrc",
    ".ftpconfig",
    ".mongorc.js",
    ".msmtprc",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    "_netrc",
    ".pg_service.conf",
    ".pgpass",
    ".smbcredentials",
    ".wgetrc",
    ".curlrc",
    // What was typed, passwords among it.
    ".bash_history",
    ".dbshell",
    ".history",
    ".irb_history",
    ".local/share/fish/fish_history",
    ".local/state/bash/history",
    ".local/state/zsh/history",
    ".mysql_history",
    ".node_repl_history",
    ".psql_history",
    ".python_history",
    ".rediscli_history",
    ".sh_history",
    ".sqlite_history",
    ".zhistory",
    ".zsh_history",
    ".zsh_sessions",
    // Browsers and mail programs: cookies, passwords.
    ".config/brave",
    ".config/bravesoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".config/microsoft-edge",
    ".config/microsoft-edge-beta",
    ".config/microsoft-edge-dev",
    ".config/mozilla",
    ".config/opera",
    ".config/vivaldi",
    ".evolution",
    ".local/share/evolution",
    ".mozilla",
    ".librewolf",
    ".thunderbird",
    ".var/app/com.brave.browser",
    ".var/app/com.google.chrome",
    ".var/app/com.microsoft.edge",
    ".var/app/org.chromium.chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/org.mozilla.thunderbird",
    "snap/brave",
    "snap/chromium",
    "snap/firefox",
    "snap/thunderbird",
    // Agents, editors, model providers.
    ".aider.conf.yml",
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".claude.json",
    ".claude/.credentials.json",
    ".codeium",
    ".codex/auth.json",
    ".config/anthropic",
    ".config/claude",
    ".config/crush",
    ".config/cursor",
    ".config/github-copilot",
    ".config/goose",
    ".config/io.datasette.llm/keys.json",
    ".config/openai",
    ".config/opencode",
    ".continue",
    ".copilot",
    ".cursor",
    ".gemini",
    ".huggingface",
    ".kaggle",
    ".local/share/amp/secrets.json",
    ".local/share/crush",
    ".local/share/goose",
    ".local/share/opencode/auth.json",
    ".openai",
    ".qwen",
];

/// The same of the whole machine: what root alone may read, unless a command runs as root.
const OF_MACHINE: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/kubernetes",
    "/etc/krb5.keytab",
    "/etc/letsencrypt",
    "/etc/openvpn",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/rancher",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssl/private",
    "/etc/wireguard",
    "/run/secrets",
    "/var/lib/kubelet",
    "/var/run/secrets",
];

/// Variables that say where one of them is, if not where it usually is, and what in that place; empty:
/// the place itself.
const NAMED: &[(&str, &[&str])] = &[
    ("AWS_CONFIG_FILE", &[""]),
    ("AWS_SHARED_CREDENTIALS_FILE", &[""]),
    ("AZURE_CONFIG_DIR", &[""]),
    ("BUNDLE_USER_CONFIG", &[""]),
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    ("CLAUDE_CONFIG_DIR", &[".credentials.json", ".claude.json"]),
    ("CLOUDSDK_CONFIG", &[""]),
    ("CODEX_HOME", &["auth.json"]),
    ("COMPOSER_HOME", &["auth.json"]),
    ("DOCKER_CONFIG", &["config.json", "contexts"]),
    ("GH_CONFIG_DIR", &[""]),
    ("GNUPGHOME", &[""]),
    ("GOOGLE_APPLICATION_CREDENTIALS", &[""]),
    ("GRADLE_USER_HOME", &["gradle.properties"]),
    ("HF_HOME", &["token", "stored_tokens"]),
    ("HF_TOKEN_PATH", &[""]),
    ("HISTFILE", &[""]),
    ("KUBECONFIG", &[""]),
    ("MYSQL_TEST_LOGIN_FILE", &[""]),
    ("NETRC", &[""]),
    ("NPM_CONFIG_USERCONFIG", &[""]),
    ("OCI_CLI_CONFIG_FILE", &[""]),
    ("PASSWORD_STORE_DIR", &[""]),
    ("PGPASSFILE", &[""]),
    ("PGSERVICEFILE", &[""]),
    ("PIP_CONFIG_FILE", &[""]),
    ("PULUMI_HOME", &["credentials.json"]),
    ("REGISTRY_AUTH_FILE", &[""]),
    ("TF_CLI_CONFIG_FILE", &[""]),
    ("npm_config_userconfig", &[""]),
];

/// The directories that the standard of desktops lets variables move, and where they usually are.
const MOVED: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache/"),
    ("XDG_CONFIG_HOME", ".config/"),
    ("XDG_DATA_HOME", ".local/share/"),
    ("XDG_STATE_HOME", ".local/state/"),
];

/// Where all the homes of people are on most systems.
pub(super) const HOMES: &str = "/home";
const ROOTS_HOME: &str = "/root";

/// How long it is believed that no store has come or gone: several calls of one turn.
const BELIEVED: Duration = Duration::from_secs(1);

/// What holds for the whole process.
static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::look);

struct Machine {
    /// The home of root, and what the system says of the user's.
    homes: Vec<PathBuf>,
    /// Stores that variables name.
    named: Vec<PathBuf>,
}

impl Machine {
    fn look() -> Self {
        let mut homes = vec![PathBuf::from(ROOTS_HOME)];
        let user = rustix::process::getuid().as_raw();
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        homes.extend(home_in(&users, user).filter(|home| home.parent().is_some()));
        let path = |name: &str| env::var_os(name).map(PathBuf::from);
        let mut named = Vec::new();
        for (name, inside) in NAMED {
            let Some(value) = env::var_os(name) else {
                continue;
            };
            // KUBECONFIG names several.
            for place in env::split_paths(&value).filter(|place| is_a_place(place)) {
                named.extend(inside.iter().map(|inside| match *inside {
                    "" => place.clone(),
                    inside => place.join(inside),
                }));
            }
        }
        for (name, usual) in MOVED {
            if let Some(place) = path(name).filter(|place| is_a_place(place)) {
                let inside = STORES.iter().filter_map(|store| store.strip_prefix(usual));
                named.extend(inside.map(|inside| place.join(inside)));
            }
        }
        let runtime = path("XDG_RUNTIME_DIR").filter(|place| place.is_absolute());
        named.extend(runtime.map(|place| place.join("containers/auth.json")));
        Self { homes, named }
    }
}

/// May keys be kept there? Not where a variable says that there are none: `/dev/null`.
fn is_a_place(path: &Path) -> bool {
    let mut system = ["/dev", "/proc", "/sys"].iter();
    path.is_absolute()
        && path.components().count() > 2
        && !system.any(|system| path.starts_with(system))
}

/// The home of a user by the system's list: `NAME:…:NUMBER:GROUP:…:HOME:SHELL`.
fn home_in(users: &str, number: u32) -> Option<PathBuf> {
    let number = number.to_string();
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let home = Path::new(*fields.get(5)?);
        (fields.get(2) == Some(&number.as_str()) && home.is_absolute()).then(|| home.to_path_buf())
    })
}

/// The homes of this user and of root, beside the one that the session knows.
pub(super) fn homes() -> &'static [PathBuf] {
    &MACHINE.homes
}

/// Is this a store of keys, or in one? Names are compared without case.
pub(super) fn is_store(path: &Path, home: Option<&Path>) -> bool {
    if is_of_machine(path) {
        return true;
    }
    let own = home
        .into_iter()
        .chain(MACHINE.homes.iter().map(PathBuf::as_path));
    let mut below = own.filter_map(|home| rest_below(path, home));
    below.any(|rest| is_below_store(&rest))
        || below_homes(path).is_some_and(|rest| is_below_store(&rest))
}

/// What follows a home in a path; homes too are compared without case.
fn rest_below(path: &Path, home: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    for part in home.components() {
        if !is_same(parts.next()?.as_os_str(), part.as_os_str()) {
            return None;
        }
    }
    Some(parts.as_path().to_path_buf())
}

/// The same name, to a disk that ignores case?
fn is_same(one: &OsStr, other: &OsStr) -> bool {
    if one.as_encoded_bytes().is_ascii() && other.as_encoded_bytes().is_ascii() {
        return one.eq_ignore_ascii_case(other);
    }
    folded(&one.to_string_lossy()) == folded(&other.to_string_lossy())
}

/// What follows the home of whatever user.
fn below_homes(path: &Path) -> Option<PathBuf> {
    let rest = rest_below(path, Path::new(HOMES))?;
    let mut parts = rest.components();
    parts.next()?;
    Some(parts.as_path().to_path_buf())
}

fn is_below_store(rest: &Path) -> bool {
    let rest = folded(&rest.to_string_lossy());
    let first = rest.split('/').next().unwrap_or_default();
    let Some(stores) = BY_FIRST_NAME.get(first) else {
        return false;
    };
    let rest = Path::new(&rest);
    stores.iter().any(|store| rest.starts_with(store))
}

/// The stores by the first name in them: nearly no path begins with one, and each call asks.
static BY_FIRST_NAME: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
    for store in STORES {
        let first = store.split('/').next().unwrap_or_default();
        by_name.entry(first).or_default().push(store);
    }
    by_name
});

/// The same of the whole machine, with the stores that variables name.
fn is_of_machine(path: &Path) -> bool {
    static FIRST_NAMES: LazyLock<HashSet<&OsStr>> = LazyLock::new(|| {
        let of_machine = OF_MACHINE.iter().map(Path::new);
        let all = of_machine.chain(MACHINE.named.iter().map(PathBuf::as_path));
        all.filter_map(first_name).collect()
    });
    // Nearly every path differs from all of them in its first name.
    if !first_name(path).is_some_and(|name| FIRST_NAMES.contains(name)) {
        return false;
    }
    let of_machine = OF_MACHINE.iter().map(Path::new);
    let mut named = of_machine.chain(MACHINE.named.iter().map(PathBuf::as_path));
    named.any(|store| path.starts_with(store))
}

/// The name below the root.
fn first_name(path: &Path) -> Option<&OsStr> {
    path.components().nth(1).map(Component::as_os_str)
}

/// The stores that exist in the homes of this machine, as real paths. Looked up at most once a second.
pub(super) fn present(home: Option<&Path>) -> Arc<[PathBuf]> {
    static KEPT: KeptLookup = KeptLookup::new();
    KEPT.get(home, || look(home))
}

/// What was found for a home, as long as it is believed.
pub(super) struct KeptLookup(Mutex<Option<FoundStores>>);

struct FoundStores {
    home: Option<PathBuf>,
    at: Instant,
    paths: Arc<[PathBuf]>,
}

impl KeptLookup {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn get(
        &self,
        home: Option<&Path>,
        look: impl FnOnce() -> Arc<[PathBuf]>,
    ) -> Arc<[PathBuf]> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*kept
            && found.home.as_deref() == home
            && found.at.elapsed() < BELIEVED
        {
            return Arc::clone(&found.paths);
        }
        let paths = look();
        *kept = Some(FoundStores {
            home: home.map(Path::to_path_buf),
            at: Instant::now(),
            paths: Arc::clone(&paths),
        });
        paths
    }
}

/// Looks them up.
pub(super) fn look(home: Option<&Path>) -> Arc<[PathBuf]> {
    let mut homes: Vec<PathBuf> = MACHINE.homes.clone();
    homes.extend(home.map(Path::to_path_buf));
    let others = fs::read_dir(HOMES).into_iter().flatten().flatten();
    homes.extend(others.map(|entry| entry.path()));
    homes.sort();
    homes.dedup();
    let mut found = Vec::new();
    for home in &homes {
        stores_in(home, "", &mut found);
    }
    let of_machine = OF_MACHINE.iter().map(Path::new);
    let named = of_machine.chain(MACHINE.named.iter().map(PathBuf::as_path));
    let there = named.filter(|path| path.exists());
    found.extend(there.map(resolve::real));
    found.sort();
    found.dedup();
    found.into()
}

/// Goes through a directory by its entries, which takes one look for all the names that are not there,
/// and finds a name in whatever case.
fn stores_in(directory: &Path, above: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = format!("{above}{}", folded(&entry.file_name().to_string_lossy()));
        if STORES.contains(&name.as_str()) {
            found.push(resolve::real(&entry.path()));
        } else if STORES.iter().any(|store| {
            store
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        }) {
            stores_in(&entry.path(), &format!("{name}/"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_written_as_they_are_compared() {
        for store in STORES {
            assert_eq!(folded(store), **store);
            assert!(!store.starts_with('/') && !store.ends_with('/'), "{store}");
        }
        let mut sorted = STORES.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), STORES.len(), "one is named twice");
    }

    #[test]
    fn stores_are_known_in_every_home_whatever_their_case() {
        let home = Some(Path::new("/h/me"));
        let cases = [
            ("/h/me/.ssh/id_rsa", true),
            ("/H/ME/.SSH/id_rsa", true),
            ("/h/me/.ssh", true),
            ("/h/me/.sshrc", false),
            ("/h/me", false),
            ("/h/other/.ssh/id_rsa", false),
            ("/root/.ssh/id_rsa", true),
            ("/home/somebody/.aws/credentials", true),
            (
                "/home/somebody/.config/BraveSoftware/Brave-Browser/Default/Cookies",
                true,
            ),
            ("/home/.ssh", false),
            ("/h/me/.codex/auth.json", true),
            ("/h/me/.codex/config.toml", false),
            ("/h/me/.cargo/credentials.toml", true),
            ("/h/me/.cargo/config.toml", false),
            ("/h/me/.config/git/credentials", true),
            ("/h/me/.config/git/config", false),
            ("/h/me/work/.npmrc", false),
            ("/etc/shadow", true),
            ("/etc/passwd", false),
            ("/h/me/snap/firefox/common/.mozilla", true),
            ("/h/me/snap/go", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_store(Path::new(path), home), expected, "{path}");
        }
        assert!(!is_store(Path::new("/h/me/.ssh/id"), None));
    }

    #[test]
    fn the_stores_that_are_there_are_found_behind_links_and_in_whatever_case() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let home = root.join("home");
        for folder in [
            "home/.config/gh",
            "home/.config/nvim",
            "elsewhere",
            "home/.AWS",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../elsewhere", home.join(".ssh")).unwrap();
        fs::write(home.join(".netrc"), "").unwrap();
        let mut found = Vec::new();
        stores_in(&home, "", &mut found);
        found.sort();
        let expected = ["elsewhere", "home/.AWS", "home/.config/gh", "home/.netrc"];
        assert_eq!(found, expected.map(|name| root.join(name)));
    }

    #[test]
    fn the_home_of_a_user_is_read_from_the_systems_list() {
        let users = "root:x:0:0:root:/root:/bin/bash\nme:x:1000:1000::/data/me:/bin/sh\nbad:x:1\n";
        assert_eq!(home_in(users, 1000), Some("/data/me".into()));
        assert_eq!(home_in(users, 0), Some("/root".into()));
        assert_eq!(home_in(users, 7), None);
    }
}
