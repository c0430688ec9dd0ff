//! What keys do that no vector of the specification names alone, and the clock of vector 22.

use std::{fs, time::Duration};

use haft::{Content, PermissionMode};

use haft_terminal::{Key, KeyCode};
use serde_json::json;

use super::{
    app::{AppEffect, AppInput, JobResult, OpenedSession},
    jobs,
    test_bench::UiTestBench,
};

const SHIFT_TAB: Key = Key::plain(KeyCode::Tab).with_shift();

fn remote() -> UiTestBench {
    UiTestBench::with(80, 24, true, |name| match name {
        "LANG" => Some("C".to_owned()),
        "SSH_TTY" => Some("/dev/pts/3".to_owned()),
        _ => None,
    })
}

#[test]
fn vector_22_over_a_network_escape_and_return_are_one_key() {
    let mut bench = remote();
    bench.runs();
    bench.type_keys("one");
    bench.deeds();
    bench.wait(1_000);
    bench.read(b"\x1b");
    bench.wait(60);
    bench.read(b"\r");
    bench.type_keys("two");
    assert_eq!(bench.draft(), "one\ntwo");
    bench.wait(1_000);
    assert!(bench.deeds().is_empty(), "the run goes on");
    assert!(bench.app.is_working());
}

#[test]
fn vector_22_at_home_escape_alone_stops_within_40_ms() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.deeds();
    bench.read(b"\x1b");
    bench.wait(20);
    assert!(bench.deeds().is_empty(), "more may belong to it");
    bench.wait(20);
    assert!(matches!(bench.deeds().as_slice(), [AppEffect::Interrupt]));
    // A key by itself, too, where it would have belonged to it over a network.
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.type_keys("one");
    bench.deeds();
    bench.read(b"\x1b");
    bench.now += Duration::from_millis(60);
    bench.read(b"x");
    assert!(matches!(bench.deeds().as_slice(), [AppEffect::Interrupt]));
    assert_eq!(bench.draft(), "onex");
}

#[test]
fn shift_tab_goes_through_the_modes() {
    let modes = |bench: &mut UiTestBench| -> Vec<PermissionMode> {
        for _ in 0..5 {
            bench.wait(100);
            bench.read(b"\x1b[Z");
        }
        let deeds = bench.deeds().into_iter();
        let modes = deeds.filter_map(|effect| match effect {
            AppEffect::SetMode(mode) => Some(mode),
            _ => None,
        });
        modes.collect()
    };
    use PermissionMode::{AcceptEdits, Auto, BypassPermissions, Default, Plan};
    let mut bench = UiTestBench::new(80, 24);
    assert_eq!(
        modes(&mut bench),
        [AcceptEdits, Plan, Auto, Default, AcceptEdits],
        "bypassPermissions only if it was enabled at the start"
    );
    assert!(bench.rows().contains(" acceptEdits . shop"));
    bench.update(AppInput::Opened(Box::new(OpenedSession {
        may_bypass: true,
        ..OpenedSession::default()
    })));
    assert_eq!(
        modes(&mut bench),
        [AcceptEdits, Plan, Auto, BypassPermissions, Default]
    );
    // The same key as terminals with a keyboard protocol send it.
    bench.read(b"\x1b[9;2u");
    let deeds = bench.deeds();
    assert!(matches!(
        deeds.as_slice(),
        [AppEffect::SetMode(AcceptEdits)]
    ));
    bench.type_keys("a draft");
    bench.key(SHIFT_TAB);
    assert_eq!(bench.draft(), "a draft");
}

#[test]
fn ctrl_l_scrolls_away_what_is_visible() {
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("draft");
    bench.deeds();
    bench.read(b"\x0c");
    assert!(matches!(bench.deeds().as_slice(), [AppEffect::ScrollAway]));
    assert_eq!(bench.draft(), "draft");
}

#[test]
fn ctrl_t_hides_the_tasks_and_shows_them() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let todo =
        |text: &str, status: &str| json!({"content": text, "status": status, "activeForm": text});
    bench.app.todos.update_from_result(&json!({"newTodos": [
        todo("find the mistake", "completed"),
        todo("run the tests", "in_progress"),
    ]}));
    bench.update(AppInput::Tick);
    assert!(bench.rows().contains("Tasks 1/2"), "{}", bench.rows());
    bench.read(b"\x14");
    assert!(!bench.rows().contains("Tasks"), "{}", bench.rows());
    bench.read(b"\x14");
    assert!(bench.rows().contains("Tasks 1/2"), "{}", bench.rows());
}

#[test]
fn alt_p_asks_for_a_model_and_alt_t_switches_thinking() {
    let mut bench = UiTestBench::new(80, 24);
    bench.deeds();
    bench.read(b"\x1bp");
    assert_eq!(bench.draft(), "/model ");
    bench.key(Key::control('u'));
    bench.deeds();
    for (thinks, words) in [(true, "thinking is on, from"), (false, "thinking is off")] {
        bench.wait(100);
        bench.read(b"\x1bt");
        let deeds = bench.deeds();
        let is_set = matches!(deeds.as_slice(), [AppEffect::SetThinking(set)] if *set == thinks);
        assert!(is_set, "{thinks}");
        assert!(bench.rows().contains(words), "{}", bench.rows());
    }
    assert_eq!(bench.draft(), "");
}

/// A picture of one colour.
fn png() -> Vec<u8> {
    use data_encoding::BASE64;
    // 2 x 2, red.
    BASE64
        .decode(
            b"iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==",
        )
        .unwrap()
}

#[test]
fn a_pasted_path_of_a_picture_becomes_a_chip_that_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my shot.png");
    fs::write(&path, png()).unwrap();
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("see ");
    bench.deeds();
    let pasted = format!("'{}'", path.display());
    bench.read(format!("\x1b[200~{pasted}\x1b[201~").as_bytes());
    let deeds = bench.deeds();
    let [
        AppEffect::LoadPicture {
            path: wanted,
            pasted: kept,
        },
    ] = deeds.as_slice()
    else {
        panic!("the picture is to be read");
    };
    assert_eq!((wanted, kept), (&path, &pasted));
    let picture = jobs::picture(wanted);
    let pasted = Some(pasted);
    bench.update(AppInput::Found(JobResult::Picture { picture, pasted }));
    assert_eq!(bench.draft(), "see [Image 1: my shot.png 2x2]");
    // One unit for Backspace, and back by undo.
    bench.key(Key::plain(KeyCode::Backspace));
    assert_eq!(bench.draft(), "see ");
    bench.key(Key::control('_'));
    assert_eq!(bench.draft(), "see [Image 1: my shot.png 2x2]");
    bench.key(Key::RETURN);
    let deeds = bench.deeds();
    let [AppEffect::SendPrompt { prompt, .. }] = deeds.as_slice() else {
        panic!("it is sent");
    };
    assert!(matches!(prompt.content.last(), Some(Content::Image { .. })));

    // What is no picture after all is what was pasted.
    let mut bench = UiTestBench::new(80, 24);
    bench.paste("missing.png");
    let picture = jobs::picture(&folder.path().join("missing.png"));
    let pasted = Some("missing.png".to_owned());
    bench.update(AppInput::Found(JobResult::Picture { picture, pasted }));
    assert_eq!(bench.draft(), "missing.png");
}

#[test]
fn a_person_binds_keys_of_questions_and_searches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keybindings.json");
    let file = serde_json::json!({"bindings": [
        {"context": "Confirmation", "bindings": {"ctrl+y": "confirm:yes", "n": null}},
        {"context": "HistorySearch", "bindings": {"ctrl+k": "historySearch:cancel"}},
    ]});
    fs::write(&path, file.to_string()).unwrap();
    let (bindings, problem) = super::keybindings::Keybindings::load(&path);
    assert_eq!(problem, None);
    let mut bench = UiTestBench::new(80, 24);
    bench.update(AppInput::Found(JobResult::Keybindings(bindings)));
    bench.key(Key::control('r'));
    assert!(bench.app.search.is_some());
    bench.key(Key::control('k'));
    assert!(bench.app.search.is_none());
    bench.runs();
    let card = haft::Card::new("Bash", "make");
    let asked = super::test_bench::request("Bash", card, serde_json::json!({}), &[]);
    bench.asks(1, asked);
    bench.key(Key::control('y'));
    assert!(bench.deeds().is_empty(), "it is not armed yet");
    bench.key(Key::control('u'));
    bench.wait(2_000);
    bench.key(Key::char('n'));
    assert!(bench.deeds().is_empty(), "it was taken away");
    bench.wait(2_000);
    bench.key(Key::control('y'));
    let effects = bench.deeds();
    let is_yes = |effect: &AppEffect| matches!(effect, AppEffect::Answer { id: 1, answer } if *answer == haft::ApprovalAnswer::Allow);
    assert!(effects.iter().any(is_yes), "{}", effects.len());
}

#[test]
fn the_status_row_says_what_auto_relies_on() {
    let mut bench = UiTestBench::new(80, 24);
    for _ in 0..3 {
        bench.wait(100);
        bench.read(b"\x1b[Z");
    }
    assert!(
        bench.rows().contains("auto · undo on · 0 hosts"),
        "{}",
        bench.rows()
    );
}
