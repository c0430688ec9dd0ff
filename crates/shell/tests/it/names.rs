//! What a tree says will run.

use haft_shell::ast::{
    ArithmeticExpression, AssignedValue, Assignment, CommandKind, CommandNode, ParameterExpansion,
    ParameterOperation, PartKind, ShellScript, ShellWord, Span, TestItem, WordPart,
};

/// The simple commands of a tree, at every depth.
#[derive(Default, Debug)]
pub(crate) struct Commands {
    /// The possible words of each command; an unknown word, or a command whose number of words is
    /// not known, ends the list with `None`.
    pub(crate) words: Vec<Vec<Option<String>>>,
    /// Where the name of each stands.
    pub(crate) places: Vec<Span>,
    /// Some text is evaluated that the line does not show.
    pub(crate) evaluates: bool,
}

/// Every command of a script.
pub(crate) fn commands(script: &ShellScript) -> Commands {
    let mut commands = Commands::default();
    commands.script(script);
    commands
}

impl Commands {
    fn script(&mut self, script: &ShellScript) {
        for item in &script.items {
            for command in &item.pipeline.commands {
                self.command(command);
            }
        }
    }

    fn command(&mut self, command: &CommandNode) {
        for redirect in &command.redirects {
            self.word(&redirect.target);
            redirect.body.iter().for_each(|body| self.word(body));
        }
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                assignments
                    .iter()
                    .for_each(|assignment| self.assignment(assignment));
                words.iter().for_each(|word| self.word(word));
                if let Some(name) = words.first() {
                    self.words.push(fixed(words));
                    self.places.push(name.span);
                }
            }
            CommandKind::Group(script) | CommandKind::Subshell(script) => self.script(script),
            CommandKind::If {
                branches,
                otherwise,
            } => {
                for (test, body) in branches {
                    self.script(test);
                    self.script(body);
                }
                otherwise.iter().for_each(|script| self.script(script));
            }
            CommandKind::While { test, body } => {
                self.script(test);
                self.script(body);
            }
            CommandKind::For { words, body, .. } => {
                words.iter().flatten().for_each(|word| self.word(word));
                self.script(body);
            }
            CommandKind::ArithmeticFor { parts, body } => {
                parts.iter().for_each(|part| self.arithmetic(part));
                self.script(body);
            }
            CommandKind::Case { word, arms } => {
                self.word(word);
                for arm in arms {
                    arm.patterns.iter().for_each(|word| self.word(word));
                    self.script(&arm.body);
                }
            }
            CommandKind::Function { body, .. } | CommandKind::Coprocess { body } => {
                self.command(body)
            }
            CommandKind::Test(items) => {
                for item in items {
                    if let TestItem::Word(word) = item {
                        self.word(word);
                    }
                }
            }
            CommandKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        assignment.subscript.iter().for_each(|word| self.word(word));
        match &assignment.value {
            AssignedValue::Word(word) => self.word(word),
            AssignedValue::Array(words) => words.iter().for_each(|word| self.word(word)),
        }
    }

    fn word(&mut self, word: &ShellWord) {
        word.parts.iter().for_each(|part| self.part(part));
    }

    fn part(&mut self, part: &WordPart) {
        match &part.kind {
            PartKind::Text(_) | PartKind::Glob(_) | PartKind::Brace(_) | PartKind::Tilde(_) => {}
            // There is no translation here.
            PartKind::Parameter(ParameterExpansion { name, .. }) if name == "TEXTDOMAIN" => {}
            PartKind::Parameter(ParameterExpansion { operation, .. }) => self.operation(operation),
            PartKind::Command(script) | PartKind::Process(script) => self.script(script),
            PartKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            PartKind::Array(words) => words.iter().for_each(|word| self.word(word)),
        }
    }

    fn operation(&mut self, operation: &ParameterOperation) {
        match operation {
            ParameterOperation::Plain | ParameterOperation::Length => {}
            ParameterOperation::Pure(words) => words.iter().for_each(|word| self.word(word)),
            ParameterOperation::Assign(word) => self.word(word),
            ParameterOperation::Slice(bounds) => {
                bounds.iter().for_each(|bound| self.arithmetic(bound));
            }
            ParameterOperation::Subscript(subscript, operation) => {
                self.arithmetic(subscript);
                self.operation(operation);
            }
            ParameterOperation::Evaluates => self.evaluates = true,
        }
    }

    fn arithmetic(&mut self, arithmetic: &ArithmeticExpression) {
        arithmetic.parts.iter().for_each(|part| self.part(part));
    }
}

/// The words as far as they are fixed.
fn fixed(words: &[ShellWord]) -> Vec<Option<String>> {
    let mut fixed = Vec::new();
    for word in words {
        match texts(word) {
            Some(texts) => fixed.extend(texts.into_iter().map(Some)),
            None => {
                fixed.push(None);
                break;
            }
        }
    }
    fixed
}

/// Every word that this word becomes, if that is in the line.
fn texts(word: &ShellWord) -> Option<Vec<String>> {
    let mut texts = vec![String::new()];
    let mut quoted = false;
    for part in &word.parts {
        quoted |= part.quoted;
        let more: &[String] = match &part.kind {
            PartKind::Text(text) => std::slice::from_ref(text),
            PartKind::Parameter(ParameterExpansion { name, .. }) if name == "TEXTDOMAIN" => {
                continue;
            }
            PartKind::Brace(Some(more)) => more,
            _ => return None,
        };
        texts = texts
            .iter()
            .flat_map(|text| more.iter().map(move |end| format!("{text}{end}")))
            .collect();
    }
    // An empty word vanishes unless it has quotes; which alternative had them is not kept.
    match texts.iter().any(String::is_empty) && (!quoted || texts.len() > 1) {
        true => None,
        false => Some(texts),
    }
}
