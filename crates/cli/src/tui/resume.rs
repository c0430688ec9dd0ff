//! Prints the end of a resumed conversation.

use std::path::Path;

use haft::{Card, Content};
use haft_host::{ExchangePart, PromptExchange, RecentExchanges};
use haft_terminal::{HistoryItem, MarkdownCommitter, MarkdownLook, TextLine, image::ImageProtocol};
use serde_json::Value;

use super::{
    app::App,
    cards::{self, CardMark},
    number_format,
};

/// The maximum number of exchanges that are shown.
pub(crate) const MAX_EXCHANGES: usize = 3;
/// The maximum number of rows.
const MAX_ROWS: usize = 200;

/// The estimated number of rows of an image.
const PICTURE_ROWS: usize = 12;

/// An item to print.
enum ResumedItem<'e> {
    Item(HistoryItem),
    Picture { name: String, content: &'e Content },
}

impl App {
    pub(super) fn resumed(&mut self, exchanges: &RecentExchanges) {
        let mut items: Vec<ResumedItem<'_>> = Vec::new();
        for exchange in &exchanges.shown {
            items.extend(self.exchange(exchange));
        }
        let columns = usize::from(self.look.size.columns);
        // If it is too long, the beginning is cut off.
        let mut rows = 0;
        let kept = items.iter().rev().take_while(|item| {
            rows += match item {
                ResumedItem::Item(item) => row_count(item, columns),
                ResumedItem::Picture { .. } => PICTURE_ROWS,
            };
            rows < MAX_ROWS
        });
        let kept = kept.count();
        let cut = items.len() - kept;
        items.drain(..cut);
        let mut before = Vec::new();
        if exchanges.earlier > 0 {
            before.push(format!("{} earlier", thousands(exchanges.earlier)));
        }
        if cut > 0 {
            before.push("the beginning of this".to_owned());
        }
        if !before.is_empty() {
            let text = format!("{} {} (Ctrl-O)", self.look.ellipsis(), before.join(", "));
            self.remark(&text);
        }
        for item in items {
            match item {
                ResumedItem::Item(item) => self.print([item]),
                ResumedItem::Picture { name, content } => self.show_picture(&name, content),
            }
        }
    }

    fn exchange<'e>(&self, exchange: &'e PromptExchange) -> Vec<ResumedItem<'e>> {
        let message = self.message_items(&exchange.prompt);
        let mut all: Vec<ResumedItem<'_>> = message.into_iter().map(ResumedItem::Item).collect();
        // If the terminal can show only names, the message text contains them already.
        if self.capabilities.images != ImageProtocol::Name {
            all.extend(exchange.images.iter().map(|content| ResumedItem::Picture {
                name: "picture".to_owned(),
                content,
            }));
        }
        let mut about = String::new();
        for part in &exchange.parts {
            let mut items = Vec::new();
            match part {
                ExchangePart::Image(content) => {
                    let name = Path::new(&about).file_name();
                    let name = name.map(|name| name.to_string_lossy().into_owned());
                    all.push(ResumedItem::Picture {
                        name: name.unwrap_or_else(|| "picture".to_owned()),
                        content,
                    });
                }
                ExchangePart::Text(text) => {
                    let mut reply = MarkdownCommitter::new(MarkdownLook {
                        theme: self.look.theme.clone(),
                        hyperlinks: self.look.hyperlinks,
                        unicode: self.look.unicode,
                        columns: usize::from(self.look.size.columns),
                    });
                    items.extend(reply.push(text));
                    items.extend(reply.finish());
                }
                ExchangePart::Call {
                    name,
                    input,
                    is_error,
                } => {
                    let mark = match is_error {
                        Some(false) => CardMark::Worked,
                        _ => CardMark::Failed,
                    };
                    about = subject(input);
                    let mut card = Card::new(name.as_str(), about.clone());
                    if is_error.is_none() {
                        card.summary = "no answer".to_owned();
                    }
                    items.extend(cards::history(&card, mark, &self.cwd, &self.look));
                }
            }
            all.extend(items.into_iter().map(ResumedItem::Item));
        }
        all
    }
}

/// Returns the first text argument of a call as its subject.
fn subject(input: &Value) -> String {
    let values = input.as_object().into_iter().flat_map(|map| map.values());
    let text = values.filter_map(Value::as_str).next().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(120).collect()
}

fn row_count(item: &HistoryItem, columns: usize) -> usize {
    let rows = |line: &TextLine| line.width().div_ceil(columns.max(1)).max(1);
    match item {
        HistoryItem::Verbatim(line) | HistoryItem::Prose { line, .. } => rows(line),
        HistoryItem::Image(image) => image.rows().len(),
        HistoryItem::Mark(_) => 0,
    }
}

/// Formats a number with separators, for example `4,987`.
fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

/// The summary that is printed on exit.
pub(crate) struct ExitSummary {
    pub(crate) session: Option<String>,
    pub(crate) cost: f64,
    pub(crate) changed: Vec<String>,
}

impl ExitSummary {
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(session) = &self.session else {
            return Vec::new();
        };
        let mut lines = vec![format!("haft -r {session}")];
        let mut facts = Vec::new();
        if self.cost > 0.0 {
            facts.push(number_format::dollars(self.cost));
        }
        if !self.changed.is_empty() {
            let count = number_format::counted(self.changed.len() as u64, "changed file");
            let mut named = self.changed.iter().take(5).cloned().collect::<Vec<_>>();
            if self.changed.len() > named.len() {
                named.push("...".to_owned());
            }
            facts.push(format!("{count}: {}", named.join(", ")));
        }
        if !facts.is_empty() {
            lines.push(facts.join(", "));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_says_how_to_come_back() {
        assert_eq!(thousands(4987), "4,987");
        let farewell = ExitSummary {
            session: Some("ID".to_owned()),
            cost: 0.42,
            changed: vec!["a.rs".to_owned(), "b.rs".to_owned()],
        };
        assert_eq!(
            farewell.lines(),
            ["haft -r ID", "$0.42, 2 changed files: a.rs, b.rs"]
        );
    }
}
