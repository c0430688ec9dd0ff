//! The tools that a JavaScript project has installed, which `npx` starts without a download.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use haft_settings::real_path;
use serde_json::Value;

use super::read_file::open_regular;

/// Tools that are in a package of another name.
const PACKAGES: [(&str, &str); 6] = [
    ("biome", "@biomejs/biome"),
    ("ng", "@angular/cli"),
    ("nest", "@nestjs/cli"),
    ("playwright", "@playwright/test"),
    ("stencil", "@stencil/core"),
    ("tsc", "typescript"),
];

/// The maximum size of a lock file, in bytes.
const MAX_LOCK: u64 = 16 * 1024 * 1024;

/// Returns whether the project of a directory has installed a tool, or its lock file names the
/// tool. Searches the directory and those above it, up to the working directory.
pub(super) fn has_tool(directory: &Path, roots: &[PathBuf], tool: &str) -> bool {
    let directory = real_path::resolve_links(directory);
    let inside = |place: &&Path| roots.iter().any(|root| place.starts_with(root));
    directory.ancestors().take_while(inside).any(|place| {
        place.join("node_modules/.bin").join(tool).exists()
            || is_in_npm_lock(&place.join("package-lock.json"), tool)
            || ["pnpm-lock.yaml", "yarn.lock", "bun.lock"]
                .iter()
                .any(|name| is_in_text_lock(&place.join(name), tool))
    })
}

/// Reads a lock file, up to the maximum size.
fn read_lock(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = open_regular(file).ok()?;
    opened.take(MAX_LOCK).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn package_of(tool: &str) -> &str {
    let mut packages = PACKAGES.iter();
    packages
        .find(|(name, _)| *name == tool)
        .map_or(tool, |(_, package)| package)
}

fn is_in_npm_lock(file: &Path, tool: &str) -> bool {
    let lock = read_lock(file).and_then(|text| serde_json::from_slice(&text).ok());
    let Some(Value::Object(lock)) = lock else {
        return false;
    };
    let top = format!("node_modules/{}", package_of(tool));
    let packages = lock.get("packages").and_then(Value::as_object);
    let has_program = packages.is_some_and(|packages| {
        packages.iter().any(|(place, package)| {
            *place == top
                || (place.starts_with("node_modules/") && package["bin"].get(tool).is_some())
        })
    });
    // The first version of the format lists dependencies only.
    let dependencies = lock.get("dependencies").and_then(Value::as_object);
    has_program || dependencies.is_some_and(|all| all.contains_key(package_of(tool)))
}

/// Looks for a key such as `eslint@9.1.0` at the beginning of a line.
fn is_in_text_lock(file: &Path, tool: &str) -> bool {
    let Some(text) = read_lock(file) else {
        return false;
    };
    let package = package_of(tool);
    String::from_utf8_lossy(&text).lines().any(|line| {
        let key = line.trim_start().trim_start_matches(['"', '\'', '/']);
        key.strip_prefix(package).is_some_and(|rest| {
            // `eslint@9.1.0:`, `/eslint/8.0.0:`, `"eslint": ["eslint@9.1.0", …]`
            rest.starts_with('@') || rest.starts_with("/") || rest.starts_with("\": [")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_tool_is_installed_if_the_lock_file_or_the_directory_of_tools_names_it() {
        let npm = r#"{"lockfileVersion": 3, "packages": {"": {"devDependencies": {"x": "1"}},
            "node_modules/eslint": {"bin": {"eslint": "b.js"}},
            "node_modules/typescript": {"bin": {"tsc": "b", "tsserver": "c"}}}}"#;
        let cases: [(&str, &str, &[&str], &[&str]); 5] = [
            (
                "package-lock.json",
                npm,
                &["eslint", "tsc", "tsserver"],
                &["x", "es"],
            ),
            (
                "package-lock.json",
                r#"{"dependencies": {"jest": {}}}"#,
                &["jest"],
                &["jes", "dependencies"],
            ),
            (
                "pnpm-lock.yaml",
                "packages:\n\n  '@biomejs/biome@1.0.0':\n  eslint@9.1.0:\n",
                &["eslint", "biome"],
                &["packages", "slint"],
            ),
            (
                "yarn.lock",
                "eslint@^9.0.0:\n  version \"9.1.0\"\n\n\"jest@^1\":\n",
                &["eslint", "jest"],
                &["version"],
            ),
            (
                "bun.lock",
                "{\n  \"packages\": {\n    \"eslint\": [\"eslint@9.1.0\", \"\"],\n",
                &["eslint"],
                &["packages"],
            ),
        ];
        for (name, text, present, absent) in cases {
            let project = tempfile::tempdir().unwrap();
            let root = real_path::resolve_links(project.path());
            fs::create_dir(root.join("web")).unwrap();
            fs::write(root.join(name), text).unwrap();
            let has = |tool| has_tool(&root.join("web"), std::slice::from_ref(&root), tool);
            for tool in present {
                assert!(has(tool), "{name} {tool}");
            }
            for tool in absent {
                assert!(!has(tool), "{name} {tool}");
            }
        }
        let project = tempfile::tempdir().unwrap();
        let root = real_path::resolve_links(project.path());
        let tools = root.join("node_modules/.bin");
        fs::create_dir_all(&tools).unwrap();
        fs::write(tools.join("knip"), "").unwrap();
        let roots = [root.clone()];
        assert!(has_tool(&root, &roots, "knip"));
        assert!(!has_tool(&root, &roots, "knop"));
        // Above the working directory, other files choose.
        assert!(!has_tool(&root, &[root.join("web")], "knip"));
    }
}
