//! The skills that the model has read.

/// The number of characters of each skill that remain after compaction; `MAX_TOTAL_LENGTH` is the
/// limit for all.
const MAX_LENGTH: usize = 20_000;
const MAX_TOTAL_LENGTH: usize = 100_000;

/// The skill texts that are in the model's context, the latest last.
#[derive(Debug, Default)]
pub(super) struct SkillReadLedger(Vec<ReadSkill>);

#[derive(Debug)]
struct ReadSkill {
    name: String,
    text: String,
    /// Only a part of the text is still in the context.
    is_cut: bool,
}

impl SkillReadLedger {
    /// Records that the model is about to read a skill. Returns `false` if the same text is in its
    /// context.
    pub(super) fn record(&mut self, name: &str, text: &str) -> bool {
        let known = self.0.iter().position(|entry| entry.name == name);
        let known = known.map(|at| self.0.remove(at));
        let is_new = !known.is_some_and(|entry| entry.text == text && !entry.is_cut);
        self.0.push(ReadSkill {
            name: name.to_owned(),
            text: text.to_owned(),
            is_cut: false,
        });
        is_new
    }

    /// Returns the texts to keep after compaction, the latest first. The others are forgotten.
    pub(super) fn carry_over(&mut self) -> Vec<(String, String)> {
        let mut left = MAX_TOTAL_LENGTH;
        let mut kept = Vec::new();
        for mut entry in std::mem::take(&mut self.0).into_iter().rev() {
            let most = MAX_LENGTH.min(left);
            if let Some((end, _)) = entry.text.char_indices().nth(most) {
                entry.text.truncate(end);
                entry.is_cut = true;
            }
            if entry.text.is_empty() {
                break;
            }
            left -= entry.text.chars().count();
            kept.push(entry);
        }
        let told = kept.iter().map(|entry| {
            let rest = if entry.is_cut {
                "\n[the rest is left out; call the skill again for it]"
            } else {
                ""
            };
            (entry.name.clone(), format!("{}{rest}", entry.text))
        });
        let told = told.collect();
        kept.reverse();
        self.0 = kept;
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_remembered_until_they_are_cut() {
        let mut ledger = SkillReadLedger::default();
        assert!(ledger.record("a", "text"));
        assert!(!ledger.record("a", "text"));
        assert!(ledger.record("a", "other"));
        let long = "ä".repeat(MAX_LENGTH + 1);
        assert!(ledger.record("b", &long));
        let carried = ledger.carry_over();
        let names: Vec<&str> = carried.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert!(carried[0].1.ends_with("call the skill again for it]"));
        assert!(!ledger.record("a", "other"));
        assert!(ledger.record("b", &long));
    }

    #[test]
    fn together_they_stay_within_bounds_and_the_oldest_go_first() {
        let mut ledger = SkillReadLedger::default();
        for at in 0..8 {
            ledger.record(&at.to_string(), &"x".repeat(MAX_LENGTH));
        }
        let carried = ledger.carry_over();
        let names: Vec<&str> = carried.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["7", "6", "5", "4", "3"]);
    }
}
