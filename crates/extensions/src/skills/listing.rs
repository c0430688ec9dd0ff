//! The list of skills that the model gets before it calls one.

use super::Skill;

/// The default of the maximum length of a description, in characters.
pub(super) const MAX_DESCRIPTION: usize = 1536;

/// Shorter descriptions are omitted, because they are useless.
const MIN_DESCRIPTION: usize = 24;

/// Formats one line for each skill within `budget` characters: descriptions are shortened evenly,
/// and names are listed up to the limit.
pub(super) fn lines(skills: &[&Skill], longest: usize, budget: usize) -> String {
    let names: usize = skills.iter().map(|skill| line_length(skill)).sum();
    let purposes: Vec<String> = skills
        .iter()
        .map(|skill| match skill.name_only {
            true => String::new(),
            false => cut(&skill.purpose(), longest),
        })
        .collect();
    let lengths: Vec<usize> = purposes
        .iter()
        .map(|text| text.chars().count() + 2)
        .collect();
    let most = evenly(&lengths, budget.saturating_sub(names)).saturating_sub(2);
    let mut text = String::new();
    let mut left = budget;
    for (at, (skill, purpose)) in skills.iter().zip(&purposes).enumerate() {
        let purpose = match most {
            most if most < MIN_DESCRIPTION.min(longest) => String::new(),
            most => cut(purpose, most),
        };
        let line = match purpose.is_empty() {
            true => format!("- {}\n", skill.name),
            false => format!("- {}: {purpose}\n", skill.name),
        };
        let length = line.chars().count();
        if length > left {
            text += &format!("- and {} more\n", skills.len() - at);
            break;
        }
        left -= length;
        text += &line;
    }
    text
}

fn line_length(skill: &Skill) -> usize {
    "- \n".len() + skill.name.chars().count()
}

/// Returns the maximum length of each text with which all texts together fit the budget.
fn evenly(lengths: &[usize], budget: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut left = budget;
    for (at, length) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let short: String = text.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_long_ones_are_cut_first() {
        assert_eq!(evenly(&[10, 100, 100], 110), 50);
        assert_eq!(evenly(&[10, 20], 100), usize::MAX);
        assert_eq!(evenly(&[], 0), usize::MAX);
        assert_eq!(cut("hello world", 6), "hello…");
    }

    proptest! {
        #[test]
        fn together_they_fit(lengths in proptest::collection::vec(0_usize..50, 0..20), budget in 0_usize..500) {
            let most = evenly(&lengths, budget);
            let sum: usize = lengths.iter().map(|length| *length.min(&most)).sum();
            prop_assert!(sum <= budget);
        }
    }
}
