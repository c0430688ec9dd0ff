//! The permission mode `acceptEdits`: the command lines that run like edits, and those that ask.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::PermissionMode;
use haft_permissions::{
    DecisionReason, List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SandboxSettings,
    SettingsScope, decide, shell_facts::ShellFacts,
};
use serde_json::json;

use crate::judged;

/// A project beside a directory that is not part of it.
struct Project {
    root: PathBuf,
    mode: PermissionMode,
    rules: Vec<(List, &'static str)>,
    path: OsString,
    files_open: bool,
    _folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let root = base.join("p");
        for name in [
            "p/sub",
            "p/.git",
            "p/bin",
            "p/gen",
            "outside",
            "p/bare/objects",
            "p/bare/refs",
        ] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in [
            "a",
            "b",
            "a.go",
            "sub/b.go",
            ".git/config",
            ".env",
            "bare/HEAD",
        ] {
            fs::write(root.join(name), "x\n").unwrap();
        }
        symlink(base.join("outside"), root.join("away")).unwrap();
        symlink(base.join("outside/new"), root.join("dangling")).unwrap();
        symlink(root.join(".git/config"), root.join("settings")).unwrap();
        symlink(root.join("a"), root.join("near")).unwrap();
        Self {
            root,
            mode: PermissionMode::AcceptEdits,
            rules: Vec::new(),
            path: "/usr/bin:/bin".into(),
            files_open: false,
            _folder: folder,
        }
    }

    fn with_rule(mut self, list: List, text: &'static str) -> Self {
        self.rules.push((list, text));
        self
    }

    fn decide(&self, line: &str) -> (&'static str, DecisionReason) {
        let home = Path::new("/h");
        let bases = PatternBases {
            cwd: self.root.clone(),
            home: home.into(),
            slash: self.root.clone(),
        };
        let mut rules = RuleSet::default();
        for (list, text) in &self.rules {
            let source = RuleSource::from_scope(SettingsScope::User);
            rules.add(*list, text, source, &bases).unwrap();
        }
        let policy = Policy {
            home: Some(home.into()),
            rules: Arc::new(rules),
            sandbox: Arc::new(SandboxSettings {
                files_open: self.files_open,
                ..SandboxSettings::default()
            }),
            ..Policy::new(self.mode, vec![self.root.clone()])
        };
        let place = PathContext {
            cwd: self.root.clone(),
            home: Some(home.into()),
            wrappers: Vec::new(),
        };
        let mut facts = judged::facts("Bash", &json!({ "command": line }), &place);
        let variable = |name: &str| match name {
            "PATH" => Some(self.path.clone()),
            "LANG" => Some("C.UTF-8".into()),
            _ => None,
        };
        facts.shell = Some(ShellFacts::in_environment(line, &place, &variable));
        let decision = decide(&policy, &facts);
        (decision.behavior.name(), decision.reason)
    }

    #[track_caller]
    fn assert_all(&self, behavior: &str, lines: &[&str]) {
        let decisions = lines.iter().map(|line| (line, self.decide(line)));
        let others: Vec<_> = decisions
            .filter(|(_, (found, _))| *found != behavior)
            .collect();
        assert!(others.is_empty(), "not {behavior}: {others:#?}");
    }
}

const ACCEPTED: &[&str] = &[
    "x=1 > f",
    // F11.
    "echo x > f",
    "cat > f <<EOF\nsome $text\nEOF",
    "ls | tee f",
    "gofmt -w a.go",
    "chmod +x a",
    // Redirections.
    "> f",
    "echo x >> f",
    "echo x >| f",
    "echo x > sub/f",
    "echo x > ./sub/../f",
    "echo x > 'a b'",
    "ls 2> errors",
    "ls 2>> errors",
    "ls > out 2>&1",
    "ls > out 2> errors",
    "ls &> out",
    "ls &>> out",
    "ls >& out",
    "ls > out 2> /dev/null",
    "ls 3> out",
    "ls | sort > out",
    "cat a > out && cat out",
    "cd sub && echo x > f",
    "(ls; pwd) > out",
    "{ ls; pwd; } > out",
    "if test -e a; then echo x > f; fi",
    "for n in 1 2; do echo $n; done > out",
    "cat <<'EOF' > f\n$(rm -rf /)\nEOF",
    "cat <<EOF | tee f\nx\nEOF",
    "echo x > near",
    "mkdir d && echo x > d/f",
    "echo x > f; rm f",
    // tee.
    "ls | tee -a f",
    "ls | tee f sub/g",
    "ls | tee f > g",
    "ls | tee f > /dev/null",
    "ls | tee f /dev/stderr",
    "ls | tee f | wc -l",
    "ls > >(tee f)",
    "LC_ALL=C ls | tee f",
    // chmod.
    "chmod 755 a b",
    "chmod 0644 a",
    "chmod -x a",
    "chmod -v u+x,go-w a",
    "chmod a=rX sub/b.go",
    "timeout 5 chmod +x a",
    // gofmt.
    "gofmt -s -w a.go sub/b.go",
    "gofmt -l -w .",
    "gofmt -w sub && ls",
];

const ASKED: &[&str] = &[
    // F11.
    "> .git/config",
    "> ../x",
    "chmod u+s a",
    "> \"$V\"",
    // Targets outside, control files and critical paths.
    "echo x > /tmp/f",
    "echo x > ~/f",
    "echo x >> ../outside/f",
    "echo x > away/f",
    "echo x > dangling",
    "echo x > settings",
    "echo x > .git/hooks/pre-commit",
    "echo x >> .vscode/tasks.json",
    "echo x > .npmrc",
    "cd .git && echo x > config",
    "cd .. && echo x > f",
    "cd \"$D\" && echo x > f",
    "ls | tee ../x",
    "ls | tee f ../x",
    "ls | tee -a .git/config",
    "ls | tee away/f",
    "chmod +x away/f",
    "chmod +x .git/hooks/pre-commit",
    "chmod 700 .",
    "gofmt -w ../outside",
    "gofmt -w away/a.go",
    "> /dev/sda",
    "echo x > /dev/tcp/example.org/80",
    // Repositories that someone prepared.
    "echo x > bare/config",
    "ls | tee bare/config",
    "mkdir -p r/objects r/refs && echo x > r/HEAD && echo x > r/config",
    "echo x > r/HEAD; mkdir -p r/refs/heads; ls | tee r/hooks/post-checkout",
    // Targets that the line does not name.
    "echo x > \"sub/$V\"",
    "echo x > $(ls)",
    "echo x > `ls`",
    "echo x > *.txt",
    "echo x > sub/f*",
    "ls | tee \"$V\"",
    "ls | tee sub/$V",
    "ls | tee {a,b}",
    "ls | tee *.txt",
    "chmod +x *.sh",
    "chmod +x \"$V\"",
    "chmod \"$MODE\" a",
    "gofmt -w $(git ls-files)",
    "gofmt -w *.go",
    "git ls-files | xargs chmod +x",
    "git ls-files | xargs gofmt -w",
    // Modes.
    "chmod 4755 a",
    "chmod 2755 a",
    "chmod 06755 a",
    "chmod g+s a",
    "chmod u=rwxs a",
    "chmod +4000 a",
    "chmod -s a",
    "chmod -- u+s a",
    "chmod u+s - a",
    "chmod u+s -v a",
    "chmod +x,u+s a",
    "chmod -R +x sub",
    "chmod --recursive 755 sub",
    "chmod --reference=b a",
    // The rest of the line needs its own permission.
    "make > out",
    "make 2>&1 | tee out",
    "echo x | sh > out",
    "curl https://example.org > out",
    "ls | tee f | sh",
    "ls > >(sh)",
    "echo x > f; make",
    "cat > f <<EOF\n$(make)\nEOF",
    "PATH=. tee f",
    "LD_PRELOAD=./x chmod +x a",
    "sudo tee f",
    "./tee f",
    "sub/gofmt -w a.go",
    // Other formatters read configuration of the workspace, and are not known to run offline.
    "goimports -w a.go",
    "go fmt ./...",
];

#[test]
fn writes_inside_run() {
    let project = Project::new();
    project.assert_all("allow", ACCEPTED);
    let (_, reason) = project.decide("echo x > f");
    assert_eq!(reason, DecisionReason::Mode(PermissionMode::AcceptEdits));
}

#[test]
fn everything_else_asks() {
    Project::new().assert_all("ask", ASKED);
}

#[test]
fn the_default_mode_asks_about_all_of_it() {
    let mut project = Project::new();
    project.mode = PermissionMode::Default;
    project.assert_all("ask", ACCEPTED);
}

#[test]
fn rules_win() {
    let lines = [
        "echo x > gen/f",
        "ls | tee gen/f",
        "chmod +x gen/f",
        "gofmt -w gen/f.go",
    ];
    for (list, behavior) in [(List::Deny, "deny"), (List::Ask, "ask")] {
        let project = Project::new().with_rule(list, "Edit(gen/**)");
        project.assert_all(behavior, &lines);
        project.assert_all("allow", &["echo x > f", "ls | tee f", "chmod +x a"]);
    }
    let project = Project::new().with_rule(List::Deny, "Read(.env)");
    project.assert_all(
        "deny",
        &["echo x > .env", "ls | tee .env", "chmod 644 .env"],
    );
    for (list, rule) in [
        (List::Ask, "Edit"),
        (List::Deny, "Edit"),
        (List::Deny, "Write"),
    ] {
        let project = Project::new().with_rule(list, rule);
        let lines = ["echo x > f", "ls | tee f", "chmod +x a", "gofmt -w a.go"];
        for line in lines {
            assert_ne!(project.decide(line).0, "allow", "{rule}: {line}");
        }
    }
    let project = Project::new().with_rule(List::Deny, "Bash(tee *)");
    project.assert_all("deny", &["ls | tee f"]);
    let project = Project::new().with_rule(List::Ask, "Bash(chmod *)");
    project.assert_all("ask", &["chmod +x a"]);
    // The rule may cover a file below.
    let project = Project::new().with_rule(List::Ask, "Edit(gen/**)");
    project.assert_all("ask", &["gofmt -w .", "gofmt -w gen"]);
    project.assert_all("allow", &["gofmt -w a.go"]);
}

#[test]
fn without_the_sandbox_a_formatter_changes_only_named_files() {
    let mut project = Project::new();
    project.files_open = true;
    project.assert_all("ask", &["gofmt -w .", "gofmt -w a.go sub"]);
    project.assert_all("allow", &["gofmt -w a.go sub/b.go", "echo x > f"]);
}

#[test]
fn a_program_of_the_workspace_asks() {
    let mut project = Project::new();
    for name in ["tee", "chmod", "gofmt"] {
        let file = project.root.join("bin").join(name);
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    project.path = format!("{}:/usr/bin:/bin", project.root.join("bin").display()).into();
    project.assert_all("ask", &["ls | tee f", "chmod +x a", "gofmt -w a.go"]);
    project.assert_all("allow", &["echo x > f"]);
}
