//! Bash prints a command back in a form of its own. This brings a tree into that form.

use haft_shell::ast::{
    ArithmeticExpression, AssignedValue, CommandKind, CommandNode, ListSeparator,
    ParameterExpansion, ParameterOperation, PartKind, Pipeline, Redirect, RedirectOperator,
    ScriptItem, ShellScript, ShellWord, Span, TestItem, WordPart,
};

const NOWHERE: Span = Span { start: 0, end: 0 };

pub(crate) fn script(script: &mut ShellScript) {
    for item in &mut script.items {
        item.pipeline.commands.iter_mut().for_each(command);
    }
}

fn alone(command: CommandNode) -> ShellScript {
    ShellScript {
        items: vec![ScriptItem {
            pipeline: Pipeline {
                span: NOWHERE,
                negated: false,
                timed: false,
                commands: vec![command],
            },
            then: ListSeparator::Sequence,
        }],
    }
}

fn command(command: &mut CommandNode) {
    command.redirects.iter_mut().for_each(redirect);
    match &mut command.kind {
        CommandKind::Simple { assignments, words } => {
            for assignment in assignments {
                assignment.subscript.iter_mut().for_each(word);
                match &mut assignment.value {
                    AssignedValue::Word(value) => word(value),
                    AssignedValue::Array(words) => words.iter_mut().for_each(word),
                }
            }
            words.iter_mut().for_each(word);
        }
        CommandKind::Group(inner) | CommandKind::Subshell(inner) => script(inner),
        CommandKind::If {
            branches,
            otherwise,
        } => {
            // `elif` is an `if` inside `else`.
            if branches.len() > 1 {
                let rest = branches.split_off(1);
                let inner = CommandKind::If {
                    branches: rest,
                    otherwise: otherwise.take(),
                };
                *otherwise = Some(alone(CommandNode {
                    span: NOWHERE,
                    kind: inner,
                    redirects: Vec::new(),
                }));
            }
            for (test, body) in branches {
                script(test);
                script(body);
            }
            otherwise.iter_mut().for_each(script);
        }
        CommandKind::While { test, body } => {
            script(test);
            script(body);
        }
        CommandKind::For { words, body, .. } => {
            let all = WordPart {
                span: NOWHERE,
                quoted: true,
                kind: PartKind::Parameter(ParameterExpansion {
                    name: "@".into(),
                    operation: ParameterOperation::Plain,
                }),
            };
            let words = words.get_or_insert(vec![ShellWord {
                span: NOWHERE,
                parts: vec![all],
            }]);
            words.iter_mut().for_each(word);
            script(body);
        }
        CommandKind::ArithmeticFor { parts, body } => {
            for part in parts {
                part.text = part.text.trim().to_owned();
                if part.text.is_empty() {
                    part.text = "1".into();
                }
                arithmetic(part);
            }
            script(body);
        }
        CommandKind::Case {
            word: subject,
            arms,
        } => {
            word(subject);
            for arm in arms {
                arm.patterns.iter_mut().for_each(word);
                script(&mut arm.body);
            }
        }
        CommandKind::Function { body, .. } => {
            // A body is always printed in braces.
            if !matches!(body.kind, CommandKind::Group(_)) {
                let kind = std::mem::replace(&mut body.kind, CommandKind::Test(Vec::new()));
                body.kind = CommandKind::Group(alone(CommandNode {
                    span: NOWHERE,
                    kind,
                    redirects: Vec::new(),
                }));
            }
            self::command(body);
        }
        CommandKind::Coprocess { body } => self::command(body),
        CommandKind::Test(items) => {
            // A word alone is printed as `-n word`.
            items.retain(
                |item| !matches!(item, TestItem::Operator(operator, _) if operator == "-n"),
            );
            for item in items {
                if let TestItem::Word(operand) = item {
                    word(operand);
                }
            }
        }
        CommandKind::Arithmetic(inner) => arithmetic(inner),
    }
}

fn redirect(redirect: &mut Redirect) {
    let default = match redirect.operator {
        RedirectOperator::ReadWrite | RedirectOperator::DuplicateIn => Some("0"),
        RedirectOperator::DuplicateOut => Some("1"),
        _ => None,
    };
    if let Some(number) = redirect
        .descriptor
        .as_ref()
        .and_then(|text| text.parse::<u32>().ok())
    {
        redirect.descriptor = Some(number.to_string());
    }
    // A fault of its printer.
    if redirect.operator == RedirectOperator::ReadWrite
        && redirect.descriptor.as_deref() == Some("1")
    {
        redirect.descriptor = None;
    }
    if redirect.descriptor.is_none() {
        redirect.descriptor = default.map(str::to_owned);
    }
    let shown = match redirect.operator {
        RedirectOperator::Read | RedirectOperator::HereDocument | RedirectOperator::HereString => {
            "0"
        }
        RedirectOperator::DuplicateIn | RedirectOperator::DuplicateOut => "",
        RedirectOperator::ReadWrite => "",
        _ => "1",
    };
    if redirect.descriptor.as_deref() == Some(shown) {
        redirect.descriptor = None;
    }
    word(&mut redirect.target);
    let closes = matches!(&redirect.target.parts[..], [WordPart { kind: PartKind::Text(text), .. }] if text == "-");
    if redirect.operator == RedirectOperator::DuplicateIn && closes {
        redirect.operator = RedirectOperator::DuplicateOut;
    }
    redirect.body.iter_mut().for_each(word);
}

/// Quoted texts that touch are one.
fn word(word: &mut ShellWord) {
    let mut parts: Vec<WordPart> = Vec::new();
    for mut next in std::mem::take(&mut word.parts) {
        part(&mut next);
        if let WordPart {
            quoted: true,
            kind: PartKind::Text(text),
            ..
        } = &next
            && let Some(WordPart {
                quoted: true,
                kind: PartKind::Text(before),
                ..
            }) = parts.last_mut()
        {
            before.push_str(text);
            continue;
        }
        parts.push(next);
    }
    word.parts = parts;
}

fn part(part: &mut WordPart) {
    match &mut part.kind {
        PartKind::Text(_) | PartKind::Glob(_) | PartKind::Brace(_) | PartKind::Tilde(_) => {}
        PartKind::Parameter(parameter) => operation(&mut parameter.operation),
        PartKind::Command(inner) | PartKind::Process(inner) => script(inner),
        PartKind::Arithmetic(inner) => arithmetic(inner),
        PartKind::Array(words) => words.iter_mut().for_each(word),
    }
}

fn operation(operation: &mut ParameterOperation) {
    match operation {
        ParameterOperation::Plain | ParameterOperation::Length | ParameterOperation::Evaluates => {}
        ParameterOperation::Pure(words) => words.iter_mut().for_each(word),
        ParameterOperation::Assign(value) => word(value),
        ParameterOperation::Slice(bounds) => bounds.iter_mut().for_each(arithmetic),
        ParameterOperation::Subscript(subscript, inner) => {
            arithmetic(subscript);
            self::operation(inner);
        }
    }
}

fn arithmetic(arithmetic: &mut ArithmeticExpression) {
    // The text of a substitution in it is printed anew, too.
    if !arithmetic.parts.is_empty() {
        arithmetic.text.clear();
    }
    arithmetic.parts.iter_mut().for_each(part);
}
