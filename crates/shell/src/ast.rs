//! A command line as bash reads it.
//!
//! Every expansion is a part of its own, so that nothing that bash would evaluate hides in a text.

/// A range of bytes in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

/// Pipelines, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order they are written.
    pub items: Vec<Item>,
}

/// One pipeline and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// What joins it to the next.
    pub then: Separator,
}

/// What stands between two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
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
    /// It begins with `!` (or an odd number of them).
    pub negated: bool,
    /// It begins with the keyword `time` (with or without `-p`).
    pub timed: bool,
    /// At least one; only a bare `!` or `time` has none.
    pub commands: Vec<Command>,
}

/// A simple or compound command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// With its redirections.
    pub span: Span,
    /// What it is.
    pub kind: CommandKind,
    /// In the order they are written.
    pub redirects: Vec<Redirect>,
}

/// The kinds of command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// Assignments and words; at least one of them, or only redirections.
    Simple {
        /// Before the first word.
        assignments: Vec<Assignment>,
        /// The name and the arguments.
        words: Vec<ShellWord>,
    },
    /// `{ …; }`
    Group(Script),
    /// `( … )`
    Subshell(Script),
    /// `if … then … elif … else … fi`
    If {
        /// Each condition with its body.
        branches: Vec<(Script, Script)>,
        /// The `else` body.
        otherwise: Option<Script>,
    },
    /// `while … do … done`, `until … do … done`
    While {
        /// The condition.
        test: Script,
        /// The body.
        body: Script,
    },
    /// `for name in words; do … done`, `select` likewise.
    For {
        /// The loop variable.
        name: String,
        /// `None`: the positional parameters.
        words: Option<Vec<ShellWord>>,
        /// The body.
        body: Script,
        /// It is a `select`, which reads from standard input.
        select: bool,
    },
    /// `for ((a; b; c)); do … done`
    ArithmeticFor {
        /// The three expressions.
        parts: Vec<Arithmetic>,
        /// The body.
        body: Script,
    },
    /// `case word in pattern) … ;; esac`
    Case {
        /// What is compared.
        word: ShellWord,
        /// The arms.
        arms: Vec<Arm>,
    },
    /// `name() …`, `function name …`
    Function {
        /// Its name.
        name: String,
        /// Its body.
        body: Box<Command>,
    },
    /// `[[ … ]]`
    Test(Vec<TestItem>),
    /// `(( … ))`
    Arithmetic(Arithmetic),
    /// `coproc [name] …`
    Coprocess {
        /// What runs beside the shell.
        body: Box<Command>,
    },
}

/// One arm of a `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// Any of these.
    pub patterns: Vec<ShellWord>,
    /// What then runs.
    pub body: Script,
}

/// A piece of `[[ … ]]`: operators and parentheses stand alone, everything else is a word.
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
    /// The whole of it.
    pub span: Span,
    /// The variable.
    pub name: String,
    /// `name[…]=`: the subscript, which bash evaluates.
    pub subscript: Option<ShellWord>,
    /// `+=`
    pub append: bool,
    /// What is assigned.
    pub value: AssignedValue,
}

/// The right side of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignedValue {
    /// A plain value; without parts for an empty one.
    Word(ShellWord),
    /// `( … )`: the elements; `[i]=v` is an element whose text is that.
    Array(Vec<ShellWord>),
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The whole of it.
    pub span: Span,
    /// `2>`, `{name}>`: as written, `None` where there is none.
    pub descriptor: Option<String>,
    /// Which.
    pub operator: RedirectOperator,
    /// The word behind the operator: a file, a descriptor, the text of a here-string, the tag of a
    /// here-document (decoded).
    pub target: ShellWord,
    /// The body of a here-document: its expansions are parts; one literal part if the tag is quoted.
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
    /// `&>`, and `>&` in front of a file name
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<&`
    DuplicateIn,
    /// `>&` in front of a descriptor or `-`
    DuplicateOut,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// A word: parts side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// With its quotes.
    pub span: Span,
    /// Empty for an empty unquoted word, which only an assignment can have.
    pub parts: Vec<WordPart>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPart {
    /// With its quotes.
    pub span: Span,
    /// Inside quotes, or escaped: not split, no glob, no brace, no tilde.
    pub quoted: bool,
    /// What it is.
    pub kind: PartKind,
}

/// The kinds of part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// Literal text, quotes and escapes resolved (`$'…'` too). Empty for `''` and `""`.
    Text(String),
    /// Unquoted `*`, `?`, `[…]`, `@(…)` and their like, as written. An extended pattern with an
    /// expansion inside is a syntax error to us.
    Glob(String),
    /// An unquoted brace expansion, `{a,b}` or `{1..9}`: every text it may become, expanded only
    /// within this part. `None` where an alternative is not plain text, or there are very many.
    /// If there are expansions inside, they are parts of their own between such parts with `None`.
    Brace(Option<Vec<String>>),
    /// An unquoted `~` or `~name` at the start of the word (or behind `=` and `:` of an assignment),
    /// as written, with the `~`.
    Tilde(String),
    /// `$name`, `${…}`, `$1`, `$@`.
    Parameter(Parameter),
    /// `$( … )`, backticks, `${ …; }`.
    Command(Script),
    /// `<( … )`, `>( … )`.
    Process(Script),
    /// `$(( … ))`, `$[ … ]`.
    Arithmetic(Arithmetic),
    /// `( … )` behind `name=` in the arguments of `declare` and its like: the elements.
    Array(Vec<ShellWord>),
}

/// A parameter expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The variable, or the special character.
    pub name: String,
    /// What is done with it.
    pub operation: ParameterOperation,
}

/// What a parameter expansion does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterOperation {
    /// `$x`, `${x}`: nothing more.
    Plain,
    /// `${#x}`: the length.
    Length,
    /// `${x-w}`, `${x:-w}`, `${x+w}`, `${x:+w}`, `${x?w}`, `${x:?w}`, `${x#w}`, `${x%%w}`, `${x^^w}`,
    /// `${x/w/w}`: pure; the words in it.
    Pure(Vec<ShellWord>),
    /// `${x=w}`, `${x:=w}`: assigns.
    Assign(ShellWord),
    /// `${x:a:b}`: offset and length, which bash evaluates as arithmetic.
    Slice(Vec<Arithmetic>),
    /// `${x[…]}` with the operation that follows it; the subscript is evaluated unless it is `@`
    /// or `*`.
    Subscript(Arithmetic, Box<ParameterOperation>),
    /// `${!x}`, `${!x*}`, `${x@P}` and everything else that evaluates text. Also the `$` of `$"…"`,
    /// as an expansion of `TEXTDOMAIN`, in front of the quoted text that may be translated.
    Evaluates,
}

/// An arithmetic expression. Bash evaluates the text of every variable in it, so only one made of
/// integers and operators alone is known to be harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arithmetic {
    /// The whole of it.
    pub span: Span,
    /// As written, continued lines joined.
    pub text: String,
    /// Its expansions, which run as anywhere else.
    pub parts: Vec<WordPart>,
}
