//! Lists of page numbers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Page numbers from 1, ascending and unique; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSelection(Vec<u32>);

/// The reason why a text is not a valid list of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageSelectionError {
    /// The text is not a list of pages and ranges, or contains page 0.
    #[error("a page, a range or several of them are expected, such as \"3\", \"1-5\" or \"2-5,9\"")]
    Malformed,
    /// The list has too many pages.
    #[error("these are too many pages")]
    TooMany,
}

impl PageSelection {
    /// Parses `3`, `1-5` and `2-5,9`.
    pub fn parse(text: &str, at_most: usize) -> Result<Self, PageSelectionError> {
        let number = |text: &str| {
            let number: Option<u32> = text.trim().parse().ok();
            number
                .filter(|page| *page > 0)
                .ok_or(PageSelectionError::Malformed)
        };
        let mut pages = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once(['-', '–']) {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(PageSelectionError::Malformed);
            }
            if (last - first) as usize >= at_most {
                return Err(PageSelectionError::TooMany);
            }
            pages.extend(first..=last);
            if pages.len() > at_most {
                return Err(PageSelectionError::TooMany);
            }
        }
        Ok(Self(pages.into_iter().collect()))
    }

    /// Returns the page numbers.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbers_and_ranges() {
        use PageSelectionError::{Malformed, TooMany};
        let cases: [(&str, Result<&[u32], PageSelectionError>); 15] = [
            ("3", Ok(&[3])),
            ("1-5", Ok(&[1, 2, 3, 4, 5])),
            ("1–2", Ok(&[1, 2])),
            ("2-3, 9", Ok(&[2, 3, 9])),
            ("9,2-3,3", Ok(&[2, 3, 9])),
            ("4294967295", Ok(&[u32::MAX])),
            ("1-5,1-5,2,3", Ok(&[1, 2, 3, 4, 5])),
            ("1-6", Err(TooMany)),
            ("1-3,7-9", Err(TooMany)),
            ("1-4000000000", Err(TooMany)),
            ("0", Err(Malformed)),
            ("5-3", Err(Malformed)),
            ("3,", Err(Malformed)),
            ("all", Err(Malformed)),
            ("", Err(Malformed)),
        ];
        for (text, expected) in cases {
            let pages = PageSelection::parse(text, 5);
            assert_eq!(
                pages.as_ref().map(PageSelection::numbers),
                expected.as_ref().map(|pages| *pages),
                "{text}"
            );
        }
    }
}
