//! Reading a page from a resolved path, in memory or streamed.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use super::collect::{CollectedPage, PageCollector};
use super::{PageRequest, TextPage};
use crate::encoding::DecodedView;
use crate::error::JournalError;
use crate::ledger::{KEPT_EACH, ReadRecord, ReadSource, ShownLines};
use crate::lines::{BreakCounts, BreakStyle, break_byte};
use crate::magic;
use crate::open::{OpenedFile, open_regular, open_seen, read_all};
use crate::special_files::SpecialRead;
use crate::stamp::{ContentHash, Stamp};
use crate::text::{self, BINARY_PROBE, Encoding, TextFacts};

/// Files up to this size are scanned to the end; larger ones have no hash.
pub(crate) const HASH_LIMIT: u64 = 64 << 20;

const PIECE: usize = 256 << 10;

/// The result of a scan, before it is converted to a page.
struct PageScan {
    collected: CollectedPage,
    facts: TextFacts,
    hash: Option<ContentHash>,
    to_the_end: bool,
    /// The file has more content, which could not be read.
    unended: bool,
    has_text: bool,
}

/// Reads one page. Also returns the content if it is small enough for the ledger.
pub(crate) fn read_page(
    real: &Path,
    request: &PageRequest,
) -> Result<(TextPage, Option<Vec<u8>>), JournalError> {
    let opened = open_regular(real)?;
    let failed = |error| JournalError::io("read", real, error);
    if opened.stamp.size <= KEPT_EACH as u64 {
        let content = read_all(&opened).map_err(failed)?;
        let reading = read_memory(real, &content, request)?;
        let page = finish(real, request, opened.stamp, reading)?;
        return Ok((page, content.ended.then_some(content.bytes)));
    }
    let mut head = [0; BINARY_PROBE];
    let count = (&opened.file).read(&mut head).map_err(failed)?;
    let head = &head[..count];
    let reading = match text::byte_order_mark(head) {
        Some((encoding, _)) if encoding != Encoding::Utf8 => {
            let size = opened.stamp.size;
            if size > HASH_LIMIT {
                let path = real.to_path_buf();
                return Err(JournalError::TooLarge {
                    path,
                    size,
                    limit: HASH_LIMIT,
                });
            }
            (&opened.file).rewind().map_err(failed)?;
            read_memory(real, &read_all(&opened).map_err(failed)?, request)?
        }
        _ if text::is_binary(head) => return Err(binary(real, head, opened.stamp.size)),
        mark => {
            let mark_length = mark.map_or(0, |(_, length)| length);
            let reading = read_stream(&opened, request, head, mark_length).map_err(failed)?;
            if reading.facts.lossy && reading.hash.is_some() {
                // It may be possible to decode the file, but that needs the whole content.
                (&opened.file).rewind().map_err(failed)?;
                read_memory(real, &read_all(&opened).map_err(failed)?, request)?
            } else {
                reading
            }
        }
    };
    Ok((finish(real, request, opened.stamp, reading)?, None))
}

/// Reads one page of a file that the caller has just checked and that has 1 to `longest` bytes.
/// Returns `None` if the file is different by now or cannot be read.
pub(crate) fn read_small_page(
    real: &Path,
    request: &PageRequest,
    longest: u64,
) -> Option<(TextPage, Vec<u8>)> {
    let opened = open_seen(real).ok()?;
    // A file of size 0 may be in /proc, and reading it may take time.
    let longest = longest.min(KEPT_EACH as u64);
    if !(1..=longest).contains(&opened.stamp.size) {
        return None;
    }
    let content = read_all(&opened).ok().filter(|content| content.ended)?;
    let reading = read_memory(real, &content, request).ok()?;
    let page = finish(real, request, opened.stamp, reading).ok()?;
    Some((page, content.bytes))
}

/// Reads one page of an editor's unsaved text.
pub(crate) fn read_given(
    real: &Path,
    request: &PageRequest,
    stamp: Stamp,
    bytes: Vec<u8>,
) -> Result<TextPage, JournalError> {
    let content = SpecialRead { bytes, ended: true };
    let reading = read_memory(real, &content, request)?;
    let mut page = finish(real, request, stamp, reading)?;
    page.read_record.settled = false;
    page.read_record.source = ReadSource::Editor;
    Ok(page)
}

fn binary(real: &Path, head: &[u8], size: u64) -> JournalError {
    JournalError::Binary {
        path: real.to_path_buf(),
        kind: magic::guess_type(head),
        size,
    }
}

fn read_memory(
    real: &Path,
    content: &SpecialRead,
    request: &PageRequest,
) -> Result<PageScan, JournalError> {
    let SpecialRead {
        bytes: content,
        ended,
    } = content;
    let Some(view) = DecodedView::decode(content) else {
        return Err(binary(real, content, content.len() as u64));
    };
    let body = &view.text[view.mark_length..];
    let style = BreakCounts::from_bytes(body).style();
    let mut collector = PageCollector::new(request, break_byte(style));
    collector.push(body);
    Ok(PageScan {
        collected: collector.finish(),
        facts: TextFacts {
            encoding: view.encoding,
            bom: view.mark_length > 0,
            breaks: style,
            final_newline: ended.then_some(body.last() == Some(&break_byte(style))),
            lossy: view.encoding != Encoding::Utf8 && std::str::from_utf8(body).is_err(),
        },
        hash: Some(ContentHash::compute(content)),
        to_the_end: *ended,
        unended: !ended,
        has_text: !body.is_empty(),
    })
}

fn read_stream(
    opened: &OpenedFile,
    request: &PageRequest,
    head: &[u8],
    mark_length: usize,
) -> io::Result<PageScan> {
    // Only a file without any LF uses CR. If it is not read to the end, its first bytes decide.
    let guess = match BreakCounts::from_bytes(head).style() {
        BreakStyle::Cr => BreakStyle::Cr,
        _ => BreakStyle::Lf,
    };
    let reading = scan(&opened.file, request, guess, mark_length, opened.stamp.size)?;
    let found = reading.facts.breaks;
    let as_assumed = (found == BreakStyle::Cr) == (guess == BreakStyle::Cr);
    if as_assumed || found == BreakStyle::None || !reading.to_the_end {
        return Ok(reading);
    }
    scan(&opened.file, request, found, mark_length, opened.stamp.size)
}

fn scan(
    mut file: &File,
    request: &PageRequest,
    style: BreakStyle,
    mark_length: usize,
    size: u64,
) -> io::Result<PageScan> {
    let whole = size <= HASH_LIMIT;
    let mut collector = PageCollector::new(request, break_byte(style));
    let mut counts = BreakCounts::default();
    let mut hasher = blake3::Hasher::new();
    let mut valid = true;
    let mut buffer = vec![0; PIECE];
    let (mut held, mut skip, mut last_byte) = (0, mark_length, None);
    let mut to_the_end = false;
    file.rewind()?;
    while !to_the_end && (whole || !collector.is_settled()) {
        let count = match file.read(&mut buffer[held..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to_the_end = count == 0;
        let filled = held + count;
        let piece = if to_the_end {
            filled
        } else {
            filled - unfinished(&buffer[..filled])
        };
        if whole {
            hasher.update(&buffer[held..filled]);
            valid = valid && std::str::from_utf8(&buffer[..piece]).is_ok();
        }
        let shown = &buffer[skip.min(piece)..piece];
        skip -= skip.min(piece);
        counts.add(shown);
        collector.push(shown);
        last_byte = shown.last().copied().or(last_byte);
        buffer.copy_within(piece..filled, 0);
        held = filled - piece;
    }
    let collected = collector.finish();
    if !whole {
        valid = !collected.lossy; // the rest was not read
    }
    Ok(PageScan {
        collected,
        facts: TextFacts {
            encoding: if valid {
                Encoding::Utf8
            } else {
                Encoding::Legacy { likely: "" }
            },
            bom: mark_length > 0,
            breaks: counts.style(),
            final_newline: to_the_end.then_some(last_byte == Some(break_byte(style))),
            lossy: !valid,
        },
        hash: whole.then(|| ContentHash::finish(&hasher)),
        to_the_end,
        unended: false,
        has_text: last_byte.is_some(),
    })
}

/// Returns the number of bytes at the end that must wait for the next piece: an incomplete
/// character, or a CR that may be followed by LF.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    for back in 1..=bytes.len().min(3) {
        let needed = match bytes[bytes.len() - back] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if needed > back { back } else { 0 };
    }
    0
}

fn finish(
    real: &Path,
    request: &PageRequest,
    stamp: Stamp,
    reading: PageScan,
) -> Result<TextPage, JournalError> {
    let PageScan {
        collected,
        facts,
        hash,
        to_the_end,
        unended,
        has_text,
    } = reading;
    let path = || real.to_path_buf();
    let offset = request.first_line();
    if has_text && collected.lines.is_empty() {
        let total_lines = collected.seen_lines;
        return Err(JournalError::OffsetPastEnd {
            path: path(),
            offset,
            total_lines,
        });
    }
    if let Some(length) = collected.too_short {
        let char_offset = request.char_offset;
        return Err(JournalError::CharOffsetPastEnd {
            path: path(),
            line: offset,
            char_offset,
            length,
        });
    }
    let first = collected.lines.first().map_or(0, |line| line.number);
    let last = collected.lines.last().map_or(0, |line| line.number);
    let total_lines = to_the_end.then_some(collected.seen_lines);
    let truncated_by_lines = collected.more && !collected.over_budget;
    let uncut = collected.lines.iter().all(|line| line.cut.is_none());
    let whole = first <= 1 && !collected.more && uncut && request.char_offset == 0 && !unended;
    let sight = ReadRecord {
        settled: stamp.is_settled(),
        stamp,
        hash,
        shown: has_text.then_some(ShownLines {
            first,
            last,
            total_lines,
        }),
        // A line that was cut hides text just like a missing line does.
        partial: !request.is_explicit() && (collected.more || unended || !uncut),
        source: ReadSource::Read,
    };
    Ok(TextPage {
        real: path(),
        empty: !has_text,
        total_lines,
        first,
        last,
        next_offset: collected.more.then_some(last + 1),
        whole,
        truncated_by_tokens: collected.over_budget,
        truncated_by_lines,
        unended,
        facts,
        read_record: sight,
        lines: collected.lines,
    })
}
