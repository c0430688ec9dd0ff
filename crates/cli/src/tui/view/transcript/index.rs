//! An index of a transcript: it stores file positions, not texts. All methods read from disk.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use super::render::{LineRole, RenderedEntry, TranscriptLine, render};

/// The number of lines per block.
pub(super) const BLOCK: usize = 400;

/// The maximum number of bytes shown of one line of a result file.
const MAX_LINE: usize = 64 << 10;

/// The maximum size of a line of the transcript file in bytes. The index ends before a longer line.
const MAX_ENTRY: u64 = 64 << 20;

/// The position and length of an entry in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryPlace {
    offset: u64,
    length: u64,
    /// The number of displayed lines.
    pub(super) lines: usize,
    pub(super) is_prompt: bool,
    output: Option<Box<OutputPlace>>,
}

/// A result that was written to a separate file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OutputPlace {
    path: PathBuf,
    /// The number of lines of the entry before those of the file.
    before: usize,
    /// The file position of each block of lines.
    blocks: Vec<u64>,
}

/// The index of all entries up to `end`.
#[derive(Debug, Clone, Default)]
pub(super) struct TranscriptIndex {
    path: PathBuf,
    pub(super) entries: Vec<EntryPlace>,
    end: u64,
}

impl TranscriptIndex {
    pub(super) fn load(path: PathBuf) -> io::Result<Self> {
        let mut index = Self {
            path,
            ..Self::default()
        };
        index.extend()?;
        Ok(index)
    }

    /// Adds the entries that were written since the last call.
    pub(super) fn extend(&mut self) -> io::Result<()> {
        let mut reader = BufReader::new(File::open(&self.path)?);
        reader.seek(SeekFrom::Start(self.end))?;
        let outputs = self.outputs();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader).take(MAX_ENTRY).read_until(b'\n', &mut line)?;
            // A line without a line end is still being written.
            if !line.ends_with(b"\n") {
                return Ok(());
            }
            let length = read as u64;
            let rendered = rendered(&line, &outputs);
            let mut lines = rendered.lines.len();
            let output = rendered.output.and_then(|path| output_place(path, lines));
            if let Some((_, count)) = &output {
                lines += count;
            }
            if lines > 0 {
                self.entries.push(EntryPlace {
                    offset: self.end,
                    length,
                    lines,
                    is_prompt: rendered.is_prompt,
                    output: output.map(|(place, _)| Box::new(place)),
                });
            }
            self.end += length;
        }
    }

    /// Returns the folder of results that were too long for the transcript: `NAME/tool-results`
    /// next to the transcript `NAME.jsonl`.
    fn outputs(&self) -> PathBuf {
        self.path.with_extension("").join("tool-results")
    }

    /// Returns a block of an entry's lines.
    pub(super) fn block(&self, entry: usize, block: usize) -> io::Result<Vec<TranscriptLine>> {
        let Some(place) = self.entries.get(entry) else {
            return Ok(Vec::new());
        };
        let wanted = block * BLOCK..((block + 1) * BLOCK).min(place.lines);
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(place.offset))?;
        let mut line = Vec::new();
        file.take(place.length).read_to_end(&mut line)?;
        let rendered = rendered(&line, &self.outputs()).lines;
        let own = wanted.start.min(rendered.len())..wanted.end.min(rendered.len());
        let mut lines = rendered[own].to_vec();
        if let Some(output) = &place.output {
            let from = wanted.start.saturating_sub(output.before);
            let to = wanted.end.saturating_sub(output.before);
            lines.extend(output.lines(from..to)?);
        }
        Ok(lines)
    }

    /// Returns the text of an entry, limited to about `most` bytes.
    pub(super) fn text(&self, entry: usize, most: usize) -> io::Result<String> {
        let lines = self.entries.get(entry).map_or(0, |place| place.lines);
        let mut text = String::new();
        for block in 0..lines.div_ceil(BLOCK) {
            for line in self.block(entry, block)? {
                text += line.text.strip_prefix("  ").unwrap_or(&line.text);
                text.push('\n');
            }
            if text.len() > most {
                text += "(and more)\n";
                break;
            }
        }
        Ok(text)
    }

    /// Returns the next matching line as the entry and the line in it.
    pub(super) fn find(
        &self,
        query: &str,
        from: (usize, usize),
        backwards: bool,
    ) -> io::Result<Option<(usize, usize)>> {
        let query = query.to_lowercase();
        if query.is_empty() {
            return Ok(None);
        }
        let entries: Box<dyn Iterator<Item = usize>> = match backwards {
            true => Box::new((0..=from.0.min(self.entries.len().saturating_sub(1))).rev()),
            false => Box::new(from.0..self.entries.len()),
        };
        for entry in entries {
            let blocks = self.entries[entry].lines.div_ceil(BLOCK);
            let mut found = None;
            for block in 0..blocks {
                for (number, line) in self.block(entry, block)?.iter().enumerate() {
                    let at = block * BLOCK + number;
                    let is_wanted = match (entry == from.0, backwards) {
                        (true, true) => at < from.1,
                        (true, false) => at > from.1,
                        (false, _) => true,
                    };
                    if is_wanted && line.text.to_lowercase().contains(&query) {
                        found = Some((entry, at));
                        if !backwards {
                            return Ok(found);
                        }
                    }
                }
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn rendered(line: &[u8], outputs: &Path) -> RenderedEntry {
    match serde_json::from_slice(line) {
        Ok(value) => render(&value, outputs),
        Err(_) => RenderedEntry::default(),
    }
}

/// Indexes a result file. Returns the index and the number of lines.
fn output_place(path: PathBuf, before: usize) -> Option<(OutputPlace, usize)> {
    let mut reader = BufReader::new(File::open(&path).ok()?);
    let (mut blocks, mut at, mut lines) = (Vec::new(), 0, 0);
    loop {
        if lines % BLOCK == 0 {
            blocks.push(at);
        }
        match skip_line(&mut reader).ok()? {
            0 => break,
            bytes => {
                at += bytes;
                lines += 1;
            }
        }
    }
    let place = OutputPlace {
        path,
        before,
        blocks,
    };
    Some((place, lines))
}

/// Skips a line. Returns its length in bytes, or 0 at the end.
fn skip_line(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut bytes = 0;
    loop {
        let read = reader.fill_buf()?;
        if read.is_empty() {
            return Ok(bytes);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(read.len(), |end| end + 1);
        reader.consume(used);
        bytes += used as u64;
        if end.is_some() {
            return Ok(bytes);
        }
    }
}

impl OutputPlace {
    fn lines(&self, wanted: Range<usize>) -> io::Result<Vec<TranscriptLine>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let block = wanted.start / BLOCK;
        let Some(offset) = self.blocks.get(block) else {
            return Ok(Vec::new());
        };
        let mut reader = BufReader::new(File::open(&self.path)?);
        reader.seek(SeekFrom::Start(*offset))?;
        for _ in block * BLOCK..wanted.start {
            skip_line(&mut reader)?;
        }
        let mut lines = Vec::with_capacity(wanted.len());
        for _ in wanted {
            let mut line = Vec::new();
            let read = (&mut reader)
                .take(MAX_LINE as u64)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            if !line.ends_with(b"\n") {
                skip_line(&mut reader)?;
            }
            let text = String::from_utf8_lossy(&line);
            lines.push(TranscriptLine {
                role: LineRole::Text,
                text: format!("  {}", text.trim_end_matches(['\n', '\r'])),
            });
        }
        Ok(lines)
    }
}
