//! Bash prints a command back in a form of its own. This brings a tree into that form.

use haft_shell::ast::{
    Arithmetic, AssignedValue, Command, Item, Kind, Parameter, ParameterOperation, Part, PartKind,
    Pipeline, Redirect, RedirectOperator, Script, Separator, Span, TestItem, Word,
};

const NOWHERE: Span = Span { start: 0, end: 0 };

pub(crate) fn script(script: &mut Script) {
    for item in &mut script.items {
        item.pipeline.commands.iter_mut().for_each(command);
    }
}

fn alone(command: Command) -> Script {
    Script {
        items: vec![Item {
            pipeline: Pipeline {
                span: NOWHERE,
                negated: false,
                timed: false,
                commands: vec![command],
            },
            then: Separator::Sequence,
        }],
    }
}

fn command(command: &mut Command) {
    command.redirects.iter_mut().for_each(redirect);
    match &mut command.kind {
        Kind::Simple { assignments, words } => {
            for assignment in assignments {
                assignment.subscript.iter_mut().for_each(word);
                match &mut assignment.value {
                    AssignedValue::Word(value) => word(value),
                    AssignedValue::Array(words) => words.iter_mut().for_each(word),
                }
            }
            words.iter_mut().for_each(word);
        }
        Kind::Group(inner) | Kind::Subshell(inner) => script(inner),
        Kind::If {
            branches,
            otherwise,
        } => {
            // `elif` is an `if` inside `else`.
            if branches.len() > 1 {
                let rest = branches.split_off(1);
                let inner = Kind::If {
                    branches: rest,
                    otherwise: otherwise.take(),
                };
                *otherwise = Some(alone(Command {
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
        Kind::While { test, body } => {
            script(test);
            script(body);
        }
        Kind::For { words, body, .. } => {
            let all = Part {
                span: NOWHERE,
                quoted: true,
                kind: PartKind::Parameter(Parameter {
                    name: "@".into(),
                    operation: ParameterOperation::Plain,
                }),
            };
            let words = words.get_or_insert(vec![Word {
                span: NOWHERE,
                parts: vec![all],
            }]);
            words.iter_mut().for_each(word);
            script(body);
        }
        Kind::ArithmeticFor { parts, body } => {
            for part in parts {
                part.text = part.text.trim().to_owned();
                if part.text.is_empty() {
                    part.text = "1".into();
                }
                arithmetic(part);
            }
            script(body);
        }
        Kind::Case {
            word: subject,
            arms,
        } => {
            word(subject);
            for arm in arms {
                arm.patterns.iter_mut().for_each(word);
                script(&mut arm.body);
            }
        }
        Kind::Function { body, .. } => {
            // A body is always printed in braces.
            if !matches!(body.kind, Kind::Group(_)) {
                let kind = std::mem::replace(&mut body.kind, Kind::Test(Vec::new()));
                body.kind = Kind::Group(alone(Command {
                    span: NOWHERE,
                    kind,
                    redirects: Vec::new(),
                }));
            }
            self::command(body);
        }
        Kind::Coprocess { body } => self::command(body),
        Kind::Test(items) => {
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
        Kind::Arithmetic(inner) => arithmetic(inner),
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
    let closes = matches!(&redirect.target.parts[..], [Part { kind: PartKind::Text(text), .. }] if text == "-");
    if redirect.operator == RedirectOperator::DuplicateIn && closes {
        redirect.operator = RedirectOperator::DuplicateOut;
    }
    redirect.body.iter_mut().for_each(word);
}

/// Quoted texts that touch are one.
fn word(word: &mut Word) {
    let mut parts: Vec<Part> = Vec::new();
    for mut next in std::mem::take(&mut word.parts) {
        part(&mut next);
        if let Part {
            quoted: true,
            kind: PartKind::Text(text),
            ..
        } = &next
            && let Some(Part {
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

fn part(part: &mut Part) {
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

fn arithmetic(arithmetic: &mut Arithmetic) {
    // The text of a substitution in it is printed anew, too.
    if !arithmetic.parts.is_empty() {
        arithmetic.text.clear();
    }
    arithmetic.parts.iter_mut().for_each(part);
}
