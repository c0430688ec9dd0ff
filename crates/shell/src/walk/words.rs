//! The effects inside words: substitutions, assignments by expansion, conditions.

use super::{LineWalkState, ShellText, Walker};
use crate::{
    arithmetic,
    ast::{ParameterExpansion, ParameterOperation, PartKind, ShellWord, Span, TestItem, WordPart},
    commands::{options::names, variables::is_name},
    decode,
    effect::{CommandFinding, Effect, EffectVerdict},
};

impl Walker<'_> {
    /// Analyzes the commands and assignments that bash runs to expand the word.
    pub(super) fn word(&mut self, word: &ShellWord, shell: &ShellText<'_>, state: &LineWalkState) {
        for part in &word.parts {
            self.part(part, shell, state);
        }
    }

    pub(super) fn part(&mut self, part: &WordPart, shell: &ShellText<'_>, state: &LineWalkState) {
        match &part.kind {
            PartKind::Text(text) => self.evaluation.record_text(text),
            PartKind::Glob(_) | PartKind::Brace(_) | PartKind::Tilde(_) => {}
            PartKind::Array(words) => {
                for word in words {
                    self.word(word, shell, state);
                }
            }
            PartKind::Parameter(parameter) => self.parameter(parameter, part.span, shell, state),
            PartKind::Command(script) | PartKind::Process(script) => {
                self.script(script, shell, &mut state.clone());
            }
            PartKind::Arithmetic(expression) => self.arithmetic(expression, shell, state),
        }
    }

    fn parameter(
        &mut self,
        parameter: &ParameterExpansion,
        span: Span,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        self.operation(&parameter.name, &parameter.operation, span, shell, state);
    }

    fn operation(
        &mut self,
        name: &str,
        operation: &ParameterOperation,
        span: Span,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        self.use_variable(name, span, shell, state);
        match operation {
            ParameterOperation::Plain | ParameterOperation::Length => {}
            ParameterOperation::Pure(words) => {
                for word in words {
                    self.word(word, shell, state);
                }
            }
            ParameterOperation::Assign(word) => {
                self.variables_may_change = true;
                self.word(word, shell, state);
                let finding = CommandFinding::unknown(format!("the expansion sets {name}"))
                    .with_span(span)
                    .with(Effect::Env(name.to_owned()));
                self.record_finding(span, finding, shell, state);
            }
            ParameterOperation::Slice(expressions) => {
                for expression in expressions {
                    self.arithmetic(expression, shell, state);
                }
            }
            ParameterOperation::Subscript(subscript, inner) => {
                if !["@", "*"].contains(&subscript.text.trim()) {
                    self.arithmetic(subscript, shell, state);
                }
                self.operation(name, inner, span, shell, state);
            }
            ParameterOperation::Evaluates => {
                self.evaluation.record_evaluation();
                let finding =
                    CommandFinding::unknown("the expansion evaluates the text of a variable")
                        .with_span(span);
                self.record_finding(span, finding, shell, state);
            }
        }
    }

    /// Analyzes `[[ … ]]`.
    pub(super) fn test(
        &mut self,
        items: &[TestItem],
        span: Span,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        let mut finding = CommandFinding::read_only("it only tests");
        for (at, item) in items.iter().enumerate() {
            let TestItem::Operator(operator, operator_span) = item else {
                continue;
            };
            let operand = |at: Option<usize>| match at.and_then(|at| items.get(at)) {
                Some(TestItem::Word(word)) => decode::text(word, self.known(shell, state)),
                _ => None,
            };
            let before = operand(at.checked_sub(1));
            let behind = operand(Some(at + 1));
            match operator.as_str() {
                // Bash evaluates both sides as arithmetic.
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                    let plain =
                        |text: &Option<String>| text.as_deref().is_some_and(arithmetic::is_integer);
                    if !plain(&before) || !plain(&behind) {
                        finding = CommandFinding::unknown(
                            "bash evaluates the operands of a numeric comparison, and one is not a plain number",
                        )
                        .with_span(*operator_span);
                        break;
                    }
                }
                "-v" | "-R" => {
                    let plain = behind.is_some_and(|name| is_name(&name));
                    if !plain {
                        finding =
                            CommandFinding::unknown("bash evaluates the subscript of a variable")
                                .with_span(*operator_span);
                        break;
                    }
                }
                "-a" | "-b" | "-c" | "-d" | "-e" | "-f" | "-g" | "-h" | "-k" | "-p" | "-r"
                | "-s" | "-u" | "-w" | "-x" | "-G" | "-L" | "-N" | "-O" | "-S" | "-nt" | "-ot"
                | "-ef" => {
                    if let Some(TestItem::Word(word)) = items.get(at + 1) {
                        let looked = decode::args(word, self.known(shell, state));
                        finding.effects.extend(looked.iter().map(names));
                    }
                }
                _ => {}
            }
        }
        if finding.verdict != EffectVerdict::ReadOnly {
            self.evaluation.record_evaluation();
        }
        self.record_finding(span, finding, shell, state);
        for item in items {
            if let TestItem::Word(word) = item {
                self.word(word, shell, state);
            }
        }
    }
}
