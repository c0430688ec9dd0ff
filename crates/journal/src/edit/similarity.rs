//! The similarity of two lines. For hints only: no edit ever depends on it.

use crate::step_counter::spend;

/// The number of bytes that are compared; the rest of a longer line is ignored.
const JUDGED: usize = 400;

/// Returns the similarity from 0 to 1: shared pairs of adjacent characters (Dice's coefficient).
pub(super) fn likeness(left: &[u8], right: &[u8]) -> f64 {
    spend!(left.len().min(right.len()) + 2 * JUDGED);
    if left == right {
        return 1.0;
    }
    if left.trim_ascii() == right.trim_ascii() {
        // A line that differs only in surrounding whitespace scores below an equal one.
        return 0.95;
    }
    let (left, right) = (pairs(left.trim_ascii()), pairs(right.trim_ascii()));
    let total = left.len() + right.len();
    if total == 0 {
        return 0.0;
    }
    let (mut shared, mut i, mut j) = (0_usize, 0, 0);
    while i < left.len() && j < right.len() {
        match left[i].cmp(&right[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                i += 1;
                j += 1;
            }
        }
    }
    (2 * shared) as f64 / total as f64
}

fn pairs(line: &[u8]) -> Vec<(char, char)> {
    let text = String::from_utf8_lossy(&line[..line.len().min(JUDGED)]);
    let mut pairs: Vec<_> = text.chars().zip(text.chars().skip(1)).collect();
    pairs.sort_unstable();
    pairs
}

/// The byte counts of a line, for a cheap estimate of the similarity.
pub(super) struct ByteHistogram {
    counts: [u16; 256],
    length: usize,
}

impl ByteHistogram {
    pub(super) fn new(line: &[u8]) -> Self {
        let line = line.trim_ascii();
        let line = &line[..line.len().min(JUDGED)];
        let mut counts = [0; 256];
        for &byte in line {
            counts[usize::from(byte)] += 1;
        }
        Self {
            counts,
            length: line.len(),
        }
    }

    /// Returns the share of common bytes, from 0 to 1.
    pub(super) fn overlap(&self, line: &[u8]) -> f64 {
        let line = line.trim_ascii();
        let line = &line[..line.len().min(JUDGED)];
        let total = self.length + line.len();
        // If the lengths are too different to reach one half, the bytes need not be counted.
        if total == 0 || 4 * self.length.min(line.len()) < total {
            return 0.0;
        }
        spend!(line.len());
        let mut left = self.counts;
        let mut shared = 0_usize;
        for &byte in line {
            if left[usize::from(byte)] > 0 {
                left[usize::from(byte)] -= 1;
                shared += 1;
            }
        }
        (2 * shared) as f64 / total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_tells_near_lines_from_others() {
        let cases = [
            ("same", "same", 1.0, 1.0),
            ("\tindented", "    indented", 0.95, 0.95),
            ("g(a , b)", "g(a, b)", 0.7, 0.99),
            ("wait…", "wait...", 0.5, 0.9),
            ("let x = 1;", "return Err(e)", 0.0, 0.3),
            ("a", "b", 0.0, 0.0),
            ("", "b", 0.0, 0.0),
        ];
        for (left, right, low, high) in cases {
            let found = likeness(left.as_bytes(), right.as_bytes());
            assert!((low..=high).contains(&found), "{left} / {right}: {found}");
        }
    }
}
