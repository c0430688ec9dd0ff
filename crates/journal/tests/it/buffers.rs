//! What an editor has of a file and has not saved, and changes that an editor writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_journal::edit::EditRequest;
use haft_journal::{
    EditReport, FileTarget, Journal, JournalError, PageRequest, SnapshotScope, TextPage,
    UndoHistory, UndoMode, UndoSelection, UnsavedText, WriteGrant, WriteThrough,
};

use crate::{Desk, assert_says, ticket};

const CHANGE: EditRequest<'static> = EditRequest {
    old: "two",
    new: "2",
    replace_all: false,
};

impl Desk {
    fn target(&self) -> FileTarget {
        FileTarget::unrestricted(self.path("file"))
    }

    fn unsaved(&self, text: &str) -> Option<Arc<UnsavedText>> {
        let unsaved = self.journal.unsaved(&self.target(), text).unwrap();
        unsaved.map(Arc::new)
    }

    /// The file as its editor has it.
    fn in_editor(&self, text: &str) -> FileTarget {
        self.target().unsaved(self.unsaved(text).unwrap())
    }

    fn read_in_editor(&self, text: &str) -> TextPage {
        let target = self.in_editor(text);
        self.journal.read(target, &PageRequest::default()).unwrap()
    }

    fn edit_two(&self, ticket: &WriteGrant) -> Result<EditReport, JournalError> {
        self.journal.edit(ticket, &self.path("file"), &CHANGE)
    }

    fn undo_last(&self) {
        let ticket = ticket();
        self.journal
            .undo(&ticket, &UndoSelection::Last, UndoMode::Apply)
            .unwrap();
    }
}

#[test]
fn what_the_disk_has_or_had_is_not_unsaved() {
    let desk = Desk::with_read("one\r\ntwo\r\n");
    for same in [
        "one\r\ntwo\r\n",
        "one\ntwo\n",
        "one\ntwo",
        "\u{feff}one\ntwo\n",
    ] {
        assert!(desk.unsaved(same).is_none(), "{same:?}");
    }
    assert!(desk.unsaved("one\ntwo\n\n\n").is_some());
    // Changed behind the editor's back: it still has what the session saw.
    desk.put("file", "one\r\n2\r\n");
    assert!(desk.unsaved("one\ntwo\n").is_none());
    // By the session itself, twice: it has what was there before both.
    let desk = Desk::with_read("one\ntwo\n");
    desk.edit("file", "two", "2").unwrap();
    desk.edit("file", "one", "1").unwrap();
    for earlier in ["one\ntwo\n", "one\n2\n", "1\n2\n"] {
        assert!(desk.unsaved(earlier).is_none(), "{earlier:?}");
    }
    assert!(desk.unsaved("1\n2\nthree\n").is_some());
}

#[test]
fn what_a_command_changed_makes_an_editor_stale() {
    let desk = Desk::new();
    desk.put("file", "one\ntwo\n");
    let sweep = SnapshotScope {
        roots: vec![desk.dir.path().to_path_buf()],
        ..SnapshotScope::default()
    };
    let before = desk.journal.before_command(&sweep);
    assert!(desk.journal.runs_commands());
    desk.put("file", "from a command\n");
    desk.journal
        .after_command(before, &ticket(), "sed", &|_| false);
    assert!(!desk.journal.runs_commands());
    assert!(desk.unsaved("one\ntwo\n").is_none());
    assert!(desk.unsaved("one\ntwo\ntyped\n").is_some());
}

#[test]
fn binary_and_long_files_are_not_compared() {
    let desk = Desk::new();
    desk.put("file", b"a\0b");
    assert!(desk.unsaved("text").is_none());
    desk.put("file", vec![b'x'; (1 << 20) + 1]);
    assert!(desk.unsaved("text").is_none());
    desk.put("file", "short\n");
    assert!(desk.unsaved(&"x".repeat((1 << 20) + 1)).is_none());
    assert!(desk.unsaved("with a \0").is_none());
    fs::remove_file(desk.path("file")).unwrap();
    assert!(desk.unsaved("text").is_none());
}

#[test]
fn an_unsaved_text_is_shown_judged_and_saved_before_a_change() {
    let desk = Desk::new();
    desk.put("file", "one\r\ntwo\r\n");
    let typed = "one\ntwo\nthree\n";
    // Not read yet.
    let refused = desk.journal.check_edit(desk.in_editor(typed), &CHANGE);
    assert_says(refused, &["has not been read yet"]);
    let page = desk.read_in_editor(typed);
    assert_eq!(page.lines.len(), 3);
    // Read, and not stale for that.
    let target = desk.in_editor(typed);
    let unsaved = Arc::clone(target.unsaved_text().unwrap());
    desk.journal.check_edit(target, &CHANGE).unwrap();
    // The person types on: what was read is not what there is.
    let more = desk.in_editor("one\nTWO two\nthree\n");
    let refused = desk.journal.check_edit(more, &CHANGE);
    assert_says(refused, &["modified since", "TWO"]);
    // The disk is untouched by all of that.
    assert_eq!(desk.get("file"), b"one\r\ntwo\r\n");
    // An editor that says it saved, and did not.
    let refused = desk.journal.saved(&unsaved);
    assert_says(refused, &["did not save", "Ask the user"]);
    // It does, with a line end less at the end; the session knows that content.
    desk.put("file", "one\r\ntwo\r\nthree");
    desk.journal.saved(&unsaved).unwrap();
    desk.edit_two(&ticket()).unwrap();
    assert_eq!(desk.get("file"), b"one\r\n2\r\nthree");
    desk.undo_last();
    assert_eq!(desk.get("file"), b"one\r\ntwo\r\nthree");
}

#[test]
fn a_file_that_also_changed_on_disk_must_be_read_again() {
    let desk = Desk::new();
    desk.put("file", "one\ntwo\n");
    let typed = "one\ntwo\nthree\n";
    desk.read_in_editor(typed);
    desk.put("file", "one\ntwo\nfrom elsewhere\n");
    let refused = desk.journal.check_edit(desk.in_editor(typed), &CHANGE);
    assert_says(refused, &["modified since", "Read it again"]);
    let refused = desk.journal.check_write(desk.in_editor(typed));
    assert_says(refused, &["modified since"]);
    desk.read_in_editor(typed);
    desk.journal
        .check_edit(desk.in_editor(typed), &CHANGE)
        .unwrap();
}

#[test]
fn a_same_length_is_not_taken_for_the_same_text() {
    // A stamp that proves "unchanged" is that of the disk.
    let desk = Desk::new();
    desk.put("file", "one\ntwo\n");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let file = fs::File::options()
        .write(true)
        .open(desk.path("file"))
        .unwrap();
    file.set_modified(old).unwrap();
    desk.read("file").unwrap();
    let refused = desk.journal.check_write(desk.in_editor("ONE\ntwo\n"));
    assert_says(refused, &["modified since", "ONE"]);
}

#[test]
fn what_was_read_in_the_editor_and_saved_by_the_person_is_known() {
    let desk = Desk::new();
    desk.put("file", "one\ntwo\n");
    let typed = "one\ntwo\nthree\n";
    desk.read_in_editor(typed);
    desk.put("file", typed);
    assert!(desk.unsaved(typed).is_none());
    desk.edit_two(&ticket()).unwrap();
    assert_eq!(desk.get("file"), b"one\n2\nthree\n");
}

/// An editor that writes in its own way.
#[derive(Debug)]
struct Writer(fn(&Path, &str) -> Result<(), String>);

impl WriteThrough for Writer {
    fn covers(&self, _: &Path) -> bool {
        true
    }

    fn write(&self, real: &Path, text: &str) -> Result<(), String> {
        self.0(real, text)
    }
}

fn through(write: fn(&Path, &str) -> Result<(), String>) -> WriteGrant {
    ticket().through(Arc::new(Writer(write)))
}

fn by_hand(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(path, text).map_err(|error| error.to_string())
}

#[test]
fn an_editor_writes_and_the_disk_decides() {
    type Written = fn(&Path, &str) -> Result<(), String>;
    let cases: [(Written, &str); 5] = [
        (|path, text| by_hand(path, text), "as meant"),
        (|_, _| Ok(()), "it did nothing and said yes"),
        (
            |path, text| by_hand(path, text.replace('\n', "\r\n")),
            "with other line ends",
        ),
        (
            |path, text| by_hand(path, text.trim_end()),
            "without the last line end",
        ),
        (
            |path, text| {
                by_hand(path, text)?;
                Err("and yet an error".to_owned())
            },
            "written, and an error",
        ),
    ];
    for (write, what) in cases {
        let desk = Desk::with_read("one\ntwo\n");
        let edited = desk.edit_two(&through(write)).unwrap();
        assert!(edited.formatted.is_none(), "{what}");
        assert_eq!(desk.get("file"), b"one\n2\n", "{what}");
        assert_eq!(desk.names(), ["file"], "{what}");
        // Known, and undone.
        desk.edit("file", "one", "1").unwrap();
        desk.undo_last();
        desk.undo_last();
        assert_eq!(desk.get("file"), b"one\ntwo\n", "{what}");
    }
}

#[test]
fn what_an_editor_formats_is_kept_told_and_undone() {
    let desk = Desk::with_read("one\ntwo\n");
    let ticket = through(|path, text| by_hand(path, format!("// formatted\n{text}")));
    let edited = desk.edit_two(&ticket).unwrap();
    assert_eq!(desk.get("file"), b"// formatted\none\n2\n");
    let formatted = edited.formatted.unwrap().render(1000);
    assert!(formatted.contains("+// formatted"), "{formatted}");
    assert_eq!((edited.patch.added, edited.patch.removed), (2, 1));
    // The next change needs no Read.
    desk.edit("file", "one", "1").unwrap();
    desk.undo_last();
    // Also by a journal that reads its log again.
    let again = Journal::new(None).with_undo(desk.session.path().join("undo"));
    again
        .undo(&crate::ticket(), &UndoSelection::Last, UndoMode::Apply)
        .unwrap();
    assert_eq!(desk.get("file"), b"one\ntwo\n");
}

#[test]
fn an_editor_that_refuses_changes_nothing() {
    let desk = Desk::with_read("one\ntwo\n");
    let ticket = through(|_, _| Err("read-only workspace".to_owned()));
    let refused = desk.edit_two(&ticket);
    assert_says(refused, &["editor refused", "read-only workspace"]);
    assert_eq!(desk.get("file"), b"one\ntwo\n");
    let made = UndoHistory::open(desk.session.path().join("undo"));
    assert!(
        made.list(9)
            .unwrap()
            .iter()
            .all(|unit| unit.undoable.is_err())
    );
    // And the same change goes on without it.
    desk.edit("file", "two", "2").unwrap();
}

#[test]
fn new_files_and_vanished_ones_are_written_all_the_same() {
    let desk = Desk::new();
    let ticket = through(|path, text| by_hand(path, text));
    let path: PathBuf = desk.path("new");
    desk.journal.write(&ticket, &path, "x\n").unwrap();
    assert_eq!(desk.get("new"), b"x\n");
    let gone = through(|path, _| fs::remove_file(path).map_err(|error| error.to_string()));
    desk.journal.write(&gone, &path, "y\n").unwrap();
    assert_eq!(desk.get("new"), b"y\n");
    // In a directory that is not there an editor may do anything: it is not asked.
    let never = through(|_, _| panic!("asked"));
    let below = desk.path("dir/new");
    desk.journal.write(&never, &below, "z\n").unwrap();
    // Nor about bytes that are no text.
    desk.put("latin", b"caf\xe9 one\n");
    desk.read("latin").unwrap();
    let change = EditRequest {
        old: "one",
        new: "1",
        replace_all: false,
    };
    desk.journal
        .edit(&never, &desk.path("latin"), &change)
        .unwrap();
    assert_eq!(desk.get("latin"), b"caf\xe9 1\n");
}
