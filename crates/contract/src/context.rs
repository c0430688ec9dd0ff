//! What a running call is given.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use crate::{
    CallId, Confinement, Hidden, Hosts, NestedCalls, PermissionMode, Progress, Services, SessionId,
    Updates, progress,
};

/// Everything a call knows of where it runs. A snapshot: it does not change while the call runs.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The session.
    pub session: SessionId,
    /// This call.
    pub call: CallId,
    /// The same, as the provider names it; empty where no one did.
    pub tool_use_id: Arc<str>,
    /// The directory relative paths start from; absolute.
    pub cwd: Arc<Path>,
    /// Fires when the call should end. Child of the turn's, which is child of the session's.
    pub cancel: CancellationToken,
    /// Where news of the call goes.
    pub progress: Progress,
    /// What is permitted.
    pub permissions: PermissionSnapshot,
    /// The model that asked, where known.
    pub model: Option<Arc<str>>,
    /// What it may reach.
    pub services: Services,
    /// How it makes calls itself.
    pub nested: NestedCalls,
}

/// What was permitted when the call was admitted.
#[derive(Debug, Clone)]
pub struct PermissionSnapshot {
    /// The mode.
    pub mode: PermissionMode,
    /// The working directory and the additional ones; absolute.
    pub directories: Arc<[PathBuf]>,
    /// Real paths outside of them that this very call was permitted to touch.
    pub granted: Arc<[PathBuf]>,
    /// The paths this very call was judged by: a tool opens what they led to then, and nothing else.
    pub judged: JudgedPaths,
    /// Stores of keys, devices and the like, as real paths: what finds its files by itself leaves
    /// them out, unless it was permitted to begin inside one.
    pub stores: Arc<[PathBuf]>,
    /// Files that may not be read, so that a search leaves them out.
    pub hidden: Hidden,
    /// Files that may not be changed, so that a change of many leaves them out; the hidden ones too.
    pub locked: Hidden,
    /// Files that decide what other programs run: a change of many leaves them out too, unless it
    /// was permitted to begin inside one.
    pub control: Hidden,
    /// How a command that it starts is to be confined.
    pub confinement: Confinement,
    /// What rules say of hosts, for a call that fetches something itself.
    pub hosts: Hosts,
    /// Where the plan is written: the one file that may be changed in plan mode.
    pub plan_file: Option<Arc<Path>>,
}

/// Paths of a call, each with where it led when the call was judged.
///
/// A link can be put in a path's place at any time after that, so what a tool opens is compared with
/// this. The default is for calls that were not judged at all: tests, and people's own.
#[derive(Debug, Clone, Default)]
pub struct JudgedPaths(Option<Arc<[JudgedPath]>>);

/// A path of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedPath {
    /// As the call names it; absolute.
    pub given: PathBuf,
    /// Where it led, all links followed.
    pub real: PathBuf,
}

/// Where a path must lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MustLead {
    /// Wherever: nothing was judged.
    Anywhere,
    /// To exactly this real path.
    To(PathBuf),
    /// It was no part of what was judged: it may not be opened.
    Nowhere,
}

impl JudgedPaths {
    /// These.
    pub fn new(paths: impl IntoIterator<Item = JudgedPath>) -> Self {
        Self(Some(paths.into_iter().collect()))
    }

    /// None at all: nothing may be opened.
    pub fn none() -> Self {
        Self(Some(Arc::default()))
    }

    /// Where a path must lead, as it was judged itself or with a directory above it. Below such a
    /// directory no link is followed.
    pub fn must_lead(&self, path: &Path) -> MustLead {
        let Some(judged) = &self.0 else {
            return MustLead::Anywhere;
        };
        // Nearly always there is one, and it is named as it was judged: without dots.
        if let [only] = &**judged
            && only.given.as_os_str() == path.as_os_str()
            && is_without_dots(path)
        {
            return MustLead::To(only.real.clone());
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
                // One name for two places: it cannot be said which was meant.
                Some((nearest, other)) if *nearest == length && *other != real => {
                    return MustLead::Nowhere;
                }
                found => *found = Some((length, real)),
            }
        }
        match found {
            Some((_, real)) => MustLead::To(real),
            None => MustLead::Nowhere,
        }
    }
}

fn is_without_dots(path: &Path) -> bool {
    let dots = |part| matches!(part, Component::ParentDir | Component::CurDir);
    !path.components().any(dots)
}

/// The path without `.` and `..`, by its text alone.
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
    /// A context for the test of a tool: it works in `dir`, everything is permitted, no one can be
    /// asked, and the second part gets the tool's progress.
    pub fn for_test(dir: &Path) -> (Self, Updates) {
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
                judged: JudgedPaths::default(),
                stores: Arc::from([]),
                hidden: Hidden::default(),
                locked: Hidden::default(),
                control: Hidden::default(),
                confinement: Confinement::none(),
                hosts: Hosts::asking(),
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
            JudgedPaths::new(pairs.iter().map(|(given, real)| JudgedPath {
                given: given.into(),
                real: real.into(),
            }))
        };
        let to = |real: &str| MustLead::To(real.into());
        let some = judged(&[("/w/a", "/w/a"), ("/w/link", "/w/dir"), ("/w", "/w")]);
        let cases = [
            ("/w/a", to("/w/a")),
            ("/w/./x/../a", to("/w/a")),
            ("/w/link", to("/w/dir")),
            ("/w/link/deep/file", to("/w/dir/deep/file")),
            ("/w/other/file", to("/w/other/file")),
            ("/elsewhere", MustLead::Nowhere),
            ("/wide", MustLead::Nowhere),
        ];
        for (path, expected) in cases {
            assert_eq!(some.must_lead(Path::new(path)), expected, "{path}");
        }
        let two = judged(&[("/w/a", "/w/a"), ("/w/a", "/w/b")]);
        assert_eq!(two.must_lead(Path::new("/w/a")), MustLead::Nowhere);
        let twice = judged(&[("/w/a", "/w/b"), ("/w/a", "/w/b")]);
        assert_eq!(twice.must_lead(Path::new("/w/a")), to("/w/b"));
        let none = judged(&[]);
        assert_eq!(none.must_lead(Path::new("/w")), MustLead::Nowhere);
        let unjudged = JudgedPaths::default();
        assert_eq!(unjudged.must_lead(Path::new("/w")), MustLead::Anywhere);
    }
}
