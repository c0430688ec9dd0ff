//! Random operations on the files of a directory, as a command makes them.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    ptr,
};

use rustix::{
    fs::{
        AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, XattrFlags, copy_file_range,
        fallocate, fremovexattr, fsetxattr, linkat, mkfifoat, openat, removexattr, renameat_with,
        setxattr,
    },
    mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap},
};

/// A generator of numbers that are the same for the same seed on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end.max(1)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }
}

/// Makes a directory with files, links and directories for the operations.
pub(super) fn prepare(root: &Path, random: &mut Random) {
    for directory in ["a", "a/b", "a/b/c", "d", "empty"] {
        fs::create_dir(root.join(directory)).unwrap();
    }
    for number in 0..14 {
        let directory = ["", "a", "a/b", "a/b/c", "d"][random.below(5)];
        let path = root.join(directory).join(format!("f{number}"));
        let size = [0, 3, 100, 5000, 70_000][random.below(5)];
        fs::write(&path, vec![b'a' + u8::try_from(number).unwrap(); size]).unwrap();
        let mode = [0o644, 0o600, 0o755, 0o640][random.below(4)];
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        if random.below(4) == 0 {
            let _ = setxattr(&path, "user.old", b"1", XattrFlags::empty());
        }
        if random.below(4) == 0 {
            let other = root.join(["", "a", "d"][random.below(3)]);
            let _ = fs::hard_link(&path, other.join(format!("h{number}")));
        }
    }
    symlink("f0", root.join("link")).unwrap();
    symlink("missing", root.join("a/broken")).unwrap();
    mkfifoat(CWD, root.join("d/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
}

/// Every path below a directory, itself excluded, with whether it is a directory.
fn paths(root: &Path) -> Vec<(PathBuf, bool)> {
    let mut found = Vec::new();
    let mut next = vec![root.to_path_buf()];
    while let Some(directory) = next.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory {
                next.push(entry.path());
            }
            found.push((entry.path(), is_directory));
        }
    }
    found.sort();
    found
}

/// Makes `count` operations. Some fail, as they do in commands. Names contain `tag`, so that several
/// processes make their own and also change those of others.
pub(super) fn run(root: &Path, random: &mut Random, count: usize, tag: usize) {
    for number in 0..count {
        let all = paths(root);
        let files: Vec<PathBuf> = all
            .iter()
            .filter(|(path, directory)| {
                !directory && fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
            })
            .map(|(path, _)| path.clone())
            .collect();
        let mut directories: Vec<PathBuf> = all
            .iter()
            .filter(|(_, directory)| *directory)
            .map(|(path, _)| path.clone())
            .collect();
        directories.push(root.to_path_buf());
        let any: Vec<PathBuf> = all.into_iter().map(|(path, _)| path).collect();
        let (Some(file), Some(directory)) = (random.pick(&files), random.pick(&directories)) else {
            continue;
        };
        let (file, directory) = (file.clone(), directory.clone());
        let Some(one) = random.pick(&any).cloned() else {
            continue;
        };
        let Some(other) = random.pick(&any).cloned() else {
            continue;
        };
        let new = match random.below(3) {
            0 => directory.join(format!("n{}", random.below(4))),
            _ => directory.join(format!("n{tag}-{number}")),
        };
        operation(
            random,
            &Places {
                file,
                directory,
                one,
                other,
                new,
            },
        );
    }
}

/// The paths for an operation.
struct Places {
    file: PathBuf,
    directory: PathBuf,
    one: PathBuf,
    other: PathBuf,
    new: PathBuf,
}

fn operation(random: &mut Random, at: &Places) {
    let content = vec![b'A' + u8::try_from(random.below(26)).unwrap(); random.below(9000)];
    // An error is as good as a success: the state after it must be restored as well.
    let _ = match random.below(24) {
        0 | 1 => write(&at.new, &content),
        2 | 3 => write(&at.file, &content),
        4 => options()
            .append(true)
            .open(&at.file)
            .and_then(|mut file| file.write_all(b"more")),
        5 => options()
            .write(true)
            .open(&at.file)
            .and_then(|file| file.set_len(random.below(200) as u64)),
        6 => map(&at.file),
        7 => fs::remove_file(&at.file),
        8 => fs::remove_file(&at.one),
        9 => fs::remove_dir_all(&at.directory).and_then(|()| fs::create_dir_all(&at.directory)),
        10 => fs::remove_dir(&at.directory),
        11 => fs::create_dir(&at.new),
        12 | 13 => fs::rename(&at.one, &at.new),
        14 => fs::rename(&at.one, &at.other),
        15 => renameat_with(CWD, &at.one, CWD, &at.other, RenameFlags::EXCHANGE)
            .map_err(std::io::Error::from),
        16 => fs::hard_link(&at.file, &at.new),
        17 => symlink("f1", &at.new),
        18 => {
            let mode = [0o600, 0o644, 0o755, 0o700][random.below(4)];
            fs::set_permissions(&at.one, fs::Permissions::from_mode(mode))
        }
        19 => setxattr(&at.one, "user.k", b"v", XattrFlags::empty()).map_err(std::io::Error::from),
        20 => options().read(true).open(&at.file).map(|file| {
            let _ = match random.below(2) {
                0 => fsetxattr(&file, "user.k", b"w", XattrFlags::empty()),
                _ => fremovexattr(&file, "user.old"),
            };
            let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(0o611));
        }),
        21 => unnamed(&at.directory, &at.new),
        22 => options()
            .read(true)
            .write(true)
            .open(&at.file)
            .map(|mut file| {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let _ = fallocate(&file, hole, 0, 4096);
                if let Ok(source) = options().read(true).open(&at.other) {
                    let _ = copy_file_range(source, None, &file, None, 100);
                }
                let _ = file
                    .seek(SeekFrom::End(0))
                    .and_then(|_| file.write_all(b"end"));
            }),
        _ => removexattr(&at.one, "user.old").map_err(std::io::Error::from),
    };
}

/// Options that never wait: another process may have moved a pipe to the path.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = options();
    let options = options.write(true).create(true).truncate(true);
    options.open(path)?.write_all(content)
}

/// Writes through a shared mapping after the file was closed.
#[expect(unsafe_code, reason = "memory mappings have no safe form")]
pub(super) fn map(path: &Path) -> std::io::Result<()> {
    let file = options().read(true).write(true).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap();
    if length == 0 {
        return Ok(());
    }
    // SAFETY: the mapping is as long as the file. Another process may truncate it in the meantime: then
    // this process gets a signal, which ends only this test's command.
    unsafe {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        let mapped = mmap(ptr::null_mut(), length, flags, MapFlags::SHARED, &file, 0)?;
        drop(file);
        mapped.cast::<u8>().write(b'#');
        msync(mapped, length, MsyncFlags::SYNC)?;
        munmap(mapped, length)?;
    }
    Ok(())
}

/// Makes a file without a name, and then names it.
fn unnamed(directory: &Path, new: &Path) -> std::io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all_at(b"unnamed", 0)?;
    let path = {
        use std::os::fd::AsRawFd;
        CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
    };
    Ok(linkat(CWD, &*path, CWD, new, AtFlags::SYMLINK_FOLLOW)?)
}
