//! Encodings other than UTF-8: detection, decoding and encoding.
//!
//! - `guess`: the code page of a legacy file, and whether that is certain
//! - `view`: the text of a file as UTF-8, with every offset mapped to its bytes
//! - `write`: text as the bytes of an encoding, or the character it lacks
//! - `units`: the number of bytes of a character; `rivals`: offsets that may be inside a character
//!   if the guess is wrong
//!
//! Decoded text is never written back as a whole: a view only maps text to its bytes, and only new
//! text is encoded.

mod guess;
mod rivals;
mod units;
mod view;
mod write;

pub(crate) use guess::{CodePageGuess, guess, is_broken_utf8};
pub(crate) use rivals::contested_offsets;
pub(crate) use view::DecodedView;
pub(crate) use write::encode;

use std::fmt;

/// A legacy code page, named as in the WHATWG Encoding Standard.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodePage(&'static encoding_rs::Encoding);

impl CodePage {
    #[cfg(test)]
    pub(crate) fn new(page: &'static encoding_rs::Encoding) -> Self {
        Self(page)
    }

    /// Returns its standard name, such as `windows-1252`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl fmt::Debug for CodePage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
