//! Trigrams: three consecutive bytes, with ASCII letters in lower case. The index stores the
//! trigrams of each file.
//!
//! ASCII letters are folded to lower case in files and in queries, so that one index serves both
//! case-sensitive and case-insensitive queries. Nothing else is folded: for other letters, the
//! query plan lists all spellings (`trigram_query`).

/// Three bytes; the first is the most significant.
pub(crate) type Trigram = u32;

/// The number of possible trigrams.
const ALL: usize = 1 << 24;

/// Returns the indexed form of a byte.
pub(crate) fn fold(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

/// Returns the trigrams of a text that is already folded, in order and with repetitions.
pub(crate) fn folded_trigrams(text: &[u8]) -> impl Iterator<Item = Trigram> + '_ {
    text.windows(3)
        .map(|three| u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]))
}

/// Collects the distinct trigrams of texts. Reused from text to text, because it takes 2 MB.
pub(crate) struct TrigramCollector {
    seen: Vec<u64>,
    found: Vec<Trigram>,
}

impl TrigramCollector {
    pub(crate) fn new() -> Self {
        Self {
            seen: vec![0; ALL / 64],
            found: Vec::new(),
        }
    }

    /// Returns the distinct trigrams of a text, in no order. Returns `None` if there are more than
    /// `most`: the text would match nearly every query.
    pub(crate) fn collect(&mut self, text: &[u8], most: usize) -> Option<&[Trigram]> {
        for trigram in self.found.drain(..) {
            self.seen[trigram as usize / 64] = 0;
        }
        let [first, second, rest @ ..] = text else {
            return Some(&self.found);
        };
        let mut trigram = u32::from(fold(*first)) << 8 | u32::from(fold(*second));
        for byte in rest {
            trigram = (trigram << 8 | u32::from(fold(*byte))) & 0x00ff_ffff;
            let (word, bit) = (trigram as usize / 64, 1 << (trigram % 64));
            if self.seen[word] & bit == 0 {
                self.seen[word] |= bit;
                self.found.push(trigram);
            }
        }
        (self.found.len() <= most).then_some(&self.found)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn collected(collector: &mut TrigramCollector, text: &[u8]) -> BTreeSet<Trigram> {
        collector
            .collect(text, ALL)
            .unwrap()
            .iter()
            .copied()
            .collect()
    }

    #[test]
    fn short_texts_have_none_and_long_ones_too_many() {
        let mut collector = TrigramCollector::new();
        for text in ["", "a", "ab"] {
            assert!(collected(&mut collector, text.as_bytes()).is_empty());
        }
        assert_eq!(collector.collect(b"abcd", 1), None);
        assert_eq!(collector.collect(b"ABC", 1), Some(&[0x61_62_63][..]));
    }

    proptest! {
        #[test]
        fn a_text_has_the_trigrams_of_each_of_its_parts(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..4),
            from in 0_usize..60, length in 0_usize..20,
        ) {
            let mut collector = TrigramCollector::new();
            for text in texts {
                let all = collected(&mut collector, &text);
                let from = from.min(text.len());
                let part: Vec<u8> = text[from..text.len().min(from + length)]
                    .iter()
                    .map(|byte| fold(*byte))
                    .collect();
                prop_assert!(folded_trigrams(&part).all(|trigram| all.contains(&trigram)));
                prop_assert!(all.len() <= text.len());
            }
        }
    }
}
