//! A part of the index: for each trigram, the texts that contain it, of up to 8,192 texts.
//!
//! A segment never changes. A tree has several. When a file changes, its text in the old segment is
//! ignored, and the file is indexed again in a later segment. Layout, with little-endian numbers:
//!
//! ```text
//! table      one entry per trigram, sorted: trigram u32, offset of its list u32
//! lists      one after the other: number of texts (varint), then either the gaps between their
//!            numbers (varints) or, if those would be longer, one bit per text
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::bits::NumberSet;
use super::trigram::Trigram;
use super::trigram_query::TrigramQuery;

/// The maximum number of texts in one segment.
pub(crate) const MAX_TEXTS: usize = 8192;

const NUMBER_BITS: u32 = 13;

/// If fewer candidates than this are left, further lists are not read: they would rule out little.
const FEW: usize = 8;

/// Collects the trigrams of texts. Texts are numbered in the order in which they are added.
#[derive(Default)]
pub(crate) struct SegmentBuilder {
    /// Pairs of a trigram (high bits) and the number of a text (low bits).
    pairs: Vec<u64>,
    texts: usize,
}

impl SegmentBuilder {
    /// Adds the next text with its distinct trigrams. Returns the number of the text.
    pub(crate) fn add(&mut self, trigrams: &[Trigram]) -> usize {
        let number = self.texts;
        assert!(number < MAX_TEXTS, "a segment is full");
        let pair = |trigram: &Trigram| u64::from(*trigram) << NUMBER_BITS | number as u64;
        self.pairs.extend(trigrams.iter().map(pair));
        self.texts += 1;
        number
    }

    pub(crate) fn len(&self) -> usize {
        self.texts
    }

    pub(crate) fn build(mut self) -> Segment {
        self.pairs.sort_unstable();
        let mut table = Vec::new();
        let mut lists = Vec::new();
        let mut numbers = Vec::new();
        for same in self
            .pairs
            .chunk_by(|a, b| a >> NUMBER_BITS == b >> NUMBER_BITS)
        {
            let trigram = (same[0] >> NUMBER_BITS) as Trigram;
            numbers.clear();
            numbers.extend(
                same.iter()
                    .map(|pair| (pair & ((1 << NUMBER_BITS) - 1)) as usize),
            );
            table.push((trigram, lists.len() as u32));
            encode(&numbers, self.texts, &mut lists);
        }
        table.shrink_to_fit();
        lists.shrink_to_fit();
        Segment {
            texts: self.texts,
            table,
            length: lists.len(),
            lists: PostingLists::Memory(lists),
        }
    }
}

/// A finished segment; see the module.
#[derive(Debug)]
pub(crate) struct Segment {
    texts: usize,
    table: Vec<(Trigram, u32)>,
    lists: PostingLists,
    length: usize,
}

#[derive(Debug)]
enum PostingLists {
    Memory(Vec<u8>),
    /// The file, and the offset at which the lists start.
    File(Arc<File>, u64),
}

/// The index file is corrupt: it must not be used.
#[derive(Debug)]
pub(crate) struct CorruptIndex;

impl From<io::Error> for CorruptIndex {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl Segment {
    pub(crate) fn texts(&self) -> usize {
        self.texts
    }

    pub(crate) fn size(&self) -> SegmentSize {
        SegmentSize {
            texts: self.texts as u64,
            trigrams: self.table.len() as u64,
            lists: self.length as u64,
        }
    }

    /// Returns the memory that the segment takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let lists = match &self.lists {
            PostingLists::Memory(lists) => lists.len(),
            PostingLists::File(..) => 0,
        };
        self.table.len() * size_of::<(Trigram, u32)>() + lists
    }

    /// Returns the texts that may match: perhaps too many, never too few.
    pub(crate) fn candidates(&self, query: &TrigramQuery) -> Result<NumberSet, CorruptIndex> {
        match query {
            TrigramQuery::Any => Ok(NumberSet::all(self.texts)),
            TrigramQuery::One(trigram) => self.list(*trigram),
            TrigramQuery::Or(parts) => {
                let mut found = NumberSet::none(self.texts);
                for part in parts {
                    found.or(&self.candidates(part)?);
                }
                Ok(found)
            }
            TrigramQuery::And(parts) => {
                // Short lists first: if a trigram does not occur, no further list is read.
                let mut order: Vec<(usize, &TrigramQuery)> = parts
                    .iter()
                    .map(|part| (self.length_of(part), part))
                    .collect();
                order.sort_by_key(|(length, _)| *length);
                let mut found = NumberSet::all(self.texts);
                for (_, part) in order {
                    found.and(&self.candidates(part)?);
                    if found.count() < FEW {
                        break;
                    }
                }
                Ok(found)
            }
        }
    }

    fn place(&self, trigram: Trigram) -> Option<(usize, usize)> {
        let at = self
            .table
            .binary_search_by_key(&trigram, |(it, _)| *it)
            .ok()?;
        let end = self
            .table
            .get(at + 1)
            .map_or(self.length, |(_, next)| *next as usize);
        Some((self.table[at].1 as usize, end))
    }

    fn length_of(&self, query: &TrigramQuery) -> usize {
        match query {
            TrigramQuery::One(trigram) => self.place(*trigram).map_or(0, |(from, to)| to - from),
            _ => usize::MAX,
        }
    }

    fn list(&self, trigram: Trigram) -> Result<NumberSet, CorruptIndex> {
        let Some((from, to)) = self.place(trigram) else {
            return Ok(NumberSet::none(self.texts));
        };
        match &self.lists {
            PostingLists::Memory(lists) => {
                decode(lists.get(from..to).ok_or(CorruptIndex)?, self.texts)
            }
            PostingLists::File(file, start) => {
                let mut bytes = vec![0; to.checked_sub(from).ok_or(CorruptIndex)?];
                file.read_exact_at(&mut bytes, start + from as u64)?;
                decode(&bytes, self.texts)
            }
        }
    }

    /// Writes the segment in its file layout: the table, then the lists.
    pub(crate) fn write(&self, to: &mut impl io::Write) -> io::Result<SegmentSize> {
        for (trigram, offset) in &self.table {
            to.write_all(&trigram.to_le_bytes())?;
            to.write_all(&offset.to_le_bytes())?;
        }
        match &self.lists {
            PostingLists::Memory(lists) => to.write_all(lists)?,
            PostingLists::File(file, start) => {
                let mut bytes = vec![0; self.length];
                file.read_exact_at(&mut bytes, *start)?;
                to.write_all(&bytes)?;
            }
        }
        Ok(self.size())
    }

    /// Opens the segment at this offset of a file whose checksum was verified. Only its table is
    /// read into memory.
    pub(crate) fn open(
        file: &Arc<File>,
        start: u64,
        size: SegmentSize,
    ) -> Result<Self, CorruptIndex> {
        let (texts, trigrams) = (size.texts as usize, size.trigrams as usize);
        if texts > MAX_TEXTS || trigrams > 1 << 24 {
            return Err(CorruptIndex);
        }
        let mut bytes = vec![0; trigrams * 8];
        file.read_exact_at(&mut bytes, start)?;
        let number = |at: &[u8]| u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
        let table: Vec<_> = bytes
            .chunks_exact(8)
            .map(|it| (number(it), number(&it[4..])))
            .collect();
        let is_sorted = table
            .windows(2)
            .all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        if !is_sorted
            || table
                .last()
                .is_some_and(|(_, last)| u64::from(*last) > size.lists)
        {
            return Err(CorruptIndex);
        }
        Ok(Self {
            texts,
            table,
            lists: PostingLists::File(Arc::clone(file), start + bytes.len() as u64),
            length: size.lists as usize,
        })
    }
}

/// The sizes of the parts of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSize {
    pub(crate) texts: u64,
    pub(crate) trigrams: u64,
    pub(crate) lists: u64,
}

impl SegmentSize {
    pub(crate) fn bytes(self) -> Option<u64> {
        self.trigrams.checked_mul(8)?.checked_add(self.lists)
    }
}

fn encode(numbers: &[usize], texts: usize, into: &mut Vec<u8>) {
    put(numbers.len(), into);
    let start = into.len();
    let mut last = 0;
    for number in numbers {
        put(number - last, into);
        last = *number;
    }
    let as_bits = texts.div_ceil(8);
    if into.len() - start >= as_bits {
        into.truncate(start);
        into.resize(start + as_bits, 0);
        for number in numbers {
            into[start + number / 8] |= 1 << (number % 8);
        }
    }
}

/// Decodes a list. Its length in bytes shows which of the two encodings it has.
pub(crate) fn decode(bytes: &[u8], texts: usize) -> Result<NumberSet, CorruptIndex> {
    let mut rest = bytes;
    let count = take(&mut rest)?;
    let mut found = NumberSet::none(texts);
    if rest.len() == texts.div_ceil(8) {
        for (at, byte) in rest.iter().enumerate() {
            for bit in 0..8 {
                if byte >> bit & 1 == 1 {
                    found.insert(at * 8 + bit);
                }
            }
        }
        return Ok(found);
    }
    let mut last = 0;
    for _ in 0..count {
        last += take(&mut rest)?;
        found.insert(last);
    }
    Ok(found)
}

fn put(mut number: usize, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<usize, CorruptIndex> {
    let mut number = 0;
    for shift in [0, 7, 14] {
        let [byte, rest @ ..] = *bytes else {
            return Err(CorruptIndex);
        };
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(CorruptIndex)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn numbers(bits: &NumberSet) -> Vec<usize> {
        bits.iter().collect()
    }

    proptest! {
        #[test]
        fn lists_come_back(texts in 1_usize..MAX_TEXTS, some in btree_set(0_usize..MAX_TEXTS, 0..300)) {
            let some: Vec<usize> = some.into_iter().filter(|number| *number < texts).collect();
            let mut bytes = Vec::new();
            encode(&some, texts, &mut bytes);
            prop_assert_eq!(numbers(&decode(&bytes, texts).unwrap()), some);
        }

        #[test]
        fn damaged_lists_do_no_harm(bytes in vec(any::<u8>(), 0..40), texts in 1_usize..300) {
            if let Ok(found) = decode(&bytes, texts) {
                prop_assert!(found.iter().all(|number| number < texts.next_multiple_of(64)));
            }
        }

        #[test]
        fn a_segment_finds_what_was_put_in(
            texts in vec(btree_set(0_u32..40, 0..12), 1..200),
            asked in btree_set(0_u32..40, 1..3),
        ) {
            let mut builder = SegmentBuilder::default();
            for trigrams in &texts {
                builder.add(&trigrams.iter().copied().collect::<Vec<_>>());
            }
            let segment = builder.build();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"before").unwrap();
            let size = segment.write(&mut file).unwrap();
            let kept = Segment::open(&Arc::new(file), 6, size).unwrap();
            prop_assert!(kept.weight() <= segment.weight());
            let ones = asked.iter().map(|trigram| TrigramQuery::One(*trigram));
            let any = TrigramQuery::Or(ones.clone().collect());
            let all = TrigramQuery::And(ones.collect());
            let having = |is: fn(&BTreeSet<u32>, &BTreeSet<u32>) -> bool| -> Vec<usize> {
                (0..texts.len()).filter(|at| is(&asked, &texts[*at])).collect()
            };
            for segment in [&segment, &kept] {
                let found = numbers(&segment.candidates(&any).unwrap());
                prop_assert_eq!(&found, &having(|asked, text| !asked.is_disjoint(text)));
                let found = numbers(&segment.candidates(&all).unwrap());
                let exact = having(BTreeSet::is_subset);
                prop_assert!(exact.iter().all(|number| found.contains(number)));
                prop_assert!(found.len() < exact.len() + FEW);
            }
        }
    }

    #[test]
    fn a_table_that_is_out_of_order_is_damaged() {
        let mut file = tempfile::tempfile().unwrap();
        for number in [5_u32, 0, 4, 1] {
            file.write_all(&number.to_le_bytes()).unwrap();
        }
        let size = SegmentSize {
            texts: 1,
            trigrams: 2,
            lists: 9,
        };
        assert!(Segment::open(&Arc::new(file), 0, size).is_err());
    }
}
