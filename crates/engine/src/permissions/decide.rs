//! The decision, as one pure function.
//!
//! The order is fixed: what the tool forbids, protected files, the boundary of the working
//! directories, what asks in any mode, then what the mode lets through. Rules of settings files will
//! stand in the same function.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use haft_contract::{Permission, PermissionMode};

use super::{Facts, Policy, Touched, protected::is_protected};

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub behavior: Behavior,
    /// Why.
    pub because: Because,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run.
    Deny,
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// It changes nothing.
    ReadOnly,
    /// The tool said so.
    Tool(String),
    /// A file that decides what other programs run.
    Protected(PathBuf),
    /// A path outside the working directories.
    Outside(PathBuf),
    /// The mode lets it through, or holds it up.
    Mode(PermissionMode),
    /// It changes something and nothing lets it through.
    Changes,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("it only reads"),
            Self::Tool(reason) => f.write_str(reason),
            Self::Protected(path) => write!(
                f,
                "{} is a control file: what it says is run by other programs",
                path.display()
            ),
            Self::Outside(path) => {
                write!(f, "{} is outside the working directories", path.display())
            }
            Self::Mode(mode) => write!(f, "permission mode is {}", mode.name()),
            Self::Changes => f.write_str("it changes something"),
        }
    }
}

/// Decides. Total, without side effects, the same answer for the same arguments.
pub fn decide(policy: &Policy, facts: &Facts) -> Decision {
    use PermissionMode as Mode;
    let answer = |behavior, because| Decision { behavior, because };
    // Where nobody may be asked, what would ask is refused.
    let ask = |because| {
        let behavior = if policy.mode == Mode::DontAsk {
            Behavior::Deny
        } else {
            Behavior::Ask
        };
        Decision { behavior, because }
    };
    let bypass = policy.mode == Mode::BypassPermissions;

    if let Permission::Deny(reason) = &facts.opinion {
        return answer(Behavior::Deny, Because::Tool(reason.clone()));
    }
    if !bypass {
        let protected =
            |touched: &&Touched| is_protected(&touched.given) || is_protected(&touched.real);
        if let Some(touched) = facts.writes.iter().find(protected) {
            return ask(Because::Protected(touched.real.clone()));
        }
        if let Some(path) = outside(policy, facts) {
            return ask(Because::Outside(path));
        }
    }
    if let Permission::Ask(reason) = &facts.opinion {
        return ask(Because::Tool(reason.clone()));
    }
    if facts.is_read_only() {
        return answer(Behavior::Allow, Because::ReadOnly);
    }
    match policy.mode {
        Mode::BypassPermissions => answer(Behavior::Allow, Because::Mode(policy.mode)),
        Mode::Plan => ask(Because::Mode(policy.mode)),
        Mode::AcceptEdits if !facts.opaque => answer(Behavior::Allow, Because::Mode(policy.mode)),
        _ if facts.opinion == Permission::Allow => answer(
            Behavior::Allow,
            Because::Tool("the tool needs no permission".to_owned()),
        ),
        Mode::Default | Mode::AcceptEdits | Mode::DontAsk => ask(Because::Changes),
    }
}

/// The first path that lies outside, judged by where it really leads; written ones first.
fn outside(policy: &Policy, facts: &Facts) -> Option<PathBuf> {
    facts.outside(policy).next().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(path: &str) -> Vec<Touched> {
        vec![Touched {
            given: path.into(),
            real: path.into(),
        }]
    }

    /// Every mode against every kind of call, so that a change of one cell shows.
    #[test]
    fn the_whole_table() {
        use PermissionMode as Mode;
        let nothing = Facts {
            tool: "T".into(),
            reads: vec![],
            writes: vec![],
            opaque: false,
            command: None,
            opinion: Permission::ByEffects,
        };
        let calls = [
            ("touches nothing", nothing.clone()),
            (
                "reads inside",
                Facts {
                    reads: touched("/p/a"),
                    ..nothing.clone()
                },
            ),
            (
                "reads a kept result",
                Facts {
                    reads: touched("/s/r"),
                    ..nothing.clone()
                },
            ),
            (
                "reads outside",
                Facts {
                    reads: touched("/etc/passwd"),
                    ..nothing.clone()
                },
            ),
            (
                "reads a sibling",
                Facts {
                    reads: touched("/p2/a"),
                    ..nothing.clone()
                },
            ),
            (
                "writes inside",
                Facts {
                    writes: touched("/p/a"),
                    ..nothing.clone()
                },
            ),
            (
                "writes a kept result",
                Facts {
                    writes: touched("/s/r"),
                    ..nothing.clone()
                },
            ),
            (
                "writes outside",
                Facts {
                    writes: touched("/etc/passwd"),
                    ..nothing.clone()
                },
            ),
            (
                "writes by a link",
                Facts {
                    writes: vec![Touched {
                        given: "/p/link".into(),
                        real: "/etc/x".into(),
                    }],
                    ..nothing.clone()
                },
            ),
            (
                "writes a control file",
                Facts {
                    writes: touched("/p/.git/config"),
                    ..nothing.clone()
                },
            ),
            (
                "opaque",
                Facts {
                    opaque: true,
                    ..nothing.clone()
                },
            ),
            (
                "opaque, tool allows",
                Facts {
                    opaque: true,
                    opinion: Permission::Allow,
                    ..nothing.clone()
                },
            ),
            (
                "tool asks",
                Facts {
                    opinion: Permission::Ask("why".into()),
                    ..nothing.clone()
                },
            ),
            (
                "tool denies",
                Facts {
                    opinion: Permission::Deny("why".into()),
                    ..nothing
                },
            ),
        ];
        let modes = [
            Mode::Default,
            Mode::AcceptEdits,
            Mode::Plan,
            Mode::DontAsk,
            Mode::BypassPermissions,
        ];
        let mut table = String::new();
        for (what, facts) in &calls {
            table += &format!("{what:22}");
            for mode in modes {
                let policy = Policy {
                    mode,
                    roots: vec!["/p".into()],
                    readable: vec!["/s".into()],
                };
                let Decision { behavior, .. } = decide(&policy, facts);
                table += &format!("{:7}", format!("{behavior:?}"));
            }
            table = format!("{}\n", table.trim_end());
        }
        insta::assert_snapshot!(table);
    }
}
