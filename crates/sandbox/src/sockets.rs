//! Sockets of other programs on this machine. Connecting to one does not change a file, so a
//! read-only mount does not prevent a command from controlling a daemon. The command must not see
//! these sockets.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Returns every socket with a path on which a process listens, except those below `open`.
pub(crate) fn listening(open: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(table) = fs::read("/proc/net/unix") else {
        return Vec::new();
    };
    let table = String::from_utf8_lossy(&table);
    let found: BTreeSet<&Path> = table.lines().filter_map(parse).collect();
    found
        .into_iter()
        .filter(|path| {
            let is_open = |path: &Path| open.iter().any(|open| path.starts_with(open));
            // The path may contain a symlink, as `/var/run` does.
            !is_open(path) && !fs::canonicalize(path).is_ok_and(|real| is_open(&real))
        })
        .map(Path::to_path_buf)
        .collect()
}

/// Parses `NUMBER: REFS PROTOCOL FLAGS TYPE STATE INODE PATH`. Datagram sockets never listen, so
/// all of them are returned.
fn parse(line: &str) -> Option<&Path> {
    const LISTENS: u32 = 0x10000;
    const DATAGRAM: &str = "0002";
    let mut rest = line;
    let mut next = || {
        let (field, behind) = rest.trim_start().split_once(' ')?;
        rest = behind;
        Some(field)
    };
    let flags = u32::from_str_radix([next()?, next()?, next()?, next()?][3], 16).ok()?;
    let kind = next()?;
    let (_state, _inode) = (next()?, next()?);
    let path = rest;
    let wanted = flags & LISTENS != 0 || kind == DATAGRAM;
    (wanted && path.starts_with('/')).then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_with_a_path_are_found_and_others_are_not() {
        let listens = "ffff8881: 00000002 00000000 00010000 0001 01 12345 /run/docker.sock";
        assert_eq!(parse(listens), Some(Path::new("/run/docker.sock")));
        let connected = "ffff8881: 00000003 00000000 00000000 0001 03 12345 /run/docker.sock";
        assert_eq!(parse(connected), None);
        let abstract_one = "ffff8881: 00000002 00000000 00010000 0001 01 12345 @name";
        assert_eq!(parse(abstract_one), None);
        let datagram = "ffff8881: 00000002 00000000 00000000 0002 01    99 /dev/log with blank";
        assert_eq!(parse(datagram), Some(Path::new("/dev/log with blank")));
        assert_eq!(
            parse("Num RefCount Protocol Flags Type St Inode Path"),
            None
        );
    }
}
