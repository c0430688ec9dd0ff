//! Other processes, and the end of one's own.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    stand::Around,
    table::{Case, Scenario, Unconfined::NotTried, View, bash, check, everywhere, python},
};
use crate::setting::LONG;

const SHARED: &str = "the list of processes is the machine's";

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_are_out_of_reach() {
    let test = "scenarios::processes::other_processes_are_out_of_reach";
    check(test, &attempts(), Around::Daemons).await;
}

fn attempts() -> Vec<Scenario> {
    vec![
        bash("a signal", "kill -TERM $VICTIM"),
        bash("a signal that asks", "kill -0 $VICTIM && echo GOT"),
        python(
            "a signal by a handle",
            r#"
signal.pidfd_send_signal(os.pidfd_open(number("VICTIM")), signal.SIGKILL)
"#,
        ),
        python(
            "a signal by a lease",
            r#"
# F_SETOWN, F_SETSIG: the kernel is to send it
reader, writer = os.pipe()
fcntl.fcntl(reader, fcntl.F_SETOWN, number("VICTIM"))
fcntl.fcntl(reader, 10, signal.SIGKILL)
fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
os.write(writer, b"x")
"#,
        ),
        python(
            "trace it",
            r#"
if libc.ptrace(0x4206, number("VICTIM"), 0, 0) == 0: print("GOT") # PTRACE_SEIZE
"#,
        ),
        python(
            "trace a brother",
            r#"
child = os.fork()
if child == 0: time.sleep(100)
if libc.ptrace(0x4206, child, 0, 0) == 0: print("GOT")
os.kill(child, 9)
"#,
        ),
        python(
            "read its memory",
            r#"
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
try: stack = [line for line in open("/proc/%d/maps" % number("VICTIM")) if "[stack]" in line]
except OSError: stack = []
start = int(stack[0].split("-")[0], 16) if stack else 4096
buffer = ctypes.create_string_buffer(16)
here, there = Vector(ctypes.addressof(buffer), 16), Vector(start, 16)
if libc.process_vm_readv(number("VICTIM"), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0: print("GOT")
"#,
        ),
        python("open its memory", r#"os.open("/proc/%d/mem" % number("VICTIM"), os.O_RDONLY); print("GOT")"#),
        bash("its environment", r#"tr '\0' '\n' < /proc/$VICTIM/environ"#),
        bash("environments of all", r#"cat /proc/[0-9]*/environ | tr '\0' '\n' | grep '^SECRET=GOT'"#),
        bash("its arguments", r#"tr '\0' '\n' < /proc/$VICTIM/cmdline"#).happens(Case::reduced, SHARED),
        bash(
            "its files",
            r#"readlink /proc/$VICTIM/fd/0 && echo GOT; ls /proc/$VICTIM/cwd/ && echo GOT; readlink /proc/$VICTIM/exe && echo GOT"#,
        ),
        bash("how many files it has", r#"ls /proc/$VICTIM/fd && echo GOT"#)
            .happens(Case::reduced, SHARED),
        python(
            "take a file from it",
            r#"
if call(438, os.pidfd_open(number("VICTIM")), 0, 0) >= 0: print("GOT") # pidfd_getfd
"#,
        ),
        python(
            "limit it",
            r#"
soft, hard = resource.prlimit(number("VICTIM"), resource.RLIMIT_NOFILE)
resource.prlimit(number("VICTIM"), resource.RLIMIT_NOFILE, (soft - 1, hard))
"#,
        ),
        python("slow it down", r#"os.setpriority(os.PRIO_PROCESS, number("VICTIM"), 19)"#).happens(
            |case| case.reduced() && !case.root,
            "neither Landlock nor the filter can tell whose process it is; root lost a right it needs",
        ),
        bash(
            "processes that are not the sandbox's",
            r#"[ -d "/proc/$VICTIM" ] && echo GOT"#,
        )
        .happens(Case::reduced, SHARED),
        bash(
            "strays",
            r#"for i in 1 2 3 4; do (setsid sh -c '(trap "" TERM HUP INT; sleep 1000) & exec sleep 1000' &) ; done"#,
        )
        .unconfined(NotTried),
        python(
            "a stray that adopts strays",
            r#"
libc.prctl(36, 1, 0, 0, 0) # PR_SET_CHILD_SUBREAPER
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            os.execvp("sleep", ["sleep", "1000"])
        os._exit(0)
"#,
        )
        .unconfined(NotTried),
        python(
            "look into the keeper",
            r#"
for process in filter(str.isdigit, os.listdir("/proc")):
    try: own = open("/proc/%s/comm" % process).read().startswith("haft-keeper")
    except OSError: continue
    for name in ("mem", "environ", "maps", "fd/0", "root/etc") if own else ():
        path = "/proc/%s/%s" % (process, name)
        try:
            if name == "fd/0": got = os.readlink(path)
            elif name == "root/etc": got = os.listdir(path)
            elif name == "mem": got = os.open(path, os.O_RDONLY)
            else: got = open(path, "rb").read(1) # nothing, of a process that ends
            if got: print("GOT", path)
        except OSError: pass
"#,
        )
        .unconfined(NotTried),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_kills_everyone_kills_only_the_sandbox() {
    let test = "scenarios::processes::whoever_kills_everyone_kills_only_the_sandbox";
    everywhere(
        test,
        Around::Daemons,
        &[View::ReadOnly, View::Nobody],
        async |stand| {
            let before = stand.ground.spots[0].look(true);
            // Where signals get out, no one must send one to all.
            let victim = stand.ground.spots[0]
                .names()
                .into_iter()
                .find(|(name, _)| *name == "VICTIM")
                .unwrap()
                .1;
            let safe = format!(
                "kill -0 {victim} && exit 99; grep -q '^Seccomp:.2' /proc/self/status || exit 99"
            );
            stand.run(&format!("{safe}; kill -9 -1")).await;
            // The one that kills is itself spared, and must not stay for that.
            let killer = "import os; os.kill(-1, 9); os.execvp(\"sleep\", [\"sleep\", \"1000\"])";
            stand
                .run(&format!("{safe}; /usr/bin/python3 -I -S -c '{killer}'"))
                .await;
            assert_eq!(stand.ground.spots[0].look(true), before, "{}", stand.case);
            // A guard that was killed may still look alive to the first.
            let mut next = String::new();
            for _ in 0..5 {
                next = stand.run("echo next").await;
                if !next.is_empty() {
                    break;
                }
            }
            assert_eq!(next, "next\n", "{}", stand.case);
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_of_processes_is_ended() {
    let test = "scenarios::processes::a_bomb_of_processes_is_ended";
    everywhere(test, Around::Daemons, &[View::ReadOnly, View::Nobody], async |stand| {
        // Each makes two more, which the limit holds; all go on trying.
        let bomb = "ulimit -u 150; b() { b & b & sleep 0.01; }; for i in 1 2 3 4 5; do b & done 2>/dev/null; echo lit; sleep 1000";
        let bounded = if stand.case.root {
            // No limit holds root: the depth does.
            "b() { [ $1 = 0 ] || { b $(($1-1)) & b $(($1-1)) & }; sleep 1000; }; b 6 & echo lit; sleep 1000"
        } else {
            bomb
        };
        let mut running = stand.start(bounded).await;
        let many = async {
            while running.processes().len() < 20 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, many).await.expect("it does not burst");
        running.kill(Duration::ZERO);
        timeout(LONG, running.wait_until_finished()).await.expect("it is not gone");
        assert_eq!(stand.run("echo next").await, "next\n", "{}", stand.case);
    })
    .await;
}
