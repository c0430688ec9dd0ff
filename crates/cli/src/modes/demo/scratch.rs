//! A small temporary project, removed on drop unless it is kept.

use std::{
    env,
    fs::{self, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;

const FILES: [(&str, &str); 6] = [
    ("README.md", include_str!("project/README.md")),
    ("deploy.env", include_str!("project/deploy.env")),
    ("price.sh", include_str!("project/price.sh")),
    ("receipt.sh", include_str!("project/receipt.sh")),
    ("test.sh", include_str!("project/test.sh")),
    ("till.html", include_str!("project/till.html")),
];

/// The scratch project and the state folder of its session.
pub(super) struct DemoProject {
    folder: PathBuf,
    project: PathBuf,
    is_kept: bool,
}

impl DemoProject {
    pub(super) fn create() -> anyhow::Result<Self> {
        let folder =
            env::temp_dir().join(format!("haft-demo-{}", haft_agent::random_id().simple()));
        let made = || -> io::Result<Self> {
            // Only the user may read it.
            fs::DirBuilder::new().mode(0o700).create(&folder)?;
            let folder = fs::canonicalize(&folder)?;
            let scratch = Self {
                project: folder.join("till"),
                folder,
                is_kept: false,
            };
            fs::create_dir(&scratch.project)?;
            for (name, content) in FILES {
                fs::write(scratch.project.join(name), content)?;
            }
            let test = scratch.project.join("test.sh");
            fs::set_permissions(test, Permissions::from_mode(0o755))?;
            Ok(scratch)
        };
        made().with_context(|| format!("{} cannot be created", folder.display()))
    }

    pub(super) fn project(&self) -> &Path {
        &self.project
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(super) fn persist(mut self) {
        self.is_kept = true;
    }
}

impl Drop for DemoProject {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
