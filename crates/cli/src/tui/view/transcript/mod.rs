//! The transcript view (Ctrl-O): the complete conversation with times, thinking and complete
//! outputs.
//!
//! Only file positions are kept in memory (`index`). Jobs read the visible lines from disk as
//! needed; until then, a placeholder is shown.

mod index;
mod render;

use std::{
    any::Any,
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    sync::Arc,
};

use haft_host::SessionEvent;
use haft_terminal::{
    Key, TextLine,
    screen::{ScrollCommand, ScrollText},
};

use self::{
    index::{BLOCK, TranscriptIndex},
    render::{LineRole, TranscriptLine},
};
use super::{
    close, job,
    pager::{Pager, PagerStep},
    stay,
};
use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

/// The maximum number of blocks of lines in memory.
const MAX_BLOCKS: usize = 600;

/// The maximum number of bytes of an entry that are copied or edited.
const MAX_TEXT: usize = 10 << 20;

/// The transcript of a session.
pub(crate) struct TranscriptView {
    pager: Pager,
    text: TranscriptText,
    /// The blocks that jobs are reading.
    asked: HashSet<(usize, usize)>,
    /// Whether the transcript has grown since it was indexed.
    is_stale: bool,
    is_reading: bool,
    status: String,
    /// Whether the first frame, which shows the end, has been drawn.
    has_shown_end: bool,
}

/// The result of a job.
enum TranscriptData {
    Index(io::Result<Arc<TranscriptIndex>>),
    Blocks(Vec<((usize, usize), Vec<TranscriptLine>)>),
    Found(io::Result<Option<(usize, usize)>>),
    Copy(io::Result<String>),
    Edit(io::Result<String>),
}

impl TranscriptView {
    /// Returns the view and its first effects.
    pub(crate) fn open(path: PathBuf) -> (Self, Vec<ViewEffect>) {
        let view = Self {
            pager: Pager::new(),
            text: TranscriptText::default(),
            asked: HashSet::new(),
            is_stale: false,
            is_reading: true,
            status: "reading".to_owned(),
            has_shown_end: false,
        };
        let read = move || TranscriptData::Index(TranscriptIndex::load(path).map(Arc::new));
        (view, vec![job(read)])
    }

    /// Returns jobs that read the lines on or near the screen that are not in memory.
    fn missing_line_jobs(&mut self) -> Vec<ViewEffect> {
        let Some(index) = self.text.index.clone() else {
            return Vec::new();
        };
        let mut effects = Vec::new();
        if self.is_stale && !self.is_reading {
            (self.is_stale, self.is_reading) = (false, true);
            let mut next = (*index).clone();
            effects.push(job(move || {
                TranscriptData::Index(next.extend().map(|()| Arc::new(next)))
            }));
        }
        let top = self.pager.scroller.top_line();
        let lines = top.saturating_sub(100)..(top + 200).min(self.text.len());
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for line in lines {
            let (entry, at) = self.text.place(line);
            let block = (entry, at / BLOCK);
            if blocks.last() != Some(&block) {
                blocks.push(block);
            }
        }
        blocks.retain(|block| !self.text.blocks.contains_key(block) && self.asked.insert(*block));
        if !blocks.is_empty() {
            effects.push(job(move || {
                let read = blocks.into_iter().map(|(entry, block)| {
                    let lines = index.block(entry, block).unwrap_or_default();
                    ((entry, block), lines)
                });
                TranscriptData::Blocks(read.collect())
            }));
        }
        effects
    }

    /// Starts a job that finds the next match, which may be anywhere in the file.
    fn seek(&mut self, step: &PagerStep) -> Vec<ViewEffect> {
        let Some(index) = self.text.index.clone() else {
            return Vec::new();
        };
        let backwards = *step == PagerStep::Match { backwards: true };
        let query = self.pager.query.clone();
        let (entry, line) = self.text.place(self.pager.scroller.top_line());
        self.status = format!("searching {query}");
        let find = move || TranscriptData::Found(index.find(&query, (entry, line), backwards));
        vec![job(find)]
    }

    fn found(&mut self, found: io::Result<Option<(usize, usize)>>) {
        self.status = match found {
            Ok(Some((entry, line))) => {
                self.text.unfold(entry);
                let at = self.text.begins(entry) + line;
                self.pager.scroller.go_to(at);
                String::new()
            }
            Ok(None) => format!("no more {}", self.pager.query),
            Err(error) => error.to_string(),
        };
    }

    /// Reads the complete entry at the top of the screen for copying or editing.
    fn take(&self, make: fn(io::Result<String>) -> TranscriptData) -> Vec<ViewEffect> {
        let Some(index) = self.text.index.clone() else {
            return Vec::new();
        };
        let (entry, _) = self.text.place(self.pager.scroller.top_line());
        vec![job(move || make(index.text(entry, MAX_TEXT)))]
    }
}

impl FullScreenView for TranscriptView {
    fn is_transcript(&self) -> bool {
        true
    }

    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.text.look = Some(look.clone());
        self.pager.fit(look);
        if !self.has_shown_end && self.text.index.is_some() {
            self.has_shown_end = true;
            self.pager.scroller.scroll(ScrollCommand::Last, &self.text);
        }
        let hint = match (look.is_narrow(), self.status.is_empty()) {
            (_, false) => format!(" {}", self.status),
            (true, true) => " j k / { } Enter fold  q".to_owned(),
            (false, true) => {
                " Transcript  j k Space b g G  / n N  { } prompt  Enter fold  y copy  v edit  q"
                    .to_owned()
            }
        };
        self.pager.rows(&self.text, look, &hint)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        let step = self.pager.key(key, &self.text);
        let mut effects = match &step {
            PagerStep::Close => return close(),
            PagerStep::Search | PagerStep::Match { .. } => self.seek(&step),
            PagerStep::Other if key == Key::RETURN => {
                let (entry, _) = self.text.place(self.pager.scroller.top_line());
                self.text.fold(entry);
                self.pager.scroller.go_to(self.text.begins(entry));
                Vec::new()
            }
            PagerStep::Other if key == Key::char('y') => self.take(TranscriptData::Copy),
            PagerStep::Other if key == Key::char('v') => self.take(TranscriptData::Edit),
            PagerStep::Other if key == Key::control('o') => return close(),
            PagerStep::Other | PagerStep::Done => Vec::new(),
        };
        effects.extend(self.missing_line_jobs());
        ViewOutcome::Stay(effects)
    }

    fn loaded(&mut self, data: Box<dyn Any + Send>) -> ViewOutcome {
        let Ok(data) = data.downcast::<TranscriptData>() else {
            return stay();
        };
        let mut effects = Vec::new();
        match *data {
            TranscriptData::Index(Ok(index)) => {
                self.is_reading = false;
                self.status = String::new();
                // The window's size is not known before the first frame. From this position, the
                // next job reads the last 200 lines, which include all lines of a usual window.
                if !self.has_shown_end {
                    self.text.set_index(index);
                    self.pager
                        .scroller
                        .go_to(self.text.len().saturating_sub(100));
                } else {
                    self.text.set_index(index);
                }
            }
            TranscriptData::Index(Err(error)) => {
                self.is_reading = false;
                self.status = format!("the transcript cannot be read: {error}");
            }
            TranscriptData::Blocks(blocks) => {
                for (block, lines) in blocks {
                    self.asked.remove(&block);
                    self.text.store_block(block, lines);
                }
                return stay();
            }
            TranscriptData::Found(found) => self.found(found),
            TranscriptData::Copy(Ok(text)) => effects.push(ViewEffect::Copy(text)),
            TranscriptData::Edit(Ok(text)) => effects.push(ViewEffect::Edit(text)),
            TranscriptData::Copy(Err(error)) | TranscriptData::Edit(Err(error)) => {
                self.status = error.to_string();
            }
        }
        effects.extend(self.missing_line_jobs());
        ViewOutcome::Stay(effects)
    }

    fn on_event(&mut self, event: &SessionEvent) {
        if matches!(event, SessionEvent::Result(_)) || event.call_result().is_some() {
            self.is_stale = true;
        }
    }
}

/// The transcript as lines, some of which are in memory.
#[derive(Default)]
struct TranscriptText {
    index: Option<Arc<TranscriptIndex>>,
    /// Entries of which only the first line is shown.
    folded: HashSet<usize>,
    /// For each entry, the number of the first line after it.
    ends: Vec<usize>,
    blocks: HashMap<(usize, usize), Vec<TranscriptLine>>,
    /// The blocks in their order of arrival.
    order: Vec<(usize, usize)>,
    look: Option<UiStyle>,
}

impl TranscriptText {
    fn set_index(&mut self, index: Arc<TranscriptIndex>) {
        self.index = Some(index);
        self.count();
    }

    fn count(&mut self) {
        let entries = self.index.iter().flat_map(|index| &index.entries);
        let mut end = 0;
        self.ends = entries
            .enumerate()
            .map(|(number, entry)| {
                end += if self.folded.contains(&number) {
                    1
                } else {
                    entry.lines
                };
                end
            })
            .collect();
    }

    fn fold(&mut self, entry: usize) {
        if !self.folded.remove(&entry) {
            self.folded.insert(entry);
        }
        self.count();
    }

    fn unfold(&mut self, entry: usize) {
        self.folded.remove(&entry);
        self.count();
    }

    fn begins(&self, entry: usize) -> usize {
        match entry.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or_default(),
            None => 0,
        }
    }

    /// Returns the entry of a line and the line's number in it.
    fn place(&self, line: usize) -> (usize, usize) {
        let entry = self.ends.partition_point(|end| *end <= line);
        (entry, line.saturating_sub(self.begins(entry)))
    }

    fn store_block(&mut self, block: (usize, usize), lines: Vec<TranscriptLine>) {
        if self.order.len() >= MAX_BLOCKS {
            let oldest = self.order.remove(0);
            self.blocks.remove(&oldest);
        }
        self.order.retain(|known| *known != block);
        self.order.push(block);
        self.blocks.insert(block, lines);
    }
}

impl ScrollText for TranscriptText {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    fn line(&self, number: usize) -> TextLine {
        let (entry, at) = self.place(number);
        let line = self.blocks.get(&(entry, at / BLOCK));
        let Some(line) = line.and_then(|lines| lines.get(at % BLOCK)) else {
            return TextLine::plain(" ~");
        };
        let Some(look) = &self.look else {
            return TextLine::plain(&line.text);
        };
        let theme = &look.theme;
        let mut shown = match line.role {
            LineRole::Heading => TextLine::styled(&line.text, theme.heading),
            LineRole::Prompt => TextLine::styled(&line.text, theme.accent),
            LineRole::Failure => TextLine::styled(&line.text, theme.failure),
            LineRole::Muted => TextLine::styled(&line.text, theme.faint),
            LineRole::Text => TextLine::plain(&line.text),
        };
        if self.folded.contains(&entry) {
            let lines = self
                .index
                .as_ref()
                .and_then(|index| index.entries.get(entry));
            let lines = lines.map_or(0, |entry| entry.lines);
            shown.push(&format!("  {} {lines} lines", look.ellipsis()), theme.faint);
        }
        shown
    }

    fn is_section(&self, number: usize) -> bool {
        let (entry, at) = self.place(number);
        let index = self.index.as_ref();
        at == 0
            && index.is_some_and(|index| {
                index
                    .entries
                    .get(entry)
                    .is_some_and(|entry| entry.is_prompt)
            })
    }
}

#[cfg(test)]
mod transcript_tests;
