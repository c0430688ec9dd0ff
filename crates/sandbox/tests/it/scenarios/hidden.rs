//! Hidden files: no one in the sandbox reads them.

use super::{
    stand::Around,
    table::{
        Case, Scenario,
        Unconfined::{NotTried, SucceedsForRoot},
        bash, check, python,
    },
};

const ALL: &str =
    "Landlock names inodes that may be read: other names of the file, and sizes, tell of it";
const INSIDE: &str = "below a writable directory Landlock lets everything be read";

/// What Landlock alone keeps from being read as well: names outside the working directories.
const HELD: [&str; 4] = [
    "read below",
    "list",
    "archive, then read",
    "below an open directory",
];
const HELD_WHERE_NOTHING_IS_WRITABLE: [&str; 2] = ["read inside", "search"];

#[tokio::test(flavor = "multi_thread")]
async fn hidden_files_are_not_read() {
    let test = "scenarios::hidden::hidden_files_are_not_read";
    let mut all: Vec<Scenario> = reading()
        .into_iter()
        .map(|scenario| match scenario.name {
            name if HELD.contains(&name) => scenario,
            name if HELD_WHERE_NOTHING_IS_WRITABLE.contains(&name) => {
                scenario.happens(Case::reduced_workspace, INSIDE)
            }
            _ => scenario.happens(Case::reduced, ALL),
        })
        .collect();
    all.extend(changing());
    all.push(
        bash("by a hard link made before", r#"cat "$OUT/twin""#).happens(
            Case::anywhere,
            "another name for the same file is another file to a mount: not promised",
        ),
    );
    check(test, &all, Around::Hidden).await;
}

fn reading() -> Vec<Scenario> {
    vec![
        bash("read", r#"cat "$OUT/hidden""#),
        bash("read inside", r#"cat "$IN/deep/secret""#),
        bash("read below", r#"cat "$OUT/vault/key""#),
        bash(
            "list",
            r#"[ -z "$(ls -A "$OUT/vault")" ] || echo GOT names"#,
        ),
        bash(
            "its size",
            r#"[ "$(stat -c %s "$OUT/hidden")" -lt 2 ] || echo GOT its size"#,
        ),
        bash(
            "is there a key",
            r#"[ ! -e "$OUT/vault/key" ] || echo GOT that it is there"#,
        ),
        bash(
            "by the root of oneself",
            r#"cat "/proc/self/root$OUT/hidden""#,
        ),
        bash(
            "by the roots of all",
            r#"cat /proc/[0-9]*/root"$OUT/hidden" /proc/[0-9]*/root"$OUT/vault/key""#,
        ),
        bash(
            "by the directory of oneself",
            r#"cd "$OUT" && cat /proc/self/cwd/hidden"#,
        ),
        bash(
            "by a link",
            r#"ln -s "$OUT/hidden" "${TMPDIR:-$IN}/l-$NAME"; cat "${TMPDIR:-$IN}/l-$NAME""#,
        ),
        bash(
            "copy, then read",
            r#"cp -r "$OUT/hidden" "$OUT/vault" "${TMPDIR:-$IN}"; cat "${TMPDIR:-$IN}/hidden" "${TMPDIR:-$IN}/vault/key""#,
        ),
        bash(
            "archive, then read",
            r#"tar -C "$OUT" -cf - hidden vault | tar -xOf -"#,
        ),
        bash("search", r#"grep -rh . "$OUT/vault" "$IN/deep""#),
        python(
            "below an open directory",
            r#"print(os.read(os.open("hidden", os.O_RDONLY, dir_fd=os.open(OUT, os.O_RDONLY)), 99).decode())"#,
        ),
        python(
            "through a mapping",
            r#"
with open(OUT + "/hidden", "rb") as file: print(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:].decode())
"#,
        ),
    ]
}

fn changing() -> Vec<Scenario> {
    vec![
        bash("move the directory above, then read", r#"mv "$IN/deep" "$IN/moved"; cat "$IN/moved/secret""#)
            .happens(Case::reduced_workspace, INSIDE),
        bash("hard link now, then read", r#"ln "$IN/deep/secret" "$IN/l" && cat "$IN/l""#)
            .happens(Case::reduced_workspace, INSIDE),
        bash("uncover", r#"rm -rf "$IN/away"; mv "$IN/deep/secret" "$IN/away"; cat "$IN/away" "$IN/deep/secret""#)
            .happens(Case::reduced_workspace, INSIDE),
        bash("unmount, then read", r#"umount -l "$OUT/hidden" && cat "$OUT/hidden"; umount -l "$OUT/vault" && cat "$OUT/vault/key""#)
            .unconfined(NotTried),
        python(
            "by a handle",
            r#"
class Handle(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]
handle, mount = Handle(128), ctypes.c_int()
# The file itself may be covered; its other name is not.
libc.name_to_handle_at(-100, (OUT + "/twin").encode(), ctypes.byref(handle), ctypes.byref(mount), 0)
file = libc.open_by_handle_at(os.open("/", os.O_RDONLY), ctypes.byref(handle), 0)
if file < 0: file = libc.open_by_handle_at(os.open(OUT, os.O_RDONLY), ctypes.byref(handle), 0)
if file >= 0: print(os.read(file, 99).decode())
"#,
        )
        .unconfined(SucceedsForRoot),
    ]
}
