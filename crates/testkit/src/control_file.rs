//! Control files with a single name.

use std::path::Path;

use haft_contract::{ControlAccess, ControlNames, ControlRules, ControlledFiles};

/// Rules that forbid commands to create or change files with this name.
#[derive(Debug, Clone, Copy)]
pub struct ControlFile(pub &'static str);

impl ControlFile {
    fn is(self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == self.0)
    }
}

impl ControlRules for ControlFile {
    fn names(&self) -> ControlNames {
        ControlNames {
            all: true,
            ..ControlNames::default()
        }
    }

    fn permits(&self, used: &ControlAccess<'_>) -> bool {
        !self.is(used.path)
    }

    fn include(&self, path: &Path) -> bool {
        self.is(path)
    }

    fn files(&self) -> Option<ControlledFiles> {
        Some(ControlledFiles::default())
    }
}
