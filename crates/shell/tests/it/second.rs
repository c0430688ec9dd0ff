//! Another parser finds the same commands in the lines of the table.

use tree_sitter::{Node, Parser};

use crate::lines::GOOD;
use crate::names::commands;
use haft_shell::syntax::parse;

/// The names of the commands that tree-sitter sees, and whether it understood everything.
fn second_opinion(parser: &mut Parser, line: &str) -> (Vec<String>, bool) {
    let tree = parser.parse(line, None).unwrap();
    let mut names = Vec::new();
    let mut open: Vec<Node<'_>> = vec![tree.root_node()];
    while let Some(node) = open.pop() {
        let text = &line[node.byte_range()];
        match node.kind() {
            "command_name" => names.push(text.to_owned()),
            // It has nodes of their own for some builtins.
            "declaration_command" | "unset_command" => {
                names.extend(text.split_whitespace().next().map(str::to_owned));
            }
            "test_command" if text.starts_with("[ ") => names.push("[".to_owned()),
            _ => {}
        }
        let mut cursor = node.walk();
        open.extend(node.children(&mut cursor));
    }
    names.sort();
    (names, !tree.root_node().has_error())
}

/// Its mistakes on these lines.
const EXCEPTIONS: [(&str, &str); 4] = [
    (
        "echo ${a:-$b} ${a:-${b:-c}} ${a:-$(b)} ${a:-`b`} ${a:-\"b c\"} ${a:-'b c'} ${a:-b c}",
        "backquotes inside `${…}` are text to it",
    ),
    (
        "echo `a` \"`a`\" `a \\`b\\`` `a \"b\" 'c'` `a \\$b`",
        "escaped backquotes do not nest, and what follows goes astray",
    ),
    (
        "a <<E\n$b ${c} $(d) `e` $((1))\nE",
        "backquotes in a here-document are text to it, and `$((` a command",
    ),
    ("! ! a", "the second `!` is a command to it"),
];

/// It takes these words for commands, and what follows for their arguments.
const NOT_COMMANDS: [&str; 2] = ["time", "coproc"];

#[test]
fn a_second_parser_finds_the_same_commands() {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .unwrap();
    let mut understood = 0;
    let mut wrong = Vec::new();
    for line in GOOD {
        let (theirs, sure) = second_opinion(&mut parser, line);
        if !sure {
            continue;
        }
        understood += 1;
        let mut ours: Vec<String> = commands(&parse(line).unwrap())
            .places
            .iter()
            .map(|span| line[span.start..span.end].to_owned())
            .collect();
        ours.sort();
        let keyword = |name: &&str| theirs.iter().any(|known| known == *name);
        if NOT_COMMANDS.iter().any(keyword) && !line.contains("| time") {
            continue;
        }
        if ours != theirs && !EXCEPTIONS.iter().any(|(known, _)| known == line) {
            wrong.push(format!("{line:?}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        understood * 10 > GOOD.len() * 9,
        "{understood} of {}",
        GOOD.len()
    );
}
