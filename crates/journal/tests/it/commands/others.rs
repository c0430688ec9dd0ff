//! Commands among other changes: those of file tools, and of someone else.

use super::*;

#[test]
fn a_file_changed_since_is_refused_and_nothing_is_touched() {
    let desk = project();
    desk.run("echo ours >> README; rm src/main.c; mkdir new; echo x > new/x");
    for (name, change, back) in [
        (
            "README",
            "echo theirs >> README",
            "sed -i '/theirs/d' README",
        ),
        ("src/main.c", "echo theirs > src/main.c", "rm src/main.c"),
        ("new/x", "echo theirs > new/x", "echo x > new/x"),
    ] {
        shell(desk.dir.path(), change);
        let before = desk.exact();
        assert_says(
            desk.take(UndoSelection::Last),
            &[name, "Nothing was undone"],
        );
        let preview = desk
            .journal
            .undo(&ticket(), &UndoSelection::Last, UndoMode::Preview);
        assert!(preview.unwrap().conflict.unwrap().contains(name));
        let listed = desk.journal.history().unwrap().list(1).unwrap();
        assert!(listed[0].undoable.as_ref().unwrap_err().contains(name));
        assert_same(&desk.exact(), &before, "after a refusal");
        shell(desk.dir.path(), back);
    }
    // Someone's own file in a new directory keeps the directory.
    desk.put("new/theirs", "theirs");
    let undone = desk.take(UndoSelection::Last).unwrap();
    assert_eq!(crate::names_in(&desk.path("new")), ["theirs"]);
    assert!(undone.left[0].1.contains("stays"), "{:?}", undone.left);
    assert_eq!(desk.get("README"), b"hello world\n");
}

#[test]
fn a_mode_that_someone_else_gave_stays() {
    let desk = project();
    desk.run("echo ours >> README");
    fs::set_permissions(desk.path("README"), Permissions::from_mode(0o600)).unwrap();
    desk.take(UndoSelection::Last).unwrap();
    assert_eq!(desk.get("README"), b"hello world\n");
    let mode = |name: &str| fs::metadata(desk.path(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("README"), 0o600);
    desk.run("chmod 640 README");
    fs::set_permissions(desk.path("README"), Permissions::from_mode(0o666)).unwrap();
    assert_says(desk.take(UndoSelection::Last), &["README"]);
    assert_eq!(mode("README"), 0o666);
}

#[test]
fn times_are_not_set_back_under_later_changes() {
    let desk = project();
    let first = desk.run("echo a >> README");
    desk.run("echo built > build/new");
    let built = fs::metadata(desk.path("build/new")).unwrap().modified();
    desk.take(UndoSelection::Unit(first.unit.unwrap())).unwrap();
    let source = fs::metadata(desk.path("README")).unwrap().modified();
    assert!(source.unwrap() >= built.unwrap());
}

#[test]
fn what_file_tools_change_meanwhile_is_theirs() {
    let desk = project();
    desk.read("README").unwrap();
    desk.run("echo quiet > quiet");
    let before = desk.journal.before_command(&desk.sweep());
    next_file_time(desk.dir.path());
    shell(desk.dir.path(), "echo loud > loud");
    let edited = desk.edit("README", "world", "there").unwrap();
    desk.write("made/file", "x\n").unwrap();
    let changed = desk
        .journal
        .after_command(before, &ticket(), "", &|_| false);
    assert_eq!(changed.created, [desk.path("loud").canonicalize().unwrap()]);
    assert_eq!(changed.modified, [] as [PathBuf; 0]);
    desk.take(UndoSelection::Unit(changed.unit.unwrap()))
        .unwrap();
    assert_eq!(desk.get("README"), b"hello there\n");
    desk.take(UndoSelection::Unit(edited.unit.unwrap()))
        .unwrap();
    assert_eq!(desk.get("README"), b"hello world\n");
}

#[test]
fn a_file_that_a_command_changed_is_stale_until_it_is_restored() {
    let desk = project();
    desk.read("README").unwrap();
    desk.run("echo more >> README");
    assert_says(desk.write("README", "mine\n"), &["modified since"]);
    desk.take(UndoSelection::Last).unwrap();
    desk.write("README", "mine\n").unwrap();
}

#[test]
fn everything_since_a_time_is_taken_back_whoever_did_it() {
    let desk = project();
    desk.read("README").unwrap();
    let before = desk.exact();
    let then = std::time::SystemTime::now();
    next_millisecond();
    desk.edit("README", "world", "there").unwrap();
    desk.run("echo more >> README; rm -r src");
    desk.write("made/by/write", "x\n").unwrap();
    desk.run("echo y > made/by/command; echo even more >> README");
    let after = desk.exact();
    let undone = desk.take(UndoSelection::Since(then)).unwrap();
    // Times of what Edit and Write changed are the clock's.
    let contents = |exact: &Exact| -> BTreeMap<PathBuf, String> {
        let without = |text: &String| {
            let (head, tail) = text.split_once(" (").unwrap();
            format!("{head} {}", tail.split_once(") ").unwrap().1)
        };
        exact
            .iter()
            .map(|(path, text)| (path.clone(), without(text)))
            .collect()
    };
    assert_eq!(contents(&desk.exact()), contents(&before));
    desk.take(UndoSelection::Unit(undone.unit.unwrap()))
        .unwrap();
    assert_eq!(contents(&desk.exact()), contents(&after));
}

#[test]
fn what_someone_else_does_between_two_commands_is_theirs_and_what_is_kept() {
    let desk = project();
    desk.run("echo a > a");
    let outside = tempfile::tempdir_in(desk.dir.path().parent().unwrap()).unwrap();
    fs::write(outside.path().join("linked"), "old\n").unwrap();
    shell(
        desk.dir.path(),
        &format!(
            "echo theirs > README; rm -r src; mkdir -p new/deep; echo x > new/deep/x; ln {} new/linked",
            outside.path().join("linked").display()
        ),
    );
    let changed = desk.run("echo b > b");
    let created = [desk.path("b").canonicalize().unwrap()];
    assert_eq!(changed.created, created);
    assert_eq!((changed.modified.len(), changed.removed.len()), (0, 0));
    // By another name of it, which is not in the tree.
    fs::write(outside.path().join("linked"), "newer\n").unwrap();
    let changed = desk.run("echo ours >> README; echo y >> new/deep/x; echo z >> new/linked");
    assert_eq!(changed.modified.len(), 3, "{changed:?}");
    desk.take(UndoSelection::Last).unwrap();
    assert_eq!(desk.get("README"), b"theirs\n");
    assert_eq!(desk.get("new/deep/x"), b"x\n");
    assert_eq!(desk.get("new/linked"), b"newer\n");
    assert!(!desk.path("src").exists());
}
