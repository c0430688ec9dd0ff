//! The syntax tree of a command line, as bash reads it.
//!
//! Every expansion is a separate node, so that nothing that bash would evaluate is hidden in a
//! text.

/// A range of bytes in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

/// Pipelines, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellScript {
    /// The pipelines, in the order of the line.
    pub items: Vec<ScriptItem>,
}

/// One pipeline and the separator after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptItem {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The separator before the next pipeline.
    pub then: ListSeparator,
}

/// The operator between two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSeparator {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`, a line break, or the end.
    Sequence,
    /// `&`
    Background,
}

/// Commands joined by `|` or `|&`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// From its first word (or `!`, `time`) to its last.
    pub span: Span,
    /// The pipeline begins with `!` (or an odd number of them).
    pub negated: bool,
    /// The pipeline begins with the keyword `time` (with or without `-p`).
    pub timed: bool,
    /// The commands. Only a bare `!` or `time` has no command.
    pub commands: Vec<CommandNode>,
}

/// A simple or compound command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandNode {
    /// The command's place, including its redirections.
    pub span: Span,
    /// The kind of the command.
    pub kind: CommandKind,
    /// The redirections, in the order of the line.
    pub redirects: Vec<Redirect>,
}

/// The kinds of command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// Assignments and words: at least one of them, or only redirections.
    Simple {
        /// Before the first word.
        assignments: Vec<Assignment>,
        /// The name and the arguments.
        words: Vec<ShellWord>,
    },
    /// `{ …; }`
    Group(ShellScript),
    /// `( … )`
    Subshell(ShellScript),
    /// `if … then … elif … else … fi`
    If {
        /// Each condition with its body.
        branches: Vec<(ShellScript, ShellScript)>,
        /// The `else` body.
        otherwise: Option<ShellScript>,
    },
    /// `while … do … done`, `until … do … done`
    While {
        /// The condition.
        test: ShellScript,
        /// The body.
        body: ShellScript,
    },
    /// `for name in …; do … done`, and `select` likewise.
    For {
        /// The loop variable.
        name: String,
        /// The values to loop over. `None` means the positional parameters.
        words: Option<Vec<ShellWord>>,
        /// The body.
        body: ShellScript,
        /// The loop is a `select`, which reads from standard input.
        select: bool,
    },
    /// `for ((a; b; c)); do … done`
    ArithmeticFor {
        /// The three expressions.
        parts: Vec<ArithmeticExpression>,
        /// The body.
        body: ShellScript,
    },
    /// `case word in pattern) … ;; esac`
    Case {
        /// The value that is compared.
        word: ShellWord,
        /// The arms.
        arms: Vec<CaseArm>,
    },
    /// `name() …`, `function name …`
    Function {
        /// The function's name.
        name: String,
        /// The function's body.
        body: Box<CommandNode>,
    },
    /// `[[ … ]]`
    Test(Vec<TestItem>),
    /// `(( … ))`
    Arithmetic(ArithmeticExpression),
    /// `coproc [name] …`
    Coprocess {
        /// The command that runs concurrently with the shell.
        body: Box<CommandNode>,
    },
}

/// One arm of a `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseArm {
    /// The patterns. The arm runs if any of them matches.
    pub patterns: Vec<ShellWord>,
    /// The commands that run if a pattern matches.
    pub body: ShellScript,
}

/// A piece of `[[ … ]]`: each operator and each parenthesis is an item, everything else is an
/// operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestItem {
    /// `-f`, `==`, `=~`, `-eq`, `&&`, `(`, `!`, …, as written and unquoted.
    Operator(String, Span),
    /// An operand.
    Word(ShellWord),
}

/// `name=value` before a command, or in the arguments of `export` and its like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The place of the whole assignment.
    pub span: Span,
    /// The variable.
    pub name: String,
    /// `name[…]=`: the subscript, which bash evaluates.
    pub subscript: Option<ShellWord>,
    /// `+=`
    pub append: bool,
    /// The assigned value.
    pub value: AssignedValue,
}

/// The right side of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignedValue {
    /// A plain value. An empty value has no parts.
    Word(ShellWord),
    /// `( … )`: the elements. `[i]=v` is an element whose text is `[i]=v`.
    Array(Vec<ShellWord>),
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The place of the whole redirection.
    pub span: Span,
    /// The descriptor as written (`2` in `2>`, `{name}` in `{name}>`), or `None` if the line names
    /// none.
    pub descriptor: Option<String>,
    /// The operator.
    pub operator: RedirectOperator,
    /// The word after the operator: a file, a descriptor, the text of a here-string, or the tag of
    /// a here-document (decoded).
    pub target: ShellWord,
    /// The body of a here-document. Its expansions are parts; if the tag is quoted, it is one
    /// literal part.
    pub body: Option<ShellWord>,
}

/// The redirection operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectOperator {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
    /// `>|`
    Clobber,
    /// `<>`
    ReadWrite,
    /// `&>`, and `>&` before a file name
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<&`
    DuplicateIn,
    /// `>&` before a descriptor or `-`
    DuplicateOut,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// A shell word, made of adjacent parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// The word's place, including its quotes.
    pub span: Span,
    /// The parts. Only an assignment can have an empty unquoted word, which has no parts.
    pub parts: Vec<WordPart>,
}

/// One part of a shell word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPart {
    /// The part's place, including its quotes.
    pub span: Span,
    /// The part is quoted or escaped: no splitting, glob, brace or tilde expansion applies.
    pub quoted: bool,
    /// The kind of the part.
    pub kind: PartKind,
}

/// The kinds of part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// Literal text, quotes and escapes resolved (`$'…'` too). Empty for `''` and `""`.
    Text(String),
    /// Unquoted `*`, `?`, `[…]`, `@(…)` and similar patterns, as written. The parser rejects an
    /// extended pattern that contains an expansion.
    Glob(String),
    /// An unquoted brace expansion, `{a,b}` or `{1..9}`: every text it may become, expanded only
    /// within this part.
    ///
    /// The value is `None` if an alternative is not plain text, or if there are too many
    /// alternatives. Expansions inside the braces are separate parts, between brace parts with
    /// `None`.
    Brace(Option<Vec<String>>),
    /// An unquoted `~` or `~name` at the start of the word (or after `=` and `:` of an assignment),
    /// as written, with the `~`.
    Tilde(String),
    /// `$name`, `${…}`, `$1`, `$@`.
    Parameter(ParameterExpansion),
    /// `$( … )`, backticks, `${ …; }`.
    Command(ShellScript),
    /// `<( … )`, `>( … )`.
    Process(ShellScript),
    /// `$(( … ))`, `$[ … ]`.
    Arithmetic(ArithmeticExpression),
    /// `( … )` after `name=` in the arguments of `declare` and similar builtins: the elements.
    Array(Vec<ShellWord>),
}

/// A parameter expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterExpansion {
    /// The variable, or the special character.
    pub name: String,
    /// The operation on the parameter.
    pub operation: ParameterOperation,
}

/// The operation of a parameter expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterOperation {
    /// `$x`, `${x}`: the plain value.
    Plain,
    /// `${#x}`: the length.
    Length,
    /// `${x-w}`, `${x:-w}`, `${x+w}`, `${x:+w}`, `${x?w}`, `${x:?w}`, `${x#w}`, `${x%%w}`,
    /// `${x^^w}`, `${x/w/w}`: no side effects. Contains the operand words.
    Pure(Vec<ShellWord>),
    /// `${x=w}`, `${x:=w}`: assigns the word to the variable.
    Assign(ShellWord),
    /// `${x:a:b}`: offset and length, which bash evaluates as arithmetic.
    Slice(Vec<ArithmeticExpression>),
    /// `${x[…]}` with the operation that follows it. Bash evaluates the subscript unless it is `@`
    /// or `*`.
    Subscript(ArithmeticExpression, Box<ParameterOperation>),
    /// `${!x}`, `${!x*}`, `${x@P}` and every other form that evaluates text. Also the `$` of
    /// `$"…"`: it is represented as an expansion of `TEXTDOMAIN` before the quoted text that may be
    /// translated.
    Evaluates,
}

/// An arithmetic expression.
///
/// Bash evaluates the text of every variable in it. Therefore only an expression that consists of
/// integers and operators is known to be safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArithmeticExpression {
    /// The place of the whole expression.
    pub span: Span,
    /// The expression as written, with continued lines joined.
    pub text: String,
    /// The expansions in the expression. They run as in any other word.
    pub parts: Vec<WordPart>,
}
