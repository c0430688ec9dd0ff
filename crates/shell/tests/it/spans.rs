//! Every span is a place in the line, inside that of what holds it, and behind that of what precedes it.

use haft_shell::ast::{
    ArithmeticExpression, AssignedValue, CommandKind, CommandNode, ParameterOperation, PartKind,
    ShellScript, ShellWord, Span, TestItem, WordPart,
};

pub(crate) fn check(line: &str, script: &ShellScript) {
    let whole = Span {
        start: 0,
        end: line.len(),
    };
    Spans { line }.script(script, whole);
}

struct Spans<'t> {
    line: &'t str,
}

impl Spans<'_> {
    fn inside(&self, span: Span, parent: Span) {
        assert!(span.start <= span.end, "{:?} {span:?}", self.line);
        assert!(
            self.line.is_char_boundary(span.start),
            "{:?} {span:?}",
            self.line
        );
        assert!(
            self.line.is_char_boundary(span.end),
            "{:?} {span:?}",
            self.line
        );
        assert!(
            parent.start <= span.start && span.end <= parent.end,
            "{:?} {span:?} in {parent:?}",
            self.line
        );
    }

    /// In order, without overlap.
    fn ordered(&self, spans: &[Span]) {
        for pair in spans.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{:?} {pair:?}", self.line);
        }
    }

    fn script(&self, script: &ShellScript, parent: Span) {
        let mut pipelines = Vec::new();
        for item in &script.items {
            let span = item.pipeline.span;
            self.inside(span, parent);
            pipelines.push(span);
            let commands: Vec<Span> = item.pipeline.commands.iter().map(|one| one.span).collect();
            self.ordered(&commands);
            for command in &item.pipeline.commands {
                self.inside(command.span, span);
                self.command(command);
            }
        }
        self.ordered(&pipelines);
    }

    fn command(&self, command: &CommandNode) {
        let span = command.span;
        for redirect in &command.redirects {
            self.inside(redirect.span, span);
            self.word(&redirect.target, redirect.span);
            // A here-document stands behind the command.
            if let Some(body) = &redirect.body {
                self.word(
                    body,
                    Span {
                        start: 0,
                        end: self.line.len(),
                    },
                );
            }
        }
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                for assignment in assignments {
                    self.inside(assignment.span, span);
                    if let Some(subscript) = &assignment.subscript {
                        self.word(subscript, assignment.span);
                    }
                    match &assignment.value {
                        AssignedValue::Word(word) => self.word(word, assignment.span),
                        AssignedValue::Array(words) => self.words(words, assignment.span),
                    }
                }
                self.words(words, span);
            }
            CommandKind::Group(script) | CommandKind::Subshell(script) => self.script(script, span),
            CommandKind::If {
                branches,
                otherwise,
            } => {
                for (test, body) in branches {
                    self.script(test, span);
                    self.script(body, span);
                }
                if let Some(script) = otherwise {
                    self.script(script, span);
                }
            }
            CommandKind::While { test, body } => {
                self.script(test, span);
                self.script(body, span);
            }
            CommandKind::For { words, body, .. } => {
                self.words(words.as_deref().unwrap_or_default(), span);
                self.script(body, span);
            }
            CommandKind::ArithmeticFor { parts, body } => {
                for part in parts {
                    self.arithmetic(part, span);
                }
                self.script(body, span);
            }
            CommandKind::Case { word, arms } => {
                self.word(word, span);
                for arm in arms {
                    self.words(&arm.patterns, span);
                    self.script(&arm.body, span);
                }
            }
            CommandKind::Function { body, .. } | CommandKind::Coprocess { body } => {
                self.inside(body.span, span);
                self.command(body);
            }
            CommandKind::Test(items) => {
                for item in items {
                    match item {
                        TestItem::Operator(_, operator) => self.inside(*operator, span),
                        TestItem::Word(word) => self.word(word, span),
                    }
                }
            }
            CommandKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic, span),
        }
    }

    fn words(&self, words: &[ShellWord], parent: Span) {
        let spans: Vec<Span> = words.iter().map(|word| word.span).collect();
        self.ordered(&spans);
        for word in words {
            self.word(word, parent);
        }
    }

    fn word(&self, word: &ShellWord, parent: Span) {
        self.inside(word.span, parent);
        self.parts(&word.parts, word.span);
    }

    fn parts(&self, parts: &[WordPart], parent: Span) {
        let spans: Vec<Span> = parts.iter().map(|part| part.span).collect();
        self.ordered(&spans);
        for part in parts {
            self.inside(part.span, parent);
            self.part(part);
        }
    }

    fn part(&self, part: &WordPart) {
        let span = part.span;
        match &part.kind {
            PartKind::Text(_) | PartKind::Glob(_) | PartKind::Brace(_) | PartKind::Tilde(_) => {}
            PartKind::Parameter(parameter) => self.operation(&parameter.operation, span),
            PartKind::Command(script) | PartKind::Process(script) => self.script(script, span),
            PartKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic, span),
            PartKind::Array(words) => self.words(words, span),
        }
    }

    fn operation(&self, operation: &ParameterOperation, parent: Span) {
        match operation {
            ParameterOperation::Plain
            | ParameterOperation::Length
            | ParameterOperation::Evaluates => {}
            ParameterOperation::Pure(words) => self.words(words, parent),
            ParameterOperation::Assign(word) => self.word(word, parent),
            ParameterOperation::Slice(bounds) => {
                for bound in bounds {
                    self.arithmetic(bound, parent);
                }
            }
            ParameterOperation::Subscript(subscript, inner) => {
                self.arithmetic(subscript, parent);
                self.operation(inner, parent);
            }
        }
    }

    fn arithmetic(&self, arithmetic: &ArithmeticExpression, parent: Span) {
        self.inside(arithmetic.span, parent);
        self.parts(&arithmetic.parts, arithmetic.span);
    }
}
