//! Rights over the machine: capabilities, users, and system calls that give more than they seem to.

use super::{
    stand::Around,
    table::{
        Scenario,
        Unconfined::{Depends, NotTried, SucceedsForRoot, SucceedsForUsers},
        bash, check, python,
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn no_right_is_gained() {
    let test = "scenarios::rights::no_right_is_gained";
    check(test, &[capabilities(), calls()].concat(), Around::Files).await;
}

fn capabilities() -> Vec<Scenario> {
    vec![
        python(
            "capabilities",
            r#"
# chown, dac_override, fowner, fsetid, kill, setgid, setuid
kept = 0b11111011 if os.getuid() == 0 else 0
for line in open("/proc/self/status"):
    name, value = line.split(":", 1)
    if name in ("CapInh", "CapPrm", "CapEff", "CapAmb") and int(value, 16) & ~kept: print("GOT", line)
"#,
        )
        .unconfined(SucceedsForRoot),
        python(
            "capabilities that could be gained",
            r#"
kept = 0b11111011 if os.getuid() == 0 else 0
for line in open("/proc/self/status"):
    if line.startswith("CapBnd") and int(line.split(":")[1], 16) & ~kept: print("GOT", line)
"#,
        )
        .may_happen(
            |case| case.reduced() && !case.root,
            "a user without capabilities may not give those up either; nothing gives them to him",
        ),
        bash(
            "a program of another user's",
            r#"LD_SHOW_AUXV=1 /usr/bin/su --version | grep -q '^AT_SECURE: *0' || echo GOT"#,
        )
        .unconfined(SucceedsForUsers),
        bash("another user", r#"timeout 5 sudo -n true && echo GOT; setpriv --reuid 65533 true && echo GOT"#)
            .unconfined(Depends)
            .happens(
                |case| case.root && (case.reduced() || case.mechanism == haft_sandbox::Mechanism::Namespaces),
                "root keeps the right to be somebody with fewer rights",
            ),
        python(
            "a file of somebody else's, inside",
            r#"
path = IN + "/file"
os.chown(path, 4711, 4711); os.chmod(path, 0o600)
with open(path, "w") as file: file.write("new")
os.chown(path, 0, 0)
print("GOT")
"#,
        )
        .unconfined(SucceedsForRoot)
        .happens(
            |case| case.root && case.workspace() && case.mechanism != haft_sandbox::Mechanism::Bubblewrap,
            "root works with files of other users",
        )
        .happens(
            |case| case.root && case.reduced(),
            "Landlock knows no right for modes, owners, times and attributes",
        ),
        python(
            "new privileges",
            r#"
if libc.prctl(38, 0, 0, 0, 0) == 0: print("GOT") # PR_SET_NO_NEW_PRIVS
if libc.prctl(47, 2, 21, 0, 0) == 0: print("GOT ambient") # PR_CAP_AMBIENT_RAISE CAP_SYS_ADMIN
if libc.prctl(28, 0, 0, 0, 0) == 0 and os.getuid() == 0 and libc.prctl(27, 0, 0, 0, 0) != 0: print("GOT bits")
if libc.prctl(22, 0, 0, 0, 0) == 0: print("GOT no filter") # PR_SET_SECCOMP
"#,
        )
        .unconfined(NotTried),
    ]
}

fn calls() -> Vec<Scenario> {
    vec![
        python("system calls", CALLS).unconfined(NotTried),
        python(
            "a user name space by a new process",
            r#"
CLONE_NEWUSER, SIGCHLD = 0x10000000, 17
made = call(56 if os.uname().machine == "x86_64" else 220, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)
if made == 0: os._exit(0)
if made > 0: print("GOT")
"#,
        )
        .unconfined(Depends),
        python(
            "a new process with what no filter sees",
            r#"
arguments = (ctypes.c_uint64 * 11)(0x10000000)
arguments[4] = 17
made = call(435, ctypes.byref(arguments), ctypes.sizeof(arguments)) # clone3
if made == 0: os._exit(0)
if made != -errno.ENOSYS: print("GOT", made)
"#,
        )
        .unconfined(Depends),
        python(
            "calls of older processors",
            r#"
if os.uname().machine == "x86_64":
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3") # mov eax, 20 (getpid); int 0x80; ret
    getpid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    if getpid() == os.getpid(): print("GOT", flush=True)
"#,
        )
        .unconfined(Depends),
        python(
            "calls with other numbers",
            r#"
if os.uname().machine == "x86_64" and call(0x40000000 | 39) == os.getpid(): print("GOT")
"#,
        )
        .unconfined(Depends),
    ]
}

/// Each call with arguments that do nothing: what comes back says whether anyone listened. The kernel
/// answers "not permitted" or "no such call", as the filter does, or it looked at the arguments.
const CALLS: &str = r#"
nothing = ctypes.c_void_p()
x86 = os.uname().machine == "x86_64"
calls = { # number on x86_64, on others; arguments
    "io_uring_setup": (425, 425, 0, nothing),
    "io_uring_enter": (426, 426, -1, 0, 0, 0, nothing, 0),
    "io_uring_register": (427, 427, -1, 0, nothing, 0),
    "bpf": (321, 280, 99, nothing, 0),
    "perf_event_open": (298, 241, nothing, 0, -1, -1, 0),
    "userfaultfd": (323, 282, -1),
    "keyctl": (250, 219, 0, -3, 0, 0, 0),
    "add_key": (248, 217, nothing, nothing, nothing, 0, 0),
    "request_key": (249, 218, nothing, nothing, nothing, 0),
    "mount": (165, 40, nothing, nothing, nothing, 0, nothing),
    "umount2": (166, 39, nothing, 0),
    "fsopen": (430, 430, nothing, 0),
    "open_tree": (428, 428, -1, nothing, 0),
    "move_mount": (429, 429, -1, nothing, -1, nothing, 0),
    "mount_setattr": (442, 442, -1, nothing, 0, nothing, 0),
    "open_tree_attr": (467, 467, -1, nothing, 0, nothing, 0),
    "unshare": (272, 97, 0x10000000),
    "setns": (308, 268, -1, 0),
    "chroot": (161, 51, nothing),
    "name_to_handle_at": (303, 264, -1, nothing, nothing, nothing, 0),
    "open_by_handle_at": (304, 265, -1, nothing, 0),
    "ptrace": (101, 117, 0x4206, 1, 0, 0),
    "process_vm_writev": (311, 271, 1, nothing, 0, nothing, 0, 0),
    "process_madvise": (440, 440, -1, nothing, 0, 0, 0),
    "kcmp": (312, 272, 1, 1, 99, 0, 0),
    "kexec_load": (246, 104, 0, 0, nothing, 1 << 40),
    "init_module": (175, 105, nothing, 0, nothing),
    "finit_module": (313, 273, -1, nothing, 0),
    "delete_module": (176, 106, nothing, 0),
    "reboot": (169, 142, 0, 0, 0, nothing),
    "swapon": (167, 224, nothing, 0),
    "acct": (163, 89, b"/nowhere\0"),
    "quotactl": (179, 60, 0x7fffff, nothing, 0, nothing),
    "quotactl_fd": (443, 443, -1, 0, 0, nothing),
    "settimeofday": (164, 170, nothing, nothing),
    "clock_settime": (227, 112, 0, nothing),
    "sethostname": (170, 161, nothing, 1),
    "syslog": (103, 116, 10, nothing, 0),
    "vhangup": (153, 58),
    "fanotify_init": (300, 262, 0, 0),
    "prlimit64": (302, 261, 1, 7, nothing, nothing),
    "move_pages": (279, 239, 1, 0, nothing, nothing, nothing, 0),
}
if x86: calls.update({"iopl": (172, 0, 0), "ioperm": (173, 0, 0, 0, 0), "modify_ldt": (154, 0, 0, nothing, 0)})
for name, (here, there, *arguments) in calls.items():
    answer = call(here if x86 else there, *arguments)
    if answer not in (-errno.EPERM, -errno.ENOSYS): print("GOT through:", name, answer)
"#;
