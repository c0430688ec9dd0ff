use std::fs;

use super::*;

fn listed(text: &str) -> Vec<String> {
    let settings = parse(text).unwrap();
    let line = |setting: &GitSetting| match &setting.value {
        Some(value) => format!("{} {}={value}", setting.line, setting.name()),
        None => format!("{} {}", setting.line, setting.name()),
    };
    settings.iter().map(line).collect()
}

fn keys(text: &str) -> Vec<String> {
    let risks = executable_keys(text);
    risks
        .iter()
        .map(|risk| format!("{} {}", risk.line, risk.key))
        .collect()
}

#[test]
fn sections_keys_and_values_are_read_as_git_reads_them() {
    let cases: [(&str, &[&str]); 16] = [
        ("", &[]),
        ("# only\n; comments\n", &[]),
        ("[core]\n\teditor = vi\n", &["2 core.editor=vi"]),
        ("[CORE]\nEditor=vi", &["2 core.editor=vi"]),
        ("[core] bare = true # yes\n", &["1 core.bare=true"]),
        ("[a]b=c\n[d]e\n", &["1 a.b=c", "2 d.e"]),
        ("[diff \"Up\"]\ntextconv = x", &["2 diff.Up.textconv=x"]),
        ("[diff.Low]\ncommand = x", &["2 diff.low.command=x"]),
        ("[a \"q\\\"u\\\\o\"]\nb = 1", &["2 a.q\"u\\o.b=1"]),
        (
            "[a]\nb = one \\\n two\nc = 3",
            &["2 a.b=one  two", "4 a.c=3"],
        ),
        ("[a]\nb = \" x # y \" ; z", &["2 a.b= x # y "]),
        ("[a]\nb = x\"y z\"w  ", &["2 a.b=xy zw"]),
        ("[a]\nb = 1\\n2\\t3\\\\4\\\"", &["2 a.b=1\n2\t3\\4\""]),
        ("[a]\r\nb = c\r\n", &["2 a.b=c"]),
        ("\u{feff}[a]\nb =\n", &["2 a.b="]),
        ("[a]\nb = c # d \\\ne = f\n", &["2 a.b=c", "3 a.e=f"]),
    ];
    for (text, expected) in cases {
        assert_eq!(listed(text), expected, "{text:?}");
    }
}

#[test]
fn what_git_cannot_read_is_a_fault_at_its_line() {
    let cases = [
        ("key = before", 1),
        ("[a]\n= b", 2),
        ("[a\nb = c", 2),
        ("[a \"b]\nc = d", 2),
        ("[a b]\nc = d", 1),
        ("[a]\nb = \"open\nc = d", 2),
        ("[a]\nb = \\x", 2),
        ("[a]\nb c", 2),
        ("[a_b]\nc = d", 1),
        ("[a]\n1b = c", 2),
    ];
    for (text, line) in cases {
        let fault = parse(text).unwrap_err();
        assert_eq!(fault.line, line, "{text:?}: {}", fault.what);
        assert_eq!(keys(text), [format!("{line} a line of it")], "{text:?}");
    }
}

#[test]
fn keys_that_start_programs_are_found_in_any_spelling() {
    let dangerous = [
        "[core]\nfsmonitor = ./x",
        "[Core] FSMonitor = ./x",
        "[core]\nhooksPath = h",
        "[core]\npager = less",
        "[core]\neditor = vi",
        "[core]\nsshCommand = ssh",
        "[core]\naskPass = x",
        "[core]\ngitProxy = x",
        "[core]\nalternateRefsCommand = x",
        "[diff]\nexternal = x",
        "[diff \"any\"]\ncommand = x",
        "[diff \"any\"]\ntextconv = x",
        "[diff.any]\ntextconv = x",
        "[filter \"lfs\"]\nclean = x",
        "[filter \"lfs\"]\nsmudge = x",
        "[filter \"lfs\"]\nprocess = x",
        "[merge \"m\"]\ndriver = x",
        "[gpg]\nprogram = x",
        "[gpg \"ssh\"]\nprogram = x",
        "[gpg \"ssh\"]\ndefaultKeyCommand = x",
        "[log]\nshowSignature",
        "[format]\npretty = %h %+G?",
        "[pretty]\nmine = \"format:% GK\"",
        "[pager]\nlog = x",
        "[include]\npath = x",
        "[includeIf \"gitdir:x\"]\npath = x",
        "[credential]\nhelper = x",
        "[credential \"https://x\"]\nhelper = x",
        "[uploadpack]\npackObjectsHook = x",
        "[interactive]\ndiffFilter = x",
        "[sequence]\neditor = x",
        "[remote \"o\"]\nuploadpack = x",
        "[remote \"o\"]\nreceivepack = x",
        "[remote \"o\"]\nvcs = x",
        "[remote \"o\"]\npromisor = true",
        "[extensions]\npartialClone = o",
        "[protocol \"ext\"]\nallow = always",
        "[submodule \"s\"]\nupdate = !x",
        "[trailer \"t\"]\ncommand = x",
        "[trailer \"t\"]\ncmd = x",
        "[tar \"t\"]\ncommand = x",
        "[core] fsmonitor = \\\n ./x",
        "[core]\nfsmonitor = \"./x\"",
    ];
    for text in dangerous {
        assert_eq!(executable_keys(text).len(), 1, "{text:?}");
    }
}

#[test]
fn an_everyday_configuration_starts_nothing() {
    let text = "[core]\n\
        repositoryformatversion = 0\nfilemode = true\nbare = false\nlogallrefupdates = true\n\
        fsmonitor = false\nuntrackedCache = true\n\
        [remote \"origin\"]\nurl = git@example.com:a/b.git\nfetch = +refs/heads/*:refs/remotes/origin/*\n\
        [branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n\
        [user]\nname = A\nemail = a@example.com\n\
        [alias]\nst = !rm\n\
        [pager]\nlog = false\n\
        [log]\nshowSignature = false\n\
        [format]\npretty = fuller\n[pretty]\nmine = %h %s\n\
        [submodule \"s\"]\nurl = x\nactive = true\nupdate = merge\n\
        [diff]\nalgorithm = histogram\n\
        [diff \"c\"]\nxfuncname = x\n\
        [merge]\nconflictStyle = diff3\n\
        [gpg]\nformat = ssh\n";
    assert_eq!(keys(text), [""; 0]);
}

#[test]
fn includes_and_the_second_file_are_named() {
    let text = "[include]\npath = a\n[includeIf \"gitdir:~/x/\"]\npath = b\n\
                [extensions]\nworktreeConfig = true\n";
    let settings = parse(text).unwrap();
    let includes = includes(&settings);
    assert_eq!(includes.len(), 2);
    assert_eq!((includes[0].path.as_str(), includes[0].line), ("a", 2));
    assert_eq!(includes[1].condition.as_deref(), Some("gitdir:~/x/"));
    assert!(has_worktree_config(&settings));
    assert!(!has_worktree_config(
        &parse("[extensions]\nworktreeConfig=0").unwrap()
    ));
    assert_eq!(keys("[extensions]\nworktreeConfig = true"), [""; 0]);
}

/// Texts put together from pieces that matter, against `git config --list`.
#[test]
fn random_files_are_read_as_git_reads_them() {
    const PIECES: &[&str] = &[
        "[a]",
        "[b \"c\"]",
        "[d.E]",
        "[f \"g\\\"h\"]",
        "[",
        "]",
        "key",
        "k-2",
        "=",
        " = ",
        "value",
        "\"",
        "\\",
        "\\n",
        "\\\n",
        "\n",
        "\n\t",
        "\r\n",
        "#",
        ";",
        " ",
        "\t",
        "x y",
        "true",
        "\"q # r\"",
        "\\\"",
        "\r",
        "[x] y = z",
        "é",
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % limit
    };
    let mut readable = 0;
    for _ in 0..300 {
        let mut text = String::from("[a]\n");
        for _ in 0..=next(12) {
            text.push_str(PIECES[next(PIECES.len())]);
        }
        fs::write(&file, &text).unwrap();
        let output = haft_testkit::command("git")
            .args(["config", "--list", "-z", "--file"])
            .arg(&file)
            .current_dir(folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let theirs = output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap());
        let ours = parse(&text).ok().map(|settings| {
            let entry = |setting: &GitSetting| match &setting.value {
                Some(value) => format!("{}\n{value}\0", setting.name()),
                None => format!("{}\0", setting.name()),
            };
            settings.iter().map(entry).collect::<String>()
        });
        readable += usize::from(theirs.is_some());
        assert_eq!(ours, theirs, "{text:?}");
    }
    assert!(readable > 50, "only {readable} could be read");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\[\\]a-z\"\\\\=#; \n\r\t\u{0}é.]{0,60}") {
        let risks = executable_keys(&text);
        proptest::prop_assert!(risks.iter().all(|risk| risk.line >= 1));
    }
}
