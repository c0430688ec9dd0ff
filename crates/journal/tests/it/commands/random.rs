//! Whatever commands do, in any order.

use super::*;

/// What a command may do; whatever does not work changes nothing.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize, u8),
    Append(usize, u8),
    Remove(usize),
    MakeDirectory(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Symlink(usize, usize),
    Mode(usize, u32),
    Touch(usize, u32),
}

const NAMES: [&str; 9] = ["a", "b", "c", "a/x", "a/y", "b/x", "b/y", "a/x/deep", "c/z"];

impl Deed {
    fn any() -> impl Strategy<Value = Self> {
        let name = || 0..NAMES.len();
        prop_oneof![
            (name(), 0..4_u8).prop_map(|(name, byte)| Self::Write(name, byte)),
            (name(), 0..4_u8).prop_map(|(name, byte)| Self::Append(name, byte)),
            name().prop_map(Self::Remove),
            name().prop_map(Self::MakeDirectory),
            (name(), name()).prop_map(|(from, to)| Self::Rename(from, to)),
            (name(), name()).prop_map(|(from, to)| Self::Link(from, to)),
            (name(), name()).prop_map(|(from, to)| Self::Symlink(from, to)),
            (name(), prop_oneof![Just(0o600), Just(0o755), Just(0o500)])
                .prop_map(|(name, mode)| Self::Mode(name, mode)),
            (name(), 0..1000_u32).prop_map(|(name, time)| Self::Touch(name, time)),
        ]
    }

    fn make(&self, root: &Path) {
        let at = |name: &usize| root.join(NAMES[*name]);
        let is_link = |name: &usize| at(name).is_symlink();
        let _ = match self {
            // Not through links: they may lead to a directory.
            Self::Write(name, _) | Self::Append(name, _) | Self::Mode(name, _) if is_link(name) => {
                Ok(())
            }
            Self::Write(name, byte) => fs::write(at(name), vec![*byte; 1 + *byte as usize]),
            Self::Append(name, byte) => fs::read(at(name)).and_then(|mut content| {
                content.push(*byte);
                fs::write(at(name), content)
            }),
            Self::Remove(name) => match fs::symlink_metadata(at(name)) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(at(name)),
                _ => fs::remove_file(at(name)),
            },
            Self::MakeDirectory(name) => fs::create_dir(at(name)),
            Self::Rename(from, to) => fs::rename(at(from), at(to)),
            Self::Link(from, to) => fs::hard_link(at(from), at(to)),
            Self::Symlink(from, to) => symlink(NAMES[*from], at(to)),
            Self::Mode(name, mode) => fs::set_permissions(at(name), Permissions::from_mode(*mode)),
            Self::Touch(name, time) => fs::File::open(at(name)).and_then(|file| {
                let time = std::time::UNIX_EPOCH + Duration::from_millis(u64::from(*time));
                file.set_modified(time)
            }),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_commands_do_is_undone_exactly(
        first in prop::collection::vec(Deed::any(), 0..20),
        commands in prop::collection::vec(prop::collection::vec(Deed::any(), 1..8), 1..4),
    ) {
        let desk = Desk::of_commands();
        for deed in &first {
            deed.make(desk.dir.path());
        }
        let mut states = vec![desk.exact()];
        let mut units = Vec::new();
        for deeds in &commands {
            let before = desk.journal.before_command(&desk.sweep());
            for deed in deeds {
                deed.make(desk.dir.path());
            }
            let changed = desk.journal.after_command(before, &ticket(), "", &|_| false);
            prop_assert_eq!(&changed.not_restorable, &[]);
            match changed.unit {
                Some(unit) => {
                    units.push(unit);
                    states.push(desk.exact());
                }
                None => {
                    let now = desk.exact();
                    let same = |path: &PathBuf| states.last().unwrap().get(path) == now.get(path);
                    let is_directory = |path: &PathBuf| desk.dir.path().join(path).is_dir();
                    prop_assert!(now.keys().all(|path| same(path) || is_directory(path)));
                    if !now.keys().all(same) {
                        return Ok(()); // only the time of a directory, which is not undone
                    }
                }
            }
        }
        let last = states.pop().unwrap();
        let mut undos = Vec::new();
        while let (Some(unit), Some(before)) = (units.pop(), states.pop()) {
            let undone = desk.take(UndoSelection::Unit(unit)).unwrap();
            undos.push(undone.unit.unwrap());
            assert_same(&desk.exact(), &before, "undone");
        }
        while let Some(undo) = undos.pop() {
            desk.take(UndoSelection::Unit(undo)).unwrap();
        }
        assert_same(&desk.exact(), &last, "all made again");
    }
}

#[test]
fn a_new_name_of_a_file_in_another_directory_is_that_again_after_undo_and_redo() {
    let desk = Desk::of_commands();
    let path = |name: &str| desk.dir.path().join(name);
    fs::create_dir(path("c")).unwrap();
    // The first command lets the scan be cached.
    let before = desk.journal.before_command(&desk.sweep());
    fs::write(path("c/z"), "a file").unwrap();
    desk.journal
        .after_command(before, &ticket(), "", &|_| false);
    let before = desk.journal.before_command(&desk.sweep());
    fs::hard_link(path("c/z"), path("a")).unwrap();
    let linked = desk.exact();
    let changed = desk
        .journal
        .after_command(before, &ticket(), "", &|_| false);
    let undone = desk.take(UndoSelection::Unit(changed.unit.unwrap()));
    let undo = undone.unwrap().unit.unwrap();
    desk.take(UndoSelection::Unit(undo)).unwrap();
    assert_same(&desk.exact(), &linked, "made again");
}

#[test]
fn a_link_in_the_place_of_a_directory_hides_nothing_from_undo() {
    let desk = Desk::of_commands();
    let path = |name: &str| desk.dir.path().join(name);
    fs::create_dir(path("b")).unwrap();
    symlink("a", path("b/x")).unwrap();
    fs::write(path("b/y"), "a file").unwrap();
    let was = desk.exact();
    let before = desk.journal.before_command(&desk.sweep());
    fs::rename(path("b"), path("a")).unwrap();
    symlink("a", path("b")).unwrap();
    let changed = desk
        .journal
        .after_command(before, &ticket(), "", &|_| false);
    desk.take(UndoSelection::Unit(changed.unit.unwrap()))
        .unwrap();
    assert_same(&desk.exact(), &was, "undone");
}

#[test]
fn names_of_one_file_are_that_again_though_one_moved_and_the_other_was_written() {
    let desk = Desk::of_commands();
    let path = |name: &str| desk.dir.path().join(name);
    fs::create_dir(path("a")).unwrap();
    fs::write(path("b"), "same").unwrap();
    fs::hard_link(path("b"), path("a/x")).unwrap();
    let was = desk.exact();
    let before = desk.journal.before_command(&desk.sweep());
    fs::rename(path("a"), path("c")).unwrap();
    fs::write(path("b"), "same").unwrap();
    let changed = desk
        .journal
        .after_command(before, &ticket(), "", &|_| false);
    desk.take(UndoSelection::Unit(changed.unit.unwrap()))
        .unwrap();
    assert_same(&desk.exact(), &was, "undone");
}
