//! Control files: below a directory that may be changed, and yet must stay as they are.

use super::{
    stand::Around,
    table::{Case, Scenario, Unconfined::NotTried, bash, check, python},
};

const NO_RIGHT: &str = "Landlock knows no right for modes, owners, times and attributes";

#[tokio::test(flavor = "multi_thread")]
async fn control_files_stay_as_they_are() {
    let test = "scenarios::control::control_files_stay_as_they_are";
    let mut all = attempts();
    all.push(
        bash("mount over one", r#"mount --bind "$IN/file" "$IN/.git/config" && echo GOT; umount -l "$IN/.git/config" && echo GOT"#)
            .unconfined(NotTried),
    );
    check(test, &all, Around::Control).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_removed_replaced_or_made() {
    let test = "scenarios::control::none_is_removed_replaced_or_made";
    let mut all = [removals(), links(), missing(), at_home()].concat();
    // Last: where it succeeds, nothing is left for the others.
    all.push(bash(
        "replace the working directory",
        r#"mv "${IN%/*}" "${IN%/*}-old" && mkdir -p "$IN/.git"; echo new > "$IN/.git/config""#,
    ));
    check(test, &all, Around::Control).await;
}

/// Ways to make one that is not there: there is nothing to mount on.
fn missing() -> Vec<Scenario> {
    vec![
        bash("make a missing one", r#"echo new > "$IN/.missing.json""#),
        bash(
            "make a missing one in capitals",
            r#"echo new > "$IN/.Missing.JSON"; mv "$IN/.Missing.JSON" "$IN/.missing.json""#,
        ),
        bash(
            "append to a missing one",
            r#"echo new >> "$IN/.missing.json""#,
        ),
        bash("make a missing directory", r#"mkdir "$IN/.missing.json""#),
        bash(
            "move to a missing one",
            r#"echo new > "$IN/n"; mv "$IN/n" "$IN/.missing.json""#,
        ),
        bash(
            "copy to a missing one",
            r#"cp "$IN/file" "$IN/.missing.json""#,
        ),
        bash(
            "link to a missing one",
            r#"ln "$IN/file" "$IN/.missing.json""#,
        ),
        bash(
            "a link for a missing one",
            r#"ln -s file "$IN/.missing.json""#,
        ),
        bash(
            "through a link to a missing one",
            r#"ln -s .missing.json "$IN/l"; echo new > "$IN/l""#,
        ),
        bash(
            "through a chain of links",
            r#"ln -s "$IN/.missing.json" "$IN/b"; ln -s b "$IN/a"; echo new > "$IN/a""#,
        ),
        bash(
            "through a link to the directory",
            r#"ln -s . "$IN/d"; echo new > "$IN/d/.missing.json""#,
        ),
        bash("a pipe for a missing one", r#"mkfifo "$IN/.missing.json""#),
        bash(
            "in a directory of its own",
            r#"mkdir -p "$IN/x"; cd "$IN/x"; echo new > ../.missing.json"#,
        ),
        bash(
            "a missing one by the directory of oneself",
            r#"cd "$IN"; echo new > /proc/self/cwd/.missing.json"#,
        ),
        bash(
            "a missing one by the root of oneself",
            r#"echo new > "/proc/self/root$IN/.missing.json""#,
        ),
        bash(
            "move a directory to a missing one",
            r#"mkdir "$IN/x"; mv -T "$IN/x" "$IN/.missing.json""#,
        ),
        python(
            "exchange with a missing one",
            r#"
open(IN + "/a", "w").write("new")
libc.renameat2(-100, (IN + "/a").encode(), -100, (IN + "/.missing.json").encode(), 1)
"#,
        ),
        python(
            "by an open directory",
            r#"
d = os.open(IN, os.O_RDONLY)
os.open(".missing.json", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=d)
"#,
        ),
        python(
            "a file that only gets a name later",
            r#"
f = os.open(IN, os.O_RDWR | 0o20200000) # O_TMPFILE
os.write(f, b"new")
libc.linkat(-100, b"/proc/self/fd/%d" % f, -100, (IN + "/.missing.json").encode(), 0x400)
libc.linkat(f, b"", -100, (IN + "/.missing.json").encode(), 0x1000)
"#,
        ),
        python(
            "a name that changes meanwhile",
            r#"
import threading
plain, wanted = (IN + "/.mixxing.json").encode(), (IN + "/.missing.json").encode()
name = ctypes.create_string_buffer(plain, len(plain) + 1)
def flip():
    while not stop:
        ctypes.memmove(name, wanted, len(wanted)); ctypes.memmove(name, plain, len(plain))
stop = False
thread = threading.Thread(target=flip); thread.start()
for _ in range(300):
    f = libc.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
    if f >= 0: os.close(f)
    libc.mkdir(name, 0o700); libc.rmdir(name)
    if os.path.lexists(wanted): break
    try: os.unlink(plain)
    except OSError: pass
stop = True; thread.join()
"#,
        ),
        python(
            "by a call of the other convention",
            r#"
# mkdir by its number among those of 32 bits (x32), and openat2
call(0x40000000 + 83, (IN + "/.missing.json").encode(), 0o700)
how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o600, 0)
libc.syscall(437, -100, (IN + "/.missing.json").encode(), ctypes.byref(how), 24)
"#,
        ),
        python(
            "a subvolume with its name",
            r#"
own = ctypes.CDLL(None, use_errno=True)
d = os.open(IN, os.O_RDONLY)
for request in (0x5000940e, 0x50009418, 0x50009401, 0x50009417, 0x4020bc10):
    own.ioctl(d, ctypes.c_ulong(request), ctypes.create_string_buffer(4096))
    if ctypes.get_errno() != 1: print("GOT", hex(request)) # the file system was asked
"#,
        ),
        python(
            "a socket for a missing one",
            r#"
import socket
s = socket.socket(socket.AF_UNIX); s.bind(IN + "/.missing.json")
"#,
        ),
    ]
}

/// Ways to make a name in a home that no list has.
fn at_home() -> Vec<Scenario> {
    vec![
        bash(
            "make a start file in a home",
            r#"echo new > "$IN/.any-start-file"; [ ! -e "$IN/.any-start-file" ] || echo GOT"#,
        ),
        bash(
            "make a directory of start files in a home",
            r#"mkdir -p "$IN/.any/below" && echo new > "$IN/.any/below/x"; [ ! -e "$IN/.any" ] || echo GOT"#,
        ),
        bash(
            "move a directory to such a name",
            r#"mkdir -p "$IN/t/x"; mv -T "$IN/t" "$IN/.any-moved"; [ ! -e "$IN/.any-moved" ] || echo GOT"#,
        ),
        bash(
            "link such a name",
            r#"ln -s file "$IN/.any-link"; ln "$IN/file" "$IN/.any-hard"; [ ! -L "$IN/.any-link" -a ! -e "$IN/.any-hard" ] || echo GOT"#,
        ),
        bash(
            "make a program in the programs of a home",
            r#"mkdir "$IN/bin"; echo new > "$IN/bin/ls"; [ ! -e "$IN/bin" ] || echo GOT"#,
        ),
    ]
}

fn attempts() -> Vec<Scenario> {
    vec![
        bash("write", r#"echo new > "$IN/.git/config""#),
        bash("append", r#"echo new >> "$IN/.claude/settings.json""#),
        bash("truncate", r#": > "$IN/.git/config""#),
        bash(
            "replace by rename",
            r#"echo new > "$IN/n"; mv -f "$IN/n" "$IN/.git/config""#,
        ),
        bash("edit in place", r#"sed -i s/core/x/ "$IN/.git/config""#),
        bash(
            "change the mode",
            r#"chmod 777 "$IN/.git/hooks/pre-commit" "$IN/.git/config""#,
        )
        .happens(Case::reduced, NO_RIGHT),
        bash(
            "change the times",
            r#"touch -d 2001-01-01 "$IN/.git/config""#,
        )
        .happens(Case::reduced, NO_RIGHT),
        bash("add a hook", r#"echo new > "$IN/.git/hooks/post-commit""#),
        bash(
            "change a hook",
            r#"echo new >> "$IN/.git/hooks/pre-commit""#,
        ),
        bash(
            "take a hook away",
            r#"mv "$IN/.git/hooks/pre-commit" "$IN/""#,
        ),
        bash(
            "replace the directory of hooks",
            r#"mkdir "$IN/h"; mv "$IN/.git/hooks" "$IN/old"; mv "$IN/h" "$IN/.git/hooks""#,
        ),
        bash(
            "replace the directory above",
            r#"mv "$IN/.git" "$IN/old"; mkdir "$IN/.git"; echo new > "$IN/.git/config""#,
        ),
        bash(
            "hard link, then write",
            r#"ln "$IN/.git/config" "$IN/l"; echo new > "$IN/l""#,
        ),
        bash(
            "link, then write",
            r#"ln -s .git "$IN/l"; echo new > "$IN/l/config""#,
        ),
        bash(
            "by the root of oneself",
            r#"echo new > "/proc/self/root$IN/.git/config""#,
        ),
        bash(
            "by the directory of oneself",
            r#"cd "$IN/.git"; echo new > /proc/self/cwd/config"#,
        ),
        python(
            "exchange",
            r#"libc.renameat2(-100, (IN + "/file").encode(), -100, (IN + "/.git/config").encode(), 2)"#,
        ),
        python(
            "exchange the directory above",
            r#"libc.renameat2(-100, (IN + "/real").encode(), -100, (IN + "/.git").encode(), 2)"#,
        ),
        bash(
            "replace a link by rename",
            r#"echo new > "$IN/n"; mv -f "$IN/n" "$IN/.linked.json""#,
        ),
        bash("write behind a link", r#"echo new > "$IN/.linked.json""#),
        bash(
            "write where a link leads",
            r#"echo new > "$IN/real/linked.json""#,
        ),
    ]
}

fn removals() -> Vec<Scenario> {
    vec![
        bash("delete", r#"rm -f "$IN/.git/config""#),
        bash("delete with its directory", r#"rm -rf "$IN/.git""#),
        bash(
            "delete a directory",
            r#"rm -rf "$IN/.git/hooks"; rmdir "$IN/.git/hooks""#,
        ),
        bash(
            "replace by copy",
            r#"cp --remove-destination "$IN/file" "$IN/.claude/settings.json""#,
        ),
        bash(
            "replace where a link leads",
            r#"mv "$IN/real" "$IN/old"; mkdir "$IN/real"; echo new > "$IN/real/settings.json""#,
        ),
        bash(
            "replace the directory above that",
            r#"mv "$IN" "$IN-$$-$RANDOM"; mkdir -p "$IN/.git"; echo new > "$IN/.git/config""#,
        ),
    ]
}

/// A link that is replaced leads elsewhere.
fn links() -> Vec<Scenario> {
    vec![
        bash(
            "replace a link",
            r#"rm -f "$IN/.linked.json"; echo new > "$IN/.linked.json""#,
        ),
        bash(
            "replace a link above",
            r#"rm -f "$IN/.behind"; mkdir "$IN/.behind"; echo new > "$IN/.behind/settings.json""#,
        ),
    ]
}
