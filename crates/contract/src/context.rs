//! The context of a running call.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use crate::{
    CallId, Confinement, HiddenFilter, HostPolicy, NestedCalls, PermissionMode, ProgressSender,
    ProgressUpdates, Services, SessionId, progress,
};

/// The environment of a call. A snapshot: it does not change while the call runs.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The session.
    pub session: SessionId,
    /// The id of this call.
    pub call: CallId,
    /// The provider's id of this call; empty if it has none.
    pub tool_use_id: Arc<str>,
    /// The absolute directory that relative paths start from.
    pub cwd: Arc<Path>,
    /// Cancelled when the call should end. A child of the turn's token, which is a child of the
    /// session's.
    pub cancel: CancellationToken,
    /// The sender for progress updates of the call.
    pub progress: ProgressSender,
    /// The permissions of the call.
    pub permissions: PermissionSnapshot,
    /// The model that requested the call, if known.
    pub model: Option<Arc<str>>,
    /// The services that the call may use.
    pub services: Services,
    /// Runs the calls that this call makes itself.
    pub nested: NestedCalls,
}

/// The permissions at the time the call was admitted.
#[derive(Debug, Clone)]
pub struct PermissionSnapshot {
    /// The permission mode.
    pub mode: PermissionMode,
    /// The working directory and the additional ones; absolute.
    pub directories: Arc<[PathBuf]>,
    /// Real paths outside of these directories that this call was permitted to touch.
    pub granted: Arc<[PathBuf]>,
    /// The authorized paths: a tool opens only the files that these paths resolved to when the call
    /// was decided.
    pub authorized: AuthorizedPaths,
    /// Key stores, devices and the like, as real paths. A tool that finds its files itself leaves
    /// them out, unless it was permitted to start inside one.
    pub key_stores: Arc<[PathBuf]>,
    /// Files that may not be read, so that a search leaves them out.
    pub hidden: HiddenFilter,
    /// Files that may not be changed, including the hidden ones, so that a bulk edit leaves them
    /// out.
    pub locked: HiddenFilter,
    /// Control files, which decide what other programs run. A bulk edit leaves them out too, unless
    /// it was permitted to start inside one.
    pub control: HiddenFilter,
    /// The confinement of a command that the call starts.
    pub confinement: Confinement,
    /// The host rules, for a call that makes requests itself.
    pub hosts: HostPolicy,
    /// The plan file: the only file that may be changed in plan mode.
    pub plan_file: Option<Arc<Path>>,
}

/// The paths of a call, each with the real path it resolved to when the call was decided.
///
/// A symlink can be swapped in at any time after that decision, so a tool compares what it opens
/// with these paths. The default is for calls without a decision: tests, and calls that the user
/// makes directly.
#[derive(Debug, Clone, Default)]
pub struct AuthorizedPaths(Option<Arc<[AuthorizedPath]>>);

/// A path of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizedPath {
    /// The absolute path as the call names it.
    pub given: PathBuf,
    /// The path it resolved to, with all symlinks followed.
    pub real: PathBuf,
}

/// The constraint on what a path may resolve to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathConstraint {
    /// No constraint: nothing was decided.
    Anywhere,
    /// It must resolve to exactly this real path.
    Exactly(PathBuf),
    /// It was not part of the decision and must not be opened.
    Nowhere,
}

impl AuthorizedPaths {
    /// Creates the authorized paths of a call.
    pub fn new(paths: impl IntoIterator<Item = AuthorizedPath>) -> Self {
        Self(Some(paths.into_iter().collect()))
    }

    /// Returns an empty set: nothing may be opened.
    pub fn none() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns the constraint for a path that was authorized itself or through a directory above
    /// it. Below that directory no symlink is followed.
    pub fn constraint_for(&self, path: &Path) -> PathConstraint {
        let Some(judged) = &self.0 else {
            return PathConstraint::Anywhere;
        };
        // The usual case: the authorized path itself, without dots.
        if let [only] = &**judged
            && only.given.as_os_str() == path.as_os_str()
            && is_without_dots(path)
        {
            return PathConstraint::Exactly(only.real.clone());
        }
        let path = without_dots(path);
        let mut found = None;
        for one in judged.iter() {
            let Ok(below) = path.strip_prefix(without_dots(&one.given)) else {
                continue;
            };
            let length = below.components().count();
            let real = match length {
                0 => one.real.clone(),
                _ => one.real.join(below),
            };
            match &mut found {
                Some((nearest, _)) if *nearest < length => {}
                // The same name resolved to two places: it is ambiguous which one was meant.
                Some((nearest, other)) if *nearest == length && *other != real => {
                    return PathConstraint::Nowhere;
                }
                found => *found = Some((length, real)),
            }
        }
        match found {
            Some((_, real)) => PathConstraint::Exactly(real),
            None => PathConstraint::Nowhere,
        }
    }
}

fn is_without_dots(path: &Path) -> bool {
    let dots = |part| matches!(part, Component::ParentDir | Component::CurDir);
    !path.components().any(dots)
}

/// Removes `.` and `..` from the path, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

impl CallContext {
    /// Returns a context for testing a tool. It works in `dir`, everything is permitted, and no
    /// user can be asked. The second value receives the tool's progress.
    pub fn for_test(dir: &Path) -> (Self, ProgressUpdates) {
        let call = CallId::new();
        let (progress, updates) = progress::channel(call);
        let context = Self {
            session: SessionId::new(),
            call,
            tool_use_id: Arc::from(""),
            cwd: Arc::from(dir),
            cancel: CancellationToken::new(),
            progress,
            permissions: PermissionSnapshot {
                mode: PermissionMode::BypassPermissions,
                directories: Arc::from([dir.to_path_buf()]),
                granted: Arc::from([]),
                authorized: AuthorizedPaths::default(),
                key_stores: Arc::from([]),
                hidden: HiddenFilter::default(),
                locked: HiddenFilter::default(),
                control: HiddenFilter::default(),
                confinement: Confinement::none(),
                hosts: HostPolicy::ask_all(),
                plan_file: None,
            },
            model: None,
            services: Services::none(),
            nested: NestedCalls::default(),
        };
        (context, updates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_must_lead_where_it_led_when_it_was_judged() {
        let judged = |pairs: &[(&str, &str)]| {
            AuthorizedPaths::new(pairs.iter().map(|(given, real)| AuthorizedPath {
                given: given.into(),
                real: real.into(),
            }))
        };
        let to = |real: &str| PathConstraint::Exactly(real.into());
        let some = judged(&[("/w/a", "/w/a"), ("/w/link", "/w/dir"), ("/w", "/w")]);
        let cases = [
            ("/w/a", to("/w/a")),
            ("/w/./x/../a", to("/w/a")),
            ("/w/link", to("/w/dir")),
            ("/w/link/deep/file", to("/w/dir/deep/file")),
            ("/w/other/file", to("/w/other/file")),
            ("/elsewhere", PathConstraint::Nowhere),
            ("/wide", PathConstraint::Nowhere),
        ];
        for (path, expected) in cases {
            assert_eq!(some.constraint_for(Path::new(path)), expected, "{path}");
        }
        let two = judged(&[("/w/a", "/w/a"), ("/w/a", "/w/b")]);
        assert_eq!(
            two.constraint_for(Path::new("/w/a")),
            PathConstraint::Nowhere
        );
        let twice = judged(&[("/w/a", "/w/b"), ("/w/a", "/w/b")]);
        assert_eq!(twice.constraint_for(Path::new("/w/a")), to("/w/b"));
        let none = judged(&[]);
        assert_eq!(
            none.constraint_for(Path::new("/w")),
            PathConstraint::Nowhere
        );
        let unjudged = AuthorizedPaths::default();
        assert_eq!(
            unjudged.constraint_for(Path::new("/w")),
            PathConstraint::Anywhere
        );
    }
}
