//! A bit set of small numbers.

/// A set of numbers below a length that is fixed when the set is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberSet {
    words: Vec<u64>,
}

impl NumberSet {
    pub(crate) fn none(length: usize) -> Self {
        Self {
            words: vec![0; length.div_ceil(64)],
        }
    }

    pub(crate) fn all(length: usize) -> Self {
        let mut bits = Self {
            words: vec![u64::MAX; length.div_ceil(64)],
        };
        if let (Some(last), 1..) = (bits.words.last_mut(), length % 64) {
            *last = (1 << (length % 64)) - 1;
        }
        bits
    }

    /// Adds a number. Numbers beyond the length, rounded up to a multiple of 64, are ignored.
    pub(crate) fn insert(&mut self, number: usize) {
        if let Some(word) = self.words.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    pub(crate) fn holds(&self, number: usize) -> bool {
        self.words
            .get(number / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub(crate) fn and(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    pub(crate) fn or(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_in_and_come_out_in_order() {
        for length in [0, 1, 63, 64, 65, 200] {
            let all = NumberSet::all(length);
            assert_eq!(all.count(), length);
            assert_eq!(
                all.iter().collect::<Vec<_>>(),
                (0..length).collect::<Vec<_>>()
            );
            let mut some = NumberSet::none(length);
            for number in (0..length).step_by(3) {
                some.insert(number);
            }
            some.insert(5000);
            assert!((0..length).all(|number| some.holds(number) == (number % 3 == 0)));
            let mut both = all.clone();
            both.and(&some);
            assert_eq!(both, some);
            both.or(&all);
            assert_eq!(both, all);
        }
    }
}
