//! What a command does to the world.

use std::borrow::Cow;

use crate::{arg::Arg, ast::Span};

/// Is it harmless?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectVerdict {
    /// It changes no file, process, setting or remote state, starts no program that the line's data
    /// or the workspace chooses, and contacts no host that the line chooses.
    ReadOnly,
    /// It changes nothing either, but asks one of the user's own services, and cannot work without.
    ReadsNetwork,
    /// It cannot be said.
    Unknown,
    /// It changes something.
    Mutating,
}

impl EffectVerdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readonly",
            Self::ReadsNetwork => "network",
            Self::Unknown => "unknown",
            Self::Mutating => "mutating",
        }
    }
}

/// One thing a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Reads a file or directory.
    Read(FileRead),
    /// Creates, changes or removes a file or directory.
    Write(FileWrite),
    /// Contacts a host; `None` where the line does not name it plainly.
    Net(Option<String>),
    /// Asks one of the user's own services, at the endpoint they configured.
    Service(OwnService),
    /// Sets a variable that later commands inherit.
    Env(String),
    /// Runs something that cannot be read from the line: why.
    Opaque(Cow<'static, str>),
}

/// Services of one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnService {
    /// Where code is hosted (`gh`).
    CodeHost,
    /// A cluster (`kubectl`).
    Cluster,
    /// Containers of this machine (`docker`).
    Containers,
    /// The init system and what belongs to it (`systemctl`).
    Init,
}

impl OwnService {
    /// Why a command that asks it is not harmless, in words that fit behind "because".
    pub fn reason(self) -> &'static str {
        match self {
            Self::CodeHost => "it reads from your code host, over the network and with your token",
            Self::Cluster => {
                "it reads from your cluster, over the network and with your credentials"
            }
            Self::Containers => "it asks the container service of this machine, through its socket",
            Self::Init => "it asks the system service manager, through its socket",
        }
    }
}

/// A read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The path as the command gets it, relative to the command's directory.
    pub path: Arg,
    /// The content, not only names and dates.
    pub content: bool,
    /// Everything below it too.
    pub walks: bool,
}

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// The path as the command gets it, relative to the command's directory.
    pub path: Arg,
    /// What kind of write it is.
    pub how: WriteKind,
}

/// Kinds of write, by who has to answer for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// The command's plain work on its operands: `mkdir d`, `cp a b`.
    OperandWrite,
    /// The same, by removing: `rm f`, `rmdir d`.
    Removal,
    /// The same on whatever is below a directory, of which the line does not say which files:
    /// `tar x`, `git checkout`, `cp -r a b`.
    Tree,
    /// An option or a script makes a reading command write: `sort -o f`, `sed -i`.
    OptionWrite,
    /// A redirection of the shell.
    Redirect,
}

/// Which allow rule may let a command through that is not harmless by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleCoverage {
    /// A rule by prefix or wildcard.
    Prefix,
    /// Only a rule that says exactly this: it starts a program, deletes or injects configuration by
    /// an option that the name of the command does not let one expect.
    Exact,
    /// None: it does nothing of its own, what it starts needs to be let through.
    Transparent,
}

/// Something a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedProgram {
    /// Another command, by its words.
    Command {
        /// Name and arguments.
        argv: Vec<Arg>,
        /// More arguments follow that the line does not show (`xargs`, `find -exec … {}`).
        more: bool,
    },
    /// A text that a shell runs (`sh -c`, `eval`, `trap`).
    Script(Arg),
}

/// What one command does by itself; what it starts is looked at on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFinding {
    /// Is it harmless?
    pub verdict: EffectVerdict,
    /// Why, in words that fit behind "because".
    pub reason: Cow<'static, str>,
    /// What in the line says so; `None` for the command as a whole.
    pub span: Option<Span>,
    /// What it does.
    pub effects: Vec<Effect>,
    /// What it starts.
    pub starts: Vec<StartedProgram>,
    /// What could let it through.
    pub cover: RuleCoverage,
    /// A launcher: what covers it covers what it starts.
    pub launches: bool,
}

impl CommandFinding {
    /// Harmless.
    pub fn read_only(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(EffectVerdict::ReadOnly, reason)
    }

    /// Not known to be harmless.
    pub fn unknown(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(EffectVerdict::Unknown, reason)
    }

    /// It changes something.
    pub fn mutating(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(EffectVerdict::Mutating, reason)
    }

    fn new(verdict: EffectVerdict, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            span: None,
            effects: Vec::new(),
            starts: Vec::new(),
            cover: RuleCoverage::Prefix,
            launches: false,
        }
    }

    /// The same, pointing at a part of the line.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The same, let through by an exact rule alone.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.cover = RuleCoverage::Exact;
        self
    }

    /// The same with one more effect.
    #[must_use]
    pub fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// The same with more effects.
    #[must_use]
    pub fn with_all(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.effects.extend(effects);
        self
    }

    /// The same, starting something.
    #[must_use]
    pub fn starting(mut self, start: StartedProgram) -> Self {
        self.starts.push(start);
        self
    }
}
