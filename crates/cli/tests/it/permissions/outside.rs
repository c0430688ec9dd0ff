//! A computed path shows no more than a written one, and the environment shows no secret. Each line runs
//! for real, as root and as an ordinary user.

use std::fs;

use super::keys::{Home, own, users};

/// The content of the file outside.
const NOTE: &str = "OUTSIDE-NOTE";

/// Lines that read the file outside by a path that is computed. `@` is the path, `%` its directory.
const COMPUTED: &[&str] = &[
    "cat \"$(echo @)\"",
    "cat $(echo @)",
    "cat `echo @`",
    "cat $(printf %s @)",
    "cat $(printf '%s/%s' % note)",
    "cat \"$(dirname @)/note\"",
    "cat %/$(echo note)",
    "cat $(cat outside.list)",
    "cat $(< outside.list)",
    "cat \"$(head -1 outside.list)\"",
    "echo @ | xargs cat",
    "printf '@\\0' | xargs -0 cat",
    "xargs cat < outside.list",
    "xargs -a outside.list cat",
    "echo @ | xargs -I{} cat {}",
    "xargs cat <<< @",
    "xargs cat <<END\n@\nEND",
    "while read -r f; do cat \"$f\"; done < outside.list",
    "while read -r f; do cat \"$f\"; done <<< @",
    "for f in $(echo @); do cat \"$f\"; done",
    "for f in @; do cat \"$f\"; done",
    "f=@; cat $f",
    "f=@; cat \"$f\"",
    "f=%; cat \"$f\"/note",
    "cat < \"$(echo @)\"",
    "cat < $(cat outside.list)",
    "head -c 40 $(echo @)",
    "tail -n 1 $(echo @)",
    "sed -n 1p $(echo @)",
    "awk 1 $(echo @)",
    "grep . $(echo @)",
    "grep -r . $(echo %)",
    "grep -rh . \"$(dirname @)\"",
    "sort $(echo @)",
    "diff a.md $(echo @)",
    "cmp -l a.md $(echo @)",
    "base64 $(echo @) | base64 -d",
    "od -c $(echo @) | tr -d ' '",
    "strings $(echo @)",
    "tac $(echo @)",
    "find $(echo %) -type f -exec cat {} +",
    "find \"$(dirname @)\" -name note -exec cat {} \\;",
    "cat ${PWD%/home/ws}/outside/note",
    "cat ${PWD/home\\/ws/outside}/note",
    "cat \"$PWD\"/../../outside/note",
    "cat ../../outs*/note",
    "cat ../../{outside,x}/note",
    "cat /*/*/outside/note",
    "cat ../../outside/note",
    "cat @",
    "cd % && cat note",
    "cd $(echo %) && cat note",
    "cat $((1))/../../../outside/note",
    "cat outside.link",
    "cat $(echo outside.link)",
    "echo outside.link | xargs cat",
    "cat outside.dir/note",
    "cat $(echo outside.dir)/note",
    "ls $(echo %)",
    "ls \"$(dirname @)\"",
    "echo % | xargs ls",
    "find $(echo %)",
    "tree $(echo %)",
];

#[test]
fn a_computed_path_shows_no_more_than_a_written_one() {
    for user in users() {
        let home = Home::new(user, "{}");
        let outside = fs::canonicalize(home.dir.path()).unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("note"), format!("{NOTE}\n")).unwrap();
        fs::write(outside.join(format!("{NOTE}-name")), "").unwrap();
        let note = outside.join("note").display().to_string();
        fs::write(home.path("ws/outside.list"), format!("{note}\n")).unwrap();
        std::os::unix::fs::symlink(&note, home.path("ws/outside.link")).unwrap();
        std::os::unix::fs::symlink(&outside, home.path("ws/outside.dir")).unwrap();
        if let Some(user) = user {
            own(home.dir.path(), user);
        }
        let directory = outside.display().to_string();
        let lines = COMPUTED.iter();
        let lines = lines.map(|line| line.replace('@', &note).replace('%', &directory));
        // A percent sign of `printf` and of an expansion stands for itself.
        let lines = lines.map(|line| {
            let line = line.replace(&format!("printf {directory}s"), "printf %s");
            let line = line.replace(&format!("'{directory}s/{directory}s'"), "'%s/%s'");
            line.replace(&format!("${{PWD{directory}"), "${PWD%")
        });
        let lines: Vec<String> = lines.collect();
        for (line, answer) in lines.iter().zip(home.answers(&lines)) {
            assert!(!answer.contains(NOTE), "as {user:?}: {line}: {answer}");
        }
    }
}

#[test]
fn files_of_the_system_are_read_unasked_written_or_computed() {
    for user in users() {
        let home = Home::new(user, "{}");
        let lines = [
            "head -1 /etc/passwd",
            "head -1 $(echo /etc/passwd)",
            "echo /etc/passwd | xargs head -1",
            "f=$(echo /etc/passwd | head -1) && head -1 /etc/passwd",
        ];
        let answers = home.answers(&lines.map(str::to_owned));
        for (line, answer) in lines.iter().zip(&answers).take(3) {
            assert!(answer.starts_with("root:"), "as {user:?}: {line}: {answer}");
        }
    }
}

/// Settings with secrets for commands. `printenv OTHER_TOKEN` is allowed, as if the user had agreed.
const SECRETS: &str = r#"{
    "env": {
        "API_KEY": "SECRET-api-key-1", "DB_PASSWORD": "4711",
        "DATABASE_URL": "postgres://u:SECRET-password@h/db",
        "PLAIN": "ghp_SECRETSECRETSECRET", "NODE_ENV": "test", "OTHER_TOKEN": "APPROVED-token"
    },
    "permissions": {"allow": ["Bash(touch *)", "Bash(printenv OTHER_TOKEN)"]},
    "sandbox": SANDBOX
}"#;

/// Lines that print the environment or name a secret in it.
const PRINTING: &[&str] = &[
    "env",
    "env -0 | tr '\\0' '\\n'",
    "printenv",
    "printenv -0",
    "printenv | base64 -w0 | base64 -d",
    "env | rev | rev",
    "env | sort",
    "env | tee /dev/null",
    "env | xargs -n1 echo",
    "set",
    "set | grep -i -e key -e pass -e url -e plain",
    "export -p",
    "declare -p",
    "declare -x",
    "typeset -p",
    "readonly -p; export",
    "cat /proc/self/environ",
    "cat /proc/$$/environ",
    "tr '\\0' '\\n' < /proc/self/environ",
    "strings /proc/self/environ",
    "ps e",
    "ps auxeww",
    "bash -c env",
    "sh -c 'set'",
    "timeout 5 env",
    "(env)",
    "x=$(env); echo \"$x\"",
    "awk 'BEGIN{for (k in ENVIRON) print k, ENVIRON[k]}'",
    "jq -n env",
    "jq -n '$ENV'",
    "printenv API_KEY",
    "printenv DB_PASSWORD",
    "echo $API_KEY",
    "echo \"${API_KEY:0:99}\"",
    "echo \"$PLAIN\"",
    "echo \"$DATABASE_URL\"",
    "printf '%s\\n' \"$API_KEY\"",
    "cat <<< \"$API_KEY\"",
    "declare -p API_KEY",
    "bash -c 'echo $API_KEY'",
    "n=API_KEY; echo ${!n}",
    "compgen -v | while read -r v; do echo \"$v=${!v}\"; done",
    "touch made; env",
    "touch made; set",
    "touch made; declare -p",
    "touch made && printenv",
    "touch made; printenv API_KEY",
    "touch made; echo $PLAIN",
];

#[test]
fn the_environment_shows_no_secret_that_no_one_agreed_to() {
    let sandboxes = [
        "{}",
        r#"{"enabled": true, "autoAllowBashIfSandboxed": true}"#,
        r#"{"enabled": false}"#,
        r#"{"excludedCommands": ["touch:*", "env:*"]}"#,
    ];
    for user in users() {
        for sandbox in sandboxes {
            let home = Home::new(user, &SECRETS.replace("SANDBOX", sandbox));
            let lines: Vec<String> = PRINTING.iter().map(|line| (*line).to_owned()).collect();
            let answers = home.answers(&lines);
            for (line, answer) in lines.iter().zip(&answers) {
                let shows = answer.contains("SECRET-")
                    || answer.contains("SECRETSECRET")
                    || answer.contains("4711");
                assert!(!shows, "as {user:?}, {sandbox}: {line}: {answer}");
            }
            // The names are there, and so is what is no secret.
            let whole = &answers[0];
            for shown in ["API_KEY=[masked]", "DB_PASSWORD=[masked]", "NODE_ENV=test"] {
                assert!(whole.contains(shown), "as {user:?}, {sandbox}: {whole}");
            }
            let approved = home.answers(&["printenv OTHER_TOKEN".to_owned()]);
            assert_eq!(approved[0], "APPROVED-token", "as {user:?}, {sandbox}");
        }
    }
}
