//! The files that a sandbox shows, and which of them can be changed. In its mount namespace everything
//! is read-only except the selected paths.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, symlink},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, StatVfsMountFlags},
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
        mount_bind, mount_bind_recursive, mount_change, mount_move, mount_remount, move_mount,
        open_tree, unmount,
    },
};

use super::{
    closed_directories,
    keeper::{SetupFailure, step, step_at},
    private_tmp,
};
use crate::{
    SandboxProfile, WorkspaceProfile, private_tmp::PlannedDirectory, protocol::SandboxPlan,
};

/// The devices in a sandbox. They give no access to the machine.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// An empty file and an empty directory without any permissions, in the sandbox's own `/dev`. They
/// are mounted over hidden paths.
const MASK_FILE: &str = ".hidden-file";
const MASK_DIRECTORY: &str = ".hidden-directory";

/// The paths of both masks.
pub(super) const MASKS: [&str; 2] = ["/dev/.hidden-file", "/dev/.hidden-directory"];

/// The directory where system daemons have their sockets.
const DAEMONS: &str = "/run";
const DEPTH: u32 = 3;

/// Sets up the mounts. The calling process must have its own mount namespace.
pub(super) fn set_up(plan: &SandboxPlan) -> Result<(), SetupFailure> {
    step("private mounts", || {
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )
    })?;
    step("devices", || devices(&plan.scratch))?;
    let held = step("private temporary files", || private_tmp::hold(plan))?;
    step("closed directories", || closed_directories::close(plan))?;
    private_tmp::mount(held)?;
    let none = WorkspaceProfile::nothing();
    let (workspace, hidden) = match &plan.profile {
        SandboxProfile::ReadOnly(reading) => (&none, &reading.hidden),
        SandboxProfile::Workspace(workspace) => (workspace, &workspace.hidden),
        SandboxProfile::Full => return Ok(()),
    };
    let private = plan.private_directories();
    let temporary = plan.temporary();
    if !temporary.contains(&plan.scratch) {
        // The command does not see the scratch folder itself.
    } else if matches!(plan.profile, SandboxProfile::ReadOnly(_)) {
        step("temporary files", || {
            tmpfs(&plan.scratch, "mode=0700,size=25%")
        })?;
    } else {
        step("temporary files", || {
            mount_bind(&plan.scratch, &plan.scratch)
        })?;
    }
    let mut writable = Vec::new();
    for path in &workspace.writable {
        // A directory below another writable one needs no mount.
        let inside = workspace
            .writable
            .iter()
            .any(|other| other != path && path.starts_with(other));
        if !inside && (path.exists() || plan.there.contains(path)) {
            step_at(path, || mount_bind_recursive(path, path))?;
            writable.push(path.clone());
        }
    }
    // After the working directories: some may be below these.
    writable.extend(temporary);
    writable.extend(["/dev/shm", "/dev/pts"].map(PathBuf::from));
    let visible: Vec<PathBuf> = private.iter().flat_map(PlannedDirectory::entries).collect();
    step("read-only files", || freeze(&writable, &visible))?;
    let mut table = step("the list of mounts", mounts)?;
    let (immutable, replaceable) = workspace.split_protected(plan.is_mediated());
    for path in &immutable {
        if path.exists() {
            step_at(path, || protect(path, &writable, &plan.scratch, &mut table))?;
        }
    }
    // These files may be replaced, but the directories above them must not be moved.
    for path in &replaceable {
        step_at(path, || hold(&above(path, &writable), &mut table))?;
    }
    if plan.own_processes {
        step(super::PROCESSES, || processes(|| ()))?;
    }
    for path in hidden.iter().chain(&sockets(plan)) {
        step_at(path, || hide(path))?;
    }
    step("the directory", || std::env::set_current_dir("/"))
}

/// Mounts a `/proc` that shows only the processes of this PID namespace. Runs `before_protection`
/// before `/proc` becomes read-only.
pub(super) fn processes(before_protection: impl FnOnce()) -> rustix::io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    // Root is exempt from the process limit of users.
    if counts_by_space(&rustix::system::uname().release().to_string_lossy()) {
        let most = super::confine::PROCESSES.to_string();
        let _ = fs::write("/proc/sys/kernel/pid_max", most);
    }
    before_protection();
    mount_remount("/proc", flags | MountFlags::RDONLY | MountFlags::BIND, c"")
}

/// Returns whether this kernel has a `pid_max` for each PID namespace. Older kernels have one for
/// the machine.
fn counts_by_space(release: &str) -> bool {
    const SINCE: (u32, u32) = (6, 14);
    let mut numbers = release.split(|other: char| !other.is_ascii_digit());
    let mut next = || numbers.next()?.parse::<u32>().ok();
    match (next(), next()) {
        (Some(major), Some(minor)) => (major, minor) >= SINCE,
        _ => false,
    }
}

impl WorkspaceProfile {
    fn nothing() -> Self {
        Self {
            writable: Vec::new(),
            protected: Vec::new(),
            hidden: Vec::new(),
            guarded: None,
            closed: crate::ClosedDirectories::default(),
            network: crate::SandboxNetwork::None,
        }
    }
}

pub(super) fn tmpfs(at: &Path, options: &str) -> rustix::io::Result<()> {
    let options = std::ffi::CString::new(options).map_err(|_| Errno::INVAL)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", at, "tmpfs", flags, options.as_c_str())
}

/// Builds a `/dev` without devices of the machine. Creates it at `staging` and moves it.
fn devices(staging: &Path) -> io::Result<()> {
    tmpfs(staging, "mode=0755,size=64k")?;
    for name in DEVICES {
        let node = staging.join(name);
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o666)
            .open(&node)?;
        let device = Path::new("/dev").join(name);
        match mount_bind(&device, &node) {
            Err(Errno::NOENT) => fs::remove_file(&node)?, // some containers have no tty
            bound => bound?,
        }
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(to, staging.join(name))?;
    }
    let (shm, pts) = (staging.join("shm"), staging.join("pts"));
    fs::DirBuilder::new().mode(0o1777).create(&shm)?;
    fs::DirBuilder::new().mode(0o755).create(&pts)?;
    tmpfs(&shm, "mode=1777,size=25%")?;
    // Pseudo terminals are optional: some systems do not permit a new instance.
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let _ = mount(
        "devpts",
        &pts,
        "devpts",
        flags,
        c"newinstance,ptmxmode=0666,mode=620",
    );
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o000)
        .open(staging.join(MASK_FILE))?;
    fs::DirBuilder::new()
        .mode(0o000)
        .create(staging.join(MASK_DIRECTORY))?;
    mount_move(staging, "/dev")?;
    Ok(())
}

/// Makes every mount read-only that is not at or below a writable path. `visible` are paths below
/// writable ones that are themselves not writable.
fn freeze(writable: &[PathBuf], visible: &[PathBuf]) -> io::Result<()> {
    let deepest = |paths: &[PathBuf], path: &Path| {
        let above = paths.iter().filter(|above| path.starts_with(above));
        above.map(|above| above.components().count()).max()
    };
    for (path, flags) in mounts()? {
        let open = deepest(writable, &path);
        if open.is_some() && open >= deepest(visible, &path) {
            continue;
        }
        let flags = flags | MountFlags::RDONLY | MountFlags::BIND;
        match mount_remount(&path, flags, c"") {
            // Another mount covers it, or this process cannot reach it: then no command can.
            Ok(()) | Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR) => {}
            // The path leads to another mount that covers this one. That mount has its own entry.
            Err(Errno::INVAL) => {}
            Err(error) => {
                let error = io::Error::from(error);
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", path.display()),
                ));
            }
        }
    }
    Ok(())
}

/// Makes a path below a writable one read-only, and pins its name. Otherwise a command
/// could move a directory or symlink on the way and replace it by another one.
fn protect(
    path: &Path,
    writable: &[PathBuf],
    scratch: &Path,
    table: &mut MountTable,
) -> io::Result<()> {
    let way = PathLinks::to(path)?;
    for link in &way.links {
        if writable.iter().any(|root| link.starts_with(root)) {
            hold(&above(link, writable), table)?;
            pin(link, table)?;
        }
    }
    hold(&above(&way.end, writable), table)?;
    mount_bind_recursive(&way.end, &way.end)?;
    record_mount(&way.end, table);
    for (mounted, flags) in table.iter_mut() {
        if mounted.starts_with(&way.end) && !mounted.starts_with(scratch) {
            *flags |= MountFlags::RDONLY;
            mount_remount(mounted, *flags | MountFlags::BIND, c"")?;
        }
    }
    Ok(())
}

/// Returns the directories between a writable one and a path below it, from the top.
pub(super) fn above(path: &Path, writable: &[PathBuf]) -> Vec<PathBuf> {
    let Some(root) = writable.iter().find(|root| path.starts_with(root)) else {
        return Vec::new();
    };
    let mut between: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|above| above.starts_with(root) && *above != root)
        .map(Path::to_path_buf)
        .collect();
    between.reverse();
    between
}

/// Prevents directories from being moved, by making each a mount point.
fn hold(directories: &[PathBuf], table: &mut MountTable) -> io::Result<()> {
    for directory in directories {
        if !table.contains_key(directory) {
            mount_bind_recursive(directory, directory)?;
            record_mount(directory, table);
        }
    }
    Ok(())
}

/// Prevents a symlink from being moved, by mounting it over itself.
fn pin(link: &Path, table: &mut MountTable) -> io::Result<()> {
    if table.contains_key(link) {
        return Ok(());
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let itself = open_tree(CWD, link, flags)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&itself, c"", CWD, link, flags)?;
    record_mount(link, table);
    Ok(())
}

/// Adds a path that was just mounted on itself to the table, with the flags of the mount that
/// contains it.
fn record_mount(path: &Path, table: &mut MountTable) {
    let flags = path.ancestors().find_map(|above| table.get(above).copied());
    table.insert(path.to_path_buf(), flags.unwrap_or(MountFlags::empty()));
}

/// The symlinks on the way from a path to its file.
struct PathLinks {
    /// The symlinks on the way.
    links: Vec<PathBuf>,
    end: PathBuf,
}

impl PathLinks {
    fn to(path: &Path) -> io::Result<Self> {
        // The kernel's limit.
        const LINKS: usize = 40;
        let mut links = Vec::new();
        let mut end = PathBuf::from("/");
        let mut left: Vec<OsString> = parts(path);
        while let Some(part) = left.pop() {
            match Path::new(&part).components().next() {
                Some(Component::RootDir) => end = PathBuf::from("/"),
                Some(Component::ParentDir) => {
                    end.pop();
                }
                Some(Component::Normal(part)) => {
                    let next = end.join(part);
                    if fs::symlink_metadata(&next)?.is_symlink() {
                        left.extend(parts(&fs::read_link(&next)?));
                        links.push(next);
                    } else {
                        end = next;
                    }
                }
                _ => {}
            }
            if links.len() > LINKS {
                return Err(Errno::LOOP.into());
            }
        }
        Ok(Self { links, end })
    }
}

/// Returns the components of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

/// Returns the sockets to hide: those that are known, all others in the same directories, and those
/// of system daemons. Leaves out sockets in writable directories. A socket that was renamed after
/// `bind`, or whose listener is in another network namespace, appears in no list of sockets.
pub(super) fn sockets(plan: &SandboxPlan) -> BTreeSet<PathBuf> {
    let SandboxProfile::Workspace(workspace) = &plan.profile else {
        return BTreeSet::new(); // this profile has no sockets that could connect
    };
    let mut found: BTreeSet<PathBuf> = plan.sockets.iter().cloned().collect();
    let beside: BTreeSet<&Path> = plan
        .sockets
        .iter()
        .filter_map(|socket| socket.parent())
        .collect();
    for directory in beside {
        sockets_in(directory, 0, &mut found);
    }
    sockets_in(Path::new(DAEMONS), DEPTH, &mut found);
    let private = plan.private_directories();
    let temporary = plan.temporary();
    found.retain(|socket| {
        // A socket of the machine in such a directory does not exist for the command.
        let is_open = |open: &PathBuf| {
            let is_own = private
                .iter()
                .any(|own| own.path == *open && !own.holds(socket));
            socket.starts_with(open) && !is_own
        };
        !workspace.writable.iter().chain(&temporary).any(is_open)
    });
    found
}

fn sockets_in(directory: &Path, depth: u32, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_socket() => {
                found.insert(entry.path());
            }
            Ok(kind) if kind.is_dir() && depth > 0 => {
                sockets_in(&entry.path(), depth - 1, found);
            }
            _ => {}
        }
    }
}

type MountTable = BTreeMap<PathBuf, MountFlags>;

/// Returns the mount points with their flags. If several mounts are at one path, the last one
/// applies: it is on top.
fn mounts() -> io::Result<MountTable> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(table.lines().filter_map(parse).collect())
}

/// Parses a line `ID PARENT MAJOR:MINOR ROOT PATH OPTIONS …`. A remount must repeat the options
/// that an unprivileged user may not remove, or the kernel refuses it.
fn parse(line: &str) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(' ');
    let place = fields.nth(4)?;
    let options = fields.next()?;
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "ro" => MountFlags::RDONLY,
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    Some((PathBuf::from(unescape(place)), flags))
}

/// Decodes spaces, tabs, newlines and backslashes, which are written as three octal digits.
fn unescape(text: &str) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = (byte == b'\\')
            .then(|| bytes.get(at + 1..at + 4))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(code);
                at += 4;
            }
            None => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    OsString::from_vec(plain)
}

/// Mounts a device over a file and forbids opening devices on that mount, so that even root gets an
/// error and does not mistake the file for an empty one. Returns `false`, without any effect, if
/// this is not possible here.
fn deny(path: &Path) -> bool {
    if mount_bind("/dev/null", path).is_err() {
        return false;
    }
    let locked = |flag| rustix::fs::statvfs(path).is_ok_and(|found| found.f_flag.contains(flag));
    let mut flags = MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC
        | MountFlags::RDONLY
        | MountFlags::BIND;
    // A remount must repeat the options that an unprivileged user may not remove.
    if locked(StatVfsMountFlags::NOATIME) {
        flags |= MountFlags::NOATIME;
    }
    if locked(StatVfsMountFlags::NODIRATIME) {
        flags |= MountFlags::NODIRATIME;
    }
    if mount_remount(path, flags, c"").is_ok() {
        return true;
    }
    let _ = unmount(path, UnmountFlags::DETACH);
    false
}

/// Mounts an empty file or directory over a path. A missing path needs no mask.
fn hide(path: &Path) -> io::Result<()> {
    // The path was removed, or no process here can reach it.
    let Ok(metadata) = fs::metadata(path) else {
        return Ok(());
    };
    if metadata.is_file() && deny(path) {
        return Ok(());
    }
    let mask = if metadata.is_dir() {
        MASK_DIRECTORY
    } else {
        MASK_FILE
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY | MountFlags::BIND;
    match mount_bind(Path::new("/dev").join(mask), path) {
        Err(Errno::NOENT) => return Ok(()), // gone in the meantime: sockets come and go
        bound => bound?,
    }
    match mount_remount(path, flags, c"") {
        // The path was removed, and the mount with it.
        Err(Errno::NOENT | Errno::INVAL) if fs::symlink_metadata(path).is_err() => Ok(()),
        mounted => Ok(mounted?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernels_that_count_by_space_get_a_number_of_ours() {
        for (release, expected) in [
            ("6.18.44-fc-v490", true),
            ("6.14.0", true),
            ("7.0-rc1", true),
            ("6.13.9", false),
            ("5.15.0-1-amd64", false),
            ("unknown", false),
        ] {
            assert_eq!(counts_by_space(release), expected, "{release}");
        }
    }

    #[test]
    fn a_line_of_the_mount_table_is_read_with_its_escapes_and_flags() {
        let line =
            r"36 35 98:0 /mnt1 /mnt/with\040blank rw,nosuid,relatime master:1 - ext3 /dev/root rw";
        let (path, flags) = parse(line).unwrap();
        assert_eq!(path, Path::new("/mnt/with blank"));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::RELATIME);
        assert!(parse("36 35").is_none());
        assert_eq!(unescape(r"a\b\134"), *r"a\b\");
    }

    #[test]
    fn a_way_names_every_link_it_leads_through() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| base.join(name);
        fs::create_dir_all(at("real/deep")).unwrap();
        fs::write(at("real/deep/file"), "").unwrap();
        symlink("real/../real", at("link")).unwrap();
        symlink(at("link/deep/file"), at("real/first")).unwrap();
        let way = PathLinks::to(&at("link/first")).unwrap();
        assert_eq!(way.end, at("real/deep/file"));
        assert_eq!(way.links, [at("link"), at("real/first"), at("link")]);
        symlink("loop", at("loop")).unwrap();
        assert!(PathLinks::to(&at("loop")).is_err());
        assert!(PathLinks::to(&at("nothing")).is_err());
    }

    #[test]
    fn what_is_between_is_named_from_the_top() {
        let writable = [PathBuf::from("/w")];
        let between = above(Path::new("/w/a/b/c"), &writable);
        assert_eq!(between, [Path::new("/w/a"), Path::new("/w/a/b")]);
        assert!(above(Path::new("/w/a"), &writable).is_empty());
        assert!(above(Path::new("/other/a/b"), &writable).is_empty());
    }
}
