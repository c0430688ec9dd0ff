//! What drawing costs: `cargo bench -p haft-terminal`.
//!
//! A key while a reply streams and output comes in: from the change to the bytes of the frame. Painting of
//! output, committing of a reply, colours of code: megabytes a second. Time on the processor counts, so that
//! other work on the machine does not matter.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::{hint::black_box, time::Duration};

use haft_terminal::{
    Caret, ColorLevel, Editor, HistoryItem, Key, LiveRegion, MarkdownCommitter, MarkdownLook,
    Screen, ScreenSize, TextLine, TextStyle, Theme, code::CodeLexer,
};
use rustix::time::{ClockId, clock_gettime};

/// The most a key may cost before its bytes are written.
const KEY: Duration = Duration::from_millis(2);
/// The least of output that is painted in a second; 10 MB/s come in.
const OUTPUT: f64 = 50.0;
const ROUNDS: usize = 2000;

fn main() {
    let key = key();
    println!("a key during a reply: {key:.1?} (at most {KEY:?})");
    let bytes = idle();
    println!("nothing changed: {bytes} bytes");
    let output = output();
    println!("output: {output:.0} MB/s (at least {OUTPUT})");
    println!("prose: {:.1} MB/s", prose("word ".repeat(200)));
    println!("prose of flags: {:.1} MB/s", prose("🇩🇪".repeat(1000)));
    println!("replies: {:.1} MB/s", reply());
    println!("code: {:.1} MB/s", code());
    assert_eq!(bytes, 0);
    if !cfg!(debug_assertions) {
        assert!(key <= KEY && output >= OUTPUT, "slower than promised");
    }
}

fn on_processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn screen() -> Screen {
    Screen::new(ScreenSize::new(120, 40), ColorLevel::TrueColor)
}

fn region(committer: &MarkdownCommitter, editor: &Editor) -> LiveRegion {
    let mut rows = committer.open_rows(119, 12);
    rows.extend(
        (0..6)
            .map(|n| TextLine::styled(&format!("| Bash cargo test {n}"), TextStyle::new().faint())),
    );
    let view = editor.view(10, TextStyle::new());
    let caret = Caret {
        row: rows.len() + view.caret.row,
        offset: view.caret.offset,
    };
    rows.extend(view.rows);
    rows.push(TextLine::plain(" acceptEdits . shop (main)"));
    LiveRegion {
        rows,
        caret: Some(caret),
        stamp: 0,
    }
}

/// Everything between a key and its bytes, with a word of the reply before each: the slowest of a hundred.
fn key() -> Duration {
    let mut screen = screen();
    let mut editor = Editor::new();
    editor.set_width(117);
    let mut committer = MarkdownCommitter::new(MarkdownLook {
        columns: 120,
        ..MarkdownLook::default()
    });
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let end = if round % 200 == 199 { "\n\n" } else { " " };
        let history = committer.push(&format!("word **{round}**{end}"));
        let start = on_processor();
        editor.key(Key::char(if round % 7 == 6 { ' ' } else { 'x' }));
        let frames = screen.frames(&history, &region(&committer, &editor));
        times.push(on_processor() - start);
        black_box(frames);
    }
    times.sort();
    times[ROUNDS * 99 / 100]
}

fn idle() -> usize {
    let mut screen = screen();
    let (committer, editor) = (
        MarkdownCommitter::new(MarkdownLook::default()),
        Editor::new(),
    );
    let shown = region(&committer, &editor);
    screen.frames(&[], &shown);
    screen.frames(&[], &shown).iter().map(Vec::len).sum()
}

fn per_second(bytes: usize, start: Duration) -> f64 {
    bytes as f64 / (on_processor() - start).as_secs_f64() / 1e6
}

fn output() -> f64 {
    let lines: Vec<String> = (0..100_000)
        .map(|n| format!("{n}: {}", "output of a tool ".repeat(5)))
        .collect();
    let bytes = lines.iter().map(String::len).sum();
    let mut screen = screen();
    let shown = LiveRegion::default();
    let start = on_processor();
    for part in lines.chunks(500) {
        let items: Vec<_> = part
            .iter()
            .map(|line| HistoryItem::Verbatim(TextLine::plain(line)))
            .collect();
        black_box(screen.frames(&items, &shown));
    }
    per_second(bytes, start)
}

fn prose(paragraph: String) -> f64 {
    let items = vec![HistoryItem::prose(TextLine::plain(&paragraph)); 100];
    let mut screen = screen();
    let start = on_processor();
    black_box(screen.frames(&items, &LiveRegion::default()));
    per_second(paragraph.len() * 100, start)
}

fn reply() -> f64 {
    let paragraph = "A paragraph with **bold** and `code` and [a link](https://example.com), of some length.\n\n- one\n- two\n\n";
    let mut committer = MarkdownCommitter::new(MarkdownLook::default());
    let start = on_processor();
    for _ in 0..5000 {
        black_box(committer.push(paragraph));
    }
    per_second(paragraph.len() * 5000, start)
}

fn code() -> f64 {
    let line = "    let total: u32 = items.iter().map(|item| item.price).sum(); // \"all\" of them";
    let (mut lexer, theme) = (CodeLexer::new("rust"), Theme::default());
    let start = on_processor();
    for _ in 0..20_000 {
        black_box(lexer.styled(line, &theme));
    }
    per_second(line.len() * 20_000, start)
}
