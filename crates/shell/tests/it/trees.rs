//! A random tree, written as text and read again, is the same tree.

use proptest::prelude::*;

use haft_shell::ast::{
    ArithmeticExpression, AssignedValue, Assignment, CaseArm, CommandKind, CommandNode,
    ListSeparator, ParameterExpansion, ParameterOperation, PartKind, Pipeline, Redirect,
    RedirectOperator, ScriptItem, ShellScript, ShellWord, Span, TestItem, WordPart,
};
use haft_shell::syntax::{outline, parse};

use crate::write::write;

const NOWHERE: Span = Span { start: 0, end: 0 };

fn name() -> impl Strategy<Value = String> {
    "[a-z_][a-z0-9_]{0,4}".prop_filter("reserved", |name| {
        ![
            "if", "fi", "do", "in", "done", "case", "esac", "for", "then", "else", "elif", "time",
            "until", "while",
        ]
        .contains(&name.as_str())
    })
}

fn part(quoted: bool, kind: PartKind) -> WordPart {
    WordPart {
        span: NOWHERE,
        quoted,
        kind,
    }
}

fn plain_part() -> impl Strategy<Value = WordPart> {
    let operation = prop_oneof![
        Just(ParameterOperation::Plain),
        Just(ParameterOperation::Length),
        number().prop_map(|offset| ParameterOperation::Slice(vec![offset])),
        number()
            .prop_map(|at| ParameterOperation::Subscript(at, Box::new(ParameterOperation::Plain))),
    ];
    let parameter = (name(), operation)
        .prop_map(|(name, operation)| PartKind::Parameter(ParameterExpansion { name, operation }));
    prop_oneof![
        4 => "[a-zA-Z0-9/._:%+-]{1,6}".prop_map(|text| part(false, PartKind::Text(text))),
        3 => "[ -~\n\té世]{0,8}".prop_map(|text| part(true, PartKind::Text(text))),
        2 => (any::<bool>(), parameter).prop_map(|(quoted, kind)| part(quoted, kind)),
        1 => Just(part(false, PartKind::Glob("*".into()))),
        1 => Just(part(false, PartKind::Glob("?".into()))),
        1 => prop::collection::vec("[a-z]{0,3}", 2..4).prop_map(|texts| part(false, PartKind::Brace(Some(texts)))),
        1 => (any::<bool>(), number()).prop_map(|(quoted, number)| part(quoted, PartKind::Arithmetic(number))),
    ]
}

fn number() -> impl Strategy<Value = ArithmeticExpression> {
    "[1-9][0-9]{0,3}( [+*/-] [1-9][0-9]{0,2})?".prop_map(|text| ArithmeticExpression {
        span: NOWHERE,
        text,
        parts: Vec::new(),
    })
}

/// Parts as the parser gives them: unquoted texts and patterns that touch are one.
fn join(parts: Vec<WordPart>) -> Vec<WordPart> {
    let mut joined: Vec<WordPart> = Vec::new();
    for part in parts {
        match (joined.last_mut(), &part) {
            (
                Some(WordPart {
                    quoted: false,
                    kind: PartKind::Text(before),
                    ..
                }),
                WordPart {
                    quoted: false,
                    kind: PartKind::Text(text),
                    ..
                },
            )
            | (
                Some(WordPart {
                    quoted: false,
                    kind: PartKind::Glob(before),
                    ..
                }),
                WordPart {
                    quoted: false,
                    kind: PartKind::Glob(text),
                    ..
                },
            ) => before.push_str(text),
            _ => joined.push(part),
        }
    }
    joined
}

fn word_of(parts: Vec<WordPart>) -> ShellWord {
    ShellWord {
        span: NOWHERE,
        parts: join(parts),
    }
}

/// A substitution may hold a here-document only if all its commands are simple.
fn substituted(mut script: ShellScript) -> ShellScript {
    let mut commands = script.items.iter().flat_map(|item| &item.pipeline.commands);
    let background = |item: &ScriptItem| item.then == ListSeparator::Background;
    if !commands.all(|command| matches!(command.kind, CommandKind::Simple { .. }))
        || script.items.iter().any(background)
    {
        without_documents(&mut script);
    }
    script
}

fn without_documents(script: &mut ShellScript) {
    for item in &mut script.items {
        for command in &mut item.pipeline.commands {
            command
                .redirects
                .retain(|redirect| redirect.operator != RedirectOperator::HereDocument);
            inner_scripts(&mut command.kind)
                .into_iter()
                .for_each(without_documents);
        }
    }
}

fn inner_scripts(kind: &mut CommandKind) -> Vec<&mut ShellScript> {
    match kind {
        CommandKind::Group(body) | CommandKind::Subshell(body) => vec![body],
        CommandKind::If {
            branches,
            otherwise,
        } => {
            let both = branches.iter_mut().flat_map(|(test, body)| [test, body]);
            both.chain(otherwise).collect()
        }
        CommandKind::While { test, body } => vec![test, body],
        CommandKind::For { body, .. } | CommandKind::ArithmeticFor { body, .. } => vec![body],
        CommandKind::Case { arms, .. } => arms.iter_mut().map(|arm| &mut arm.body).collect(),
        CommandKind::Function { body, .. } => inner_scripts(&mut body.kind),
        _ => Vec::new(),
    }
}

fn word(script: BoxedStrategy<ShellScript>) -> BoxedStrategy<ShellWord> {
    let script = script.prop_map(substituted).boxed();
    let substitution = (any::<bool>(), script.clone())
        .prop_map(|(quoted, script)| part(quoted, PartKind::Command(script)));
    let process = script.prop_map(|script| part(false, PartKind::Process(script)));
    let one = prop_oneof![10 => plain_part(), 1 => substitution, 1 => process];
    prop::collection::vec(one, 1..4).prop_map(word_of).boxed()
}

/// The name of a command: nothing that could be an assignment, a reserved word or a function.
fn command_name() -> impl Strategy<Value = ShellWord> {
    prop_oneof![
        3 => "[a-z]{2,5}-[a-z]{1,3}".prop_map(|text| word_of(vec![part(false, PartKind::Text(text))])),
        1 => "[a-z ]{1,5}".prop_map(|text| word_of(vec![part(true, PartKind::Text(text))])),
        1 => name().prop_map(|name| word_of(vec![part(true, PartKind::Parameter(ParameterExpansion { name, operation: ParameterOperation::Plain }))])),
    ]
}

/// A word that stays one: no braces, no patterns.
fn single(word: BoxedStrategy<ShellWord>) -> BoxedStrategy<ShellWord> {
    word.prop_map(|word| {
        let plain = |part: &WordPart| !matches!(part.kind, PartKind::Glob(_) | PartKind::Brace(_));
        let parts: Vec<WordPart> = word.parts.into_iter().filter(plain).collect();
        match parts.is_empty() {
            true => word_of(vec![part(true, PartKind::Text("x".into()))]),
            false => word_of(parts),
        }
    })
    .boxed()
}

fn assignment(word: BoxedStrategy<ShellWord>) -> impl Strategy<Value = Assignment> {
    let value = prop_oneof![
        3 => single(word.clone()).prop_map(AssignedValue::Word),
        1 => prop::collection::vec(word, 0..3).prop_map(AssignedValue::Array),
    ];
    (name(), any::<bool>(), value).prop_map(|(name, append, value)| Assignment {
        span: NOWHERE,
        name,
        subscript: None,
        append,
        value,
    })
}

fn redirect(word: BoxedStrategy<ShellWord>) -> impl Strategy<Value = Redirect> {
    use RedirectOperator as Operator;
    let operator = prop::sample::select(vec![
        Operator::Read,
        Operator::Write,
        Operator::Append,
        Operator::Clobber,
        Operator::ReadWrite,
        Operator::WriteBoth,
        Operator::AppendBoth,
    ]);
    let descriptor = prop::option::of(prop_oneof![Just("2".to_owned()), Just("{fd}".to_owned())]);
    let to_file =
        (descriptor, operator, word.clone()).prop_map(|(descriptor, operator, target)| Redirect {
            span: NOWHERE,
            descriptor: descriptor
                .filter(|_| !matches!(operator, Operator::WriteBoth | Operator::AppendBoth)),
            operator,
            target,
            body: None,
        });
    let here_string = single(word).prop_map(|target| Redirect {
        span: NOWHERE,
        descriptor: None,
        operator: Operator::HereString,
        target,
        body: None,
    });
    let here_document =
        (any::<bool>(), "([a-z $'\"(){}#;]{0,8}\n){0,3}").prop_map(|(quoted, body)| {
            // Text that means something in an unquoted body is left out there.
            let body = if quoted { body } else { body.replace('$', "") };
            let text = part(true, PartKind::Text(body.clone()));
            Redirect {
                span: NOWHERE,
                descriptor: None,
                operator: Operator::HereDocument,
                target: word_of(vec![part(quoted, PartKind::Text("END".into()))]),
                body: Some(word_of(if body.is_empty() && !quoted {
                    Vec::new()
                } else {
                    vec![text]
                })),
            }
        });
    prop_oneof![5 => to_file, 1 => here_string, 1 => here_document]
}

/// A script of every construct.
pub(crate) fn script() -> BoxedStrategy<ShellScript> {
    let leaf = command_name().prop_map(|name| {
        script_of(vec![(
            CommandKind::Simple {
                assignments: Vec::new(),
                words: vec![name],
            },
            Vec::new(),
        )])
    });
    leaf.prop_recursive(4, 40, 4, |script| {
        let word = word(script.clone());
        let redirects = prop::collection::vec(redirect(word.clone()), 0..2);
        let command = (kind(script, word), redirects);
        let pipeline = (
            any::<bool>(),
            any::<bool>(),
            prop::collection::vec(command, 1..3),
        );
        let separator = prop::sample::select(vec![
            ListSeparator::Sequence,
            ListSeparator::Sequence,
            ListSeparator::And,
            ListSeparator::Or,
            ListSeparator::Background,
        ]);
        prop::collection::vec((pipeline, separator), 1..3).prop_map(|items| {
            let last = items.len() - 1;
            let mut script = ShellScript::default();
            for (index, ((negated, timed, commands), then)) in items.into_iter().enumerate() {
                let dangling =
                    index == last && matches!(then, ListSeparator::And | ListSeparator::Or);
                script.items.push(ScriptItem {
                    pipeline: Pipeline {
                        span: NOWHERE,
                        negated,
                        timed: timed && negated,
                        commands: commands.into_iter().map(command_of).collect(),
                    },
                    then: if dangling {
                        ListSeparator::Sequence
                    } else {
                        then
                    },
                });
            }
            script
        })
    })
    .boxed()
}

fn command_of((kind, redirects): (CommandKind, Vec<Redirect>)) -> CommandNode {
    // Those of a function are its body's.
    let redirects = match kind {
        CommandKind::Function { .. } => Vec::new(),
        _ => redirects,
    };
    CommandNode {
        span: NOWHERE,
        kind,
        redirects,
    }
}

fn script_of(commands: Vec<(CommandKind, Vec<Redirect>)>) -> ShellScript {
    let item = |command| ScriptItem {
        pipeline: Pipeline {
            span: NOWHERE,
            negated: false,
            timed: false,
            commands: vec![command_of(command)],
        },
        then: ListSeparator::Sequence,
    };
    ShellScript {
        items: commands.into_iter().map(item).collect(),
    }
}

fn kind(
    script: BoxedStrategy<ShellScript>,
    word: BoxedStrategy<ShellWord>,
) -> BoxedStrategy<CommandKind> {
    let assignments = prop::collection::vec(assignment(word.clone()), 0..2);
    let words = (command_name(), prop::collection::vec(word.clone(), 0..4))
        .prop_map(|(name, rest)| [vec![name], rest].concat());
    let simple = (assignments, words)
        .prop_map(|(assignments, words)| CommandKind::Simple { assignments, words });
    let body = script.clone();
    let two = (body.clone(), body.clone());
    let arm = (
        prop::collection::vec(single(word.clone()), 1..3),
        body.clone(),
    )
        .prop_map(|(patterns, body)| CaseArm { patterns, body });
    let test = (
        single(word.clone()),
        prop::sample::select(vec!["==", "!=", "-eq"]),
        single(word.clone()),
    )
        .prop_map(|(left, operator, right)| {
            CommandKind::Test(vec![
                TestItem::Word(left),
                TestItem::Operator(operator.into(), NOWHERE),
                TestItem::Word(right),
            ])
        });
    prop_oneof![
        8 => simple,
        1 => body.clone().prop_map(CommandKind::Group),
        1 => body.clone().prop_map(CommandKind::Subshell),
        1 => (prop::collection::vec(two.clone(), 1..3), prop::option::of(body.clone())).prop_map(|(branches, otherwise)| CommandKind::If { branches, otherwise }),
        1 => two.prop_map(|(test, body)| CommandKind::While { test, body }),
        1 => (name(), prop::option::of(prop::collection::vec(word.clone(), 0..3)), body.clone(), any::<bool>())
            .prop_map(|(name, words, body, select)| CommandKind::For { name, words, body, select }),
        1 => (prop::collection::vec(number(), 3), body.clone()).prop_map(|(parts, body)| CommandKind::ArithmeticFor { parts, body }),
        1 => (single(word), prop::collection::vec(arm, 0..3)).prop_map(|(word, arms)| CommandKind::Case { word, arms }),
        1 => (name(), body).prop_map(|(name, body)| CommandKind::Function { name, body: Box::new(command_of((CommandKind::Group(body), Vec::new()))) }),
        1 => test,
        1 => number().prop_map(CommandKind::Arithmetic),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_that_is_written_is_read_again(script in script()) {
        let text = write(&script);
        let read = parse(&text);
        let read = read.as_ref().map(outline);
        prop_assert!(read == Ok(outline(&script)), "{text}\n{read:?}\n{}", outline(&script));
    }
}
