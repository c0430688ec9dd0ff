//! Parses one block with pulldown-cmark and returns it as styled lines.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::MarkdownLook;
use crate::{style::TextStyle, text::TextLine};

/// Returns the lines of a block: one, unless it contains hard line breaks.
pub(super) fn lines(text: &str, base: TextStyle, look: &MarkdownLook) -> Vec<TextLine> {
    let mut writer = InlineWriter::new(base, look);
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        writer.event(event);
    }
    writer.finish()
}

/// Converts parser events to lines.
pub(super) struct InlineWriter<'a> {
    look: &'a MarkdownLook,
    styles: Vec<TextStyle>,
    line: TextLine,
    lines: Vec<TextLine>,
    /// The open link: its address, and its text so far.
    link: Option<(String, String)>,
    is_code: bool,
    /// The lists inside the block: the next number of each, if numbered.
    lists: Vec<Option<u64>>,
}

impl<'a> InlineWriter<'a> {
    pub(super) fn new(base: TextStyle, look: &'a MarkdownLook) -> Self {
        Self {
            look,
            styles: vec![base],
            line: TextLine::new(),
            lines: Vec::new(),
            link: None,
            is_code: false,
            lists: Vec::new(),
        }
    }

    fn style(&self) -> TextStyle {
        self.styles.last().copied().unwrap_or_default()
    }

    fn add(&mut self, style: TextStyle) {
        let style = self.style().and(style);
        self.styles.push(style);
    }

    fn end_line(&mut self) {
        if !self.line.is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }

    fn text(&mut self, text: &str, style: TextStyle) {
        match &mut self.link {
            Some((_, shown)) => shown.push_str(text),
            None => self.line.push(text, style),
        }
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        let theme = &self.look.theme;
        match event {
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.line.push(line, TextStyle::new());
                    self.end_line();
                }
            }
            Event::Text(text) => self.text(&text, self.style()),
            Event::Code(code) => self.text(&code, self.style().and(theme.inline_code)),
            Event::Html(text) | Event::InlineHtml(text) => {
                for (number, line) in text.lines().enumerate() {
                    if number > 0 {
                        self.end_line();
                    }
                    self.text(line, self.style());
                }
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, self.style()),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]"), self.style()),
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.end_line();
                self.line.push("---", theme.faint);
                self.end_line();
            }
            Event::TaskListMarker(is_done) => {
                self.text(if is_done { "[x] " } else { "[ ] " }, self.style());
            }
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Emphasis => self.add(TextStyle::new().italic()),
            Tag::Strong => self.add(TextStyle::new().bold()),
            Tag::Strikethrough => self.add(TextStyle::new().strike()),
            Tag::Link { dest_url, .. } => self.link = Some((dest_url.to_string(), String::new())),
            Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), String::new()));
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.is_code = true;
                if let CodeBlockKind::Fenced(language) = kind {
                    self.line.push(language, self.look.theme.faint);
                    self.end_line();
                }
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(*first);
            }
            Tag::Item => {
                self.end_line();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.line.push(&marker, TextStyle::new());
            }
            Tag::Paragraph if self.line.text().ends_with(' ') => {}
            Tag::Paragraph | Tag::Heading { .. } | Tag::BlockQuote(_) | Tag::HtmlBlock => {
                self.end_line()
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                if let Some((address, shown)) = self.link.take() {
                    let name = if shown.is_empty() {
                        address.clone()
                    } else {
                        shown
                    };
                    self.link = Some((address, format!("[{name}]")));
                    self.end_link();
                }
            }
            TagEnd::CodeBlock => self.is_code = false,
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::HtmlBlock => {
                self.end_line()
            }
            _ => {}
        }
    }

    fn end_link(&mut self) {
        let Some((address, shown)) = self.link.take() else {
            return;
        };
        let style = self.style().and(self.look.theme.link);
        let shown = if shown.is_empty() {
            address.clone()
        } else {
            shown
        };
        let says_itself = address == shown || address.strip_prefix("mailto:") == Some(&shown);
        if self.look.hyperlinks {
            self.line.push_link(&shown, &address, style);
        } else {
            self.line.push(&shown, style);
            if !says_itself && !address.is_empty() {
                self.line
                    .push(&format!(" ({address})"), self.style().faint());
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<TextLine> {
        if let Some((_, shown)) = self.link.take() {
            let style = self.style();
            self.line.push(&shown, style);
        }
        self.end_line();
        self.lines
    }
}
