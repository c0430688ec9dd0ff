//! What a decision is made from.

use std::path::{Path, PathBuf};

use haft_contract::{BoundCall, CallContext, Permission, PermissionMode, Reach};
use serde_json::Value;

use crate::resolve;

/// What a session permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How much runs without asking.
    pub mode: PermissionMode,
    /// The working directories, as real paths: reads and writes inside are the session's business.
    pub roots: Vec<PathBuf>,
    /// Further directories that may be read freely, as real paths: our own stored results.
    pub readable: Vec<PathBuf>,
}

impl Policy {
    /// The policy of a call's context. `readable` must be a real path.
    pub fn of(cx: &CallContext, readable: &Path) -> Self {
        Self {
            mode: cx.permissions.mode,
            roots: cx
                .permissions
                .directories
                .iter()
                .map(|dir| resolve::real(dir))
                .collect(),
            readable: vec![readable.to_path_buf()],
        }
    }
}

/// A path a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// As the call names it.
    pub given: PathBuf,
    /// Where it really leads.
    pub real: PathBuf,
}

impl Touched {
    fn new(given: &Path) -> Self {
        Self {
            given: given.to_path_buf(),
            real: resolve::real(given),
        }
    }
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Which tool.
    pub tool: String,
    /// Paths it reads.
    pub reads: Vec<Touched>,
    /// Paths it writes.
    pub writes: Vec<Touched>,
    /// It may write more than these paths, or do something else altogether.
    pub opaque: bool,
    /// The text in which danger would hide.
    pub command: Option<String>,
    /// The tool's own word.
    pub opinion: Permission,
}

impl Facts {
    /// Gathers what is known of a call. Follows links, reads nothing else.
    pub fn of(bound: &dyn BoundCall, cx: &CallContext) -> Self {
        let effects = bound.effects();
        let paths = |reach: &Reach| match reach {
            Reach::Paths(paths) => paths.iter().map(|path| Touched::new(path)).collect(),
            Reach::Nothing | Reach::Anything => Vec::new(),
        };
        let writes: Vec<Touched> = paths(&effects.writes);
        let mut reads: Vec<Touched> = paths(&effects.reads);
        // A path parameter is at least looked at, whatever the effects say.
        for path in path_parameters(bound) {
            let known = |touched: &Touched| touched.given == path;
            if !reads.iter().any(known) && !writes.iter().any(known) {
                reads.push(Touched::new(&path));
            }
        }
        Self {
            tool: bound.spec().name.clone(),
            reads,
            writes,
            opaque: effects.exclusive || effects.writes == Reach::Anything,
            command: bound.classifier_input(),
            opinion: bound.permission(cx),
        }
    }

    /// Where it goes beyond the directories of the policy, as real paths; written ones first.
    pub fn outside<'a>(&'a self, policy: &'a Policy) -> impl Iterator<Item = &'a Path> {
        let inside =
            |roots: &[PathBuf], path: &Path| roots.iter().any(|root| path.starts_with(root));
        let written = self
            .writes
            .iter()
            .filter(move |touched| !inside(&policy.roots, &touched.real));
        let read = self.reads.iter().filter(move |touched| {
            !inside(&policy.roots, &touched.real) && !inside(&policy.readable, &touched.real)
        });
        written.chain(read).map(|touched| touched.real.as_path())
    }

    /// It changes nothing.
    pub fn is_read_only(&self) -> bool {
        !self.opaque && self.writes.is_empty()
    }
}

fn path_parameters(bound: &dyn BoundCall) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in bound.spec().profile.paths {
        match bound.input().get(*name) {
            Some(Value::String(path)) => paths.push(PathBuf::from(path)),
            Some(Value::Array(several)) => {
                paths.extend(several.iter().filter_map(Value::as_str).map(PathBuf::from));
            }
            _ => {}
        }
    }
    paths
}
