//! A terminal in process, that keeps every byte it was sent.

use avt::Terminal;
use haft_terminal::{Caret, ColorLevel, HistoryItem, LiveRegion, Screen, ScreenSize, TextLine};

pub(crate) struct Emulator {
    terminal: Terminal,
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: usize,
}

impl Emulator {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self {
            terminal: Terminal::with_scrollback(columns, rows, None).unwrap(),
            bytes: Vec::new(),
            frames: 0,
        }
    }

    /// What a shell printed before.
    pub(crate) fn shell(&mut self, text: &str) {
        self.terminal.feed(text);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.terminal.feed(std::str::from_utf8(bytes).unwrap());
    }

    pub(crate) fn draw(
        &mut self,
        screen: &mut Screen,
        history: &[HistoryItem],
        region: &LiveRegion,
    ) {
        for frame in screen.frames(history, region) {
            self.frames += 1;
            self.write(&frame);
        }
    }

    pub(crate) fn resize(&mut self, screen: &mut Screen, columns: u16, rows: u16) {
        self.terminal
            .resize(usize::from(columns), usize::from(rows));
        screen.resize(ScreenSize::new(columns, rows));
    }

    /// Everything, scrollback too, each logical line as one; blanks and empty lines at the ends left out.
    pub(crate) fn logical(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut goes_on = false;
        for line in self.terminal.primary_screen().all_lines() {
            let text = line.text();
            match (goes_on, lines.last_mut()) {
                (true, Some(last)) => last.push_str(&text),
                _ => lines.push(text),
            }
            goes_on = line.is_wrapped();
        }
        let mut lines: Vec<String> = lines
            .iter()
            .map(|line| line.trim_end().to_owned())
            .collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// The rows that are visible.
    pub(crate) fn rows(&self) -> Vec<String> {
        let lines = self.terminal.screen().visible_lines();
        lines
            .map(|line| line.text().trim_end().to_owned())
            .collect()
    }

    /// Column and row.
    pub(crate) fn cursor(&self) -> Option<(usize, usize)> {
        self.terminal.cursor().position()
    }

    pub(crate) fn terminal(&self) -> &Terminal {
        &self.terminal
    }
}

pub(crate) fn screen(columns: u16, rows: u16) -> Screen {
    let mut screen = Screen::new(ScreenSize::new(columns, rows), ColorLevel::TrueColor);
    screen.set_reflows(true);
    screen
}

/// A region of these rows with the caret at the end of the one that begins with `>`.
pub(crate) fn region(rows: &[&str]) -> LiveRegion {
    let caret = rows.iter().position(|row| row.starts_with('>'));
    LiveRegion {
        rows: rows.iter().map(|row| TextLine::plain(row)).collect(),
        caret: caret.map(|row| Caret {
            row,
            offset: rows[row].len(),
        }),
        stamp: 0,
    }
}

pub(crate) fn verbatim(text: &str) -> HistoryItem {
    HistoryItem::Verbatim(TextLine::plain(text))
}

pub(crate) fn prose(text: &str) -> HistoryItem {
    HistoryItem::prose(TextLine::plain(text))
}
