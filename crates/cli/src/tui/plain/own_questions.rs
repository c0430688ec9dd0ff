//! Questions of the user interface itself: where to save a note, and whether to add a directory.

use haft_host::{DirectoryFacts, MemoryPlace, MemoryScope};

/// A question that the session does not wait for.
pub(super) enum OwnQuestion {
    /// The memory file in which a note is saved.
    Note {
        text: String,
        places: Vec<MemoryPlace>,
    },
    /// Whether calls may work in a directory.
    Directory(DirectoryFacts),
}

/// The outcome of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OwnAnswer {
    Remember {
        text: String,
        scope: MemoryScope,
    },
    /// Run this command line.
    Command(String),
    Nothing,
    /// Invalid input, with a hint.
    Again(String),
}

impl OwnQuestion {
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Note { text, places } => {
                let mut lines = vec![format!("remember where? {text}")];
                for (at, place) in places.iter().enumerate() {
                    let (name, path) = (place.scope.name(), place.path.display());
                    lines.push(format!("{} {name}: {path}", at + 1));
                }
                lines.push(format!("{} nowhere", places.len() + 1));
                lines
            }
            Self::Directory(facts) => {
                let mut lines = vec![format!("add {}", facts.path.display())];
                lines.extend(facts.consequences());
                lines.extend(["1 add it", "2 do not"].map(str::to_owned));
                lines
            }
        }
    }

    pub(super) fn answer(&self, line: &str) -> OwnAnswer {
        let number: Option<usize> = line.trim().parse().ok();
        match (self, number) {
            (Self::Note { text, places }, Some(number)) if number <= places.len() + 1 => {
                match number.checked_sub(1).map(|at| places.get(at)) {
                    Some(Some(place)) => OwnAnswer::Remember {
                        text: text.clone(),
                        scope: place.scope,
                    },
                    Some(None) => OwnAnswer::Nothing,
                    None => self.invalid_number(),
                }
            }
            (Self::Directory(facts), Some(1)) => {
                OwnAnswer::Command(format!("/add-dir {}", facts.path.display()))
            }
            (Self::Directory(_), Some(2)) => OwnAnswer::Nothing,
            _ => self.invalid_number(),
        }
    }

    fn invalid_number(&self) -> OwnAnswer {
        let most = match self {
            Self::Note { places, .. } => places.len() + 1,
            Self::Directory(_) => 2,
        };
        OwnAnswer::Again(format!("type a number from 1 to {most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_goes_where_its_number_says() {
        let place = |scope, path: &str| MemoryPlace {
            scope,
            path: path.into(),
            exists: false,
        };
        let places = vec![
            place(MemoryScope::Project, "/p/CLAUDE.md"),
            place(MemoryScope::User, "/h/.claude/CLAUDE.md"),
        ];
        let text = "use tabs".to_owned();
        let question = OwnQuestion::Note { text, places };
        let lines = [
            "remember where? use tabs",
            "1 project: /p/CLAUDE.md",
            "2 user: /h/.claude/CLAUDE.md",
            "3 nowhere",
        ];
        assert_eq!(question.lines(), lines);
        let (text, scope) = ("use tabs".to_owned(), MemoryScope::User);
        assert_eq!(question.answer(" 2"), OwnAnswer::Remember { text, scope });
        assert_eq!(question.answer("3"), OwnAnswer::Nothing);
        for line in ["0", "4", "y", ""] {
            assert!(
                matches!(question.answer(line), OwnAnswer::Again(_)),
                "{line}"
            );
        }
    }

    #[test]
    fn a_directory_is_added_by_one_alone() {
        let facts = DirectoryFacts {
            path: "/other".into(),
            uncounted: Vec::new(),
        };
        let question = OwnQuestion::Directory(facts);
        let command = "/add-dir /other".to_owned();
        assert_eq!(question.answer("1"), OwnAnswer::Command(command));
        assert_eq!(question.answer("2"), OwnAnswer::Nothing);
        assert!(matches!(question.answer("yes"), OwnAnswer::Again(_)));
    }
}
