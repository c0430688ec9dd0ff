//! Devices, and files by which the kernel is told what to do.

use super::{
    stand::Around,
    table::{
        Case, Scenario,
        Unconfined::{Depends, NotTried, SucceedsForRoot},
        bash, check, python,
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_is_out_of_reach() {
    let test = "scenarios::devices::the_machine_is_out_of_reach";
    check(test, &attempts(), Around::Daemons).await;
}

fn attempts() -> Vec<Scenario> {
    vec![
        bash(
            "read disks",
            r#"for d in /sys/class/block/*; do head -c 1 "/dev/${d##*/}" && echo GOT "$d"; done"#,
        )
        .unconfined(Depends)
        .may_happen(Case::reduced_root, "the machine's own /dev is there, and what root may read is read"),
        bash(
            "read disks by a node of one's own",
            r#"for d in /sys/class/block/*; do IFS=: read -r a b < "$d/dev"; mknod "$IN/n" b "$a" "$b"; mknod "$TMPDIR/n" b "$a" "$b"; head -c 1 "$IN/n" && echo GOT; head -c 1 "$TMPDIR/n" && echo GOT; done"#,
        )
        .unconfined(Depends),
        bash(
            "write to disks",
            r#"for d in /sys/class/block/*; do (exec 3<> "/dev/${d##*/}") 2>/dev/null && echo GOT "$d"; done"#,
        )
        .unconfined(Depends),
        bash(
            "memory and the log of the kernel",
            r#"for d in mem kmem port kcore kmsg; do (: 3>> "/dev/$d") && [ -e "/dev/$d" ] && echo GOT "$d"; done; (exec 3< /proc/kcore) && echo GOT kcore"#,
        )
        .unconfined(NotTried),
        bash(
            "other devices",
            r#"for d in $(find /dev -type c -o -type b); do case $d in /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/tty|/dev/console|/dev/pts/*|/dev/ptmx) ;; *) echo GOT "$d";; esac; done"#,
        )
        .unconfined(Depends)
        .may_happen(Case::reduced, "the machine's own /dev is there"),
        bash(
            "the mode of a device",
            r#"for d in null zero full random urandom; do chmod "$(stat -c %a "/dev/$d")" "/dev/$d" && echo GOT "$d"; touch "/dev/$d" && [ "$d" = full ] && echo GOT times; done"#,
        )
        .unconfined(SucceedsForRoot)
        .happens(Case::reduced, "Landlock knows no right for modes and times")
        .happens(Case::bubblewrap, "bubblewrap mounts devices for changing, or not at all"),
        python(
            "type into a terminal",
            r#"
master, slave = pty.openpty()
if os.fork() == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for spelling in (0x5412, 0x541C):
        letter = ctypes.create_string_buffer(b"x")
        if libc.ioctl(slave, ctypes.c_ulong(spelling | 1 << 32), letter) == 0: print("GOT", hex(spelling), flush=True)
        if libc.ioctl(slave, ctypes.c_ulong(spelling), letter) == 0: print("GOT", hex(spelling), flush=True)
    os._exit(0)
os.wait()
"#,
        )
        .unconfined(Depends),
        bash(
            "terminals of others",
            r#"for t in /dev/pts/[0-9]* /dev/tty[0-9]* /dev/console; do [ -e "$t" ] && (: 3>> "$t") && echo GOT "$t"; done"#,
        )
        .unconfined(Depends),
        bash(
            "settings of the kernel",
            r#"for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/ns_last_pid; do (: 3>> "$f") 2>/dev/null && echo GOT "$f"; done"#,
        )
        .unconfined(SucceedsForRoot),
        bash("the last resort", r#"(: 3>> /proc/sysrq-trigger) && echo GOT"#).unconfined(NotTried),
        bash(
            "settings of devices",
            r#"for f in $(find /sys/kernel /sys/block /sys/power /sys/module -maxdepth 3 -type f -perm -200 2>/dev/null | head -n 100); do (: 3>> "$f") 2>/dev/null && echo GOT "$f" && break; done"#,
        )
        .unconfined(SucceedsForRoot),
        bash(
            "groups of processes",
            r#"for f in $(find /sys/fs/cgroup -maxdepth 3 -name cgroup.procs -o -maxdepth 3 -name release_agent -o -maxdepth 3 -name cgroup.kill | head -n 100); do (: 3>> "$f") 2>/dev/null && echo GOT "$f" && break; done"#,
        )
        .unconfined(Depends),
        bash(
            "a group of processes of one's own",
            r#"for g in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir "$g/$TAG" 2>/dev/null && echo GOT "$g" && rmdir "$g/$TAG"; done"#,
        )
        .unconfined(NotTried),
        bash(
            "settings of other processes",
            r#"for f in oom_score_adj coredump_filter comm autogroup timerslack_ns uid_map; do (: 3>> "/proc/$VICTIM/$f") 2>/dev/null && echo GOT "$f"; done"#,
        ),
    ]
}
