//! The effects of a command, and the verdict on them.

use std::borrow::Cow;

use crate::{arg::Arg, ast::Span};

/// The verdict on a command or a line, from the safest to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectVerdict {
    /// The command changes no file, process, setting or remote state. It starts no program that the
    /// line's data or the workspace chooses, and contacts no host that the line chooses.
    ReadOnly,
    /// The command changes nothing, but it cannot work without one of the user's own services.
    ReadsNetwork,
    /// The effect is not certain.
    Unknown,
    /// The command makes a change.
    Mutating,
}

impl EffectVerdict {
    /// Returns the verdict's name.
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
    /// Contacts a host. `None` means that the line does not plainly name the host.
    Net(Option<String>),
    /// Queries one of the user's own services, at the endpoint that the user configured.
    Service(OwnService),
    /// Sets a variable that later commands inherit.
    Env(String),
    /// Does something that nothing on this machine can undo. The reason is phrased to follow
    /// "because".
    Irreversible(&'static str),
    /// Runs code that is not visible in the line, for this reason.
    Opaque(Cow<'static, str>),
}

/// The user's own services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnService {
    /// The code host (`gh`).
    CodeHost,
    /// A cluster (`kubectl`).
    Cluster,
    /// The container service of this machine (`docker`).
    Containers,
    /// The init system and its tools (`systemctl`).
    Init,
}

impl OwnService {
    /// Returns the reason why a command that queries the service is not read-only, phrased to
    /// follow "because".
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

/// A read of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The path as the command receives it, relative to the command's directory.
    pub path: Arg,
    /// The command reads the content, not only names and dates.
    pub content: bool,
    /// The command also reads everything below the path.
    pub is_recursive: bool,
}

/// A write of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// The path as the command receives it, relative to the command's directory.
    pub path: Arg,
    /// The kind of write.
    pub kind: WriteKind,
}

/// The kinds of write, by the part of the line that causes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// A command writes its operands, which is its purpose: `mkdir d`, `cp a b`.
    OperandWrite,
    /// A command removes its operands: `rm f`, `rmdir d`.
    Removal,
    /// A command writes files below a directory that the line does not name: `tar x`,
    /// `git checkout`, `cp -r a b`.
    Tree,
    /// An option or a script makes a reading command write: `sort -o f`, `sed -i`.
    OptionWrite,
    /// A redirection of the shell.
    Redirect,
}

/// The allow rules that may allow a command that is not read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleCoverage {
    /// A rule with a prefix or wildcard.
    Prefix,
    /// Only a rule with exactly this text. An option of the command starts a program, deletes files
    /// or injects configuration, which the command's name does not suggest.
    Exact,
    /// No rule. The command itself has no effect, so only the programs it starts need to be allowed.
    Transparent,
}

/// A program or script that a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedProgram {
    /// Another command, with its arguments.
    Command {
        /// Name and arguments.
        argv: Vec<Arg>,
        /// More arguments follow that the line does not show (`xargs`, `find -exec … {}`).
        more: bool,
    },
    /// A text that a shell runs (`sh -c`, `eval`, `trap`).
    Script(Arg),
}

/// The result for one command, without the programs it starts: those are analyzed separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFinding {
    /// The verdict on the command.
    pub verdict: EffectVerdict,
    /// The reason for the verdict, phrased to follow "because".
    pub reason: Cow<'static, str>,
    /// The place in the line that determines the verdict. `None` means the whole command.
    pub span: Option<Span>,
    /// The command's effects.
    pub effects: Vec<Effect>,
    /// The programs that the command starts.
    pub starts: Vec<StartedProgram>,
    /// The rules that may allow the command.
    pub coverage: RuleCoverage,
    /// The command is a launcher: a rule that covers it also covers the programs it starts.
    pub is_launcher: bool,
}

impl CommandFinding {
    /// Creates a finding for a read-only command.
    pub fn read_only(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(EffectVerdict::ReadOnly, reason)
    }

    /// Creates a finding for a command that is not known to be read-only.
    pub fn unknown(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(EffectVerdict::Unknown, reason)
    }

    /// Creates a finding for a command that makes a change.
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
            coverage: RuleCoverage::Prefix,
            is_launcher: false,
        }
    }

    /// Sets the place in the line that determines the verdict.
    #[must_use]
    pub fn with_span(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Requires an exact rule to allow the command.
    #[must_use]
    pub fn requiring_exact_rule(mut self) -> Self {
        self.coverage = RuleCoverage::Exact;
        self
    }

    /// Adds an effect.
    #[must_use]
    pub fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Adds effects.
    #[must_use]
    pub fn with_all(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.effects.extend(effects);
        self
    }

    /// Adds a started program.
    #[must_use]
    pub fn starting(mut self, start: StartedProgram) -> Self {
        self.starts.push(start);
        self
    }
}
