use haft::{ApprovalAnswer, ApprovalKind, ApprovalRequest, CallId, Card, CardSection, ToolUse};
use haft_agent::AgentEvent;
use haft_host::UserQuestions;
use haft_models::ModelEvent;
use serde_json::json;

use super::{choices::NumberedQuestion, *};

fn request(rules: &[&str]) -> ApprovalRequest {
    ApprovalRequest {
        kind: ApprovalKind::Permission,
        call: CallId::new(),
        tool: "Bash".to_owned(),
        card: Card::new("Bash", "git push\u{1b}[2J origin main")
            .with(CardSection::Text("pushes".to_owned())),
        reason: "no rule allows it".to_owned(),
        offers: haft::RuleOffer::for_call(rules.iter().map(|rule| (*rule).to_owned()).collect())
            .into_iter()
            .collect(),
        agent: Some("Explore".to_owned()),
        ..ApprovalRequest::default()
    }
}

#[test]
fn a_question_is_numbered_lines() {
    let permission = NumberedQuestion::permission(request(&["Bash(git push *)"]));
    let plan = NumberedQuestion::plan(request(&[]));
    let shown = |question: &NumberedQuestion| {
        let lines = question.lines();
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("question: {line}"))
            .collect();
        format!("{}\n{}", lines.join("\n"), question.prompt())
    };
    insta::assert_snapshot!(format!("{}\n\n{}", shown(&permission), shown(&plan)));
}

#[test]
fn numbers_answer_and_nothing_else_does() {
    let deny = |reason: Option<&str>| {
        AnswerStep::Done(ApprovalAnswer::Deny {
            reason: reason.map(str::to_owned),
        })
    };
    let answer = |line: &str| NumberedQuestion::permission(request(&["Bash(x)"])).answer(line);
    assert_eq!(answer("1"), AnswerStep::Done(ApprovalAnswer::Allow));
    assert_eq!(answer(" 2 "), AnswerStep::Done(ApprovalAnswer::AllowAlways));
    assert_eq!(answer("3"), deny(None));
    for line in ["", "y", "0", "6", "yes", "1 2"] {
        assert!(matches!(answer(line), AnswerStep::Again(_)), "{line:?}");
    }
    let mut two = request(&["Bash(bd sync *)"]);
    two.offers[0].asks_again = vec!["python3 -c 1".to_owned()];
    two.offers.push(haft::RuleOffer {
        rules: vec!["Bash(x)".to_owned()],
        asks_again: Vec::new(),
    });
    let mut question = NumberedQuestion::permission(two);
    let lines = question.lines();
    let first = "2 yes, and always: Bash(bd sync *) (asks again for python3 -c 1)";
    assert_eq!(
        lines[lines.len() - 5..],
        [
            first,
            "3 yes, and always: Bash(x)",
            "4 no",
            "5 no, and say why",
            "6 yes, and for a time: Bash(bd sync *) (asks again for python3 -c 1)"
        ]
    );
    let second = ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: vec!["Bash(x)".to_owned()],
        scope: None,
    };
    assert_eq!(question.answer("3"), AnswerStep::Done(second));
    let rules = || vec!["Bash(bd sync *)".to_owned()];
    let ends = [
        ApprovalAnswer::allow_until(rules(), haft::GrantEnd::Task),
        ApprovalAnswer::allow_until(rules(), haft::GrantEnd::HALF_HOUR),
        ApprovalAnswer::allow_in_session(rules()),
    ];
    assert_eq!(question.answer("6"), AnswerStep::Next);
    assert_eq!(
        question.lines(),
        [
            "1 until the result of this prompt",
            "2 for 30 minutes",
            "3 for this session"
        ]
    );
    assert!(matches!(question.answer("4"), AnswerStep::Again(_)));
    for (number, end) in (1..).zip(ends) {
        assert_eq!(question.answer(&format!("{number}")), AnswerStep::Done(end));
    }
    let mut question = NumberedQuestion::permission(request(&[]));
    assert_eq!(question.answer("2"), deny(None), "no rule, one choice less");
    let mut question = NumberedQuestion::permission(request(&["Bash(x)"]));
    assert_eq!(question.answer("4"), AnswerStep::Next);
    assert_eq!(question.answer("1"), deny(Some("1")), "now it is words");
}

#[test]
fn the_models_questions_are_answered_one_by_one() {
    let questions = json!({"questions": [
        {"question": "Which way?", "header": "Way", "options": [
            {"label": "Left", "description": "by the river"}, {"label": "Right"},
        ]},
        {"question": "How far?", "options": [{"label": "All"}], "multiSelect": true},
    ]});
    let parsed = serde_json::from_value(questions["questions"].clone()).unwrap();
    let request = ApprovalRequest {
        asked: Some(ToolUse {
            id: "t".into(),
            name: "AskUserQuestion".into(),
            input: questions,
        }),
        ..request(&[])
    };
    let mut question = NumberedQuestion::for_user_questions(UserQuestions {
        questions: parsed,
        timeout: None,
        request,
    });
    assert_eq!(
        question.lines(),
        [
            "Way: Which way? (1 of 2)",
            "1 Left, by the river",
            "2 Right",
            "3 other: enter your answer"
        ]
    );
    assert!(matches!(question.answer("7"), AnswerStep::Again(_)));
    assert_eq!(question.answer("2"), AnswerStep::Next);
    assert_eq!(question.answer("2"), AnswerStep::Next, "other");
    let AnswerStep::Done(ApprovalAnswer::InputEdited { input }) = question.answer("to the bridge")
    else {
        panic!("not answered");
    };
    assert_eq!(
        input["answers"],
        json!({"Which way?": "Right", "How far?": "to the bridge"})
    );
}

#[test]
fn a_reply_is_said_line_by_line_as_its_parts_are_complete() {
    let mut lines = PlainLines::new("/p".into());
    let mut said = |text: &str| {
        let text = ModelEvent::Text {
            index: 0,
            text: text.to_owned(),
        };
        lines.lines_for(&SessionEvent::Agent(AgentEvent::Model(text)))
    };
    assert_eq!(said("One **bold"), [""; 0]);
    assert_eq!(
        said("** word and [a link](https://example.com).\n\nTwo"),
        ["agent: One bold word and a link (https://example.com)."]
    );
    assert_eq!(said(" \u{1b}[2J\n\n"), ["agent: Two ␛[2J"]);
}

#[test]
fn it_is_wanted_by_flag_environment_and_settings() {
    let of = |variables: &[(&str, &str)]| {
        let variables = variables.iter().copied();
        is_wanted(
            false,
            &Environment::from_variables(variables),
            &TuiSettings::default(),
        )
    };
    assert!(!of(&[("TERM", "xterm")]));
    assert!(!of(&[("ACCESSIBLE", "0")]));
    assert!(of(&[("ACCESSIBLE", "1")]) && of(&[("TERM", "dumb")]));
    assert!(of(&[("CLAUDE_AX_SCREEN_READER", "true")]));
    let none = Environment::from_variables([("TERM", "xterm")]);
    assert!(is_wanted(true, &none, &TuiSettings::default()));
    let settings = TuiSettings {
        ax_screen_reader: true,
        ..TuiSettings::default()
    };
    assert!(is_wanted(false, &none, &settings));
}

#[test]
fn numbered_choices_begin_with_the_session_and_the_project() {
    let offline = ["OfflineCommand(go test *)", "OfflineCommand(go vet *)"];
    let mut asked = request(&offline);
    asked.offers.push(haft::RuleOffer {
        rules: vec!["Bash(go test *)".to_owned()],
        asks_again: Vec::new(),
    });
    let for_session = ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: offline.map(str::to_owned).to_vec(),
        scope: Some(haft::RuleScope::Session),
    };
    let mut question = NumberedQuestion::permission(asked);
    let lines = question.lines();
    let effect = "this and similar commands in the sandbox without network (go test, go vet)";
    assert_eq!(
        lines[lines.len() - 7..],
        [
            format!("1 yes, and for this session: {effect}"),
            format!("2 yes, and always: {effect}"),
            "3 yes, once".to_owned(),
            "4 yes, and always: Bash(go test *)".to_owned(),
            "5 no".to_owned(),
            "6 no, and say why".to_owned(),
            "7 yes, and for a time: Bash(go test *)".to_owned(),
        ]
    );
    assert_eq!(question.answer("1"), AnswerStep::Done(for_session));
    assert_eq!(
        question.answer("2"),
        AnswerStep::Done(ApprovalAnswer::AllowAlways)
    );
    assert_eq!(
        question.answer("3"),
        AnswerStep::Done(ApprovalAnswer::Allow)
    );
}
