//! Hidden files stay hidden. What lies over a file is gone when another one is put in its place from
//! outside, as many programs do to write it; so the guard watches the directories, and ends the command.

use std::{
    ffi::OsString,
    fs, io,
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use super::keeper::{Step, step_at};
use crate::{Mechanism, SandboxProfile, protocol::Plan};

/// What lies over the hidden files of a command.
pub(super) struct Cover {
    watch: OwnedFd,
    hidden: Vec<(PathBuf, Option<CoverIdentity>)>,
    /// What lies over all files and all directories, where that is the same.
    masks: Vec<CoverIdentity>,
    /// Names whose change may uncover something.
    names: Vec<OsString>,
}

type CoverIdentity = (u64, u64);

impl Cover {
    /// Begins to watch. `None`: nothing is hidden, or nothing can be. Fails if something is not hidden now:
    /// it was replaced, or came back, since the sandbox was set up.
    pub(super) fn of(plan: &Plan) -> Result<Option<Self>, Step> {
        let Some(mut cover) = Self::begin(plan) else {
            return Ok(None);
        };
        if plan.mechanism == Mechanism::Namespaces {
            // Nothing else lies over files: what was seen in a path's place just now may be the file itself,
            // which was away when the sandbox was set up, or is away for this moment.
            let null = identity(Path::new("/dev/null"));
            for (_, covered) in &mut cover.hidden {
                *covered = null;
            }
            if let Some(path) = cover.open() {
                let changed = io::Error::from_raw_os_error(libc::ESTALE);
                return step_at(path, || Err(changed));
            }
        }
        Ok(Some(cover))
    }

    fn begin(plan: &Plan) -> Option<Self> {
        let hidden = match &plan.profile {
            SandboxProfile::ReadOnly(reading) => &reading.hidden,
            SandboxProfile::Workspace(workspace) => &workspace.hidden,
            SandboxProfile::Full => return None,
        };
        if hidden.is_empty() || plan.mechanism >= Mechanism::Reduced {
            return None;
        }
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let mut names: Vec<OsString> = Vec::new();
        for path in hidden {
            // A directory above that is replaced uncovers as well; not those at the top, in which
            // everything on the machine happens.
            let above = path.ancestors().enumerate();
            let above = above.filter(|(at, path)| *at == 0 || path.components().count() > 3);
            for (_, path) in above {
                if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
                    let flags = WatchFlags::CREATE | WatchFlags::MOVE | WatchFlags::DELETE;
                    let _ = add_watch(&watch, directory, flags | WatchFlags::ONLYDIR);
                    if !names.iter().any(|known| known == name) {
                        names.push(name.to_owned());
                    }
                }
            }
        }
        // After the watch began: what changes from now on is seen.
        let hidden = hidden.iter().map(|path| (path.clone(), identity(path)));
        Some(Self {
            hidden: hidden.collect(),
            masks: super::mounts::MASKS
                .iter()
                .filter_map(|mask| identity(Path::new(mask)))
                .collect(),
            watch,
            names,
        })
    }

    /// Becomes readable when something changed beside a hidden file.
    pub(super) fn watch(&self) -> &OwnedFd {
        &self.watch
    }

    /// A hidden file that can be read now, if there is one.
    pub(super) fn uncovered(&self) -> io::Result<Option<&Path>> {
        if !self.concerns_a_name()? {
            return Ok(None);
        }
        Ok(self.open())
    }

    fn open(&self) -> Option<&Path> {
        let open = self.hidden.iter().find(|(path, covered)| {
            let now = identity(path);
            now.is_some_and(|now| Some(now) != *covered && !self.masks.contains(&now))
        });
        open.map(|(path, _)| path.as_path())
    }

    /// Is one of the names among what changed? More happens in these directories.
    fn concerns_a_name(&self) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(&self.watch, &mut buffer);
        let mut concerns = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    // Without a name: so much happened that not all is told.
                    concerns |= event.file_name().is_none_or(|name| {
                        let name = OsString::from_vec(name.to_bytes().to_vec());
                        self.names.contains(&name)
                    });
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(concerns),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn identity(path: &Path) -> Option<CoverIdentity> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
