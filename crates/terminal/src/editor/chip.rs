//! Chips: single characters of the draft that represent longer content.
//!
//! Each chip is a character of the last private-use plane, so moves, kills, yanks and undo need not
//! treat chips specially. No other text can contain a chip: such characters are replaced when text
//! is inserted.

/// The number of a chip in its editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChipId(u32);

/// Longer content that is shown as a short label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftChip {
    /// The label on screen, for example `[Pasted 1: 214 lines]`.
    pub label: String,
    /// The content.
    pub text: String,
    /// True if the chip can be replaced by its text. An image cannot.
    pub unfolds: bool,
}

impl DraftChip {
    /// Returns whether a paste is long enough to become a chip: more than 10 lines or 1000
    /// characters.
    pub fn is_needed_for(paste: &str) -> bool {
        paste.lines().count() > 10 || paste.chars().nth(1000).is_some()
    }

    /// Creates a chip for a paste; the caller numbers the pastes.
    pub fn pasted(number: usize, text: String) -> Self {
        let lines = text.lines().count();
        let label = match lines {
            0 | 1 => format!("[Pasted {number}: {} characters]", text.chars().count()),
            _ => format!("[Pasted {number}: {lines} lines]"),
        };
        Self {
            label,
            text,
            unfolds: true,
        }
    }
}

/// A part of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftPart {
    /// Text as typed.
    Text(String),
    /// A chip.
    Chip(ChipId),
}

const FIRST: u32 = 0x10_0000;
const LAST: u32 = 0x10_eeed;

impl ChipId {
    /// Returns the chip that a character of the draft represents, if any.
    pub(super) fn from_char(character: char) -> Option<Self> {
        let code_point = u32::from(character);
        (FIRST..=LAST)
            .contains(&code_point)
            .then(|| Self(code_point - FIRST))
    }

    fn character(self) -> char {
        char::from_u32(FIRST + self.0).unwrap_or('\u{fffd}')
    }
}

/// Returns text with every character replaced that would be a chip.
pub(super) fn without_chips(text: &str) -> String {
    let replaced = |c: char| {
        if ChipId::from_char(c).is_some() {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().filter(|c| *c != '\r').map(replaced).collect()
}

/// All chips that the editor ever had, because undo may restore any of them. The content of chips
/// that were sent is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct ChipTable {
    chips: Vec<DraftChip>,
}

impl ChipTable {
    pub(super) fn add(&mut self, chip: DraftChip) -> (ChipId, char) {
        let most = (LAST - FIRST) as usize;
        // No session needs that many chips. If all numbers are used, the last number is used again.
        if self.chips.len() > most {
            self.chips.truncate(most);
        }
        self.chips.push(chip);
        let id = ChipId(u32::try_from(self.chips.len() - 1).unwrap_or(0));
        (id, id.character())
    }

    pub(super) fn get(&self, id: ChipId) -> Option<&DraftChip> {
        self.chips.get(id.0 as usize)
    }

    /// Drops the content of a chip that was sent. If undo restores the chip, its label says so.
    pub(super) fn clear_text(&mut self, id: ChipId) {
        if let Some(chip) = self.chips.get_mut(id.0 as usize)
            && !chip.text.is_empty()
        {
            let name = chip.label.split(':').next().unwrap_or_default();
            *chip = DraftChip {
                label: format!("{}: sent before]", name.trim_end_matches(']')),
                text: String::new(),
                unfolds: false,
            };
        }
    }

    pub(super) fn label(&self, character: char) -> Option<&str> {
        self.get(ChipId::from_char(character)?)
            .map(|chip| &*chip.label)
    }

    pub(super) fn unfold(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        for character in text.chars() {
            match ChipId::from_char(character).and_then(|id| self.get(id)) {
                Some(chip) if chip.unfolds => whole.push_str(&chip.text),
                Some(chip) => whole.push_str(&chip.label),
                None => whole.push(character),
            }
        }
        whole
    }

    pub(super) fn parts(&self, text: &str) -> Vec<DraftPart> {
        let mut parts: Vec<DraftPart> = Vec::new();
        for character in text.chars() {
            match (ChipId::from_char(character), parts.last_mut()) {
                (Some(id), _) => parts.push(DraftPart::Chip(id)),
                (None, Some(DraftPart::Text(text))) => text.push(character),
                (None, _) => parts.push(DraftPart::Text(character.into())),
            }
        }
        parts
    }

    pub(super) fn fold(&self, parts: &[DraftPart]) -> String {
        let mut text = String::new();
        for part in parts {
            match part {
                DraftPart::Text(part) => text.push_str(&without_chips(part)),
                DraftPart::Chip(id) if self.get(*id).is_some() => text.push(id.character()),
                DraftPart::Chip(_) => {}
            }
        }
        text
    }
}
