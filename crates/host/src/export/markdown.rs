//! Markdown output that its content cannot break.
//!
//! Texts by users and models are quoted: every line begins with `> `, so that an unclosed fence or
//! list ends with the quote. Markup inside is displayed but has no effect, and images are not
//! loaded. All other content is in fences that are longer than any fence inside them.

use std::fmt::Write;

use haft_contract::CalendarTime;

use super::outline::{
    ExportOutline, ItemKind, OutlineAgent, OutlineCall, OutlineItem, OutlineMedia, OutlinePatch,
};

/// The maximum heading level.
const MAX_DEPTH: usize = 6;

pub(super) fn render(outline: &ExportOutline) -> String {
    let mut writer = MarkdownWriter {
        outline,
        text: String::new(),
    };
    writer.head();
    writer.agent(&outline.agents[0], 2);
    for agent in &outline.loose {
        writer.subagent(*agent, 2);
    }
    format!("{}\n", writer.text.trim_end())
}

struct MarkdownWriter<'a> {
    outline: &'a ExportOutline,
    text: String,
}

impl MarkdownWriter<'_> {
    /// Adds a block, followed by an empty line.
    fn block(&mut self, text: &str) {
        self.text += text.trim_end_matches('\n');
        self.text += "\n\n";
    }

    fn heading(&mut self, level: usize, words: &str, time: Option<u64>) {
        let time = time.map(|time| format!(" · {}", clock(time)));
        let marks = "#".repeat(level.min(MAX_DEPTH));
        self.block(&format!("{marks} {words}{}", time.unwrap_or_default()));
    }

    fn head(&mut self) {
        let session = &self.outline.session;
        self.block(&format!("# {}", plain(&session.title)));
        let mut facts = format!("- Session: {}\n", code(&session.id));
        if let Some(cwd) = &session.cwd {
            let _ = writeln!(facts, "- Directory: {}", code(cwd));
        }
        if let Some(branch) = &session.branch {
            let _ = writeln!(facts, "- Branch: {}", code(branch));
        }
        if let (Some(from), Some(to)) = (session.from, session.to) {
            let _ = writeln!(facts, "- From {} to {} (UTC)", moment(from), moment(to));
        }
        for spent in &self.outline.spent {
            let usage = &spent.usage;
            let read = usage.input + usage.cache_read + usage.cache_write;
            let cost = match spent.cost {
                Some(cost) => format!("${cost:.4}"),
                None => "price not known".to_owned(),
            };
            let _ = writeln!(
                facts,
                "- {}: {read} tokens read ({} from the cache), {} written, {cost}",
                code(&spent.model),
                usage.cache_read,
                usage.output,
            );
        }
        for repair in &self.outline.repairs {
            let _ = writeln!(facts, "- Note: {}", plain(repair));
        }
        self.block(&facts);
    }

    fn agent(&mut self, agent: &OutlineAgent, level: usize) {
        let mut reply = None;
        for item in &agent.items {
            if item.reply.is_some() && item.reply != reply {
                let model = item.reply.map(|at| agent.replies[at].model.as_str());
                let model = model.filter(|model| !model.is_empty()).unwrap_or("model");
                self.heading(level, &plain(model), item.time);
            }
            reply = item.reply;
            self.item(item, level);
        }
    }

    fn item(&mut self, item: &OutlineItem, level: usize) {
        match &item.what {
            ItemKind::User {
                author,
                text,
                media,
            } => {
                match *author {
                    "person" if level == 2 => self.heading(level, "You", item.time),
                    "person" => self.heading(level, "Task", item.time),
                    "summary" => self.heading(level, "Summary of what came before", item.time),
                    _ => self.heading(level, "Note to the model", item.time),
                }
                match *author {
                    "program" => self.block(&fence("text", text)),
                    _ => self.block(&quote(text)),
                }
                self.media(media);
            }
            ItemKind::Text { text } => self.block(&quote(text)),
            ItemKind::Thinking { text } => {
                self.block("Thinking:");
                self.block(&fence("text", text));
            }
            ItemKind::Call(call) => self.call(call, level),
            ItemKind::Compacted { trigger, tokens } => {
                let tokens = tokens.map(|tokens| format!(" at {tokens} tokens"));
                let tokens = tokens.unwrap_or_default();
                self.block(&format!(
                    "Conversation compacted{tokens} ({}).",
                    plain(trigger)
                ));
            }
            ItemKind::Failed { text } => {
                self.heading(level, "The provider failed", item.time);
                self.block(&fence("text", text));
            }
            ItemKind::Other { text } => self.block(&format!("({})", plain(text))),
        }
    }

    fn call(&mut self, call: &OutlineCall, level: usize) {
        let mut notes = Vec::new();
        if call.error {
            notes.push("failed".to_owned());
        } else if !call.answered {
            notes.push("no result".to_owned());
        }
        if call.waited > 0 {
            notes.push(format!("waited {} for permission", span(call.waited)));
        }
        if let (Some(started), Some(ended)) = (call.started, call.ended) {
            notes.push(span(ended.saturating_sub(started)));
        }
        let notes = match notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", notes.join(", ")),
        };
        self.block(&format!("**Tool call** {}{notes}", code(&call.name)));
        if call.patches.is_empty() {
            let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
            self.block(&fence("json", &input));
            if !call.text.is_empty() {
                self.block("Result:");
                self.block(&fence("text", &call.text));
            }
        }
        for patch in &call.patches {
            self.block(&fence("diff", &difference(patch)));
        }
        self.media(&call.media);
        for agent in &call.agents {
            self.subagent(*agent, level);
        }
    }

    fn subagent(&mut self, agent: usize, level: usize) {
        let agent = &self.outline.agents[agent];
        let words = format!(
            "Subagent {}: {}",
            plain(&agent.kind),
            plain(&agent.description)
        );
        self.heading(level + 1, &words, None);
        self.agent(agent, level + 2);
        self.block(&format!("End of the subagent {}.", plain(&agent.kind)));
    }

    fn media(&mut self, media: &[OutlineMedia]) {
        for one in media {
            let size = one.data.as_ref().map(|data| data.len() / 4 * 3);
            let size = size.map(|size| format!(", {size} bytes"));
            let kind = plain(&one.kind);
            self.block(&format!(
                "({kind}{}, not shown here)",
                size.unwrap_or_default()
            ));
        }
    }
}

fn difference(patch: &OutlinePatch) -> String {
    let mut text = format!("--- {0}\n+++ {0}\n", patch.file.replace('\n', " "));
    for hunk in &patch.hunks {
        let count = |other: char| {
            let lines = hunk.lines.iter();
            lines.filter(|line| !line.starts_with(other)).count()
        };
        let _ = writeln!(
            text,
            "@@ -{},{} +{},{} @@",
            hunk.old_start,
            count('+'),
            hunk.new_start,
            count('-')
        );
        for line in &hunk.lines {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Wraps a text in a fence that nothing inside can close.
fn fence(kind: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|mark| mark != '`').map(str::len);
    runs.max().unwrap_or_default()
}

/// Formats a short text as code on one line.
fn code(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let marks = "`".repeat(longest_run(&text) + 1);
    let space = match text.is_empty() || text.starts_with('`') || text.ends_with('`') {
        true => " ",
        false => "",
    };
    format!("{marks}{space}{text}{space}{marks}")
}

/// Formats a short text on one line, with all markup escaped.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
    {
        if "\\`*_{}[]<>#|~!&$^=:@".contains(letter) {
            safe.push('\\');
        }
        safe.push(letter);
    }
    safe
}

/// Quotes a message. Its own markup takes effect only inside the quote.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + text.len() / 16);
    // The open fence, and whether the backticks of the paragraph were paired so far.
    let mut open: Option<(char, usize)> = None;
    let mut in_pairs = true;
    for line in text.trim_end().lines() {
        quoted.push_str("> ");
        let marks = fence_marks(line);
        match open {
            Some((mark, length)) => {
                let closes = |(other, run, rest): (char, usize, &str)| {
                    other == mark && run >= length && rest.trim().is_empty()
                };
                if marks.is_some_and(closes) {
                    open = None;
                }
                quoted += line;
            }
            // A more indented fence may be part of a list and end with it, so its contents are
            // escaped like prose. A fence of backticks must not be followed by backticks.
            None if !line.starts_with(' ')
                && marks.is_some_and(|(mark, _, rest)| mark == '~' || !rest.contains('`')) =>
            {
                open = marks.map(|(mark, run, _)| (mark, run));
                in_pairs = true;
                quoted += line;
            }
            None => {
                in_pairs |= line.trim().is_empty();
                in_pairs = push_prose(&mut quoted, line, in_pairs);
            }
        }
        quoted.push('\n');
    }
    quoted
}

/// Returns the fence at the start of a line: its character, its length and the rest of the line.
fn fence_marks(line: &str) -> Option<(char, usize, &str)> {
    let inner = line.trim_start_matches(' ');
    if line.len() - inner.len() > 3 {
        return None;
    }
    let mark = inner.chars().next().filter(|mark| "`~".contains(*mark))?;
    let rest = inner.trim_start_matches(mark);
    let run = inner.len() - rest.len();
    (run >= 3).then_some((mark, run, rest))
}

/// Adds a line of prose. Markup (`<`), images (`![`) and links to anything except pages and files
/// are escaped, except in text that is certainly code. Returns whether the backticks of this line
/// and of those before it are paired; otherwise a Markdown reader could see code elsewhere.
fn push_prose(quoted: &mut String, line: &str, mut in_pairs: bool) -> bool {
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        if letter == '`' {
            let run = rest.len() - rest.trim_start_matches('`').len();
            let (marks, behind) = rest.split_at(run);
            let is_escaped = quoted.ends_with('\\');
            // In a table, cells end even inside code.
            let is_code = in_pairs && !is_escaped && !line.contains('|');
            let end = closing(behind, run).filter(|_| is_code);
            let Some(end) = end else {
                in_pairs = false;
                *quoted += marks;
                rest = behind;
                continue;
            };
            *quoted += &rest[..run + end + run];
            rest = &behind[end + run..];
            continue;
        }
        match letter {
            '<' => *quoted += "&lt;",
            '!' if rest.starts_with("![") => *quoted += "&#33;",
            '(' if quoted.ends_with(']') && !is_harmless(&rest[1..]) => *quoted += "\\(",
            ':' if quoted.ends_with(']') => *quoted += "\\:",
            letter => quoted.push(letter),
        }
        rest = &rest[letter.len_utf8()..];
    }
    in_pairs
}

/// Returns whether a link points to a web page or to a file next to the export. Strict, so that no
/// Markdown reader can interpret it differently.
fn is_harmless(target: &str) -> bool {
    let end = target.find([')', ' ', '\t']).unwrap_or(target.len());
    let target = &target[..end];
    let is_page = ["http://", "https://"]
        .iter()
        .any(|begin| target.starts_with(begin));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "#/._-".contains(letter);
    is_page || target.chars().all(is_plain)
}

/// Returns the end of code on this line that `run` backticks have opened.
fn closing(text: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let length = text[start..].len() - text[start..].trim_start_matches('`').len();
        if length == run {
            return Some(start);
        }
        at = start + length;
    }
    None
}

fn calendar(time: u64) -> CalendarTime {
    CalendarTime::from_system_time(std::time::UNIX_EPOCH + std::time::Duration::from_millis(time))
}

fn moment(time: u64) -> String {
    let time = calendar(time);
    format!("{} {}", time.to_date(), time.to_clock())
}

fn clock(time: u64) -> String {
    let time = calendar(time);
    format!("{:02}:{:02}:{:02}", time.hour, time.minute, time.second)
}

fn span(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds / 100 % 10),
        _ => {
            let seconds = milliseconds / 1_000;
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_keeps_code_and_spells_markup_out() {
        let cases = [
            ("plain", "> plain\n"),
            ("`Vec<T>` and <b>", "> `Vec<T>` and &lt;b>\n"),
            ("`` a ` <i> `` <u>", "> `` a ` <i> `` &lt;u>\n"),
            // The first backtick may belong to the line before it: then this is no code.
            ("a ` b\n` <img> `", "> a ` b\n> ` &lt;img> `\n"),
            ("a ` b\n\n`<T>`", "> a ` b\n> \n> `<T>`\n"),
            ("\\`<img>`", "> \\`&lt;img>`\n"),
            ("![x](http://a)", "> &#33;[x](http://a)\n"),
            (
                "[x](javascript:a) [y](&#106;s:a) [z](a.md#b)",
                "> [x]\\(javascript:a) [y]\\(&#106;s:a) [z](a.md#b)\n",
            ),
            ("[x]: data:a", "> [x]\\: data:a\n"),
            (
                "```rust\n<T>\n```\n<T>",
                "> ```rust\n> <T>\n> ```\n> &lt;T>\n",
            ),
            ("~~~\n```\n<T>", "> ~~~\n> ```\n> <T>\n"),
            ("``` <a`\n<b>", "> ``` &lt;a`\n> &lt;b>\n"),
            ("- a\n  ```\n<b>", "> - a\n>   ```\n> &lt;b>\n"),
            ("`a | <b> `", "> `a | &lt;b> `\n"),
        ];
        for (text, quoted) in cases {
            assert_eq!(quote(text), quoted, "{text:?}");
        }
    }

    #[test]
    fn fences_and_code_are_longer_than_what_they_hold() {
        assert_eq!(fence("text", "a\n"), "```text\na\n```");
        assert_eq!(fence("text", "````"), "`````text\n````\n`````");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(plain("a *b*\n# <c>"), "a \\*b\\* \\# \\<c\\>");
    }
}
