//! A tree as text, without spans: the form that tests inspect and compare.

use std::fmt::Write as _;

use crate::ast::{
    ArithmeticExpression, AssignedValue, Assignment, CommandKind, CommandNode, ListSeparator,
    ParameterExpansion, ParameterOperation, PartKind, Redirect, RedirectOperator, ShellScript,
    ShellWord, TestItem, WordPart,
};

/// Returns the tree as an s-expression, without spans.
///
/// Unquoted text appears as written, quoted text is in double quotes.
pub fn outline(script: &ShellScript) -> String {
    let mut outline = OutlineWriter {
        text: String::new(),
    };
    outline.script(script);
    outline.text
}

struct OutlineWriter {
    text: String,
}

impl OutlineWriter {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn list<T>(&mut self, name: &str, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.put("(");
        self.put(name);
        for item in items {
            self.put(" ");
            each(self, item);
        }
        self.put(")");
    }

    fn script(&mut self, script: &ShellScript) {
        self.put("[");
        for (index, item) in script.items.iter().enumerate() {
            if index > 0 {
                self.put(" ");
            }
            let pipeline = &item.pipeline;
            if pipeline.timed {
                self.put("time ");
            }
            if pipeline.negated {
                self.put("! ");
            }
            for (index, command) in pipeline.commands.iter().enumerate() {
                if index > 0 {
                    self.put(" | ");
                }
                self.command(command);
            }
            self.put(match item.then {
                ListSeparator::And => " &&",
                ListSeparator::Or => " ||",
                ListSeparator::Background => " &",
                ListSeparator::Sequence => "",
            });
        }
        self.put("]");
    }

    fn command(&mut self, command: &CommandNode) {
        if !command.redirects.is_empty() {
            self.put("(to ");
        }
        self.kind(&command.kind);
        for redirect in &command.redirects {
            self.put(" ");
            self.redirect(redirect);
        }
        if !command.redirects.is_empty() {
            self.put(")");
        }
    }

    fn kind(&mut self, kind: &CommandKind) {
        match kind {
            CommandKind::Simple { assignments, words } => {
                self.put("(");
                let mut first = true;
                for assignment in assignments {
                    if !std::mem::take(&mut first) {
                        self.put(" ");
                    }
                    self.assignment(assignment);
                }
                for word in words {
                    if !std::mem::take(&mut first) {
                        self.put(" ");
                    }
                    self.word(word);
                }
                self.put(")");
            }
            CommandKind::Group(script) => {
                self.list("group", &[script], |out, script| out.script(script))
            }
            CommandKind::Subshell(script) => {
                self.list("subshell", &[script], |out, script| out.script(script));
            }
            CommandKind::If {
                branches,
                otherwise,
            } => {
                let mut scripts = Vec::new();
                for (test, body) in branches {
                    scripts.extend([test, body]);
                }
                scripts.extend(otherwise);
                self.list("if", &scripts, |out, script| out.script(script));
            }
            CommandKind::While { test, body } => {
                self.list("while", &[test, body], |out, script| out.script(script));
            }
            CommandKind::For {
                name,
                words,
                body,
                select,
            } => {
                self.put(if *select { "(select " } else { "(for " });
                self.put(name);
                self.put(" ");
                match words {
                    Some(words) => self.list("in", words, Self::word),
                    None => self.put("-"),
                }
                self.put(" ");
                self.script(body);
                self.put(")");
            }
            CommandKind::ArithmeticFor { parts, body } => {
                self.list("for", parts, Self::arithmetic);
                self.script(body);
            }
            CommandKind::Case { word, arms } => {
                self.put("(case ");
                self.word(word);
                for arm in arms {
                    self.put(" ");
                    self.list("arm", &arm.patterns, Self::word);
                    self.script(&arm.body);
                }
                self.put(")");
            }
            CommandKind::Function { name, body } => {
                self.put("(function ");
                self.put(name);
                self.put(" ");
                self.command(body);
                self.put(")");
            }
            CommandKind::Test(items) => self.list("test", items, |out, item| match item {
                TestItem::Operator(operator, _) => {
                    let _ = write!(out.text, "'{operator}'");
                }
                TestItem::Word(word) => out.word(word),
            }),
            CommandKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            CommandKind::Coprocess { body } => {
                self.list("coproc", &[body], |out, body| out.command(body));
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        self.put("(set ");
        self.put(&assignment.name);
        if let Some(subscript) = &assignment.subscript {
            self.put(" at ");
            self.word(subscript);
        }
        self.put(if assignment.append { " += " } else { " = " });
        match &assignment.value {
            AssignedValue::Word(word) => self.word(word),
            AssignedValue::Array(words) => self.list("array", words, Self::word),
        }
        self.put(")");
    }

    fn redirect(&mut self, redirect: &Redirect) {
        self.put(redirect.descriptor.as_deref().unwrap_or_default());
        self.put(match redirect.operator {
            RedirectOperator::Read => "<",
            RedirectOperator::Write => ">",
            RedirectOperator::Append => ">>",
            RedirectOperator::Clobber => ">|",
            RedirectOperator::ReadWrite => "<>",
            RedirectOperator::WriteBoth => "&>",
            RedirectOperator::AppendBoth => "&>>",
            RedirectOperator::DuplicateIn => "<&",
            RedirectOperator::DuplicateOut => ">&",
            RedirectOperator::HereDocument => "<<",
            RedirectOperator::HereString => "<<<",
        });
        self.word(&redirect.target);
        if let Some(body) = &redirect.body {
            self.put(":");
            self.word(body);
        }
    }

    fn word(&mut self, word: &ShellWord) {
        match &word.parts[..] {
            [] => self.put("-"),
            [part] => self.part(part),
            parts => {
                self.put("{");
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.put(" ");
                    }
                    self.part(part);
                }
                self.put("}");
            }
        }
    }

    fn part(&mut self, part: &WordPart) {
        match &part.kind {
            PartKind::Text(text) if part.quoted => {
                let _ = write!(self.text, "{text:?}");
                return;
            }
            PartKind::Text(text) => {
                let plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=+,@%^#!".contains(&byte);
                if text.bytes().all(plain) {
                    self.put(text);
                } else {
                    let _ = write!(self.text, "bare{text:?}");
                }
                return;
            }
            _ if part.quoted => self.put("\""),
            _ => {}
        }
        match &part.kind {
            PartKind::Text(_) => {}
            PartKind::Glob(text) => self.list("glob", &[text], |out, text| out.put(text)),
            PartKind::Brace(Some(texts)) => self.list("brace", texts, |out, text| {
                let _ = write!(out.text, "{text:?}");
            }),
            PartKind::Brace(None) => self.put("(brace?)"),
            PartKind::Tilde(text) => self.list("tilde", &[text], |out, text| out.put(text)),
            PartKind::Parameter(parameter) => self.parameter(parameter),
            PartKind::Command(script) => {
                self.put("$");
                self.script(script);
            }
            PartKind::Process(script) => {
                self.put("<");
                self.script(script);
            }
            PartKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            PartKind::Array(words) => self.list("array", words, Self::word),
        }
        if part.quoted {
            self.put("\"");
        }
    }

    fn parameter(&mut self, parameter: &ParameterExpansion) {
        self.put("$");
        self.put(&parameter.name);
        self.operation(&parameter.operation);
    }

    fn operation(&mut self, operation: &ParameterOperation) {
        match operation {
            ParameterOperation::Plain => {}
            ParameterOperation::Length => self.put("(length)"),
            ParameterOperation::Pure(words) => self.list("pure", words, Self::word),
            ParameterOperation::Assign(word) => {
                self.list("assign", &[word], |out, word| out.word(word))
            }
            ParameterOperation::Slice(bounds) => self.list("slice", bounds, Self::arithmetic),
            ParameterOperation::Subscript(subscript, operation) => {
                self.list("at", &[subscript], |out, subscript| {
                    out.arithmetic(subscript)
                });
                self.operation(operation);
            }
            ParameterOperation::Evaluates => self.put("(evaluates)"),
        }
    }

    fn arithmetic(&mut self, arithmetic: &ArithmeticExpression) {
        self.put("(math ");
        let _ = write!(self.text, "{:?}", arithmetic.text);
        for part in &arithmetic.parts {
            self.put(" ");
            self.part(part);
        }
        self.put(")");
    }
}
