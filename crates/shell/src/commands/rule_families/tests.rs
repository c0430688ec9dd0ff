use proptest::prelude::*;

use super::*;
use crate::{
    analysis::LineLocation,
    commands::{evaluate_command, testing::argv},
    walk::analyze,
};

fn part(line: &str) -> LinePart {
    let place = LineLocation {
        cwd: "/p".into(),
        home: None,
    };
    analyze(line, &place).parts.remove(0)
}

fn words(line: &str) -> Option<String> {
    command_family(&part(line)).map(|family| family.words)
}

#[test]
fn a_family_is_the_program_with_the_words_that_say_what_it_does() {
    for (line, expected) in [
        ("cargo test -p core", "cargo test"),
        ("cargo nextest run -p core", "cargo nextest run"),
        ("go vet ./...", "go vet"),
        ("npm test", "npm test"),
        ("npm run build:web -- --prod", "npm run build:web"),
        ("pnpm run build", "pnpm run build"),
        ("pnpm typecheck", "pnpm typecheck"),
        ("yarn lint --fix", "yarn lint"),
        ("bun run build", "bun run build"),
        ("bun test a.test.ts", "bun test"),
        ("make lint -j4", "make lint"),
        ("mise run lint", "mise run lint"),
        ("just ci", "just ci"),
        ("pytest -q tests", "pytest"),
        (".venv/bin/pytest -q", ".venv/bin/pytest"),
        ("./node_modules/.bin/eslint .", "./node_modules/.bin/eslint"),
        ("python3 -m pytest -q", "python3 -m pytest"),
        ("uv run pytest -q", "uv run pytest"),
        ("npx eslint .", "npx eslint"),
        ("./gradlew test", "./gradlew test"),
        ("/usr/bin/make test", "/usr/bin/make test"),
        ("git checkout -b x", "git checkout -b"),
        ("git stash pop", "git stash"),
        ("git -C sub commit -m x", "git commit"),
        ("git --no-pager stash list -p", "git stash"),
        ("rtk cargo test -q", "rtk cargo test"),
        ("rtk git add a", "rtk git add"),
        ("rtk git log --oneline", "rtk git log"),
        ("bd show 12", "bd show"),
        ("workmux list --all", "workmux list"),
    ] {
        assert_eq!(words(line).as_deref(), Some(expected), "{line}");
    }
}

#[test]
fn removals_senders_and_what_starts_other_programs_have_none() {
    for line in [
        "rm -rf build",
        "git push origin x",
        "git reset --hard",
        "git clean -fd",
        "git config a b",
        "git checkout main",
        "git checkout -- f",
        "git branch -D x",
        "git -c x=y commit",
        "git -C sub push",
        "git -C",
        "rtk git push",
        "rtk git reset --hard",
        "rtk git",
        "rtk npm install x",
        "rtk npx eslint",
        "rtk sh x",
        "rtk python x.py",
        "rtk curl h",
        "git",
        "npm install left-pad",
        "npm publish",
        "npm exec x",
        "npm --prefix web test",
        "pnpm install",
        "pnpm publish",
        "pnpm dlx x",
        "pnpm exec eslint",
        "pnpm add x",
        "yarn add x",
        "yarn x.js",
        "bun x.ts",
        "bun run x.ts",
        "bun install",
        "bun add x",
        "python x.py",
        "python -c 1",
        "python -m http.server",
        "python -m pip install x",
        "uv run x.py",
        "uv run --with x pytest",
        "uv run python x.py",
        "uv pip install x",
        "npx ./x",
        "npx -y eslint",
        "npx @scope/x",
        "make",
        "make -C sub test",
        "make X=1",
        "mise exec lint",
        "mise x -- lint",
        "cargo run -- x",
        "cargo install x",
        "cargo publish",
        "cargo +nightly test",
        "go run x.go",
        "go get x",
        "go install ./...",
        "go generate ./...",
        "curl https://h",
        "docker compose up",
        "kubectl apply -f x",
        "terraform plan",
        "gh pr create",
        "ssh h ls",
        "sudo make test",
        "env make test",
        "chmod -R 755 x",
        "find . -delete",
        "xargs make test",
        "bd 12",
        "bd",
        "bd ./x",
        "bd --json list",
        "bd run x",
        "bd delete 12",
        "bd exec x",
        "./deploy prod",
        "../x list",
        "node build",
        "node20 build",
        "ruby build",
        "perl5.36 build",
        "sqlite3 build",
        "psql build",
        "$X test",
        "cargo $X",
        "cargo t*",
        "poetry run x",
        "hatch run x",
        "nix-shell list",
        "crontab list",
    ] {
        assert_eq!(words(line), None, "{line}");
    }
}

#[test]
fn the_kind_says_how_a_family_is_offered() {
    let kind = |line: &str| command_family(&part(line)).map(|family| family.kind);
    for words in LOCAL_GIT {
        assert_eq!(
            kind(&format!("{words} x")),
            Some(FamilyKind::LocalGit(String::new())),
            "{words}"
        );
    }
    let starter = FamilyKind::LocalGit("rtk ".to_owned());
    assert_eq!(kind("rtk git add a"), Some(starter));
    assert_eq!(kind("git stash"), Some(FamilyKind::Listed));
    assert_eq!(
        kind("npx tsc -p ."),
        Some(FamilyKind::LockedTool("tsc".to_owned()))
    );
    assert_eq!(kind("bd list"), Some(FamilyKind::UnknownProgram));
}

#[test]
fn exact_words_are_proposed_where_they_determine_what_runs() {
    for line in [
        "rm -rf build",
        "bun test",
        "bun run build",
        "python -m pytest -q",
        "uv run pytest",
        "./deploy prod",
        "make",
        "bd 12",
    ] {
        assert!(has_exact_rule(&part(line)), "{line}");
    }
    for line in [
        "python x.py",
        "python3.12 x.py",
        "bun x.ts",
        "node -e 1",
        "npx x",
        "sudo make test",
        "uv run x.py",
        "npm exec x",
        "docker exec box make",
        "ssh h ls",
        "find . -name x -delete",
        ". ./x.sh",
    ] {
        assert!(!has_exact_rule(&part(line)), "{line}");
    }
}

#[test]
fn the_table_is_well_formed() {
    let mut seen = std::collections::BTreeSet::new();
    for family in FAMILIES {
        let verbs = match family.verbs {
            "" => vec![""],
            verbs => verbs.split_ascii_whitespace().collect(),
        };
        for program in family.programs.split_ascii_whitespace() {
            for verb in &verbs {
                assert!(seen.insert((program, *verb)), "{program} {verb} is twice");
            }
            assert!(!has_word(EXACT_ONLY, program), "{program} has a family");
        }
        let options = [family.uncovered, family.moves, family.values].join(" ");
        let mut options: Vec<&str> = options.split_ascii_whitespace().collect();
        options.sort_unstable();
        let count = options.len();
        options.dedup();
        assert_eq!(count, options.len(), "{} {}", family.programs, family.verbs);
        for option in options {
            assert!(option.starts_with(['-', ':']), "{option}");
        }
    }
    let git = FAMILIES
        .iter()
        .filter(|family| family.kind == VerbKind::LocalGit)
        .map(|family| format!("git {}", family.verbs.replace('+', " ")));
    assert_eq!(git.collect::<Vec<_>>(), LOCAL_GIT);
    for list in [NEVER, EXACT_ONLY, EXACT_VERBS, PNPM_COMMANDS] {
        let mut words: Vec<&str> = list.split_ascii_whitespace().collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(count, words.len(), "a name is twice in {list}");
    }
}

/// The permission tests try the lines of this file.
#[test]
fn each_row_has_lines_that_still_ask() {
    let text = include_str!("../../../tests/families.txt");
    let lines = text.lines().filter_map(|line| line.split_once(" => "));
    let tested: Vec<*const RuleFamily> = lines
        .filter_map(|(line, _)| Some(std::ptr::from_ref(listed(&part(line).argv)?.family)))
        .collect();
    for family in FAMILIES {
        // Its tools must be installed, so another test covers it.
        let is_tested = tested.contains(&std::ptr::from_ref(family));
        let needs_files = family.kind == VerbKind::LockedTool;
        assert!(
            is_tested || needs_files,
            "{} {} has no entry",
            family.programs,
            family.verbs
        );
    }
}

/// Text after a family, and whether the table says that it needs its own rule.
#[derive(Debug, Clone)]
struct DrawnWords {
    text: String,
    is_uncovered: bool,
}

fn one_of(list: &'static str) -> impl Strategy<Value = &'static str> {
    prop::sample::select(list.split_ascii_whitespace().collect::<Vec<_>>())
}

fn drawn(family: &'static RuleFamily) -> BoxedStrategy<DrawnWords> {
    let covered = |text: &str| DrawnWords {
        text: text.to_owned(),
        is_uncovered: false,
    };
    // No family lists these, nor an option that they abbreviate.
    let flags = prop::sample::select(vec!["--quux", "--quux=1", "--quux=/etc", "-9"]);
    let mut all = vec![flags.prop_map(covered).boxed()];
    let is_single = family.is_single;
    let operands = prop::sample::select(vec!["src/x", "a.txt", "/tmp/x", "name"]);
    let operands = operands.prop_map(move |text| DrawnWords {
        text: text.to_owned(),
        is_uncovered: is_single,
    });
    all.push(operands.boxed());
    let has_table = !family.uncovered.is_empty() || !family.moves.is_empty();
    let unknown = prop::sample::select(vec!["$x", "*"]).prop_map(move |text| DrawnWords {
        text: text.to_owned(),
        is_uncovered: has_table,
    });
    all.push(unknown.boxed());
    if family.has_shell_operands {
        let texts = vec!["'a;b'", "'$(x)'", "SHELL=x", "X='a|b'", "MAKEFLAGS+=x"];
        let texts = prop::sample::select(texts).prop_map(|text| DrawnWords {
            text: text.to_owned(),
            is_uncovered: true,
        });
        all.push(texts.boxed());
        let plain = prop::sample::select(vec!["X=1", "CC=clang", "'a b'"]);
        all.push(plain.prop_map(covered).boxed());
    }
    if !family.uncovered.is_empty() {
        let attached = prop::sample::select(vec!["", "=x", "=/etc/x"]);
        let options = (one_of(family.uncovered), attached);
        let options = options.prop_map(|(option, attached)| DrawnWords {
            text: match option.starts_with("--") && option != "--" {
                true => format!("{option}{attached}"),
                false => option.to_owned(),
            },
            // Only some properties choose what a build starts.
            is_uncovered: true,
        });
        all.push(options.boxed());
    }
    if !family.moves.is_empty() {
        let places = vec![
            ("sub", false),
            ("./a/b", false),
            ("../x", true),
            ("/x", true),
            ("~/x", true),
            ("a/../../x", true),
        ];
        let joint = prop::sample::select(vec![" ", "="]);
        let options = (one_of(family.moves), joint, prop::sample::select(places));
        let options = options.prop_map(|(option, joint, (place, is_uncovered))| DrawnWords {
            text: format!("{option}{joint}{place}"),
            is_uncovered,
        });
        all.push(options.boxed());
    }
    if !family.values.is_empty() {
        let options = one_of(family.values).prop_map(move |option| covered(&format!("{option} v")));
        all.push(options.boxed());
    }
    prop::strategy::Union::new(all).boxed()
}

fn command() -> impl Strategy<Value = (String, Vec<DrawnWords>)> {
    (0..FAMILIES.len()).prop_flat_map(|at| {
        let family = &FAMILIES[at];
        let program = one_of(family.programs);
        let verbs = match family.verbs {
            "" => Just("").boxed(),
            verbs => one_of(verbs).boxed(),
        };
        let rest = prop::collection::vec(drawn(family), 0..4);
        (program, verbs, rest).prop_map(|(program, verb, rest)| {
            let verb = verb.replace('+', " ").replace("NAME", "quux");
            (format!("{program} {verb}").trim().to_owned(), rest)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn a_prefix_rule_covers_what_the_table_says((start, rest) in command()) {
        let mut line = start.clone();
        for word in &rest {
            line += &format!(" {}", word.text);
        }
        let argv = argv(&line);
        let name = argv[0].text().unwrap_or_default().to_owned();
        let finding = evaluate_command(&name, &argv);
        prop_assume!(finding.verdict != EffectVerdict::ReadOnly);
        let is_exact = finding.coverage == RuleCoverage::Exact;
        prop_assert_eq!(is_exact, rest.iter().any(|word| word.is_uncovered), "{}", line);
        let family = listed(&argv).map(|found| found.words());
        prop_assert_eq!(family, Some(start), "{}", line);
    }
}
