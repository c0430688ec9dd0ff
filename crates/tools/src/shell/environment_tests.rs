use haft_sandbox::{ReadOnlyProfile, SandboxNetwork, WorkspaceProfile};

use super::*;

fn read_only() -> SandboxProfile {
    SandboxProfile::ReadOnly(ReadOnlyProfile::default())
}

fn workspace() -> SandboxProfile {
    SandboxProfile::Workspace(WorkspaceProfile {
        writable: Vec::new(),
        protected: Vec::new(),
        hidden: Vec::new(),
        guarded: None,
        closed: haft_sandbox::ClosedDirectories::default(),
        network: SandboxNetwork::Open,
    })
}

struct Given<'a> {
    own: &'a [(&'a str, &'a str)],
    settings: &'a [(&'a str, &'a str)],
    profile: SandboxProfile,
    proxy: Option<u16>,
}

impl Given<'_> {
    fn child(&self) -> BTreeMap<String, String> {
        let own: Vec<(OsString, OsString)> = self
            .own
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let settings = self
            .settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let child = child(&EnvironmentSource {
            own: &own,
            settings: &settings,
            path: None,
            profile: &self.profile,
            proxy: self.proxy,
        });
        child
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }
}

fn given<'a>(own: &'a [(&'a str, &'a str)]) -> Given<'a> {
    Given {
        own,
        settings: &[],
        profile: workspace(),
        proxy: None,
    }
}

#[test]
fn a_bare_environment_is_made_whole() {
    let lines = |profile| {
        let bare = Given {
            profile,
            ..given(&[])
        };
        let lines = bare.child().into_iter();
        let lines = lines.map(|(name, value)| format!("{name}={value}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("bare_workspace", lines(workspace()));
    insta::assert_snapshot!("bare_read_only", lines(read_only()));
}

#[test]
fn only_what_is_listed_passes() {
    let own = [
        ("HOME", "/h"),
        ("LC_TIME", "de"),
        ("XDG_CACHE_HOME", "/c"),
        ("CARGO_HOME", "/cargo"),
        ("TMPDIR", "/t"),
        ("https_proxy", "http://p"),
        ("NO_PROXY", "x"),
    ];
    let child = given(&own).child();
    for (name, value) in own {
        assert_eq!(child.get(name).map(String::as_str), Some(value), "{name}");
    }
    for name in [
        "AWS_PROFILE",
        "EDITOR",
        "GITHUB_TOKEN",
        "ANTHROPIC_API_KEY",
        "XDG_TOKEN",
        "LC_Secret",
        "XDG_a b",
        "SSH_AUTH_SOCK",
        "SSH_ASKPASS",
        "BASH_FUNC_ls%%",
        "LD_PRELOAD",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "GIT_DIR",
        "NODE_OPTIONS",
        "RIPGREP_CONFIG_PATH",
    ] {
        assert!(!given(&[(name, "x")]).child().contains_key(name), "{name}");
    }
}

#[test]
fn settings_name_what_passes_but_for_what_changes_every_command() {
    let settings = [
        ("GITHUB_TOKEN", "t"),
        ("MY_PASSWORD", "p"),
        ("PAGER", "less"),
        ("HOME", "/other"),
        ("GIT_SSH_COMMAND", "ssh -i key"),
    ];
    let child = Given {
        settings: &settings,
        ..given(&[("HOME", "/h"), ("GITHUB_TOKEN", "mine")])
    }
    .child();
    for (name, value) in settings {
        assert_eq!(child.get(name).map(String::as_str), Some(value), "{name}");
    }
    for name in NEVER
        .iter()
        .chain(&["LD_PRELOAD", "OTEL_X", "DYLD_A", "BASH_FUNC_a%%"])
    {
        let child = Given {
            settings: &[(name, "x")],
            profile: SandboxProfile::Full,
            ..given(&[(name, "x")])
        }
        .child();
        assert!(!child.contains_key(*name), "{name}");
    }
}

#[test]
fn the_key_agent_is_for_commands_that_may_do_everything() {
    let own = [("SSH_AUTH_SOCK", "/s")];
    for (profile, expected) in [
        (read_only(), false),
        (workspace(), false),
        (SandboxProfile::Full, true),
    ] {
        let child = Given {
            profile,
            settings: &own,
            ..given(&own)
        }
        .child();
        assert_eq!(child.contains_key("SSH_AUTH_SOCK"), expected);
    }
}

#[test]
fn a_command_that_only_reads_has_gits_programs_off_whatever_settings_say() {
    let child = Given {
        own: &[("PATH", "/usr/bin:.::bin:/bin")],
        settings: &[
            ("GIT_CONFIG_COUNT", "0"),
            ("GIT_EXTERNAL_DIFF", "evil"),
            ("GIT_PAGER", "less"),
            ("PAGER", "less"),
        ],
        profile: read_only(),
        proxy: None,
    }
    .child();
    assert_eq!(child["GIT_CONFIG_COUNT"], "4");
    assert_eq!(child["GIT_PAGER"], "cat");
    assert_eq!(child["PAGER"], "cat");
    assert_eq!(child["PATH"], "/usr/bin:/bin");
    assert!(!child.contains_key("GIT_EXTERNAL_DIFF"));
    let keys = READ_ONLY
        .iter()
        .filter(|(name, _)| name.starts_with("GIT_CONFIG_KEY_"));
    assert_eq!(keys.count().to_string(), child["GIT_CONFIG_COUNT"]);
}

#[test]
fn git_works_with_the_pinned_keys() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Given {
        own: &[("PATH", &std::env::var("PATH").unwrap())],
        profile: read_only(),
        ..given(&[])
    }
    .child();
    let git = |words: &[&str]| {
        let output = haft_testkit::command("git")
            .args(words)
            .current_dir(directory.path())
            .env_clear()
            .envs(&environment)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    fs::write(directory.path().join("a"), "a\n").unwrap();
    git(&["add", "a"]);
    fs::write(directory.path().join("a"), "b\n").unwrap();
    assert!(git(&["diff"]).contains("+b"));
    assert_eq!(git(&["config", "core.fsmonitor"]), "false\n");
    assert_eq!(git(&["config", "core.hooksPath"]), "/dev/null\n");
}

#[test]
fn our_proxy_takes_the_place_of_the_users() {
    let child = Given {
        settings: &[("ALL_PROXY", "http://other")],
        proxy: Some(8123),
        ..given(&[
            ("http_proxy", "http://corporate"),
            ("no_proxy", "*"),
            ("ftp_proxy", "x"),
        ])
    }
    .child();
    let proxies: Vec<String> = child
        .iter()
        .filter(|(name, _)| name.to_ascii_lowercase().ends_with("_proxy"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    insta::assert_snapshot!("proxies", proxies.join("\n"));
}

#[test]
fn the_users_language_stays_if_they_have_one() {
    let child = given(&[("LANG", "de_DE.UTF-8")]).child();
    assert_eq!(child["LANG"], "de_DE.UTF-8");
    assert_eq!(child["LC_MESSAGES"], "C");
    let child = given(&[("LC_ALL", "fr_FR.UTF-8"), ("LANG", "")]).child();
    assert_eq!(child["LANG"], "");
    assert!(!child.contains_key("LC_MESSAGES"));
}

#[test]
fn a_command_without_a_network_gets_no_password_of_a_proxy() {
    let own = &[("https_proxy", "http://user:password@proxy:8080")];
    let proxy = |profile| {
        let given = Given {
            profile,
            ..given(own)
        };
        given.child()["https_proxy"].clone()
    };
    assert_eq!(proxy(read_only()), "http://user:[masked]@proxy:8080");
    assert_eq!(proxy(workspace()), "http://user:password@proxy:8080");
}

/// Otherwise a line could change a variable that its commands receive, without a question.
#[test]
fn what_commands_receive_is_special_to_the_analysis_of_lines() {
    let own = PASS.iter().map(|name| (*name, "/x")).collect::<Vec<_>>();
    for profile in [read_only(), workspace()] {
        let received = Given {
            profile,
            proxy: Some(1),
            ..given(&own)
        };
        for (name, _) in received.child() {
            let special = haft_shell::commands::special_variables::is_special_variable(&name);
            assert!(special, "{name}");
        }
    }
}
