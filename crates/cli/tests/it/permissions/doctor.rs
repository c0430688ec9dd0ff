use std::{fs, os::unix::fs::PermissionsExt};

use haft_testkit::http::{HttpFake, HttpReply};
use serde_json::{Value, json};

use super::{PROJECT, Place, USER};
use crate::binary::{Ran, run};

/// What it says where these programs are installed, with what differs between machines taken out.
fn doctor(place: &Place, programs: &[&str], args: &[&str]) -> Ran {
    for name in programs {
        place.write(&format!("bin/{name}"), "");
        let program = place.path(&format!("bin/{name}"));
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = place.haft();
    command
        .env("PATH", place.path("bin"))
        .arg("doctor")
        .args(args);
    let mut ran = run(&mut command, b"");
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let version = format!("(haft {})", env!("CARGO_PKG_VERSION"));
    ran.stdout = place.plain(&ran.stdout).replace(&system, "SYSTEM");
    ran.stdout = ran.stdout.replace(&version, "(haft VERSION)");
    // It depends on the machine's memory.
    if let Some((before, rest)) = ran.stdout.split_once("contents up to ") {
        let (_, after) = rest.split_once(" MB").unwrap_or(("", rest));
        ran.stdout = format!("{before}contents up to N MB{after}");
    }
    ran
}

/// Without what the machine's own sandbox says, which differs.
fn without_sandbox(said: &str) -> String {
    let lines = said.lines().take_while(|line| *line != "sandbox");
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_plain_place_has_nothing_to_tell() {
    let place = Place::new(&[]);
    let ran = doctor(&place, &["bash", "git", "rg", "pdftoppm", "bwrap"], &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(without_sandbox(&ran.stdout));
    // What is tried does not contradict that the network of permitted commands is open.
    let tried = ran.stdout.lines().filter(|line| line.contains("no host"));
    let of_permitted: Vec<_> = tried.filter(|line| line.contains("workspace ")).collect();
    let is_bounded = |line: &&str| line.contains("where its network is closed");
    assert!(of_permitted.iter().all(is_bounded), "{of_permitted:?}");
}

#[test]
fn what_is_found_and_what_is_wrong_with_it() {
    let place = Place::new(&[
        (USER, "{\n  \"sandbox\": {\n    \"enabld\": true\n  }\n}\n"),
        (
            PROJECT,
            r#"{"permissions": {"allow": ["Bash(x)"]}, "sandbox": {"excludedCommands": ["y"]}}"#,
        ),
    ]);
    let ran = doctor(&place, &["bash", "git"], &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(without_sandbox(&ran.stdout));
    assert_eq!(place.run(&["permissions", "trust", "--yes"]).code, 0);
    let ran = doctor(&place, &[], &[]);
    assert!(
        ran.stdout.contains("state      trusted\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn as_json_it_is_the_same() {
    let place = Place::new(&[(USER, "{}")]);
    let ran = doctor(&place, &["bash"], &["--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut said: Value = serde_json::from_str(&ran.stdout).unwrap();
    let sections = said["sections"].as_array_mut().unwrap();
    sections.retain(|section| section["name"] != "sandbox");
    insta::assert_snapshot!(serde_json::to_string_pretty(&said).unwrap());
}

#[test]
fn nothing_is_started_and_nothing_steers_the_terminal() {
    let place = Place::new(&[(USER, "{\"sandbox\": {\"\\u001b[31mx\": 1}}")]);
    for name in ["bash", "git", "rg", "pdftoppm", "bwrap"] {
        let script = format!(
            "#!/bin/sh\n/bin/touch {}\n",
            place.path("started").display()
        );
        place.write(&format!("bin/{name}"), &script);
        let program = place.path(&format!("bin/{name}"));
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = doctor(&place, &[], &[]);
    assert!(!place.path("started").exists());
    assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'));
}

#[test]
fn key_model_and_server_are_looked_at() {
    let place = Place::new(&[]);
    let model = json!({"type": "model", "id": "claude-sonnet-4-5", "max_input_tokens": 200_000});
    let list = json!({"data": [model]}).to_string();
    let list = HttpReply::new(200, "application/json", list);
    let refused = HttpReply::error(401, "authentication_error", "invalid x-api-key");
    let server = HttpFake::start_strict([list, refused]);
    let mut told = String::new();
    for (model, code) in [("claude-sonnet-4-5", 0), ("m-1", 1)] {
        let mut command = place.haft();
        command
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_MODEL", model)
            .arg("doctor");
        let ran = run(&mut command, b"");
        assert_eq!(ran.code, code, "{}", ran.stdout);
        let said = ran
            .stdout
            .replace(server.url.trim_start_matches("http://"), "SERVER");
        let lines = said.lines().skip_while(|line| *line != "model").take(4);
        told += &lines.map(|line| format!("{line}\n")).collect::<String>();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_home_that_cannot_be_written_names_what_to_set() {
    let place = Place::new(&[]);
    let ran = run(
        place
            .haft()
            .env("HOME", "/dev/null/x")
            .env_remove("CLAUDE_CONFIG_DIR")
            .arg("doctor"),
        b"",
    );
    assert_eq!(ran.code, 1);
    let expected = "/dev/null/x/.claude is not writable, so sessions, rules and trust cannot be saved there; \
                    set CLAUDE_CONFIG_DIR to a folder that is";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}
