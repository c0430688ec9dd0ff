//! A list with a selection and entries that unfold. All views with lists share it.

use haft_terminal::{Key, KeyCode, TextLine, screen::ScrollCommand, wrap::wrap};

use super::{body_rows, footer, pager::is_leaving};
use crate::tui::ui_style::UiStyle;

/// A list entry.
#[derive(Debug, Clone, Default)]
pub(super) struct ListEntry {
    pub(super) label: TextLine,
    /// The lines below the entry while it is unfolded.
    pub(super) detail: Vec<TextLine>,
    pub(super) is_open: bool,
}

impl ListEntry {
    pub(super) fn new(label: TextLine) -> Self {
        Self {
            label,
            ..Self::default()
        }
    }

    pub(super) fn text(&self) -> String {
        let detail = self.detail.iter().map(TextLine::text);
        let lines: Vec<&str> = [self.label.text()].into_iter().chain(detail).collect();
        lines.join("\n")
    }
}

/// The entries, the selection and the scroll position.
#[derive(Debug, Default)]
pub(super) struct ListView {
    pub(super) entries: Vec<ListEntry>,
    pub(super) chosen: usize,
    /// The first visible line, counted over labels and details.
    top: usize,
    /// The number of rows in the last frame.
    room: usize,
    width: usize,
    /// The text that is being typed in the last row, and its mark.
    typing: Option<(char, String)>,
    query: String,
}

/// The outcome of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListStep {
    Done,
    /// Enter was pressed on this entry.
    Enter(usize),
    /// A text was entered after this mark.
    Typed(char, String),
    Copy(String),
    Edit(String),
    Close,
    /// The key is not one that all lists share.
    Other,
}

impl ListView {
    pub(super) fn new(entries: Vec<ListEntry>) -> Self {
        Self {
            entries,
            room: 10,
            width: 80,
            ..Self::default()
        }
    }

    /// Replaces the entries. The selection keeps its index.
    pub(super) fn replace(&mut self, entries: Vec<ListEntry>) {
        self.entries = entries;
        self.choose(self.chosen);
    }

    pub(super) fn choose(&mut self, entry: usize) {
        self.chosen = entry.min(self.entries.len().saturating_sub(1));
    }

    /// Starts text input in the last row.
    pub(super) fn begin_text_input(&mut self, mark: char) {
        self.typing = Some((mark, String::new()));
    }

    pub(super) fn key(&mut self, key: Key) -> ListStep {
        if let Some((mark, typed)) = &mut self.typing {
            match key.code {
                KeyCode::Enter => {
                    let (mark, typed) = (*mark, std::mem::take(typed));
                    self.typing = None;
                    if mark != '/' {
                        return ListStep::Typed(mark, typed);
                    }
                    self.query = typed.to_lowercase();
                    self.seek(self.chosen..self.entries.len(), false);
                }
                KeyCode::Escape => self.typing = None,
                KeyCode::Backspace if typed.is_empty() => self.typing = None,
                KeyCode::Backspace => {
                    typed.pop();
                }
                _ => typed.extend(key.typed()),
            }
            return ListStep::Done;
        }
        if key == Key::RETURN && !self.entries.is_empty() {
            return ListStep::Enter(self.chosen);
        }
        let chosen = self.entries.get(self.chosen);
        match (ScrollCommand::from_key(key), key.typed()) {
            (Some(command), _) => {
                self.scroll(command);
                ListStep::Done
            }
            (None, Some('/')) => {
                self.typing = Some(('/', String::new()));
                ListStep::Done
            }
            (None, Some('y')) if chosen.is_some() => {
                ListStep::Copy(chosen.map(ListEntry::text).unwrap_or_default())
            }
            (None, Some('v')) if chosen.is_some() => {
                ListStep::Edit(chosen.map(ListEntry::text).unwrap_or_default())
            }
            _ if is_leaving(key) => ListStep::Close,
            _ => ListStep::Other,
        }
    }

    fn scroll(&mut self, command: ScrollCommand) {
        let last = self.entries.len().saturating_sub(1);
        match command {
            ScrollCommand::RowDown => {
                let end = self.begins(self.chosen) + self.height(self.chosen);
                // Scrolls the rest of the entry into view before selecting the next one.
                if end > self.top + self.room {
                    self.top += 1;
                } else {
                    self.choose(self.chosen + 1);
                }
            }
            ScrollCommand::RowUp => {
                if self.begins(self.chosen) < self.top {
                    self.top -= 1;
                } else {
                    self.choose(self.chosen.saturating_sub(1));
                }
            }
            ScrollCommand::PageDown => {
                let lines = self.begins(self.entries.len());
                let top = self.top + self.room.saturating_sub(1).max(1);
                self.top = top.min(lines.saturating_sub(self.room));
                let below = self.begins(self.chosen) < self.top;
                self.choose(if below {
                    self.entry_at_line(self.top)
                } else {
                    self.chosen
                });
                if self.top + self.room >= lines {
                    self.choose(last);
                }
            }
            ScrollCommand::PageUp => {
                self.top = self.top.saturating_sub(self.room.saturating_sub(1).max(1));
                if self.begins(self.chosen) >= self.top + self.room {
                    self.choose(self.entry_at_line(self.top));
                }
                if self.top == 0 {
                    self.choose(0);
                }
            }
            ScrollCommand::First => self.choose(0),
            ScrollCommand::Last => self.choose(last),
            ScrollCommand::NextMatch => self.seek(self.chosen + 1..self.entries.len(), false),
            ScrollCommand::PreviousMatch => self.seek(0..self.chosen, true),
            ScrollCommand::NextSection => self.choose(self.chosen + 1),
            ScrollCommand::PreviousSection => self.choose(self.chosen.saturating_sub(1)),
        }
        // Several keys may arrive before the next frame.
        self.show_chosen();
    }

    fn seek(&mut self, entries: std::ops::Range<usize>, backwards: bool) {
        if self.query.is_empty() || entries.start >= entries.end {
            return;
        }
        let fits = |entry: &usize| {
            let text = self.entries.get(*entry).map(ListEntry::text);
            text.is_some_and(|text| text.to_lowercase().contains(&self.query))
        };
        let found = match backwards {
            true => entries.rev().find(fits),
            false => { entries }.find(fits),
        };
        self.chosen = found.unwrap_or(self.chosen);
    }

    /// Returns the number of lines of an entry, including wrapped ones.
    fn height(&self, entry: usize) -> usize {
        self.entries
            .get(entry)
            .map_or(0, |entry| match entry.is_open {
                true => {
                    1 + entry
                        .detail
                        .iter()
                        .map(|line| self.wrapped(line).len())
                        .sum::<usize>()
                }
                false => 1,
            })
    }

    fn wrapped(&self, line: &TextLine) -> Vec<TextLine> {
        wrap(line, self.width.saturating_sub(2).max(1))
    }

    /// Returns the first line of an entry.
    fn begins(&self, entry: usize) -> usize {
        (0..entry.min(self.entries.len()))
            .map(|before| self.height(before))
            .sum()
    }

    /// Returns the entry that contains a line.
    fn entry_at_line(&self, line: usize) -> usize {
        let mut end = 0;
        let mut entries = 0..self.entries.len();
        entries
            .find(|entry| {
                end += self.height(*entry);
                end > line
            })
            .unwrap_or_default()
    }

    /// Returns all rows of the screen: a title, the entries, the keys.
    pub(super) fn rows(&mut self, title: &TextLine, hint: &str, look: &UiStyle) -> Vec<TextLine> {
        self.room = body_rows(look).saturating_sub(1).max(1);
        self.width = look.size.row_width();
        self.show_chosen();
        let mut lines = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let is_chosen = number == self.chosen;
            let mark = if is_chosen { look.angle() } else { " " };
            let mut line = TextLine::styled(&format!("{mark} "), look.theme.accent);
            line.append(&entry.label);
            if is_chosen {
                line = line.restyled(|style| style.and(look.theme.accent).bold());
            }
            lines.push(line.truncated(self.width));
            if entry.is_open {
                for row in entry.detail.iter().flat_map(|line| self.wrapped(line)) {
                    let mut line = TextLine::plain("  ");
                    line.append(&row);
                    lines.push(line);
                }
            }
        }
        let mut rows = vec![title.truncated(self.width)];
        rows.extend(lines.into_iter().skip(self.top).take(self.room));
        rows.resize(self.room + 1, TextLine::new());
        rows.truncate(body_rows(look));
        rows.push(match &self.typing {
            Some((mark, typed)) => footer(&format!("{mark}{typed}"), look),
            None => footer(hint, look),
        });
        rows
    }

    /// Scrolls so that the selected label is visible, unless the user is reading the entry's
    /// detail.
    fn show_chosen(&mut self) {
        let (begins, height) = (self.begins(self.chosen), self.height(self.chosen));
        let reads_detail = self.top > begins && self.top < begins + height;
        if begins < self.top && !reads_detail {
            self.top = begins;
        }
        if begins >= self.top + self.room {
            self.top = (begins + height.min(self.room)).saturating_sub(self.room);
        }
        let lines = self.begins(self.entries.len());
        self.top = self.top.min(lines.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::view::test_screen::test_style;

    fn list(count: usize) -> ListView {
        let entries = (0..count).map(|n| ListEntry::new(TextLine::plain(&format!("entry {n}"))));
        ListView::new(entries.collect())
    }

    fn shown(list: &mut ListView, rows: u16) -> Vec<String> {
        let rows = list.rows(&TextLine::plain("Title"), " q", &test_style(40, rows));
        rows.iter()
            .map(|row| row.text().trim_end().to_owned())
            .collect()
    }

    fn keys(list: &mut ListView, text: &str) {
        for letter in text.chars() {
            list.key(Key::char(letter));
        }
    }

    #[test]
    fn the_chosen_entry_is_always_on_the_screen() {
        let mut list = list(20);
        assert_eq!(
            shown(&mut list, 5),
            ["Title", "> entry 0", "  entry 1", "  entry 2", " q"]
        );
        keys(&mut list, "jjjj");
        assert_eq!(
            shown(&mut list, 5),
            ["Title", "  entry 2", "  entry 3", "> entry 4", " q"]
        );
        keys(&mut list, "G");
        assert_eq!(shown(&mut list, 5)[3], "> entry 19");
        keys(&mut list, "b");
        shown(&mut list, 5);
        keys(&mut list, "g");
        assert_eq!(shown(&mut list, 5)[1], "> entry 0");
        keys(&mut list, "/entry 1");
        assert_eq!(shown(&mut list, 5)[4], "/entry 1");
        list.key(Key::RETURN);
        assert_eq!(list.chosen, 1);
        keys(&mut list, "nn");
        assert_eq!(list.chosen, 11);
        keys(&mut list, "N");
        assert_eq!(list.chosen, 10);
    }

    #[test]
    fn a_long_detail_is_read_line_by_line_before_the_next_entry() {
        let mut list = list(2);
        list.entries[0].detail = (0..6).map(|n| TextLine::plain(&format!("d{n}"))).collect();
        list.entries[0].is_open = true;
        assert_eq!(
            shown(&mut list, 5),
            ["Title", "> entry 0", "  d0", "  d1", " q"]
        );
        keys(&mut list, "jj");
        assert_eq!(shown(&mut list, 5), ["Title", "  d1", "  d2", "  d3", " q"]);
        keys(&mut list, "jjj");
        assert_eq!(shown(&mut list, 5)[3], "> entry 1");
        assert_eq!(list.chosen, 1);
        keys(&mut list, "k");
        assert_eq!(list.chosen, 0);
    }

    #[test]
    fn an_empty_list_takes_all_keys() {
        let mut list = list(0);
        keys(&mut list, "jkGgnNyv b{}");
        assert_eq!(list.key(Key::RETURN), ListStep::Other);
        assert_eq!(shown(&mut list, 4), ["Title", "", "", " q"]);
        assert_eq!(list.key(Key::ESCAPE), ListStep::Close);
    }
}
