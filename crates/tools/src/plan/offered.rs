//! Which tools for the task list a session has.

use std::env;

/// The two ways to keep a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// One tool that replaces the list.
    Todo,
    /// A tool for each thing that can be done to a task.
    Tasks,
}

impl Way {
    /// Is this the one that the environment asks for?
    pub(super) fn is_asked_for(self) -> bool {
        let value = |name: &str| env::var(name).ok();
        let asked = asked(
            value("CLAUDE_CODE_ENABLE_TASKS").as_deref(),
            value("CLAUDE_CODE_ENABLE_TODO_TOOLS").as_deref(),
        );
        asked == Some(self)
    }
}

fn asked(tasks: Option<&str>, any: Option<&str>) -> Option<Way> {
    let off = |value: Option<&str>| matches!(value, Some("0" | "false"));
    match (off(any), off(tasks)) {
        (true, _) => None,
        (false, true) => Some(Way::Todo),
        (false, false) => Some(Way::Tasks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_way_or_none() {
        let cases = [
            (None, None, Some(Way::Tasks)),
            (Some("1"), Some("1"), Some(Way::Tasks)),
            (Some("0"), None, Some(Way::Todo)),
            (Some("0"), Some("1"), Some(Way::Todo)),
            (Some("0"), Some("0"), None),
            (None, Some("0"), None),
        ];
        for (tasks, any, way) in cases {
            assert_eq!(asked(tasks, any), way, "{tasks:?} {any:?}");
        }
    }
}
