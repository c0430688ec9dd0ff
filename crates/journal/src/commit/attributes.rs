//! The attributes that a replaced file keeps: owner, extended attributes, mode.

use std::fs::File;
use std::io;

use rustix::fs::{
    Gid, Mode, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr,
};
use rustix::io::Errno;

use crate::stamp::Stamp;

/// The attributes that a file gets when it is created again after a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileAttributes {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Names and values; access control lists are among them.
    pub(crate) extended: Vec<(Vec<u8>, Vec<u8>)>,
}

impl FileAttributes {
    pub(crate) fn from_file(file: &File, stamp: &Stamp) -> io::Result<Self> {
        Ok(Self {
            mode: stamp.mode & 0o7777,
            uid: stamp.uid,
            gid: stamp.gid,
            extended: extended(file)?,
        })
    }

    /// Sets these attributes on a new file, as far as permissions allow.
    pub(super) fn give(&self, to: &File) -> io::Result<()> {
        let owned = give_to(to, self.uid, self.gid)?;
        for one in &self.extended {
            match set_extended(to, std::slice::from_ref(one)) {
                Ok(()) | Err(Errno::PERM | Errno::ACCESS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // If the file has another owner now, its set-user-id and set-group-id bits are dropped.
        let kept = if owned { 0o7777 } else { 0o777 };
        Ok(fchmod(to, Mode::from_raw_mode(self.mode & kept))?)
    }
}

impl FileAttributes {
    /// Sets exactly these attributes on a file that may have others, as far as permissions allow.
    pub(super) fn restore(&self, to: &File) -> io::Result<()> {
        for (name, _) in extended(to)? {
            let is_wanted = self.extended.iter().any(|(wanted, _)| *wanted == name);
            if !is_wanted {
                // An attribute that cannot be removed was set by the system.
                let _ = fremovexattr(to, name.as_slice());
            }
        }
        self.give(to)
    }
}

/// Copies the attributes of `from` to `to`. Returns `false` if not all of them can be copied.
///
/// The mode comes last because changing the owner clears set-user-id bits.
pub(super) fn copy(from: &File, to: &File, stamp: &Stamp) -> io::Result<bool> {
    if !give_to(to, stamp.uid, stamp.gid)? {
        return Ok(false);
    }
    match set_extended(to, &extended(from)?) {
        Ok(()) => {}
        Err(Errno::PERM | Errno::ACCESS | Errno::NOSPC) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    fchmod(to, mode_of(stamp))?;
    Ok(true)
}

/// Changes the owner; `false` if that is not permitted.
fn give_to(file: &File, uid: u32, gid: u32) -> io::Result<bool> {
    let own = Stamp::from_metadata(&file.metadata()?);
    if (own.uid, own.gid) == (uid, gid) {
        return Ok(true);
    }
    match fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::INVAL | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Restores the mode after a write in place: the kernel may have cleared set-user-id bits.
pub(super) fn keep_mode(file: &File, stamp: &Stamp) {
    let changed = file
        .metadata()
        .is_ok_and(|now| Stamp::from_metadata(&now).mode != stamp.mode);
    if changed {
        let _ = fchmod(file, mode_of(stamp));
    }
}

fn mode_of(stamp: &Stamp) -> Mode {
    Mode::from_raw_mode(stamp.mode & 0o7777)
}

fn extended(from: &File) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let names = match read_growing(|buffer| flistxattr(from, buffer)) {
        Ok(names) => names,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut all = Vec::new();
    for name in names
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        match read_growing(|buffer| fgetxattr(from, name, buffer)) {
            Ok(value) => all.push((name.to_vec(), value)),
            Err(_) if is_of_the_system(name) => {}
            Err(Errno::NODATA) => {} // removed concurrently
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

fn set_extended(to: &File, all: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Errno> {
    for (name, value) in all {
        match fsetxattr(to, name.as_slice(), value, XattrFlags::empty()) {
            Ok(()) | Err(Errno::NOTSUP) => {}
            Err(_) if is_of_the_system(name) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether this attribute belongs to the system. An error about such an attribute is
/// ignored: often only the kernel or root may read or set it.
fn is_of_the_system(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}

/// Repeats a read with a larger buffer until the answer fits.
fn read_growing(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    loop {
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}
