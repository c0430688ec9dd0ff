use std::{fs, os::unix::fs::symlink, sync::Arc, time::Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::extension_places::tests::places;

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn texts(files: &[MemoryFile]) -> Vec<&str> {
    files.iter().map(|file| file.text.trim()).collect()
}

fn start(places: &ExtensionPlaces) -> Vec<MemoryFile> {
    let (files, warnings) = Memory::new(places.clone(), MemoryOptions::default()).start();
    assert_eq!(warnings, []);
    files
}

#[test]
fn vector_11_imports_outside_of_code_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    write(&places.cwd.join("CLAUDE.md"), "see @a.md and `@b.md`");
    write(&places.cwd.join("a.md"), "the a");
    write(&places.cwd.join("b.md"), "the b");
    let files = start(&places);
    assert_eq!(texts(&files), ["see @a.md and `@b.md`", "the a"]);
    assert_eq!(
        files[1].reason,
        MemoryReason::Import(places.cwd.join("CLAUDE.md"))
    );
}

#[test]
fn vector_12_a_chain_of_six_stops_after_four_hops() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    write(&places.cwd.join("CLAUDE.md"), "@1.md");
    for at in 1..=6 {
        write(
            &places.cwd.join(format!("{at}.md")),
            &format!("@{}.md", at + 1),
        );
    }
    assert_eq!(
        texts(&start(&places)),
        ["@1.md", "@2.md", "@3.md", "@4.md", "@5.md"]
    );
}

#[test]
fn vector_13_from_broad_to_specific() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = places(folder.path());
    let root = places.cwd.clone();
    places.cwd = root.join("foo/bar");
    fs::create_dir_all(&places.cwd).unwrap();
    write(&root.join("foo/CLAUDE.md"), "foo");
    write(&root.join("foo/bar/CLAUDE.md"), "foo/bar");
    assert_eq!(texts(&start(&places)), ["foo", "foo/bar"]);
}

#[test]
fn vector_14_a_rule_for_certain_files_waits_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let rules = places.cwd.join(".claude/rules");
    write(
        &rules.join("ts.md"),
        "---\npaths: [\"src/**/*.ts\"]\n---\nUse types.",
    );
    write(&rules.join("deep/all.md"), "For all.");
    let memory = Memory::new(places.clone(), MemoryOptions::default());
    assert_eq!(texts(&memory.start().0), ["For all."]);
    assert!(
        memory
            .on_file_touched(&places.cwd.join("src/a.rs"))
            .0
            .is_empty()
    );
    let file = places.cwd.join("src/a/b.ts");
    let (files, warnings) = memory.on_file_touched(&file);
    assert_eq!(warnings, []);
    assert_eq!(texts(&files), ["Use types."]);
    assert_eq!(files[0].reason, MemoryReason::Pattern(file.clone()));
    assert_eq!(files[0].patterns, ["src/**/*.ts"]);
    assert!(memory.on_file_touched(&file).0.is_empty());
    // After the conversation was summarized it comes again.
    assert_eq!(texts(&memory.start().0), ["For all."]);
    assert_eq!(texts(&memory.on_file_touched(&file).0), ["Use types."]);
}

/// A place for everything, and what each source is for.
#[test]
fn everything_in_its_order_and_by_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = places(folder.path());
    let root = places.cwd.clone();
    places.cwd = root.join("sub");
    fs::create_dir_all(&places.cwd).unwrap();
    let other = folder.path().join("other");
    places.directories.push(other.clone());
    let kept = folder.path().join("memory/MEMORY.md");
    write(&places.managed.join("CLAUDE.md"), "managed");
    write(&places.user.join("CLAUDE.md"), "user");
    write(&places.user.join("rules/r.md"), "user rule");
    write(&root.join("AGENTS.md"), "agents");
    write(&root.join("CLAUDE.md"), "claude");
    write(&root.join(".claude/CLAUDE.md"), "hidden");
    write(&root.join(".claude/rules/r.md"), "rule");
    write(&root.join("CLAUDE.local.md"), "local");
    write(&places.cwd.join("CLAUDE.md"), "sub");
    write(&other.join("CLAUDE.md"), "other");
    write(&kept, &"kept\n".repeat(300));
    let mut options = MemoryOptions {
        managed_text: Some("settings".to_owned()),
        auto_memory: Some(kept),
        include_directories: true,
        ..MemoryOptions::default()
    };
    let told = |places: &ExtensionPlaces, options: &MemoryOptions| -> Vec<String> {
        let (files, warnings) = Memory::new(places.clone(), options.clone()).start();
        assert_eq!(warnings, []);
        let lines = files.iter().map(|file| file.text.lines().next().unwrap());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(
        told(&places, &options),
        [
            "settings",
            "managed",
            "user",
            "user rule",
            "agents",
            "claude",
            "hidden",
            "rule",
            "local",
            "sub",
            "other",
            "kept"
        ]
    );
    options.include_directories = false;
    options.auto_memory = None;
    options.agents_md = AgentsMd::Fallback;
    places.sources.user = false;
    places.sources.local = false;
    assert_eq!(
        told(&places, &options),
        ["settings", "managed", "claude", "hidden", "rule", "sub"]
    );
    places.sources.project = false;
    places.sources.local = true;
    assert_eq!(told(&places, &options), ["settings", "managed", "local"]);
    let settings = json!({
        "claudeMdExcludes": ["**/CLAUDE.md", format!("{}/**", root.display())],
        "compat": {"agentsMd": "never"},
    });
    let options = MemoryOptions::from_settings(&settings, |_| None);
    places.sources.project = true;
    assert_eq!(told(&places, &options), ["managed"]);
}

#[test]
fn the_head_of_what_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let kept = folder.path().join("MEMORY.md");
    let options = MemoryOptions {
        auto_memory: Some(kept.clone()),
        ..MemoryOptions::default()
    };
    for text in ["line\n".repeat(201), "x".repeat(26 * 1024)] {
        write(&kept, &text);
        let (files, _) = Memory::new(places.clone(), options.clone()).start();
        assert!(
            files[0]
                .text
                .ends_with("[the rest of this file is left out]")
        );
        assert!(files[0].text.len() < 26 * 1024 && files[0].text.lines().count() <= 201);
    }
}

#[test]
fn files_below_come_when_something_there_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    write(&places.cwd.join("CLAUDE.md"), "top");
    write(&places.cwd.join("a/CLAUDE.md"), "a, see @b.md");
    write(&places.cwd.join("a/b.md"), "a's b");
    write(
        &places.cwd.join("a/c/.claude/rules/r.md"),
        "---\npaths: \"*.rs\"\n---\nc's rule",
    );
    write(&places.cwd.join("a/c/CLAUDE.local.md"), "c's local");
    let memory = Memory::new(places.clone(), MemoryOptions::default());
    assert_eq!(texts(&memory.start().0), ["top"]);
    assert!(
        memory
            .on_file_touched(&places.cwd.join("x.rs"))
            .0
            .is_empty()
    );
    assert!(
        memory
            .on_file_touched(Path::new("/elsewhere/x.rs"))
            .0
            .is_empty()
    );
    let (files, _) = memory.on_file_touched(&places.cwd.join("a/c/x.rs"));
    assert_eq!(
        texts(&files),
        ["a, see @b.md", "a's b", "c's local", "c's rule"]
    );
    assert!(
        memory
            .on_file_touched(&places.cwd.join("a/c/y.rs"))
            .0
            .is_empty()
    );
}

#[test]
fn what_leads_out_of_the_project_is_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let secret = folder.path().join("secret.md");
    write(&secret, "secret");
    write(&places.home.join("notes.md"), "notes");
    write(
        &places.cwd.join("CLAUDE.md"),
        &format!(
            "@../secret.md @{} @~/notes.md @link.md @someone",
            secret.display()
        ),
    );
    symlink(&secret, places.cwd.join("link.md")).unwrap();
    symlink(&secret, places.cwd.join("AGENTS.md")).unwrap();
    write(&places.user.join("CLAUDE.md"), "user @~/notes.md");
    let memory = Memory::new(places.clone(), MemoryOptions::default());
    let (files, warnings) = memory.start();
    let told = texts(&files);
    assert_eq!(told[..2], ["user @~/notes.md", "notes"]);
    assert_eq!(told.len(), 3);
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings[0].ends_with(
        "CLAUDE.md: the import @../secret.md is outside the project and is left out: the user has not \
         approved it. `haft permissions trust` shows it and asks"
    ));
    let outside = memory.left_out_imports();
    let real = |path: &Path| fs::canonicalize(path).unwrap();
    assert_eq!(
        outside,
        [real(&places.home.join("notes.md")), real(&secret)].into()
    );
    let one = MemoryOptions {
        approved_imports: [real(&secret)].into(),
        ..MemoryOptions::default()
    };
    let memory = Memory::new(places.clone(), one);
    let (files, warnings) = memory.start();
    assert!(texts(&files).contains(&"secret"));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(memory.left_out_imports().len(), 1);
    let options = MemoryOptions {
        outside_imports: true,
        ..MemoryOptions::default()
    };
    let (files, warnings) = Memory::new(places, options).start();
    assert!(texts(&files).contains(&"secret"));
    assert_eq!(warnings, []);
}

#[test]
fn what_may_not_be_read_is_not_imported_either() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    write(&places.cwd.join("CLAUDE.md"), "@.env @ok.md");
    write(&places.cwd.join(".env"), "KEY=1");
    write(&places.cwd.join("ok.md"), "ok");
    let options = MemoryOptions {
        denied: Some(Arc::new(|path: &Path| path.ends_with(".env"))),
        ..MemoryOptions::default()
    };
    let (files, _) = Memory::new(places, options).start();
    assert_eq!(texts(&files), ["@.env @ok.md", "ok"]);
}

#[test]
fn comments_copies_pipes_and_giants() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let path = |name: &str| places.cwd.join(name);
    write(&path("AGENTS.md"), "same");
    symlink(path("AGENTS.md"), path("CLAUDE.md")).unwrap();
    write(&path(".claude/CLAUDE.md"), "<!-- @no.md -->\nkeep");
    write(&path("no.md"), "no");
    write(&path(".claude/rules/big.md"), &"x".repeat(300 * 1024));
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        path("CLAUDE.local.md"),
        rustix::fs::Mode::RWXU,
    )
    .unwrap();
    let (files, warnings) = Memory::new(places.clone(), MemoryOptions::default()).start();
    assert_eq!(texts(&files)[..2], ["same", "keep"]);
    assert!(
        files[2]
            .text
            .ends_with("[the rest of this file is left out]")
    );
    let told: Vec<String> = warnings
        .iter()
        .map(|warning| warning.message.clone())
        .collect();
    assert_eq!(
        told,
        [
            "it is longer than 256 KiB: the rest is left out",
            "it cannot be read and is left out: it is not a regular file"
        ]
    );
    for at in 0..5 {
        write(
            &path(&format!(".claude/rules/r{at}.md")),
            &format!("{at}{}", "y".repeat(255 * 1024)),
        );
    }
    let (files, warnings) = Memory::new(places.clone(), MemoryOptions::default()).start();
    assert!(files.iter().map(|file| file.text.len()).sum::<usize>() <= 1024 * 1024);
    assert!(
        warnings
            .iter()
            .any(|warning| warning.message.contains("1024 KiB together"))
    );
}

#[test]
fn what_the_model_reads() {
    let file = |path: &str, owner, reason| MemoryFile {
        path: Some(path.into()),
        owner,
        reason,
        text: format!("Text of {path}.\n"),
        patterns: Vec::new(),
    };
    assert_eq!(format_for_model(&[]), None);
    let text = format_for_model(&[
        file(
            "/home/u/.claude/CLAUDE.md",
            MemoryOwner::User,
            MemoryReason::Start,
        ),
        file("/p/CLAUDE.md", MemoryOwner::Project, MemoryReason::Start),
        file(
            "/p/a.md",
            MemoryOwner::Project,
            MemoryReason::Import("/p/CLAUDE.md".into()),
        ),
        file(
            "/p/CLAUDE.local.md",
            MemoryOwner::Local,
            MemoryReason::Start,
        ),
        file("/m/MEMORY.md", MemoryOwner::Auto, MemoryReason::Start),
    ]);
    insta::assert_snapshot!(text.unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn imports_end_however_they_are_tangled(
        graph in proptest::collection::vec(proptest::collection::vec(0_usize..8, 0..6), 8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        for (at, imports) in graph.iter().enumerate() {
            let name = if at == 0 { "CLAUDE.md".to_owned() } else { format!("{at}.md") };
            let text: Vec<String> = imports.iter().map(|to| match to {
                0 => "@CLAUDE.md".to_owned(),
                to => format!("@./{to}.md"),
            }).collect();
            write(&places.cwd.join(name), &format!("{at}: {}", text.join(" ")));
        }
        let begun = Instant::now();
        let (files, warnings) = Memory::new(places, MemoryOptions::default()).start();
        prop_assert!(warnings.is_empty());
        let paths: HashSet<_> = files.iter().map(|file| file.path.clone()).collect();
        prop_assert_eq!(paths.len(), files.len());
        prop_assert!(files.len() <= 8);
        prop_assert!(begun.elapsed().as_secs() < 5);
    }
}
