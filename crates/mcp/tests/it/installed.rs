//! Programs that `.ci/run` installs from npm and PyPI into the target folder.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("mcp")
}

/// Where npm puts programs; `None` where they are not installed and need not be.
pub(crate) fn node() -> Option<PathBuf> {
    found(
        folder().join("node/node_modules/.bin"),
        "official MCP servers of npm",
    )
}

/// The same for PyPI.
pub(crate) fn python() -> Option<PathBuf> {
    found(folder().join("venv/bin"), "official MCP servers of PyPI")
}

fn found(bin: PathBuf, what: &str) -> Option<PathBuf> {
    if bin.is_dir() {
        return Some(bin);
    }
    haft_testkit::skip(&format!(
        "{what}: {} is absent; `.ci/run` installs them",
        bin.display()
    ));
    None
}

/// The entry of such a server.
pub(crate) fn entry(bin: &Path, program: &str, args: &[&str]) -> Value {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    json!({"command": bin.join(program), "args": args, "env": {"PATH": path}})
}
