//! What a replaced file keeps besides its name: owner, extended attributes, mode.

use std::fs::File;
use std::io;

use rustix::fs::{Gid, Mode, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

use crate::stamp::Stamp;

/// Gives `to` the attributes of `from`; `false` if they cannot all be kept.
///
/// The mode comes last because changing the owner clears set-user-id bits.
pub(super) fn copy(from: &File, to: &File, stamp: &Stamp) -> io::Result<bool> {
    let own = Stamp::of(&to.metadata()?);
    if (own.uid, own.gid) != (stamp.uid, stamp.gid) {
        let (owner, group) = (Uid::from_raw(stamp.uid), Gid::from_raw(stamp.gid));
        match fchown(to, Some(owner), Some(group)) {
            Ok(()) => {}
            Err(Errno::PERM | Errno::INVAL | Errno::NOTSUP) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    if !copy_extended(from, to)? {
        return Ok(false);
    }
    fchmod(to, mode_of(stamp))?;
    Ok(true)
}

/// After a write in place: the kernel may have cleared set-user-id bits.
pub(super) fn keep_mode(file: &File, stamp: &Stamp) {
    let changed = file
        .metadata()
        .is_ok_and(|now| Stamp::of(&now).mode != stamp.mode);
    if changed {
        let _ = fchmod(file, mode_of(stamp));
    }
}

fn mode_of(stamp: &Stamp) -> Mode {
    Mode::from_raw_mode(stamp.mode & 0o7777)
}

/// Access control lists are extended attributes, too.
fn copy_extended(from: &File, to: &File) -> io::Result<bool> {
    let names = match read_growing(|buffer| flistxattr(from, buffer)) {
        Ok(names) => names,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    for name in names
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        let value = match read_growing(|buffer| fgetxattr(from, name, buffer)) {
            Ok(value) => value,
            Err(_) if is_of_the_system(name) => continue,
            Err(Errno::NODATA) => continue, // removed meanwhile
            Err(error) => return Err(error.into()),
        };
        match fsetxattr(to, name, &value, XattrFlags::empty()) {
            Ok(()) | Err(Errno::NOTSUP) => {}
            Err(_) if is_of_the_system(name) => {}
            Err(Errno::PERM | Errno::ACCESS | Errno::NOSPC) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Labels that the system itself gives to new files and does not let us set.
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
