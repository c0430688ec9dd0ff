//! Random lines against git itself: what is called read-only changes nothing and starts nothing.

use std::{collections::BTreeMap, fs, path::Path, process::Stdio};

use super::{TABLES, git};
use crate::{arg::Arg, ast::Span, effect::EffectVerdict};

/// Enough to hit every table a few times within seconds.
const LINES: usize = 400;

#[test]
fn random_lines_that_are_read_only_change_nothing() {
    let repository = Repository::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let before = repository.state();
    let mut run = 0;
    while run < LINES {
        let words = line(&mut random);
        if judged(&words) != EffectVerdict::ReadOnly {
            continue;
        }
        run += 1;
        repository.git(&words);
        let after = repository.state();
        let changed: Vec<&String> = after
            .keys()
            .chain(before.keys())
            .filter(|path| after.get(*path) != before.get(*path))
            .collect();
        assert!(changed.is_empty(), "git {words:?} changed {changed:?}");
    }
}

fn judged(words: &[String]) -> EffectVerdict {
    let nowhere = Span { start: 0, end: 0 };
    // Values are told from their options by where they stand.
    let argv: Vec<Arg> = [String::from("git")]
        .iter()
        .chain(words)
        .enumerate()
        .map(|(at, word)| {
            let span = Span {
                start: nowhere.start + at * 2,
                end: at * 2 + 1,
            };
            Arg::literal(word, span)
        })
        .collect();
    git(&argv).verdict
}

/// A subcommand and a few words: its options, whole, shortened or bundled, with values and without;
/// names of files, revisions, and whatever.
fn line(random: &mut Random) -> Vec<String> {
    const WORDS: &[&str] = &[
        "f", "new", "HEAD", "main", "HEAD:f", "--", "-", "1", "%G?", "*", "a.b",
    ];
    // Read-only only where git takes them for a value, a name or nonsense.
    const SUSPECTS: &[&str] = &[
        "--output=new",
        "-onew",
        "-o",
        "-d",
        "-D",
        "-w",
        "-m",
        "--edit",
        "--unset",
        "--apply",
    ];
    let table = *random.of(TABLES);
    let spec = random.of(table);
    let names: Vec<&str> = spec.names.split_ascii_whitespace().collect();
    let mut words: Vec<String> = random.of(&names).split('/').map(String::from).collect();
    let mut options: Vec<&str> = spec.options.split_ascii_whitespace().collect();
    options.extend(
        spec.refused
            .iter()
            .flat_map(|refused| refused.options.split_ascii_whitespace()),
    );
    for _ in 0..random.below(6) {
        if random.below(4) == 0 {
            words.push((*random.of(SUSPECTS)).to_owned());
            continue;
        }
        if options.is_empty() || random.below(3) == 0 {
            words.push((*random.of(WORDS)).to_owned());
            continue;
        }
        let option = *random.of(&options);
        let name = option.trim_end_matches(['?', ':', '=', '<', '>']);
        let mut word = name.to_owned();
        if name.starts_with("--") && random.below(4) == 0 {
            word.truncate(3 + random.below(name.len() - 2));
        } else if !name.starts_with("--") && name.len() > 2 {
            let letters: Vec<char> = name[1..].chars().collect();
            word = format!("-{}", random.of(&letters));
            if random.below(2) == 0 {
                word.push(*random.of(&letters));
            }
        }
        if name.len() < option.len() && random.below(2) == 0 {
            let equals = if name.starts_with("--") { "=" } else { "" };
            word = format!("{word}{equals}{}", random.of(WORDS));
        }
        words.push(word);
    }
    words
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A repository whose configuration starts a program that leaves a mark, wherever git would start one
/// because a line asks for it.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        let root = repository.0.path();
        let mark = root.join("mark.sh");
        fs::write(&mark, "#!/bin/sh\ntouch started\n").unwrap();
        set_executable(&mark);
        let words = |line: &str| -> Vec<String> { line.split(' ').map(String::from).collect() };
        repository.git(&words("init -q --template= -b main ."));
        fs::write(root.join("f"), "one\n").unwrap();
        fs::write(root.join("g"), "two\n").unwrap();
        repository.git(&words("add ."));
        repository.git(&words("commit -q -m first"));
        fs::write(root.join("f"), "three\n").unwrap();
        repository.git(&words("commit -q -a -m second"));
        repository.git(&words("branch side HEAD~1"));
        repository.git(&words("tag v1"));
        fs::write(root.join("g"), "put away\n").unwrap();
        repository.git(&words("stash -q"));
        fs::write(root.join("g"), "changed\n").unwrap();
        fs::write(root.join("untracked"), "four\n").unwrap();
        let mark = mark.display().to_string();
        for key in [
            "gpg.program",
            "core.editor",
            "core.pager",
            "help.browser",
            "diff.tool",
        ] {
            repository.git(&[String::from("config"), key.to_owned(), mark.clone()]);
        }
        repository
    }

    fn git(&self, words: &[String]) {
        let root = self.0.path();
        let mut command = haft_testkit::command("git");
        command
            .args(words)
            .current_dir(root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", root.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", root.parent().unwrap())
            .env("GIT_TERMINAL_PROMPT", "0");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "nobody")
                .env(format!("GIT_{who}_EMAIL"), "nobody@example.com");
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }

    /// Every file and its content. The index is left out: git refreshes what it remembers of dates.
    fn state(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.0.path(), &mut files);
        files
    }
}

fn collect(directory: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            files.insert(format!("{name}/"), Vec::new());
            collect(&path, files);
        } else if !name.ends_with("/.git/index") {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

fn set_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
