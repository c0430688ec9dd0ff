//! The choices of rules in a question about a command line.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use haft_contract::{PermissionMode, RuleOffer};
use haft_permissions::{
    CallFacts, DecisionBehavior, List, PathContext, PatternBases, Policy, RuleSet, RuleSource,
    SettingsScope, decide, shell_facts::ShellFacts, suggest,
};
use haft_testkit::TempProject;
use serde_json::json;

use crate::judged;

/// A project at a path, with rules.
struct Rig<'a> {
    root: &'a Path,
    rules: Vec<(List, String)>,
    wrappers: Vec<String>,
}

impl<'a> Rig<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            rules: Vec::new(),
            wrappers: Vec::new(),
        }
    }

    fn with(mut self, list: List, rules: &[String]) -> Self {
        self.rules
            .extend(rules.iter().map(|rule| (list, rule.clone())));
        self
    }

    fn bases(&self) -> PatternBases {
        PatternBases {
            cwd: self.root.into(),
            home: "/h".into(),
            slash: self.root.into(),
        }
    }

    fn policy(&self) -> Policy {
        let mut rules = RuleSet::default();
        for (list, rule) in &self.rules {
            let source = RuleSource::from_scope(SettingsScope::Session);
            rules.add(*list, rule, source, &self.bases()).unwrap();
        }
        Policy {
            rules: Arc::new(rules),
            ..Policy::for_directories(PermissionMode::Default, &[self.root.into()])
                .with_home(Some("/h".as_ref()))
        }
    }

    fn facts(&self, line: &str) -> CallFacts {
        let setting = PathContext {
            cwd: self.root.into(),
            home: Some("/h".into()),
            wrappers: self.wrappers.clone(),
        };
        judged::facts("Bash", &json!({ "command": line }), &setting)
    }

    fn offers(&self, line: &str) -> Vec<RuleOffer> {
        suggest(&self.policy(), &self.facts(line), &self.bases())
    }

    fn decision(&self, line: &str) -> DecisionBehavior {
        decide(&self.policy(), &self.facts(line)).behavior
    }

    fn first_rules(&self, line: &str) -> Vec<String> {
        let offers = self.offers(line);
        offers.into_iter().next().unwrap_or_default().rules
    }

    /// The decision on a line after the user chose the first offer for another one.
    fn after_first_offer(&self, answered: &str, line: &str) -> DecisionBehavior {
        let rig = Rig {
            root: self.root,
            rules: self.rules.clone(),
            wrappers: self.wrappers.clone(),
        };
        rig.with(List::Allow, &self.first_rules(answered))
            .decision(line)
    }
}

fn empty() -> Rig<'static> {
    Rig::new(Path::new("/p"))
}

fn all_rules(offers: &[RuleOffer]) -> Vec<Vec<&str>> {
    let rules = offers.iter().map(|offer| &offer.rules);
    rules
        .map(|rules| rules.iter().map(String::as_str).collect())
        .collect()
}

const GIT: [&str; 4] = [
    "Bash(git add *)",
    "Bash(git commit *)",
    "Bash(git switch *)",
    "Bash(git checkout -b *)",
];

/// Vectors R1, F1, F3 and F4, and lines like them.
#[test]
fn the_family_is_offered_first_and_the_exact_words_second() {
    for (line, expected) in [
        (
            "cargo test -p core",
            &["Bash(cargo test *)", "Bash(cargo test -p core)"][..],
        ),
        (
            "npm run build -- --prod",
            &["Bash(npm run build *)", "Bash(npm run build -- --prod)"],
        ),
        (
            "cd web && bd show 12 2>&1 | tail -5",
            &[
                "Bash(bd show *)",
                "Bash(cd web && bd show 12 2>&1 | tail -5)",
            ],
        ),
        (
            "bun run build",
            &["Bash(bun run build *)", "Bash(bun run build)"],
        ),
        ("bun test", &["Bash(bun test *)", "Bash(bun test)"]),
        (
            "python -m pytest -q",
            &["Bash(python -m pytest *)", "Bash(python -m pytest -q)"],
        ),
        (
            "uv run pytest",
            &["Bash(uv run pytest *)", "Bash(uv run pytest)"],
        ),
        ("bun x.ts", &[]),
        ("python x.py", &[]),
        (
            "workmux list --all",
            &["Bash(workmux list *)", "Bash(workmux list --all)"],
        ),
        ("bd 12", &["Bash(bd 12)"]),
        ("./deploy prod", &["Bash(./deploy prod)"]),
        (
            "mise run lint",
            &["Bash(mise run lint *)", "Bash(mise run lint)"],
        ),
        (
            "CI=1 timeout 60 npm test 2>&1 | tee /dev/null",
            &["Bash(npm test *)"],
        ),
        ("for d in a b; do make test; done", &["Bash(make test *)"]),
        ("go test \"$PKG\"", &[]),
        ("git stash", &["Bash(git stash *)", "Bash(git stash)"]),
    ] {
        let offers = empty().offers(line);
        let offered: Vec<&str> = all_rules(&offers).concat();
        let is_complete = offers.iter().all(|offer| offer.asks_again.is_empty());
        assert!(is_complete, "{line}: {offers:?}");
        let starts = match expected.len() {
            0 => offered.is_empty(),
            _ => offered.starts_with(expected),
        };
        assert!(starts, "{line}: {offered:?}");
    }
    assert_eq!(
        all_rules(&empty().offers("git commit -m x")),
        [&GIT[..], &["Bash(git commit -m x)"]]
    );
    let answered = "cd web && bd show 12 2>&1 | tail -5";
    let after = empty().after_first_offer(answered, "bd show 13");
    assert_eq!(after, DecisionBehavior::Allow);
}

/// Vector R2.
#[test]
fn removals_senders_and_installs_are_offered_in_their_exact_words_only() {
    for (line, expected) in [
        ("rm -rf build", &["Bash(rm -rf build)"][..]),
        ("curl https://h", &["Bash(curl https://h)"]),
        ("npm install left-pad", &["Bash(npm install left-pad)"]),
        ("python x.py", &[]),
        ("git push origin main", &["Bash(git push origin main)"]),
        ("git reset --hard", &["Bash(git reset --hard)"]),
        ("chmod -R 755 src", &["Bash(chmod -R 755 src)"]),
        ("cargo publish", &["Bash(cargo publish)"]),
        ("terraform apply", &["Bash(terraform apply)"]),
        ("find . -delete", &[]),
    ] {
        let offers = empty().offers(line);
        assert_eq!(all_rules(&offers).concat(), expected, "{line}");
    }
}

/// Vector R3.
#[test]
fn a_family_does_not_cover_configuration_and_redirections() {
    let rules = ["Bash(git commit *)".to_owned()];
    let rig = empty().with(List::Allow, &rules);
    assert_eq!(rig.decision("git commit -m x"), DecisionBehavior::Allow);
    for line in ["git -c x=y commit", "git commit > f"] {
        assert_eq!(rig.decision(line), DecisionBehavior::Ask, "{line}");
    }
}

/// Vector F2.
#[test]
fn local_git_writes_are_one_choice_also_in_a_long_script() {
    let line = format!(
        "set -e\n# {}\ncd .\ngit status --short\ngit add -A\ngit diff --cached --stat\n\
         git commit -F - <<'EOF'\nSubject\n\n{}\nEOF\ngit log -1 --oneline\ngit status\n",
        "words ".repeat(30),
        "A sentence of the message. ".repeat(25),
    );
    assert!(line.len() > 900 && line.lines().count() >= 12);
    let offers = empty().offers(&line);
    assert_eq!(all_rules(&offers), [&GIT[..]], "{offers:?}");
    assert_eq!(offers[0].asks_again, [""; 0]);
    let after = |next| empty().after_first_offer(&line, next);
    assert_eq!(after("git switch -c y"), DecisionBehavior::Allow);
    assert_eq!(after("git checkout -b y"), DecisionBehavior::Allow);
    for next in ["git push", "git checkout y", "git reset --hard"] {
        assert_eq!(after(next), DecisionBehavior::Ask, "{next}");
    }
}

/// Vector F3: `npx` starts only what the project has installed.
#[test]
fn a_tool_of_npx_is_offered_if_the_project_has_installed_it() {
    let lock = r#"{"lockfileVersion": 3, "packages": {"node_modules/eslint": {}}}"#;
    let project = TempProject::new([("package-lock.json", lock), ("web/a.js", "")]);
    let root = fs::canonicalize(project.root()).unwrap();
    let rig = Rig::new(&root);
    for line in ["npx eslint .", "cd web && npx eslint ."] {
        assert_eq!(rig.first_rules(line), ["Bash(npx eslint *)"], "{line}");
    }
    for line in ["npx x", "npx -y eslint", "npx ./eslint", "npx eslint -c x"] {
        assert_eq!(rig.first_rules(line), [""; 0], "{line}");
    }
    let after = |next| rig.after_first_offer("npx eslint .", next);
    assert_eq!(after("npx eslint --fix src"), DecisionBehavior::Allow);
    for next in ["npx x", "npx -p x eslint", "npx eslint --rulesdir x"] {
        assert_eq!(after(next), DecisionBehavior::Ask, "{next}");
    }
}

/// Vector F6.
#[test]
fn a_part_without_a_proposal_is_named() {
    let offers = empty().offers("bd sync && python3 -c 'print(1)'");
    assert_eq!(all_rules(&offers), [["Bash(bd sync *)"]]);
    assert_eq!(offers[0].asks_again, ["python3 -c 'print(1)'"]);
    let offers = empty().offers("make test > out.log");
    assert_eq!(
        all_rules(&offers),
        [["Bash(make test *)"], ["Bash(make test > out.log)"]]
    );
    assert_eq!(offers[0].asks_again, ["> out.log"]);
    assert_eq!(offers[1].asks_again, [""; 0]);
    // A rule that leaves every part open is no choice.
    assert_eq!(empty().offers("python3 -c 1 && node x.js"), []);
}

#[test]
fn a_line_gives_at_most_five_rules_without_duplicates() {
    let line = "make a && make b && make a && make c && make d && make e && make f";
    let offers = empty().offers(line);
    let expected = ["a", "b", "c", "d", "e"].map(|name| format!("Bash(make {name} *)"));
    assert_eq!(offers[0].rules, expected);
    assert_eq!(offers[0].asks_again, ["make f"]);
    // The combined choice for git and one more are five; with two more, only the asked ones remain.
    let offers = empty().offers("git add a && make a");
    assert_eq!(offers[0].rules, [&GIT[..], &["Bash(make a *)"]].concat());
    let offers = empty().offers("git add a && make a && make b");
    assert_eq!(
        offers[0].rules,
        ["Bash(git add *)", "Bash(make a *)", "Bash(make b *)"]
    );
}

#[test]
fn nothing_is_offered_where_a_rule_does_not_help() {
    let deny = ["Bash(make deploy)".to_owned()];
    let ask = ["Bash(make *)".to_owned()];
    assert_eq!(
        empty().with(List::Deny, &deny).offers("make deploy"),
        Vec::new()
    );
    assert_eq!(
        empty().with(List::Ask, &ask).offers("make test"),
        Vec::new()
    );
    for line in [
        "make test; rm -rf /",
        "make test && cat /proc/1/environ",
        "make test 'unclosed",
        "LD_PRELOAD=./x.so make test",
    ] {
        assert_eq!(empty().offers(line), [], "{line}");
    }
    let long = format!("make test {}", "x".repeat(10_001));
    assert_eq!(empty().offers(&long), []);
    let mut plan = empty().policy();
    plan.mode = PermissionMode::Plan;
    let offers = suggest(&plan, &empty().facts("make test"), &empty().bases());
    assert_eq!(offers, []);
}

/// A rule for a launcher covers the program that its fixed words name, and no other.
#[test]
fn a_rule_covers_the_inner_program_that_its_words_name() {
    let rules = ["Bash(uv run pytest *)".to_owned()];
    let rig = empty().with(List::Allow, &rules);
    for line in [
        "uv run pytest",
        "uv run pytest -q",
        "uv run pytest -k 'a b'",
    ] {
        assert_eq!(rig.decision(line), DecisionBehavior::Allow, "{line}");
    }
    for line in [
        "uv run --with x pytest",
        "uv run --with x pytest -q",
        "uv run -- pytest",
        "uv run python -m pytest",
        "uv run pytest-x",
        "uv run pytest -p evil",
        "uv run $X pytest",
        "pytest",
    ] {
        assert_eq!(rig.decision(line), DecisionBehavior::Ask, "{line}");
    }
    let deny = ["Bash(pytest *)".to_owned()];
    let denied = rig.with(List::Deny, &deny);
    assert_eq!(denied.decision("uv run pytest -q"), DecisionBehavior::Deny);
}

/// One entry of `families.txt`.
struct FamilyCase {
    line: String,
    rule: String,
    asking: Vec<String>,
}

fn cases() -> Vec<FamilyCase> {
    let mut cases: Vec<FamilyCase> = Vec::new();
    let lines = include_str!("../../../shell/tests/families.txt").lines();
    for text in lines.filter(|text| !text.is_empty() && !text.starts_with('#')) {
        match (text.strip_prefix("  "), text.split_once(" => ")) {
            (Some(asking), _) => cases.last_mut().unwrap().asking.push(asking.to_owned()),
            (None, Some((line, rule))) => cases.push(FamilyCase {
                line: line.to_owned(),
                rule: format!("Bash({rule})"),
                asking: Vec::new(),
            }),
            (None, None) => panic!("{text}"),
        }
    }
    cases
}

#[test]
fn each_family_has_five_lines_that_still_ask() {
    let mut wrong = Vec::new();
    for FamilyCase { line, rule, asking } in cases() {
        let offered = empty().first_rules(&line);
        if !offered.contains(&rule) {
            wrong.push(format!("{line}: {offered:?} instead of {rule}"));
        }
        let allowed = empty().with(List::Allow, std::slice::from_ref(&rule));
        if allowed.decision(&line) != DecisionBehavior::Allow {
            wrong.push(format!("{rule} does not allow {line}"));
        }
        let distinct: BTreeSet<&String> = asking.iter().collect();
        if distinct.len() < 5 {
            wrong.push(format!("{rule}: {} lines", distinct.len()));
        }
        for line in &asking {
            if allowed.decision(line) != DecisionBehavior::Ask {
                wrong.push(format!("{rule} allows {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Regardless of what surrounds a command, the first choice names its family.
#[test]
fn the_position_of_a_command_does_not_matter() {
    for FamilyCase { line, rule, .. } in cases() {
        // git in another directory runs what that directory's settings say.
        let is_git = line.starts_with("git ");
        for form in [
            "@ 2>&1 | tail -5",
            "ls -la\n@\necho done",
            "if true; then @; fi",
            "( @ ) && echo ok",
            "cat <<'EOF'\ntext\nEOF\n@",
            "cd web && @",
        ] {
            if is_git && form.starts_with("cd ") {
                continue;
            }
            let whole = form.replace('@', &line);
            let offers = empty().offers(&whole);
            let first = offers.first().map(|offer| offer.rules.clone());
            assert!(
                first.clone().is_some_and(|rules| rules.contains(&rule)),
                "{whole}: {first:?}"
            );
            let allowed = empty().with(List::Allow, &first.unwrap_or_default());
            assert_eq!(allowed.decision(&whole), DecisionBehavior::Allow, "{whole}");
        }
    }
}

/// Vector F5, the part about decisions; settings files are in the tests of the engine.
#[test]
fn a_declared_wrapper_starts_the_command_after_its_name() {
    let decision = |rules: &[(List, &str)], line: &str| {
        let mut rig = empty();
        for (list, rule) in rules {
            rig = rig.with(*list, &[(*rule).to_owned()]);
        }
        rig.wrappers = vec!["rtk".to_owned()];
        decide(&rig.policy(), &rig.facts(line)).behavior
    };
    let deny = (List::Deny, "Bash(rm *)");
    let ask = (List::Ask, "Bash(git status *)");
    let allow = (List::Allow, "Bash(cargo test *)");
    for (rules, line, expected) in [
        (&[][..], "rtk git status", DecisionBehavior::Allow),
        (&[], "rtk ls | rtk wc -l", DecisionBehavior::Allow),
        (&[], "timeout 5 rtk git status", DecisionBehavior::Allow),
        (&[], "rtk rm x", DecisionBehavior::Ask),
        (&[deny], "rtk rm x", DecisionBehavior::Deny),
        (&[deny], "xargs rtk rm x", DecisionBehavior::Deny),
        (&[deny], "rtk timeout 5 rtk rm x", DecisionBehavior::Deny),
        (&[deny], "rtk -v rm x", DecisionBehavior::Ask),
        (&[ask], "rtk git status", DecisionBehavior::Ask),
        (&[allow], "rtk cargo test -q", DecisionBehavior::Allow),
        (&[allow], "rtk cargo run", DecisionBehavior::Ask),
        (&[allow], "rtk cargo test > f", DecisionBehavior::Ask),
        (&[], "rtk -v git status", DecisionBehavior::Ask),
        (&[], "rtk $X", DecisionBehavior::Ask),
        (&[], "rtk", DecisionBehavior::Ask),
        (&[], "./rtk git status", DecisionBehavior::Ask),
        (&[], "other git status", DecisionBehavior::Ask),
        (&[], "rtk sh -c 'rm x'", DecisionBehavior::Ask),
        (&[], "rtk cat /etc/shadow", DecisionBehavior::Ask),
    ] {
        assert_eq!(decision(rules, line), expected, "{line}");
    }
    let mut rig = empty();
    assert_eq!(rig.decision("rtk git status"), DecisionBehavior::Ask);
    rig.wrappers = vec!["rtk".to_owned()];
    let rules = rig.first_rules("rtk go vet ./...");
    assert_eq!(rules, ["Bash(go vet *)"]);
}

/// A program of the project does not count as the declared wrapper.
#[test]
fn a_wrapper_inside_the_working_directories_asks() {
    let project = TempProject::new([("bin/rtk", ""), ("p/a", "")]);
    let root = fs::canonicalize(project.root()).unwrap();
    let decision = |work: &str, line: &str| {
        let place = root.join(work);
        let mut rig = Rig::new(&place);
        rig.wrappers = vec!["rtk".to_owned()];
        let setting = PathContext {
            cwd: place.clone(),
            home: None,
            wrappers: rig.wrappers.clone(),
        };
        let mut facts = rig.facts(line);
        let path = root.join("bin").into_os_string();
        let variable = |name: &str| (name == "PATH").then(|| path.clone());
        facts.shell = Some(ShellFacts::in_environment(line, &setting, &variable));
        decide(&rig.policy(), &facts)
    };
    let outside = decision("p", "rtk ls");
    assert_eq!(outside.behavior, DecisionBehavior::Allow);
    let inside = decision("", "rtk ls");
    assert_eq!(inside.behavior, DecisionBehavior::Ask);
    assert!(inside.reason.to_string().contains("PATH leads to"));
}

#[test]
fn only_programs_of_which_nothing_is_known_may_be_wrappers() {
    let mut rules = RuleSet::default();
    for name in [
        "sudo",
        "env",
        "sh",
        "python3",
        "python3.12",
        "node",
        "npx",
        "uv",
        "git",
        "rm",
        "cargo",
        "cd",
        "eval",
        "if",
        "./rtk",
        "/usr/bin/rtk",
        "r t",
        "",
        "-x",
        "docker",
        "ssh",
        "poetry",
    ] {
        assert!(rules.add_wrapper(name).is_err(), "{name}");
    }
    for name in ["rtk", "lefthook-run", "rtk"] {
        assert_eq!(rules.add_wrapper(name), Ok(()), "{name}");
    }
    assert_eq!(rules.wrappers(), ["rtk", "lefthook-run"]);
    let mut other = RuleSet::default();
    other.add_wrapper("rtk").unwrap();
    rules.restrict_wrappers(&other);
    assert_eq!(rules.wrappers(), ["rtk"]);
}
