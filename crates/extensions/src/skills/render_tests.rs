use std::fs;

use proptest::prelude::*;

use super::*;
use crate::{ExtensionOrigin, skills::definition::FoundSkill};

fn skill(head: &str) -> Skill {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.md");
    fs::write(&file, format!("---\n{head}\n---\n")).unwrap();
    let found = FoundSkill {
        name: "f".to_owned(),
        file,
        folder: None,
        origin: ExtensionOrigin::User,
        plugin: None,
    };
    Skill::read(found, &mut Vec::new()).unwrap().unwrap().0
}

fn given(arguments: &str) -> SkillCall<'_> {
    SkillCall {
        arguments,
        session: "s-1",
        effort: Some("high"),
        project: Path::new("/project"),
        plugin_data: None,
    }
}

fn parts(body: &str, arguments: &str) -> Vec<SkillPart> {
    render(
        &skill("arguments: [issue, issue-number]"),
        body,
        given(arguments),
    )
}

fn text(body: &str, arguments: &str) -> String {
    match parts(body, arguments).as_slice() {
        [SkillPart::Text(text)] => text.clone(),
        [] => String::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_row_of_the_table() {
    for (body, arguments, said) in [
        ("Fix $ARGUMENTS now", "12 x", "Fix 12 x now"),
        ("$0 then $1", "\"a b\" c", "a b then c"),
        ("$2", "a", "$2"),
        ("hi", "a", "hi\nARGUMENTS: a"),
        ("cost \\$1.00 $0", "z", "cost $1.00 z"),
    ] {
        assert_eq!(text(body, arguments), said, "{body}");
    }
}

#[test]
fn placeholders_of_every_kind() {
    for (body, arguments, said) in [
        ("$ARGUMENTS[1]/$ARGUMENTS[0]", "a b", "b/a"),
        ("$ARGUMENTS[7] $ARGUMENTS[x]", "a b", "$ARGUMENTS[7] a b[x]"),
        ("$issue and $issue-number.", "1 2", "1 and 2."),
        ("[$issue-number]", "1", "[]"),
        ("$issues", "1", "$issues\nARGUMENTS: 1"),
        ("\\\\$0 \\\\\\$0", "a", "\\a \\$0"),
        (
            "\\n $HOME \\$HOME ${OTHER} $",
            "",
            "\\n $HOME \\$HOME ${OTHER} $",
        ),
        (
            "${CLAUDE_SESSION_ID} ${CLAUDE_EFFORT} ${CLAUDE_PROJECT_DIR}",
            "",
            "s-1 high /project",
        ),
        ("${CLAUDE_SESSION_ID}", "a", "s-1\nARGUMENTS: a"),
        ("\\${CLAUDE_SESSION_ID}", "", "${CLAUDE_SESSION_ID}"),
        ("$ARGUMENTS", "$0 \\$1 !`x`", "$0 \\$1 !`x`"),
        ("$ARGUMENTS", "", ""),
        ("$99999999999999999999999", "a", "$99999999999999999999999"),
    ] {
        assert_eq!(text(body, arguments), said, "{body}");
    }
}

#[test]
fn commands_are_found_where_they_may_stand() {
    let command = |line: &str, is_block| SkillPart::Command {
        line: line.to_owned(),
        is_block,
    };
    let words = |text: &str| SkillPart::Text(text.to_owned());
    for (body, expected) in [
        (
            "!`git status`\n- diff: !`git diff $0` end",
            vec![
                command("git status", false),
                words("\n- diff: "),
                command("git diff a", false),
                words(" end"),
            ],
        ),
        (
            "before\n```!\none $0\ntwo\n```\nafter",
            vec![
                words("before\n"),
                command("one a\ntwo", true),
                words("\nafter"),
            ],
        ),
        ("x!`no` `!`$0", vec![words("x!`no` `!`a")]),
        ("!`` $0", vec![words("!`` a")]),
        ("```!\nnever ends $0", vec![words("```!\nnever ends a")]),
        ("!`open $0\n`", vec![words("!`open a\n`")]),
    ] {
        assert_eq!(parts(body, "a"), expected, "{body}");
    }
}

#[test]
fn an_argument_begins_no_command() {
    let said = text("Look at $ARGUMENTS", "!`rm -rf x`\n```!\nrm\n```");
    assert_eq!(said, "Look at !`rm -rf x`\n```!\nrm\n```");
    let said = text("plain", "!`rm`");
    assert_eq!(said, "plain\nARGUMENTS: !`rm`");
}

proptest! {
    #[test]
    fn nothing_is_lost_where_nothing_is_asked_for(body in "[a-z \n`!#%\u{e4}-]{0,60}") {
        prop_assume!(!body.contains("```!"));
        let whole: String = parts(&body, "").into_iter().map(|part| match part {
            SkillPart::Text(text) => text,
            SkillPart::Command { line, is_block: false } => format!("!`{line}`"),
            SkillPart::Command { .. } => unreachable!("no block opens and closes here"),
        }).collect();
        prop_assert_eq!(whole, body);
    }

    #[test]
    fn what_is_filled_in_arrives_as_it_is(argument in "[^\\s'\"\\\\]{1,12}") {
        prop_assert_eq!(text("<$0>", &argument), format!("<{argument}>"));
        prop_assert_eq!(text("<$ARGUMENTS>", &argument), format!("<{argument}>"));
    }

    #[test]
    fn a_backslash_keeps_any_placeholder(index in 0_usize..200) {
        prop_assert_eq!(text(&format!("\\${index}"), ""), format!("${index}"));
        prop_assert_eq!(text(&format!("\\$ARGUMENTS[{index}]"), ""), format!("$ARGUMENTS[{index}]"));
    }

    #[test]
    fn nothing_panics(body in "[$\\\\{}\\[\\]A-Z0-9a-c!`\n \u{e4}]{0,80}", arguments in "[\"'\\\\ a\u{e4}]{0,12}") {
        let _ = parts(&body, &arguments);
    }
}
