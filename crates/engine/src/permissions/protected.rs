//! Files that decide what other programs run. A write to one is never waved through as an edit.

use std::path::{Component, Path};

const DIRECTORIES: [&str; 9] = [
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".claude",
];

const FILES: [&str; 38] = [
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
    ".git",
];

/// Is this one of them? Names are compared without case, since some disks do.
pub fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let Some((file, directories)) = names.split_last() else {
        return false;
    };
    if FILES.contains(&file.as_str()) {
        return true;
    }
    directories.iter().enumerate().any(|(at, name)| {
        let next = names.get(at + 1).map(String::as_str);
        match name.as_str() {
            ".claude" => next != Some("worktrees"),
            ".config" => next == Some("git"),
            name => DIRECTORIES.contains(&name),
        }
    })
}

/// Below the home directory: where keys and tokens are kept.
const CREDENTIALS: [&str; 20] = [
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".config/gcloud",
    ".config/gh",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d",
];

/// Is this a store of keys, a device, or the view into another process? Any use of it is asked for.
pub fn is_sensitive(path: &Path, home: Option<&Path>) -> bool {
    let key = home.is_some_and(|home| {
        CREDENTIALS
            .iter()
            .any(|store| path.starts_with(home.join(store)))
    });
    key || path.starts_with("/proc")
        || path.starts_with("/dev")
        || path.starts_with("/sys")
        || [
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/sudoers",
            "/run",
            "/var/run",
        ]
        .iter()
        .any(|store| path.starts_with(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_files_are_known_whatever_their_case() {
        let cases = [
            ("/p/.git/hooks/pre-commit", true),
            ("/p/.GIT/config", true),
            ("/p/.git", true),
            ("/p/.claude/settings.json", true),
            ("/p/.claude/worktrees/x/a.rs", false),
            ("/h/.config/git/config", true),
            ("/h/.config/other/config", false),
            ("/p/.MCP.json", true),
            ("/p/src/main.rs", false),
            ("/p/.gitignore", false),
            ("/", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
