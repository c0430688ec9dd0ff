//! Reads files that a hostile project may have replaced.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Reads a regular file, also through links. Anything else is an error: reading a named pipe or a device could
/// wait forever.
pub(super) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file, also through links.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use haft_testkit::TempProject;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let project = TempProject::new([("file", "text")]);
        let root = project.root();
        mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        symlink("file", root.join("to-file")).unwrap();
        symlink("pipe", root.join("to-pipe")).unwrap();
        for name in ["file", "to-file"] {
            assert_eq!(read_regular(&root.join(name)).unwrap(), b"text", "{name}");
        }
        for name in ["pipe", "to-pipe", ".", "missing"] {
            assert!(read_regular(&root.join(name)).is_err(), "{name}");
        }
        for device in ["/dev/null", "/dev/tty", "/dev/zero"] {
            assert!(read_regular(Path::new(device)).is_err(), "{device}");
        }
    }
}
