//! The index of a Git repository. `git status` writes it again with other times of the same
//! entries, which is not a change for undo.

use std::path::Path;

/// The size limit of an index that is compared.
pub(crate) const MAX_INDEX: u64 = 64 << 20;

const HASH: usize = 20;
/// Times, device, inode, owner and size come before and after the mode.
const MODE: usize = 24;
const STAT: usize = 40;
const EXTENDED: u16 = 0x4000;

/// An entry without what `git status` updates: mode, hash, flags and name.
type IndexEntry = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

/// Returns whether a path is the index of a repository or of a work tree.
pub(crate) fn is_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "index")
        && path.with_file_name("HEAD").symlink_metadata().is_ok()
}

/// Returns whether two indexes have the same entries.
pub(super) fn has_same_entries(one: &[u8], other: &[u8]) -> bool {
    entries(one).is_some_and(|own| entries(other) == Some(own))
}

/// Returns `None` if the format is not known.
fn entries(content: &[u8]) -> Option<Vec<IndexEntry>> {
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(
            content.get(at..at + 4)?.try_into().ok()?,
        ))
    };
    let version = number(4)?;
    if content.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut all: Vec<IndexEntry> = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let mode = content.get(at + MODE..at + MODE + 4)?.to_vec();
        let hash = content.get(at + STAT..at + STAT + HASH)?.to_vec();
        let mut end = at + STAT + HASH + 2;
        let flags = u16::from_be_bytes(content.get(end - 2..end)?.try_into().ok()?);
        if flags & EXTENDED != 0 {
            end += 2;
        }
        let flags = content.get(at + STAT + HASH..end)?.to_vec();
        let mut name = Vec::new();
        if version == 4 {
            let (strip, start) = variable_length(content, end)?;
            let last = all.last().map_or(&[][..], |(.., name)| name);
            name.extend(last.get(..last.len().checked_sub(strip)?)?);
            end = start;
        }
        let rest = content.get(end..)?;
        let length = rest.iter().position(|&byte| byte == 0)?;
        name.extend(rest.get(..length)?);
        end += length + 1;
        at = match version {
            4 => end,
            _ => at + (end - at).next_multiple_of(8),
        };
        all.push((mode, hash, flags, name));
    }
    Some(all)
}

/// Reads a number of Git's variable-length form; returns it with its end.
fn variable_length(content: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *content.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *content.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(version: u32, time: u8, entries: &[(&[u8], u8)]) -> Vec<u8> {
        let mut all = [b"DIRC".as_slice(), &version.to_be_bytes()].concat();
        all.extend((entries.len() as u32).to_be_bytes());
        for (name, hash) in entries {
            let start = all.len();
            all.extend([time; MODE]);
            all.extend(0o100_644_u32.to_be_bytes());
            all.extend([time; STAT - MODE - 4]);
            all.extend([*hash; HASH]);
            all.extend((name.len() as u16).to_be_bytes());
            if version == 4 {
                all.push(0);
            }
            all.extend(*name);
            all.push(0);
            while version != 4 && !(all.len() - start).is_multiple_of(8) {
                all.push(0);
            }
        }
        all.extend([time; HASH]);
        all
    }

    #[test]
    fn only_times_may_differ() {
        for version in [2, 4] {
            let first = index(version, 1, &[(b"", 1), (b"a/file", 2)]);
            let refreshed = index(version, 7, &[(b"", 1), (b"a/file", 2)]);
            assert!(has_same_entries(&first, &refreshed), "{version}");
            for other in [
                index(version, 1, &[(b"", 1), (b"a/file", 3)]),
                index(version, 1, &[(b"", 1), (b"a/filf", 2)]),
                index(version, 1, &[(b"", 1)]),
            ] {
                assert!(!has_same_entries(&first, &other), "{version}");
            }
            for cut in 0..first.len() - HASH {
                let _ = has_same_entries(&first, &first[..cut]); // no panic
            }
        }
        assert!(!has_same_entries(b"text", b"text"));
    }
}
