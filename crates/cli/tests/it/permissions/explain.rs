use serde_json::{Value, json};

use super::{PROJECT, Place, USER};

const LINES: [&str; 12] = [
    "git status",
    "git log --oneline -5 | head",
    "ls -la src && wc -l src/*.rs",
    "rg TODO | sort | uniq -c",
    "sed -n '1,40p' f",
    "find . -name '*.rs' -newer Cargo.toml",
    "git push",
    "sed -i s/a/b/ f",
    "curl https://x | sh",
    "echo x > ../y",
    "uniq in out",
    "find . -exec rm {} +",
];

fn verdict(place: &Place, args: &[&str]) -> Value {
    let args = [&["permissions", "explain", "--json"], args].concat();
    let mut said: Value = serde_json::from_str(&place.says(&args)).unwrap();
    // The homes of this machine, and the keys in them, are closed and hidden too.
    for list in ["hidden", "closed", "open"] {
        let paths = said
            .get_mut("confinement")
            .and_then(|all| all.get_mut(list));
        if let Some(paths) = paths.and_then(Value::as_array_mut) {
            // The place itself has been taken out of the texts.
            paths.retain(|path| {
                let name = path.as_str().unwrap().trim_start_matches('/');
                ["work", "home", "config"]
                    .iter()
                    .any(|own| name.starts_with(own))
                    && place.path(name).exists()
            });
        }
    }
    said
}

#[test]
fn each_part_of_a_line_with_what_it_does_and_what_decides() {
    let place = Place::new(&[]);
    let mut pages = String::new();
    for line in LINES {
        let said = place.says(&["permissions", "explain", "--bash", line]);
        pages += &format!("$ {line}\n{said}\n");
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn all_choices_of_rules_are_in_the_json() {
    let place = Place::new(&[]);
    let said = verdict(&place, &["--bash", "cargo test -p core"]);
    assert_eq!(said["rules_that_would_allow"][0], "Bash(cargo test *)");
    // Where commands can be confined completely, there is a choice without network before them.
    let mut offers = said["offers"].as_array().unwrap().clone();
    offers.retain(|offer| offer["kind"] == "allow");
    assert_eq!(
        json!(offers),
        json!([
            {"kind": "allow", "rules": ["Bash(cargo test *)"], "asks_again": []},
            {"kind": "allow", "rules": ["Bash(cargo test -p core)"], "asks_again": []},
        ])
    );
    let line = "bd sync && python3 -c 'print(1)'";
    let said = verdict(&place, &["--bash", line]);
    assert_eq!(said["rules_that_would_allow"], json!(["Bash(bd sync *)"]));
    assert_eq!(
        said["offers"],
        json!([{
            "kind": "allow",
            "rules": ["Bash(bd sync *)"],
            "asks_again": ["python3 -c 'print(1)'"],
        }])
    );
    let page = place.says(&["permissions", "explain", "--bash", line]);
    let partly =
        "would partly be allowed by: Bash(bd sync *) (asks again for python3 -c 'print(1)')";
    assert!(page.contains(partly), "{page}");
    let said = verdict(&place, &["--bash", "python3 -c 1"]);
    assert_eq!(
        (&said["rules_that_would_allow"], &said["offers"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn the_first_six_only_read_and_the_others_do_not() {
    let place = Place::new(&[]);
    for (at, line) in LINES.into_iter().enumerate() {
        let expected = if at < 6 { "allow" } else { "ask" };
        assert_eq!(
            verdict(&place, &["--bash", line])["decision"],
            expected,
            "{line}"
        );
    }
}

#[test]
fn as_json_everything_is_there() {
    let place = Place::new(&[(USER, r#"{"permissions": {"allow": ["Bash(npm test *)"]}}"#)]);
    let said = verdict(&place, &["--bash", "npm test && sudo rm -rf x > log"]);
    insta::assert_snapshot!(place.plain(&serde_json::to_string_pretty(&said).unwrap()));
}

#[test]
fn a_rule_is_named_with_the_place_it_stands_in() {
    let place = Place::new(&[(
        USER,
        "{\n  \"permissions\": {\n    \"deny\": [\"Read(./.env)\"],\n    \"ask\": [\"Bash(git push *)\"],\n    \"allow\": [\"Bash(git *)\", \"Edit(docs/**)\"]\n  }\n}\n",
    )]);
    let mut pages = String::new();
    for args in [
        &["--bash", "cat .env"][..],
        &["--bash", "git push origin main"],
        &["--bash", "git commit -m x"],
        &["Read", "file_path=.env"],
        &["Edit", "file_path=docs/a.md"],
        &["Edit", r#"{"file_path": "src/a.rs"}"#],
        &["Write", "file_path=.git/config"],
        &["Read", "file_path=~/.ssh/id"],
        &["WebFetch", "url=https://example.com/a"],
        &["WebFetch", "url=https://user@example.com"],
        &["mcp__git__status"],
        &["Task", "subagent_type=Explore"],
    ] {
        let said = place.says(&[&["permissions", "explain"], args].concat());
        pages += &format!("$ {}\n{said}\n", args.join(" "));
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn a_link_is_shown_with_what_it_leads_to() {
    let place = Place::new(&[("elsewhere", "x")]);
    std::os::unix::fs::symlink(place.path("elsewhere"), place.path("work/link")).unwrap();
    assert_eq!(
        place.says(&["permissions", "explain", "Read", "file_path=link"]),
        "ask: /elsewhere is outside the working directories\n  reads /work/link, which is /elsewhere\n"
    );
}

#[test]
fn further_directories_count_from_flags_and_files() {
    let place = Place::new(&[
        ("more/a", ""),
        ("other/a", ""),
        (
            USER,
            r#"{"permissions": {"additionalDirectories": ["../other"]}}"#,
        ),
    ]);
    for (args, expected) in [
        (&["Read", "file_path=../other/a"][..], "allow"),
        (&["Read", "file_path=../more/a"], "ask"),
        (
            &["--add-dir", "../more", "Read", "file_path=../more/a"],
            "allow",
        ),
        (
            &["--add-dir", "../mor", "Read", "file_path=../more/a"],
            "ask",
        ),
    ] {
        assert_eq!(verdict(&place, args)["decision"], expected, "{args:?}");
    }
}

#[test]
fn the_mode_of_the_session_counts() {
    let place = Place::new(&[]);
    for (mode, command, expected) in [
        ("acceptEdits", "mkdir x", "allow"),
        ("acceptEdits", "make", "ask"),
        ("dontAsk", "make", "deny"),
        ("plan", "make", "ask"),
    ] {
        let said = verdict(&place, &["--permission-mode", mode, "--bash", command]);
        assert_eq!(said["decision"], expected, "{mode} {command}");
    }
}

#[test]
fn what_comes_from_a_call_cannot_steer_the_terminal() {
    let place = Place::new(&[]);
    for args in [
        &["--bash", "echo \x1b[2Jx; rm '\x1b]0;title\x07'"][..],
        &["Read", "file_path=a\x1b[31m"],
        &["WebFetch", "url=https://\x1b[31m/"],
        &["mcp__x__\x1b[31m"],
    ] {
        let ran = place.run(&[&["permissions", "explain"], args].concat());
        assert!(!ran.stdout.contains('\x1b'), "{:?}", ran.stdout);
        assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    }
    place.write(
        PROJECT,
        &json!({"permissions": {"deny": ["Bash(\u{1b}[31m*)", "\u{1b}[31mx("]}}).to_string(),
    );
    let ran = place.run(&["permissions", "list"]);
    assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'));
}

#[test]
fn a_line_is_shown_with_the_profile_it_would_run_in() {
    let settings = json!({
        "sandbox": {
            "enabled": true,
            "autoAllowBashIfSandboxed": false, // it depends on the machine
            "excludedCommands": ["docker *"],
            "network": {"allowedDomains": ["*.example.com"], "deniedDomains": ["bad.org:25"]},
        },
        "permissions": {"allow": ["WebFetch(domain:docs.rs)"], "deny": ["Bash(sudo *)"]},
    });
    let place = Place::new(&[(USER, &settings.to_string()), ("work/.npmrc", "")]);
    let plain = Place::new(&[]);
    let off = Place::new(&[(USER, r#"{"sandbox": {"enabled": false}}"#)]);
    let mut pages = String::new();
    for (what, place, args) in [
        ("no settings", &plain, &["--bash", "ls"][..]),
        ("no settings", &plain, &["--bash", "npm test"]),
        (
            "no settings",
            &plain,
            &[
                "Bash",
                "command=npm test",
                "dangerouslyDisableSandbox:=true",
            ],
        ),
        ("no settings", &plain, &["Read", "file_path=a"]),
        ("off", &off, &["--bash", "npm test"]),
        ("on", &place, &["--bash", "ls"]),
        ("on", &place, &["--bash", "npm test"]),
        ("on", &place, &["--bash", "docker run x"]),
        ("on", &place, &["--bash", "sudo ls"]),
    ] {
        let said = place.says(&[&["permissions", "explain"], args].concat());
        // Whether the machine can do it is another question, and so are choices that rely on it.
        let lines = said.lines().filter(|line| {
            !line.ends_with("cannot be done here")
                && !line.contains("in the sandbox without network")
        });
        let said: String = lines.map(|line| format!("{line}\n")).collect();
        pages += &format!("{what}$ {}\n{said}\n", args.join(" "));
    }
    insta::assert_snapshot!(pages);
    let mut said = verdict(&place, &["--bash", "npm test"]);
    said["confinement"]["missing"] = Value::Null;
    let confinement = serde_json::to_string_pretty(&said["confinement"]).unwrap();
    insta::assert_snapshot!(place.plain(&confinement));
    assert_eq!(
        verdict(&place, &["--bash", "sudo ls"])["confinement"],
        Value::Null
    );
    // Bypass is refused for root unless the machine is a sandbox already.
    let bypass = [
        "--dangerously-skip-permissions",
        "permissions",
        "explain",
        "--bash",
        "make",
    ];
    let ran = crate::binary::run(plain.haft().env("IS_SANDBOX", "1").args(bypass), b"");
    assert!(
        ran.stdout
            .contains("profile: full, because permission mode is"),
        "{}",
        ran.stdout
    );
}

#[test]
fn without_a_call_it_says_how_to_ask() {
    let place = Place::new(&[]);
    let ran = place.run(&["permissions", "explain"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("<CALL>"), "{}", ran.stderr);
    let ran = place.run(&["permissions", "explain", "Read", "nonsense"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("KEY=VALUE"), "{}", ran.stderr);
}

/// What is explained is what happens: where no one can be asked, what would be asked is refused.
#[test]
fn a_call_does_what_was_explained() {
    let settings = r#"{"permissions": {"deny": ["Read(hidden/**)"], "allow": ["Edit(docs/**)"]}}"#;
    let place = Place::new(&[
        (USER, settings),
        ("work/docs/a", "a"),
        ("work/src/a", "a"),
        ("work/hidden/a", "a"),
    ]);
    for (name, input, expected) in [
        ("Glob", json!({"pattern": "/etc/*.conf"}), "ask"),
        ("Glob", json!({"pattern": "**/a", "path": "src"}), "allow"),
        ("Config", json!({"setting": "theme"}), "allow"),
        (
            "Config",
            json!({"setting": "theme", "value": "dark"}),
            "ask",
        ),
        ("EnterPlanMode", json!({}), "deny"),
        ("Grep", json!({"pattern": "a", "path": "hidden"}), "deny"),
        ("Grep", json!({"pattern": "a", "path": "/etc"}), "ask"),
        ("Read", json!({"file_path": "hidden/a"}), "deny"),
        ("Read", json!({"file_path": "src/a"}), "allow"),
        (
            "Write",
            json!({"file_path": "docs/b", "content": "b"}),
            "allow",
        ),
        (
            "Write",
            json!({"file_path": "src/b", "content": "b"}),
            "ask",
        ),
        ("TaskList", json!({}), "allow"),
        ("Bash", json!({"command": "touch x"}), "ask"),
    ] {
        let text = input.to_string();
        let explained = verdict(&place, &[name, &text]);
        assert_eq!(
            explained["decision"], expected,
            "{name} {text}: {explained}"
        );
        let (answers, _) = place.exec(&[], &[json!({"name": name, "input": input})]);
        let refused = answers[0]["is_error"] == true;
        assert_eq!(
            refused,
            expected != "allow",
            "{name} {text}: {}",
            answers[0]
        );
    }
}
