//! What is shown and told beside the vectors: paths, counts, pictures, hooks.

use std::path::PathBuf;

use haft::{CallId, CallResult, Card, Content, Metadata};
use haft_agent::AgentEvent;
use haft_terminal::{HistoryItem, Key, paint::TerminalControl};
use serde_json::json;

use super::{
    app::{AppEffect, AppInput, JobResult},
    jobs,
    test_bench::{UiTestBench, request},
};

fn write(path: &str) -> haft::ApprovalRequest {
    let input = json!({"file_path": path, "content": "one"});
    request("Write", Card::new("Write", path), input, &[])
}

#[test]
fn a_question_names_a_path_as_a_person_in_the_project_does() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.asks(1, write("/home/me/src/shop/src/price.rs"));
    bench.wait(1_500);
    let rows = bench.rows();
    assert!(rows.contains("? Write src/price.rs"), "{rows}");
    assert!(!rows.contains("/home/me"), "{rows}");

    for path in ["/home/me/src/shop2/a.rs", "/home/me/src/shop/../a.rs"] {
        let mut bench = UiTestBench::new(80, 24);
        bench.runs();
        bench.asks(1, write(path));
        bench.wait(1_500);
        let rows = bench.rows();
        assert!(rows.contains(&format!("? Write {path}")), "{rows}");
    }
}

#[test]
fn a_path_that_really_is_another_shows_both() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let mut asked = write("/home/me/src/shop/notes.txt");
    asked.resolved_elsewhere = vec![(
        PathBuf::from("/home/me/src/shop/notes.txt"),
        PathBuf::from("/home/me/.ssh/config"),
    )];
    bench.asks(1, asked);
    bench.wait(1_500);
    let rows = bench.rows();
    let row = "  notes.txt really is /home/me/.ssh/config";
    assert!(rows.lines().any(|line| line == row), "{rows}");
}

#[test]
fn a_question_names_a_file_that_looks_alike() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let mut asked = write("/home/me/src/shop/notes.txt");
    asked.look_alikes = vec!["notes.txt is not n<U+043E>tes.txt, which looks alike".to_owned()];
    bench.asks(1, asked);
    bench.wait(1_500);
    let rows = bench.rows();
    let row = "  notes.txt is not n<U+043E>tes.txt, which looks alike";
    assert!(rows.lines().any(|line| line == row), "{rows}");
}

#[test]
fn a_command_is_shown_as_it_is() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let command = "/home/me/src/shop/run.sh";
    let mut asked = request(
        "Bash",
        Card::new("Bash", command),
        json!({"command": command}),
        &[],
    );
    asked.parts = vec![haft::ApprovalPart {
        text: command.to_owned(),
        meaning: "runs what the workspace says".to_owned(),
        depth: 0,
        asks: true,
    }];
    bench.asks(1, asked);
    bench.wait(1_500);
    let rows = bench.rows();
    assert!(rows.contains(&format!("  {command}")), "{rows}");
}

#[test]
fn only_questions_that_wait_are_counted() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.asks(1, write("/a"));
    bench.wait(1_500);
    assert!(!bench.rows().contains(" of "), "{}", bench.rows());
    bench.asks(2, write("/b"));
    assert!(bench.rows().contains("1 of 2"), "{}", bench.rows());
    bench.key(Key::char('y'));
    assert!(!bench.rows().contains(" of "), "{}", bench.rows());
    // A later one has nothing to do with the one that was answered.
    bench.asks(3, write("/c"));
    assert!(
        bench.rows().contains("? Write /b  1 of 2"),
        "{}",
        bench.rows()
    );
}

/// 4 x 4, blue.
const BLUE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGNgYPiPhIjiAACOsw/xs6MvMwAAAABJRU5ErkJggg==";

fn picture(data: &str) -> Content {
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    serde_json::from_value(json!({"type": "image", "source": source})).unwrap()
}

/// A call that answers with a picture.
fn answered(bench: &mut UiTestBench) {
    let finished = CallResult {
        call: CallId::new(),
        id: "toolu_1".to_owned(),
        name: "Read".to_owned(),
        is_error: false,
        content: vec![Content::text("logo.png: a picture"), picture(BLUE)],
        structured: None,
        messages: Vec::new(),
        patches: Vec::new(),
        metadata: Metadata::default(),
        card: Card::new("Read", "/home/me/src/shop/logo.png"),
    };
    bench.agent(AgentEvent::CallFinished {
        uuid: CallId::new().0,
        finished: Box::new(finished),
    });
}

/// What the background would do.
fn draw(bench: &mut UiTestBench) -> Option<HistoryItem> {
    let effects = bench.take_effects();
    let wanted = effects.into_iter().find_map(|effect| match effect {
        AppEffect::DrawPicture {
            number,
            name,
            content,
            protocol,
        } => Some((number, jobs::drawn(&content, &name, protocol, number))),
        _ => None,
    });
    let (number, item) = wanted?;
    let drawn = item.clone();
    bench.update(AppInput::Found(JobResult::Drawn { number, item }));
    drawn
}

#[test]
fn a_picture_of_a_result_keeps_its_place_and_is_named_where_it_cannot_be_drawn() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    answered(&mut bench);
    bench.says("That is the logo.\n\n");
    bench.agent(AgentEvent::Model(haft_models::ModelEvent::BlockStop {
        index: 0,
    }));
    let before = bench.rows();
    assert!(before.contains("* Read logo.png"), "{before}");
    draw(&mut bench);
    let rows = bench.rows();
    let at = |text: &str| rows.lines().position(|line| line == text);
    let (card, name, reply) = (
        at("* Read logo.png"),
        at("  [logo.png 4x4]"),
        at("That is the logo."),
    );
    assert!(card.is_some() && card < name && name < reply, "{rows}");
}

#[test]
fn a_picture_is_drawn_by_half_blocks_where_there_are_colours() {
    let mut bench = UiTestBench::with(80, 24, true, |name| match name {
        "TERM" => Some("xterm-256color".to_owned()),
        "LANG" => Some("C.UTF-8".to_owned()),
        _ => None,
    });
    bench.runs();
    answered(&mut bench);
    let drawn = draw(&mut bench);
    assert!(matches!(drawn, Some(HistoryItem::Image(_))), "{drawn:?}");
    assert!(bench.rows().contains('▀'), "{}", bench.rows());
    // A terminal that knows more is sent more.
    bench.read(b"\x1b_Gi=31;OK\x1b\\");
    answered(&mut bench);
    draw(&mut bench);
    let bytes = String::from_utf8(bench.bytes.clone()).unwrap();
    assert!(bytes.contains("\x1b_Ga=T,U=1,q=2,f=32,"));
}

#[test]
fn a_picture_that_is_damaged_holds_nothing_up() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.app.show_picture("broken.png", &picture("AAAA"));
    bench.app.remark("- behind it");
    bench.update(AppInput::Tick);
    assert!(!bench.rows().contains("behind it"));
    assert_eq!(draw(&mut bench), None);
    assert!(bench.rows().contains("- behind it"), "{}", bench.rows());
}

#[test]
fn a_picture_that_is_sent_is_drawn_behind_the_message() {
    let mut bench = UiTestBench::with(80, 24, true, |name| match name {
        "TERM" => Some("xterm-256color".to_owned()),
        "LANG" => Some("C.UTF-8".to_owned()),
        _ => None,
    });
    let picture = Ok(("logo.png 4x4".to_owned(), picture(BLUE)));
    let pasted = None;
    bench.update(AppInput::Found(JobResult::Picture { picture, pasted }));
    bench.key(Key::RETURN);
    assert!(matches!(draw(&mut bench), Some(HistoryItem::Image(_))));
    let rows = bench.rows();
    assert!(rows.contains("› [Image 1: logo.png 4x4]\n▀"), "{rows}");
}

/// A run that took so long ends.
fn run_ends_after(seconds: u64, is_focused: bool) -> Vec<AppEffect> {
    let mut bench = UiTestBench::new(80, 24);
    bench.read(if is_focused { b"\x1b[I" } else { b"\x1b[O" });
    bench.runs();
    bench.wait(seconds * 1_000);
    bench.take_effects();
    bench.app.on_run_ended(bench.now);
    bench.update(AppInput::Tick);
    bench.take_effects()
}

#[test]
fn the_end_of_a_long_run_is_told_to_one_who_looks_elsewhere_and_to_hooks() {
    let hears = |effects: &[AppEffect]| {
        let bell = |effect: &AppEffect| matches!(effect, AppEffect::Terminal(controls) if controls.contains(&TerminalControl::Bell));
        let hooks = |effect: &AppEffect| matches!(effect, AppEffect::NotifyHooks(_));
        (effects.iter().any(bell), effects.iter().any(hooks))
    };
    assert_eq!(hears(&run_ends_after(10, false)), (true, true));
    assert_eq!(hears(&run_ends_after(10, true)), (false, false));
    assert_eq!(hears(&run_ends_after(9, false)), (false, false));
}

#[test]
fn what_the_model_wants_seen_rings_for_one_who_looks_elsewhere() {
    for is_focused in [true, false] {
        let mut bench = UiTestBench::new(80, 24);
        bench.read(if is_focused { b"\x1b[I" } else { b"\x1b[O" });
        bench.runs();
        bench.take_effects();
        bench.session(haft_host::SessionEvent::Notification {
            text: "The tests \x1b]0;evil\x07 pass".to_owned(),
            status: None,
        });
        let mut out = Vec::new();
        for effect in bench.take_effects() {
            if let AppEffect::Terminal(controls) = effect {
                controls.iter().for_each(|control| control.write(&mut out));
            }
        }
        let out = String::from_utf8(out).unwrap();
        assert_eq!(!is_focused, out.contains("The tests "), "{out:?}");
        // The one bell, the one notice and its end: nothing of what the text would do.
        assert!(!out.contains("\x1b]0;"), "{out:?}");
    }
}
