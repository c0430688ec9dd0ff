//! What a command finds around itself.

use super::{
    stand::Around,
    table::{Case, Scenario, Unconfined::NotTried, bash, check, python},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_only_what_is_meant_for_it() {
    let test = "scenarios::environment::a_command_finds_only_what_is_meant_for_it";
    let all: Vec<Scenario> = attempts()
        .into_iter()
        .map(|scenario| scenario.unconfined(NotTried))
        .collect();
    check(test, &all, Around::Files).await;
}

fn attempts() -> Vec<Scenario> {
    vec![
        bash(
            "variables",
            r#"compgen -e | while read -r v; do case $v in PATH|HOME|TMPDIR|PWD|OLDPWD|SHLVL|_|IN|OUT|NAME|PROJECT|VICTIM|TCP|TCP6|UDP|TAG|DAEMONS|SHARED|QUEUE) ;; *) echo GOT "$v";; esac; done"#,
        ),
        bash(
            "variables of ours",
            r#"env | grep -c ^HAFT_ | grep -qx 0 || echo GOT"#,
        ),
        bash(
            "functions and aliases",
            r#"[ -z "$(declare -F; alias)" ] || echo GOT"#,
        ),
        bash("arguments", r#"[ $# = 0 ] || echo GOT "$@""#),
        bash(
            "open files",
            r#"for f in $(/bin/ls /proc/self/fd); do case $f in 0|1|2|3) ;; *) echo GOT "$f";; esac; done"#,
        ),
        bash(
            "standard input",
            r#"[ "$(readlink /proc/self/fd/0)" = /dev/null ] || echo GOT; read -r x && echo GOT"#,
        ),
        bash(
            "a terminal",
            r#"[ -t 0 -o -t 1 -o -t 2 ] && echo GOT; (exec 3<> /dev/tty) 2>/dev/null && echo GOT"#,
        ),
        bash("core files", r#"[ "$(ulimit -Hc)" = 0 ] || echo GOT"#),
        python(
            "variables of whoever started it",
            r#"
for process in filter(str.isdigit, os.listdir("/proc")):
    try: variables = open("/proc/%s/environ" % process, "rb").read().split(b"\0")
    except OSError: continue
    if any(variable.startswith(b"HAFT_SANDBOX") for variable in variables): print("GOT", process)
"#,
        ),
        python("files of whoever started it", MEMORY),
        python("what another command is to be", OTHERS).may_happen(
            Case::anywhere,
            "commands of one sandbox are the same user's: they are not kept from each other",
        ),
        bash(
            "names of other temporary files",
            r#"[ "$(ls -A "$TMPDIR" | wc -l)" = 0 ] || echo GOT"#,
        ),
        bash(
            "settings that the user owns",
            r#"grep -q '^NoNewPrivs:.1' /proc/self/status || echo GOT; grep -q '^Seccomp:.2' /proc/self/status || echo GOT"#,
        ),
        bash(
            "other network interfaces",
            r#"[ "$(grep -c : /proc/net/dev)" -le 1 ] || echo GOT"#,
        )
        .may_happen(Case::open, "they are open to it")
        .may_happen(Case::reduced, "they are seen, though not of use"),
    ]
}

/// The plan of the sandbox and the commands lie in files without a name.
const MEMORY: &str = r#"
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        if open("/proc/%s/comm" % process).read() == "bash\n": continue
        files = os.listdir("/proc/%s/fd" % process)
    except OSError: continue
    for file in files:
        path = "/proc/%s/fd/%s" % (process, file)
        try:
            if "memfd:" in os.readlink(path): os.open(path, os.O_RDONLY); print("GOT", path)
        except OSError: pass
"#;

/// A shell that waits holds the file in which its command will be.
const OTHERS: &str = r#"
for process in filter(str.isdigit, os.listdir("/proc")):
    try: files = os.listdir("/proc/%s/fd" % process)
    except OSError: continue
    for file in files:
        path = "/proc/%s/fd/%s" % (process, file)
        try:
            if "memfd:command" in os.readlink(path): os.open(path, os.O_WRONLY); print("GOT", path)
        except OSError: pass
"#;
