//! Files outside of what may be changed.

use super::{
    stand::Around,
    table::{
        Case, Scenario,
        Unconfined::{Depends, NotTried, SucceedsForRoot},
        bash, check, python,
    },
};

/// What the mechanism without mounts cannot hold, as its description says.
const NO_RIGHT: &str = "Landlock knows no right for modes, owners, times and attributes";

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_stay_as_they_are() {
    let test = "scenarios::files::files_outside_stay_as_they_are";
    check(test, &[changing(), detours()].concat(), Around::Files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_mounted_stays_mounted() {
    let test = "scenarios::files::what_is_mounted_stays_mounted";
    check(test, &mounts(), Around::Daemons).await;
}

/// Every way of changing a file or directory.
fn changing() -> Vec<Scenario> {
    vec![
        bash("write", r#"echo new > "$OUT/file""#),
        bash("append", r#"echo new >> "$OUT/file""#),
        bash("truncate", r#"truncate -s 1 "$OUT/file""#),
        bash("unlink", r#"rm -f "$OUT/file""#),
        bash("rename outside", r#"mv "$OUT/file" "$OUT/other""#),
        bash("move in", r#"mv "$OUT/file" "$IN/stolen""#),
        bash("move out", r#"mv "$IN/file" "$OUT/left""#),
        bash("move a directory in", r#"mv "$OUT/dir" "$IN/stolen""#),
        bash("make a file", r#": > "$OUT/new""#),
        bash("make a directory", r#"mkdir "$OUT/new""#),
        bash("remove a directory", r#"rmdir "$OUT/empty""#),
        bash("make a link", r#"ln -s file "$OUT/new""#),
        bash("make a pipe", r#"mkfifo "$OUT/new""#),
        bash("make a device", r#"mknod "$OUT/new" c 1 3"#).unconfined(SucceedsForRoot),
        bash("change the mode", r#"chmod 600 "$OUT/file""#).happens(Case::reduced, NO_RIGHT),
        bash(
            "change the owner",
            r#"chown "$(id -u):$(id -g)" "$OUT/file""#,
        )
        .happens(Case::reduced, NO_RIGHT),
        bash("change the times", r#"touch -c -d 2001-01-01 "$OUT/file""#)
            .happens(Case::reduced, NO_RIGHT),
        python(
            "set an attribute",
            r#"os.setxattr(OUT + "/file", "user.x", b"1")"#,
        )
        .unconfined(Depends)
        .may_happen(Case::reduced, NO_RIGHT),
        bash("set a flag", r#"chattr +A "$OUT/file""#)
            .unconfined(Depends)
            .may_happen(Case::reduced, NO_RIGHT),
        bash("allocate", r#"fallocate -l 8192 "$OUT/file""#),
        bash(
            "write behind the end",
            r#"dd if=/dev/zero of="$OUT/file" bs=1 count=1 seek=1M"#,
        ),
        bash(
            "write to a pipe",
            r#"timeout 5 sh -c 'echo new > "$OUT/fifo"'"#,
        ),
        python(
            "a file without a name is given one",
            r#"
file = os.open(OUT, os.O_TMPFILE | os.O_RDWR)
libc.linkat(-100, b"/proc/self/fd/%d" % file, -100, OUT.encode() + b"/new", 0x400) # AT_SYMLINK_FOLLOW
"#,
        ),
        python(
            "exchange",
            r#"libc.renameat2(-100, (IN + "/file").encode(), -100, (OUT + "/file").encode(), 2)"#,
        ),
    ]
}

/// Other names for the same file, other programs for the same deed.
fn detours() -> Vec<Scenario> {
    vec![
        bash(
            "hard link in, then write",
            r#"ln "$OUT/file" "$IN/l" && echo new > "$IN/l""#,
        ),
        bash("hard link out", r#"ln "$IN/file" "$OUT/l""#),
        bash(
            "plant a link, then write",
            r#"ln -s "$OUT/file" "$IN/l"; echo new > "$IN/l""#,
        ),
        bash("write through an old link", r#"echo new > "$IN/planted""#),
        bash(
            "link a directory, then write",
            r#"ln -s "$OUT" "$IN/l"; echo new > "$IN/l/file""#,
        ),
        bash(
            "dots",
            r#"cd "$IN" && echo new > "../../outside/$NAME/file""#,
        ),
        bash(
            "root of oneself",
            r#"echo new > "/proc/self/root$OUT/file""#,
        ),
        bash(
            "roots of all",
            r#"for p in /proc/[0-9]*; do echo new > "$p/root$OUT/file"; done"#,
        ),
        bash(
            "directories of all",
            r#"for p in /proc/[0-9]*; do echo new > "$p/cwd/$OUT/file"; done; cd "$OUT" && echo new > /proc/self/cwd/file"#,
        ),
        python(
            "inherited descriptors",
            r#"
# one of our own, so that there is something to find without a sandbox
os.open("/", os.O_RDONLY | os.O_DIRECTORY)
for file in range(256):
    for path in (OUT[1:] + "/file", "../" * 9 + OUT[1:] + "/file"):
        try: write(path, dir_fd=file)
        except OSError: pass
"#,
        ),
        python(
            "descriptors of all",
            r#"
for process in filter(str.isdigit, os.listdir("/proc")):
    try: files = os.listdir("/proc/%s/fd" % process)
    except OSError: continue
    for file in files:
        try: write("/proc/%s/fd/%s/../../../../../../../../%s/file" % (process, file, OUT))
        except OSError: pass
write("/proc/self/cwd/../../../../../../../../%s/file" % OUT)
"#,
        ),
        python(
            "below an open directory",
            r#"write("file", dir_fd=os.open(OUT, os.O_RDONLY | os.O_DIRECTORY))"#,
        ),
        python(
            "open again for writing",
            r#"write("/proc/self/fd/%d" % os.open(OUT + "/file", os.O_RDONLY))"#,
        ),
        python(
            "open again without reading",
            r#"write("/proc/self/fd/%d" % os.open(OUT + "/file", os.O_PATH))"#,
        ),
        python(
            "a directory becomes a link while it is used",
            r#"
place, link = IN + "/swap", IN + "/swap-link"
os.mkdir(place); open(place + "/file", "w").close(); os.symlink(OUT, link)
done = False
def swap():
    while not done: libc.renameat2(-100, place.encode(), -100, link.encode(), 2)
thread = threading.Thread(target=swap); thread.start()
for _ in range(300):
    try: write(place + "/file")
    except OSError: pass
done = True; thread.join()
"#,
        ),
        bash(
            "by the loader",
            r#"for l in /lib64/ld-linux*.so.* /lib/ld-linux*.so.*; do "$l" /bin/sh -c 'echo new > "$OUT/file"'; done"#,
        ),
        python(
            "a program without a file",
            r#"
program = os.memfd_create("program", 0)
with open("/bin/sh", "rb") as shell: os.write(program, shell.read())
os.execve(program, ["sh", "-c", "echo new > \"$OUT/file\""], os.environ)
"#,
        ),
    ]
}

/// Ways to other mounts, and to another user's rights over them.
fn mounts() -> Vec<Scenario> {
    vec![
        bash("mount over", r#"mount -t tmpfs none "$OUT/dir" && echo GOT"#).unconfined(NotTried),
        bash(
            "bind over",
            r#"mount --bind "$IN" "$OUT/dir" && echo GOT; mount --bind "$OUT" "$IN/deep" && echo GOT"#,
        )
        .unconfined(NotTried),
        bash(
            "mount again for writing",
            r#"for m in / /tmp "${IN%/*}" /proc /sys; do mount -o remount,rw,bind $m && echo GOT; done; echo new > "$OUT/file""#,
        )
        .unconfined(NotTried),
        bash(
            "unmount",
            r#"for m in "${IN%/*}" /proc /dev /sys; do umount -l "$m" && echo GOT; done; echo new > "$OUT/file""#,
        )
        .unconfined(NotTried),
        bash(
            "user name space",
            r#"unshare -Urm sh -c 'mount -o remount,rw,bind /; echo new > "$OUT/file"'"#,
        ),
        bash(
            "name space of the first process",
            r#"nsenter -t 1 -m sh -c 'echo new > "$OUT/file"'"#,
        )
        .unconfined(Depends),
        bash(
            "name spaces of another process",
            r#"nsenter -t $VICTIM -U --preserve-credentials -m sh -c 'echo new > "$OUT/file"'; nsenter -t $VICTIM -m sh -c 'echo new > "$OUT/file"'"#,
        )
        .unconfined(SucceedsForRoot),
        bash("another root", r#"chroot / sh -c 'echo new > "$OUT/file"'"#)
            .unconfined(SucceedsForRoot),
        python(
            "another root by exchange",
            r#"
os.chdir("/")
if libc.pivot_root(b".", b".") == 0: print("GOT")
"#,
        )
        .unconfined(NotTried),
        bash(
            "as another user",
            r#"chmod -R o+rwx "$OUT" 2>/dev/null; setpriv --reuid 65534 --clear-groups sh -c 'echo new > "$OUT/file"'"#,
        )
        .happens(Case::reduced, NO_RIGHT)
        .unconfined(Depends),
    ]
}
