//! Tables of known stores of keys, tokens and passwords. Each entry names the program or the format that stores the
//! secrets.

mod keys;
mod personal;
mod services;

/// The program or format that stores secrets, and its paths below a home directory in small letters: files, and
/// directories with everything in them.
pub(super) type StoreEntry = (&'static str, &'static [&'static str]);

/// Every store, by its program.
pub(super) fn entries() -> impl Iterator<Item = &'static StoreEntry> {
    [keys::STORES, services::STORES, personal::STORES]
        .into_iter()
        .flatten()
}

/// The path of every store.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    entries().flat_map(|(_, paths)| paths.iter().copied())
}

/// Stores of the whole machine, by program. Usually only root can read them, but a command may run as root.
#[rustfmt::skip] // one line for each program
pub(super) const OF_MACHINE: &[StoreEntry] = &[
    ("NetworkManager, wpa_supplicant, iwd, BlueZ", &["/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/var/lib/iwd", "/var/lib/bluetooth"]),
    ("shadow(5), gshadow(5), security/opasswd", &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd"]),
    ("sshd(8)", &["/etc/ssh/ssh_host_dsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key"]),
    ("OpenSSL and distributions", &["/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private"]),
    ("Certbot", &["/etc/letsencrypt"]),
    ("Kerberos, SSSD, Samba", &["/etc/krb5.keytab", "/etc/sssd/sssd.conf", "/var/lib/samba/private"]),
    ("OpenVPN, WireGuard, strongSwan, pppd", &["/etc/openvpn", "/etc/wireguard", "/etc/ipsec.secrets", "/etc/swanctl/private", "/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets"]),
    ("Tailscale, ZeroTier, cloudflared", &["/var/lib/tailscale", "/var/lib/zerotier-one/identity.secret", "/etc/cloudflared"]),
    ("Kubernetes, K3s, RKE", &["/etc/kubernetes", "/etc/rancher", "/var/lib/kubelet", "/var/lib/rancher"]),
    ("Docker and systemd secrets", &["/run/secrets", "/var/run/secrets", "/run/credentials", "/etc/credstore", "/etc/credstore.encrypted", "/var/lib/systemd/credential.secret"]),
    ("Debian MySQL", &["/etc/mysql/debian.cnf"]),
    ("Postfix, Exim", &["/etc/postfix/sasl_passwd", "/etc/exim4/passwd.client"]),
    ("Vault, Consul, Nomad", &["/etc/vault.d", "/etc/consul.d", "/etc/nomad.d"]),
    ("Jenkins, GitLab", &["/var/lib/jenkins/secrets", "/var/lib/jenkins/credentials.xml", "/etc/gitlab", "/etc/gitlab-runner"]),
    ("restic, borgmatic, duplicity of the machine", &["/etc/restic", "/etc/borgmatic", "/etc/borgmatic.d", "/etc/duplicity"]),
    ("Ceph, Proxmox VE", &["/etc/ceph", "/etc/pve/priv"]),
];

/// The paths of the machine's stores.
pub(super) fn machine_paths() -> impl Iterator<Item = &'static str> {
    OF_MACHINE
        .iter()
        .flat_map(|(_, paths)| paths.iter().copied())
}

/// Environment variables that move a store. Each has the names of the store below the variable's path; an empty name
/// means the path itself.
pub(super) const NAMED: &[(&str, &[&str])] = &[
    ("ANSIBLE_VAULT_PASSWORD_FILE", &[""]),
    ("AWS_CONFIG_FILE", &[""]),
    ("AWS_SHARED_CREDENTIALS_FILE", &[""]),
    ("AZURE_CONFIG_DIR", &[""]),
    ("BITWARDENCLI_APPDATA_DIR", &[""]),
    ("BORG_KEYS_DIR", &[""]),
    ("BOTO_CONFIG", &[""]),
    ("BUNDLE_USER_CONFIG", &[""]),
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    (
        "CLAUDE_CONFIG_DIR",
        &[".credentials.json", ".claude.json", "haft"],
    ),
    ("CLOUDSDK_CONFIG", &[""]),
    ("CODEX_HOME", &["auth.json"]),
    ("COMPOSER_HOME", &["auth.json"]),
    ("CONJURRC", &[""]),
    ("CREDENTIALS_DIRECTORY", &[""]),
    ("CURL_HOME", &[".curlrc"]),
    ("DATABRICKS_CONFIG_FILE", &[""]),
    ("DBT_PROFILES_DIR", &["profiles.yml"]),
    ("DOCKER_CONFIG", &["config.json", "contexts"]),
    ("DOPPLER_CONFIG_DIR", &[""]),
    ("ELECTRUMDIR", &[""]),
    ("FLY_CONFIG_DIR", &[""]),
    ("GH_CONFIG_DIR", &[""]),
    ("GLAB_CONFIG_DIR", &[""]),
    ("GNUPGHOME", &[""]),
    ("GOOGLE_APPLICATION_CREDENTIALS", &[""]),
    ("GOPASS_HOMEDIR", &[""]),
    ("GRADLE_USER_HOME", &["gradle.properties"]),
    ("HCLOUD_CONFIG", &[""]),
    ("HELM_REGISTRY_CONFIG", &[""]),
    ("HF_HOME", &["token", "stored_tokens"]),
    ("HF_TOKEN_PATH", &[""]),
    ("HISTFILE", &[""]),
    ("IPFS_PATH", &["config", "keystore"]),
    ("JFROG_CLI_HOME_DIR", &[""]),
    ("KAGGLE_CONFIG_DIR", &[""]),
    ("KUBECONFIG", &[""]),
    ("LPASS_HOME", &[""]),
    ("MC_CONFIG_DIR", &[""]),
    ("MINIKUBE_HOME", &[""]),
    ("MYSQL_HISTFILE", &[""]),
    ("MYSQL_TEST_LOGIN_FILE", &[""]),
    ("NETRC", &[""]),
    ("NODE_REPL_HISTORY", &[""]),
    ("NPM_CONFIG_USERCONFIG", &[""]),
    ("OCI_CLI_CONFIG_FILE", &[""]),
    ("OP_CONFIG_DIR", &[""]),
    ("P4TICKETS", &[""]),
    ("P4TRUST", &[""]),
    ("PASSWORD_STORE_DIR", &[""]),
    ("PGPASSFILE", &[""]),
    ("PGSERVICEFILE", &[""]),
    ("PIP_CONFIG_FILE", &[""]),
    ("PSQL_HISTORY", &[""]),
    ("PULUMI_HOME", &["credentials.json"]),
    ("PYTHON_HISTORY", &[""]),
    ("RCLONE_CONFIG", &[""]),
    ("REDISCLI_HISTFILE", &[""]),
    ("REGISTRY_AUTH_FILE", &[""]),
    ("RESTIC_PASSWORD_FILE", &[""]),
    ("SCW_CONFIG_PATH", &[""]),
    ("SNOWFLAKE_HOME", &[""]),
    ("SOPS_AGE_KEY_FILE", &[""]),
    ("SQLITE_HISTORY", &[""]),
    ("STEPPATH", &[""]),
    ("TELEPORT_HOME", &[""]),
    ("TF_CLI_CONFIG_FILE", &[""]),
    ("WGETRC", &[""]),
    ("XAUTHORITY", &[""]),
    ("npm_config_userconfig", &[""]),
];

/// The variables of the XDG base directory specification, with their default directories below a home.
pub(super) const MOVED: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache/"),
    ("XDG_CONFIG_HOME", ".config/"),
    ("XDG_DATA_HOME", ".local/share/"),
    ("XDG_STATE_HOME", ".local/state/"),
];
