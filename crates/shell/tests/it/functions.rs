//! A definition covers a call only where bash finds the function too: random lines that define and
//! call a few names are judged, and those that are harmless run where programs of these names exist.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use haft_shell::EffectVerdict;

use crate::{bash, corpus::judge, random::cases};

/// A small random generator; the same seed gives the same line.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}

/// Names that are functions or programs.
const NAMES: [&str; 3] = ["f", "g", "h"];

fn list(random: &mut Random, depth: usize) -> String {
    let mut text = command(random, depth);
    for _ in 0..random.below(4) {
        text += random.one(&["; ", "; ", "; ", " && ", " || ", " | ", " & ", "\n"]);
        text += &command(random, depth);
    }
    text
}

fn command(random: &mut Random, depth: usize) -> String {
    let name = random.one(&NAMES);
    let choice = if depth == 0 {
        random.below(8)
    } else {
        random.below(24)
    };
    if choice < 4 {
        let calls = [
            "{}",
            "{}",
            "{}",
            "{} x",
            "env {}",
            "command {}",
            "(exec {})",
            "echo \"$({})\"",
        ];
        return random.one(&calls).replace("{}", name);
    }
    if choice < 8 {
        // One in a few lines takes functions away.
        let plain = match random.below(40) {
            0 => ["unset -f f", "eval :", "unset g", "trap 'unset -f h' DEBUG"],
            _ => [":", "true", "echo x", "[ -n x ]"],
        };
        return random.one(&plain).to_owned();
    }
    let inner = list(random, depth - 1);
    let (before, after) = match choice {
        8..=13 => return format!("{name}() {{ {inner}; }}").replace(" & }", " & :; }"),
        14 => ("( ", " )"),
        15 => ("{ ", "; }"),
        16 => ("if true; then ", "; fi"),
        17 => ("if false; then ", "; fi"),
        18 => ("if ", "; then :; else :; fi"),
        19 => ("for i in 1 2; do ", "; done"),
        20 => ("while ", "; do break; done"),
        21 => ("case x in y) ", ";; esac"),
        22 => ("case x in x) ", ";; esac"),
        _ => ("echo \"$( ", " )\""),
    };
    format!("{before}{inner}{after}")
}

fn programs(folder: &Path) {
    for name in NAMES {
        let program = folder.join(name);
        fs::write(&program, "#!/bin/sh\n: > \"$MARK\"\n").unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_call_that_is_covered_starts_no_program() {
    let Some(bash) = bash::path() else { return };
    let folder = tempfile::tempdir().unwrap();
    programs(folder.path());
    let (mut harmless, mut started, mut wrong) = (0, 0, Vec::new());
    let count = cases(2_000);
    for seed in (1..).take(count) {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1);
        // Most begin with a definition or two, so that there is something to cover a call.
        let start = [
            "",
            "f() { :; }; ",
            "f() { :; }; g() { f; }; ",
            "h() { :; }; f() { h; }; ",
        ];
        let line = format!("{}{}", random.one(&start), list(&mut random, 3));
        let read_only = judge(&line) == EffectVerdict::ReadOnly;
        // A few of the others show that the programs are found at all. No line calls itself for ever:
        // it is ended by the limit of its functions.
        if !read_only && seed % 20 != 0 {
            continue;
        }
        let mark = folder.path().join(format!("mark-{seed}"));
        let mut command = haft_testkit::command("timeout");
        command
            .args(["-k", "1", "5"])
            .arg(bash)
            .args(["-c", &format!("FUNCNEST=4\n{line}")])
            .env_clear()
            .env("MARK", &mark)
            .current_dir(folder.path())
            .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        // What runs on in the background holds the pipe open: its end is waited for.
        command.output().unwrap();
        harmless += usize::from(read_only);
        if mark.exists() {
            started += 1;
            if read_only {
                wrong.push(line);
            }
        }
    }
    eprintln!("{harmless} harmless lines ran, programs started in {started} of all");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        harmless >= count / 20 && started > 0,
        "{harmless}, {started}"
    );
}
