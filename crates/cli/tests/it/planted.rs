//! Repositories that a command plants: directories that git accepts although they are not named `.git`.
//!
//! Each attempt is made of scripts, one command after the other, which the permission check cannot read. Then the
//! user runs git in the directory. The same scripts without a sandbox make git start a program, otherwise nothing
//! was attempted.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    binary::run,
    users::{self, Home, User},
    weak_sandbox::{REDUCED, WARNED_NOTHING, weak},
};

/// Puts the settings in place that start a program, or a link to them.
const SETTINGS: &str = r#"printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = %s\n' "$MARK""#;

/// Attempts: the scripts of each, in a directory with an empty directory `src`. `SETTINGS` prints settings that
/// start a program.
const ATTEMPTS: &[&[&str]] = &[
    &["mkdir src/objects src/refs; echo 'ref: refs/heads/x' > src/HEAD; SETTINGS > src/config"],
    &["SETTINGS > src/config; echo 'ref: refs/heads/x' > src/HEAD; mkdir src/objects src/refs"],
    &["SETTINGS > src/config; mkdir src/objects src/refs; echo 'ref: refs/heads/x' > src/HEAD"],
    &[
        "SETTINGS > src/config",
        "mkdir src/refs",
        "mkdir src/objects",
        "echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &[
        "mkdir src/refs src/objects",
        "echo 'ref: refs/heads/x' > src/HEAD",
        "SETTINGS > src/config",
    ],
    &[
        "mkdir -p src/refs src/objects; SETTINGS > new; echo 'ref: refs/heads/x' > src/HEAD; mv new src/config",
    ],
    &[
        "mkdir -p src/refs src/objects; SETTINGS > new; echo 'ref: refs/heads/x' > src/HEAD; ln new src/config",
    ],
    &[
        "mkdir -p src/refs src/objects; SETTINGS > new; echo 'ref: refs/heads/x' > src/HEAD; ln -s ../new src/config",
    ],
    &[
        "ln -s ../new src/config; mkdir -p src/refs src/objects; SETTINGS > new; echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &["mkdir -p src/refs src/objects; SETTINGS > src/config; ln -s refs/heads/x src/HEAD"],
    &[
        "mkdir -p src/refs src/objects; SETTINGS > src/config; echo 'ref: refs/heads/x' > h; mv h src/HEAD",
    ],
    &[
        "mkdir -p src/refs src/objects; SETTINGS > src/config; echo 'ref: refs/heads/x' > h; ln h src/HEAD",
    ],
    &[
        "echo 'ref: refs/heads/x' > src/HEAD; mkdir a b; SETTINGS > src/config; ln -s ../a src/objects; ln -s ../b src/refs",
    ],
    &[
        "echo 'ref: refs/heads/x' > src/HEAD; mkdir a b; SETTINGS > src/config; mv a src/objects; mv b src/refs",
    ],
    &[
        "echo 'ref: refs/heads/x' > src/HEAD; ln -s ../a src/objects; ln -s ../b src/refs; SETTINGS > src/config; mkdir a b",
    ],
    &[
        "SETTINGS > src/config; touch src/objects src/refs; chmod +x src/objects src/refs; echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &[
        "exec 3> src/config; mkdir src/objects src/refs; echo 'ref: refs/heads/x' > src/HEAD; SETTINGS >&3",
    ],
    &[
        "exec 3> src/config; mv src/config c; mkdir src/objects src/refs; echo 'ref: refs/heads/x' > src/HEAD; mv c src/config; SETTINGS >&3",
    ],
    &[
        "touch c; ln c d; mkdir src/objects src/refs; echo 'ref: refs/heads/x' > src/HEAD; mv c src/config; SETTINGS > d",
    ],
    &[
        "touch src/config; mkdir src/objects src/refs; echo nothing > src/HEAD; SETTINGS > src/config; echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &[
        "echo 'ref: refs/heads/x' > src/HEAD; mkdir src/objects src/refs; rm src/HEAD; SETTINGS > src/config; echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &["git init -q --bare src; SETTINGS > src/config"],
    &["git init -q --bare src; rm -f src/config; SETTINGS > src/config"],
    &[
        "git init -q --bare src",
        "git -C src config core.bare false; git -C src config core.worktree .; git -C src config core.fsmonitor \"$MARK\"",
    ],
    &[
        "git init -q --bare src; git -C src config extensions.worktreeConfig true; SETTINGS > src/config.worktree",
    ],
    &[
        "git init -q --bare src; rm src/HEAD; SETTINGS > src/config; echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &["git init -q --bare src; cp \"$MARK\" src/hooks/post-checkout"],
    &[
        "git init -q --bare src; mv src/hooks old; mkdir h; cp \"$MARK\" h/post-checkout; mv h src/hooks",
    ],
    &[
        "git init -q --bare src; rm -rf src/hooks; ln -s ../h src/hooks; mkdir h; cp \"$MARK\" h/post-checkout",
    ],
    &[
        "git init -q --bare src; cp \"$MARK\" src/hooks/x.sample; mv src/hooks/x.sample src/hooks/post-checkout",
    ],
    &["mkdir src/hooks; cp \"$MARK\" src/hooks/post-checkout; git init -q --bare src"],
    &[
        "mkdir -p c/hooks; cp \"$MARK\" c/hooks/post-checkout; mkdir c/objects c/refs; echo ../c > src/commondir; echo 'ref: refs/heads/x' > src/HEAD",
    ],
    &[
        "mkdir -p c/hooks; cp \"$MARK\" c/hooks/post-checkout; mkdir c/objects c/refs; echo 'ref: refs/heads/x' > src/HEAD; echo ../c > src/commondir",
    ],
    &[
        "mkdir -p c/hooks; cp \"$MARK\" c/hooks/post-checkout; mkdir c/objects c/refs; echo 'ref: refs/heads/x' > src/HEAD; echo ../c > n; mv n src/commondir",
    ],
    &["git init -q --bare other; mkdir t; cp -r other/* t/; SETTINGS > t/config; cp -r t/. src/"],
    &[
        "mkdir -p t/refs t/objects; SETTINGS > t/c; echo 'ref: refs/heads/x' > t/h; tar cf t.tar --transform 's|^h$|HEAD|;s|^c$|config|' -C t c h refs objects; tar xf t.tar -C src",
    ],
    &[
        "mkdir -p t/refs t/objects; SETTINGS > t/c; echo 'ref: refs/heads/x' > t/h; tar cf t.tar --transform 's|^h$|HEAD|;s|^c$|config|' -C t refs objects h c; tar xf t.tar -C src",
    ],
    &[
        "mkdir -p t/refs t/HEAD; SETTINGS > src/config; mkdir src/objects; mv t/refs src/; echo 'ref: refs/heads/x' > t/x; mv t/x src/HEAD",
    ],
    &[
        "mkdir -p p; cd p; SETTINGS > config; mkdir refs objects; echo 'ref: refs/heads/x' > HEAD; cd ..; rmdir src; mv p src",
    ],
    &[
        "rmdir src; ln -s real src; mkdir real; cd src; SETTINGS > config; mkdir refs objects; echo 'ref: refs/heads/x' > HEAD",
    ],
    &[
        "cd src; git init -q .; cd .git; mkdir deep deep/refs deep/objects; SETTINGS > deep/config; echo 'ref: refs/heads/x' > deep/HEAD; cd ../..; rmdir a; ln -s src/.git/deep a; mv src b; ln -s b/.git/deep src",
    ],
    &[
        "for i in $(seq 40); do [ -e src/HEAD ] && [ -e src/objects ] && [ -e src/refs ] && grep -q monitor src/config && break; \
         rm -rf src/*; (SETTINGS > src/config) & mkdir src/objects & mkdir src/refs & \
         (echo 'ref: refs/heads/x' > src/HEAD) & wait; done",
    ],
];

/// What ordinary projects do.
const ORDINARY: &[&str] = &[
    "git init -q --bare x.git",
    "git init -q --bare deep/er/x.git && git init -q --bare deep/er/x.git",
    "git init -q p && cd p && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
    "git clone -q --bare p clone.git && git clone -q --mirror p mirror.git && git clone -q p again",
    "cd p && git push -q ../x.git HEAD:refs/heads/y && git -C ../x.git rev-parse -q --verify y",
    "git -C x.git config user.name b && git -C x.git config remote.o.url ../p && git -C x.git fetch -q o",
    "git -C x.git branch z y && git -C x.git symbolic-ref HEAD refs/heads/z && git -C x.git gc -q",
    "git init -q --bare --separate-git-dir=s.git q || git init -q --bare s.git",
    "mkdir a && echo x > a/config && echo y >> a/config && mv a/config a/c && mv a/c a/config",
    "mkdir b && echo x > b/HEAD && echo y >> b/HEAD && rm b/HEAD",
    "mkdir -p c/refs && touch c/config c/refs/x && rm -r c",
    "mkdir -p d/objects d/config && touch d/config/x d/objects/y && mkdir d/refs && touch d/refs/z",
    "mkdir -p e/hooks && echo x > e/hooks/useState.ts && echo x > e/commondir",
    "git clone -q --bare p t.git && rm -rf t.git",
    "echo x > HEAD && echo x > config && rm HEAD config",
];

struct Ground {
    home: Home,
    weakness: Option<&'static str>,
}

impl Ground {
    fn new(user: User, weakness: Option<&'static str>) -> Self {
        let home = Home::new(user);
        home.write("mark", "#!/bin/sh\necho ran >> \"$HOME/ran\"\n");
        fs::set_permissions(home.path("mark"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { home, weakness }
    }

    /// Writes the scripts of all attempts into the directory `place` of the working directory, and returns the
    /// lines that run them.
    fn prepare(&self, place: &str) -> Vec<Vec<String>> {
        self.home.folder(&format!("work/{place}"));
        let mark = self.home.path("mark").display().to_string();
        let attempts = ATTEMPTS.iter().enumerate();
        let lines = attempts.map(|(number, steps)| {
            let directory = format!("{place}/{number}");
            self.home.folder(&format!("work/{directory}"));
            self.home.folder(&format!("work/{directory}/src"));
            let steps = steps.iter().enumerate();
            let lines = steps.map(|(step, script)| {
                let script = script.replace("SETTINGS", SETTINGS);
                let name = format!("{directory}/step{step}.sh");
                self.home
                    .write(&format!("work/{name}"), &format!("MARK={mark}\n{script}\n"));
                format!(
                    "cd {directory} && bash step{step}.sh; cd {}",
                    self.home.path("work").display()
                )
            });
            lines.collect()
        });
        lines.collect()
    }

    /// The answers to these lines.
    fn exec(&self, flags: &[&str], lines: &[String]) -> Vec<Value> {
        let bash = |line: &String| json!({"name": "Bash", "input": {"command": line}}).to_string();
        let stdin = lines
            .iter()
            .map(|line| bash(line) + "\n")
            .collect::<String>();
        let args = [flags, &["exec"]].concat();
        let ran = match self.weakness {
            Some(weakness) => weak(&self.home, weakness, &args, &stdin),
            None => run(self.home.haft().args(&args), stdin.as_bytes()),
        };
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        if ran.stderr.contains(WARNED_NOTHING) {
            return Vec::new();
        }
        let answers = ran.stdout.lines();
        answers
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns whether git starts the program in the directory of this attempt.
    fn is_planted(&self, place: &str, number: usize) -> bool {
        let src = format!("{place}/{number}/src");
        self.home.shell(&format!(
            "rm -f ~/ran; for at in {src} {src}/refs; do git -C $at status; git -C $at diff; done; \
             git -C {src} hook run --ignore-missing post-checkout"
        ));
        self.home.path("home/ran").exists()
    }
}

fn grounds() -> Vec<Ground> {
    let weaknesses = [None, Some(REDUCED)];
    let grounds = users::all().into_iter().flat_map(|user| {
        weaknesses
            .iter()
            .map(move |weakness| Ground::new(user, *weakness))
    });
    grounds.collect()
}

#[test]
fn no_command_plants_a_repository() {
    for (round, ground) in grounds().into_iter().enumerate() {
        if round == 0 {
            for (number, lines) in ground.prepare("free").iter().enumerate() {
                for line in lines {
                    ground.home.shell(line);
                }
                let tried = ATTEMPTS[number];
                let races = tried[0].contains("wait");
                assert!(
                    races || ground.is_planted("free", number),
                    "nothing was attempted: {tried:?}"
                );
            }
        }
        let lines = ground.prepare("held").concat();
        let answers = ground.exec(&["--allowedTools", "Bash"], &lines);
        if answers.is_empty() {
            haft_testkit::skip("this kernel has no Landlock");
            continue;
        }
        let planted = (0..ATTEMPTS.len()).filter(|number| ground.is_planted("held", *number));
        let planted: Vec<_> = planted.map(|number| ATTEMPTS[number]).collect();
        assert!(planted.is_empty(), "{:?}: {planted:#?}", ground.weakness);
    }
}

#[test]
fn bare_repositories_and_files_with_such_names_are_made_as_ever() {
    for ground in grounds() {
        let lines = ORDINARY.iter().enumerate().map(|(number, line)| {
            let name = format!("line{number}.sh");
            ground.home.write(
                &format!("work/{name}"),
                &format!("set -e\n{line}\necho done\n"),
            );
            format!("bash {name}")
        });
        let lines: Vec<String> = lines.collect();
        let answers = ground.exec(&["--allowedTools", "Bash"], &lines);
        for (line, answer) in ORDINARY.iter().zip(answers) {
            let content = answer["content"].as_str().unwrap();
            assert!(
                content.contains("done"),
                "{:?}: {line}: {answer}",
                ground.weakness
            );
        }
    }
}

/// File tools, and lines whose writes can be read, ask as for `.git/config`.
#[test]
fn a_write_to_the_settings_of_a_bare_repository_is_asked_about() {
    for user in users::all() {
        let ground = Ground::new(user, None);
        ground.home.shell(
            "git init -q --bare bare; mkdir -p src/objects src/refs part plain; echo 'ref: refs/heads/x' > part/HEAD; \
             echo x > plain/config; echo x > plain/HEAD",
        );
        let at = |name: &str| {
            ground
                .home
                .path(&format!("work/{name}"))
                .display()
                .to_string()
        };
        let write =
            |name: &str| json!({"name": "Write", "input": {"file_path": at(name), "content": "x"}});
        let bash = |line: &str| json!({"name": "Bash", "input": {"command": line}});
        let asked = [
            write("bare/config.worktree"),
            write("bare/hooks/post-checkout"),
            write("src/HEAD"),
            write("src/config"),
            write("part/refs/heads/x"),
            write("part/objects/x"),
            write("part/commondir"),
            bash("echo x > src/config"),
            bash("echo x > bare/config"),
            bash("cp part/HEAD src/HEAD"),
            bash("mkdir part/objects"),
        ];
        let free = [
            write("plain/new"),
            write("part/config"),
            write("other/HEAD"),
            bash("mkdir plain/x"),
        ];
        let calls: String = asked
            .iter()
            .chain(&free)
            .map(|call| format!("{call}\n"))
            .collect();
        let mut haft = ground.home.haft();
        haft.args(["--permission-mode", "acceptEdits", "exec"]);
        let ran = run(&mut haft, calls.as_bytes());
        let answers = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let answers: Vec<Value> = answers.collect();
        assert_eq!(answers.len(), asked.len() + free.len(), "{}", ran.stderr);
        for (call, answer) in asked.iter().zip(&answers) {
            let content = answer["content"].as_str().unwrap();
            assert!(content.starts_with("Permission to use"), "{call}: {answer}");
        }
        for (call, answer) in free.iter().zip(&answers[asked.len()..]) {
            assert_ne!(answer["is_error"], true, "{call}: {answer}");
        }
    }
}
