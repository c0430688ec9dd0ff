//! What may run, as the binary says and does it.
//!
//! - `attempts`: ways around, tried; `auto`: the mode that relies on undo
//! - `deep_denials`: denied files far down in a tree
//! - `explain`, `lines`: the commands that judge
//! - `flags`: what the command line says of rules and settings
//! - `keys`: what must not be read; `own_secrets`: what haft stores itself
//! - `offline`: commands that run without network
//! - `outside`: computed paths outside the working directories, and secret variables
//! - `tables`: every entry of the tables of stores and control files
//! - `settings`: files of the user and of the project around real calls
//! - `trust`: what waits for it; `written`: local settings and who wrote them
//! - `undo_limits`: files that undo cannot store
//! - `doctor`: all of that at a glance; `rule_tools`: trials and checks of rules

#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod auto;
#[cfg(target_os = "linux")]
mod deep_denials;
mod doctor;
mod explain;
mod flags;
#[cfg(target_os = "linux")]
mod keys;
mod lines;
#[cfg(target_os = "linux")]
mod offline;
#[cfg(target_os = "linux")]
mod outside;
#[cfg(target_os = "linux")]
mod own_secrets;
mod rule_tools;
mod settings;
#[cfg(target_os = "linux")]
mod tables;
mod trust;
#[cfg(target_os = "linux")]
mod undo_limits;
mod written;

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{Ran, haft, run};

/// A project, a home and a user's settings, all of them temporary.
struct Place {
    dir: TempDir,
}

const USER: &str = "config/settings.json";
const PROJECT: &str = "work/.claude/settings.json";

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for folder in ["work", "home", "config"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn haft(&self) -> Command {
        let mut command = haft(&self.path("work"));
        command
            .env("HOME", self.path("home"))
            .env("CLAUDE_CONFIG_DIR", self.path("config"));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], stdin: &str) -> Ran {
        let mut command = self.haft();
        if args.starts_with(&["permissions", "explain"]) {
            // Caches of installed tools can be written, and those differ between machines.
            command.env("PATH", self.path("bin"));
        }
        let mut ran = run(command.args(args), stdin.as_bytes());
        ran.stdout = self.plain(&ran.stdout);
        ran.stderr = self.plain(&ran.stderr);
        ran
    }

    /// What it says on stdout, where all went well and nothing was to complain of.
    fn says(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        ran.stdout
    }

    /// The answers of `haft exec` to these calls, and what was complained of.
    fn exec(&self, flags: &[&str], calls: &[Value]) -> (Vec<Value>, String) {
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        let args = [flags, &["exec"]].concat();
        let ran = self.run_with(&args, &lines);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let answers = ran.stdout.lines();
        let answers = answers.map(|line| serde_json::from_str(line).unwrap());
        (answers.collect(), ran.stderr)
    }

    /// The text with the temporary folder taken out.
    fn plain(&self, text: &str) -> String {
        text.replace(&self.path("").display().to_string(), "/")
    }
}

fn content(answer: &Value) -> &str {
    answer["content"].as_str().unwrap()
}
