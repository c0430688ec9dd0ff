//! A tree as text that bash would read as that tree.

use haft_shell::ast::{
    AssignedValue, CommandKind, CommandNode, ListSeparator, ParameterExpansion, ParameterOperation,
    PartKind, Redirect, RedirectOperator, ShellScript, ShellWord, TestItem, WordPart,
};

pub(crate) fn write(script: &ShellScript) -> String {
    let mut writer = Writer::default();
    writer.script(script);
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Bodies of here-documents, for behind the next line break.
    bodies: Vec<String>,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn newline(&mut self) {
        self.put("\n");
        for body in std::mem::take(&mut self.bodies) {
            self.put(&body);
        }
    }

    fn script(&mut self, script: &ShellScript) {
        for item in &script.items {
            let pipeline = &item.pipeline;
            if pipeline.negated {
                self.put("! ");
            }
            if pipeline.timed {
                self.put("time ");
            }
            for (index, command) in pipeline.commands.iter().enumerate() {
                if index > 0 {
                    self.put(" | ");
                }
                self.command(command);
            }
            match item.then {
                ListSeparator::And => self.put(" && "),
                ListSeparator::Or => self.put(" || "),
                ListSeparator::Background => {
                    self.put(" &");
                    self.newline();
                }
                ListSeparator::Sequence => self.newline(),
            }
        }
    }

    fn body(&mut self, before: &str, script: &ShellScript, after: &str) {
        self.put(before);
        self.newline();
        self.script(script);
        self.put(after);
    }

    fn command(&mut self, command: &CommandNode) {
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                for assignment in assignments {
                    self.put(&assignment.name);
                    self.put(if assignment.append { "+=" } else { "=" });
                    match &assignment.value {
                        AssignedValue::Word(word) => self.word(word),
                        AssignedValue::Array(words) => {
                            self.put("(");
                            self.words(words);
                            self.put(")");
                        }
                    }
                    self.put(" ");
                }
                self.words(words);
            }
            CommandKind::Group(script) => self.body("{", script, "}"),
            CommandKind::Subshell(script) => self.body("(", script, ")"),
            CommandKind::If {
                branches,
                otherwise,
            } => {
                for (index, (test, body)) in branches.iter().enumerate() {
                    self.body(if index == 0 { "if" } else { "elif" }, test, "then");
                    self.body("", body, "");
                }
                if let Some(otherwise) = otherwise {
                    self.body("else", otherwise, "");
                }
                self.put("fi");
            }
            CommandKind::While { test, body } => {
                self.body("while", test, "do");
                self.body("", body, "done");
            }
            CommandKind::For {
                name,
                words,
                body,
                select,
            } => {
                self.put(if *select { "select " } else { "for " });
                self.put(name);
                if let Some(words) = words {
                    self.put(" in ");
                    self.words(words);
                }
                self.body("; do", body, "done");
            }
            CommandKind::ArithmeticFor { parts, body } => {
                let parts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
                self.put(&format!("for (({}))", parts.join(";")));
                self.body("; do", body, "done");
            }
            CommandKind::Case { word, arms } => {
                self.put("case ");
                self.word(word);
                self.put(" in ");
                for arm in arms {
                    self.put("(");
                    for (index, pattern) in arm.patterns.iter().enumerate() {
                        if index > 0 {
                            self.put(" | ");
                        }
                        self.word(pattern);
                    }
                    self.body(")", &arm.body, ";;");
                    self.newline();
                }
                self.put("esac");
            }
            CommandKind::Function { name, body } => {
                self.put(&format!("function {name} "));
                self.command(body);
            }
            CommandKind::Test(items) => {
                self.put("[[ ");
                for item in items {
                    match item {
                        TestItem::Operator(operator, _) => self.put(operator),
                        TestItem::Word(word) => self.word(word),
                    }
                    self.put(" ");
                }
                self.put("]]");
            }
            CommandKind::Arithmetic(arithmetic) => self.put(&format!("(({}))", arithmetic.text)),
            CommandKind::Coprocess { body } => {
                self.put("coproc ");
                self.command(body);
            }
        }
        for redirect in &command.redirects {
            self.put(" ");
            self.redirect(redirect);
        }
    }

    fn redirect(&mut self, redirect: &Redirect) {
        self.put(redirect.descriptor.as_deref().unwrap_or_default());
        self.put(match redirect.operator {
            RedirectOperator::Read => "< ",
            RedirectOperator::Write => "> ",
            RedirectOperator::Append => ">> ",
            RedirectOperator::Clobber => ">| ",
            RedirectOperator::ReadWrite => "<> ",
            RedirectOperator::WriteBoth => "&> ",
            RedirectOperator::AppendBoth => "&>> ",
            RedirectOperator::DuplicateIn => "<&",
            RedirectOperator::DuplicateOut => ">&",
            RedirectOperator::HereDocument => "<<",
            RedirectOperator::HereString => "<<<",
        });
        self.word(&redirect.target);
        if let Some(body) = &redirect.body {
            let text: String = body
                .parts
                .iter()
                .filter_map(|part| match &part.kind {
                    PartKind::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            self.bodies.push(format!("{text}END\n"));
        }
    }

    fn words(&mut self, words: &[ShellWord]) {
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                self.put(" ");
            }
            self.word(word);
        }
    }

    fn word(&mut self, word: &ShellWord) {
        for part in &word.parts {
            self.part(part);
        }
    }

    fn part(&mut self, part: &WordPart) {
        let quotes = part.quoted && !matches!(part.kind, PartKind::Text(_));
        if quotes {
            self.put("\"");
        }
        match &part.kind {
            PartKind::Text(text) if part.quoted => self.quoted(text),
            PartKind::Text(text) | PartKind::Glob(text) | PartKind::Tilde(text) => self.put(text),
            PartKind::Brace(texts) => {
                self.put(&format!(
                    "{{{}}}",
                    texts.as_deref().unwrap_or_default().join(",")
                ));
            }
            PartKind::Parameter(parameter) => self.parameter(parameter),
            PartKind::Command(script) => self.put(&format!("$(\n{})", write(script))),
            PartKind::Process(script) => self.put(&format!("<(\n{})", write(script))),
            PartKind::Arithmetic(arithmetic) => self.put(&format!("$(({}))", arithmetic.text)),
            PartKind::Array(_) => {}
        }
        if quotes {
            self.put("\"");
        }
    }

    /// In single quotes, or in double quotes if it has single ones.
    fn quoted(&mut self, text: &str) {
        if !text.contains('\'') {
            self.put(&format!("'{text}'"));
            return;
        }
        let mut escaped = String::new();
        for character in text.chars() {
            if "$`\"\\".contains(character) {
                escaped.push('\\');
            }
            escaped.push(character);
        }
        self.put(&format!("\"{escaped}\""));
    }

    fn parameter(&mut self, parameter: &ParameterExpansion) {
        let name = &parameter.name;
        let text = match &parameter.operation {
            ParameterOperation::Length => format!("${{#{name}}}"),
            ParameterOperation::Slice(bounds) => format!("${{{name}:{}}}", bounds[0].text),
            ParameterOperation::Subscript(subscript, _) => {
                format!("${{{name}[{}]}}", subscript.text)
            }
            _ => format!("${{{name}}}"),
        };
        self.put(&text);
    }
}
