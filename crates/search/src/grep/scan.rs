//! One file, start to end, with ripgrep's searcher.
//!
//! A scanner belongs to one thread: it keeps the buffers and the regex's working memory between
//! files. Files are read, never mapped: a mapped file that shrinks would end the whole process.
//!
//! Whether a match before a NUL byte is seen depends on how much is read at a time, and the
//! searcher's buffer grows with the longest line it met. So that an answer does not depend on which
//! thread searched which file before, a searcher whose buffer has grown is replaced before the next
//! file. (ripgrep keeps it, and so varies.)

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};

use super::narrow::{LineFilter, Narrowed};
use super::rows::{PathSource, RowSink, each_match};
use super::{GrepMode, GrepQuery, Row};
use crate::skip::SkipReason;
use crate::stop::Watch;

/// A stop is looked for once in this many matches, because asking the clock costs more than a short
/// line.
const MATCHES_PER_CHECK: u32 = 32;

/// A searcher of texts in memory uses none, but has one of this size.
const NO_BUFFER: usize = 1;

/// What a new searcher reads at most at once.
const FRESH_BUFFER: usize = 64 * 1024;

/// The searcher looks at this many bytes for a byte order mark before it reads on.
const MARK: usize = 3;

/// No search holds more than this of one file: a line, or in multiline mode the file.
const MAX_HELD: usize = 512 * 1024 * 1024;

/// How a file came to be searched, which decides what happens when it is binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// Found by the walk: a NUL byte ends its search.
    Walked,
    /// Named by the caller: searched to its end, because filtering it out would contradict the
    /// caller.
    Named,
}

/// What one file gave.
#[derive(Debug, Default)]
pub(super) struct Finding {
    /// Content mode only.
    pub(super) rows: Vec<Row>,
    pub(super) matches: u64,
    /// Only asked for, and only kept, where it decides the order.
    pub(super) modified: Option<SystemTime>,
    /// Why the file was not searched, or not wholly.
    pub(super) skipped: Option<SkipReason>,
}

#[derive(Clone, Debug)]
pub(super) struct Scanner {
    /// For texts in memory: it has no buffer to speak of.
    searcher: Searcher,
    /// For what is read, made with the first such file: its buffer takes longer to make than most
    /// answers from memory.
    reading: Option<Searcher>,
    builder: SearcherBuilder,
    detection: BinaryDetection,
    /// Shared, because its working memory is: all threads and calls use what one has found out.
    matcher: Arc<RegexMatcher>,
    /// What says faster of most lines that they do not match.
    narrowing: Narrowing,
    mode: GrepMode,
    /// More rows than this of one file are never shown.
    max_rows: usize,
    watch: Watch,
}

impl Scanner {
    pub(super) fn new(
        matcher: Arc<RegexMatcher>,
        query: &GrepQuery,
        max_rows: usize,
        watch: &Watch,
    ) -> Self {
        let mut builder = SearcherBuilder::new();
        builder.multi_line(query.multiline).line_number(false);
        if let GrepMode::Content { before, after, .. } = query.mode {
            builder
                .line_number(true)
                .before_context(before)
                .after_context(after);
        }
        let searcher = builder.clone().heap_limit(Some(NO_BUFFER)).build();
        if !query.multiline {
            // In multiline mode this would change how a file is read, so there its size is checked
            // instead.
            builder.heap_limit(Some(MAX_HELD));
        }
        Self {
            searcher,
            reading: None,
            builder,
            detection: BinaryDetection::none(),
            matcher,
            narrowing: Narrowing::default(),
            mode: query.mode,
            max_rows,
            watch: watch.clone(),
        }
    }

    /// The same, with what rules out lines of texts that have been read before.
    #[cfg(target_os = "linux")]
    pub(super) fn with_narrowing(mut self, narrowing: Narrowing) -> Self {
        self.narrowing = narrowing;
        self
    }

    /// What was found before an error counts, as it does when ripgrep prints while it reads.
    ///
    /// `open` gives the very file to search; nothing where there is none any more.
    pub(super) fn search(
        &mut self,
        path: &Path,
        open: impl FnOnce() -> io::Result<Option<File>>,
        naming: Naming,
    ) -> Finding {
        let path = || Arc::from(path);
        self.search_content(&path, || Ok(open()?.map(Content::File)), naming)
    }

    /// The same, of a content that may have been read before.
    pub(super) fn search_content<'c>(
        &mut self,
        path: &PathSource<'_>,
        open: impl FnOnce() -> io::Result<Option<Content<'c>>>,
        naming: Naming,
    ) -> Finding {
        let mut finding = Finding::default();
        let searched = match open() {
            Ok(None) => return finding,
            Ok(Some(content)) => self.search_into(&mut finding, path, content, naming),
            Err(error) => Err(error),
        };
        if let Err(error) = searched {
            finding.skipped = Some(SkipReason::Unreadable {
                message: error.to_string(),
            });
        }
        finding
    }

    fn search_into(
        &mut self,
        finding: &mut Finding,
        path: &PathSource<'_>,
        mut content: Content<'_>,
        naming: Naming,
    ) -> io::Result<()> {
        if self.searcher.multi_line_with_matcher(&*self.matcher) {
            let bytes = content.size()?;
            if bytes > MAX_HELD as u64 {
                finding.skipped = Some(SkipReason::TooLarge { bytes });
                return Ok(());
            }
        }
        self.detection = match naming {
            Naming::Walked => BinaryDetection::quit(b'\0'),
            Naming::Named => BinaryDetection::convert(b'\0'),
        };
        let (mut attempt, mut outcome, buffer) = self.attempt(path, &content);
        if buffer == Buffer::Grown {
            self.reading = None;
            content.rewind()?;
            (attempt, outcome, _) = self.attempt(path, &content);
        }
        *finding = attempt;
        if naming == Naming::Named {
            // Searched to its end, so nothing was left out.
            finding.skipped = None;
        }
        if self.mode == GrepMode::FilesWithMatches && finding.matches > 0 {
            finding.modified = content.modified()?;
        }
        // Once stopped, the error is our own.
        if self.watch.has_stopped() {
            Ok(())
        } else {
            outcome
        }
    }

    fn attempt(
        &mut self,
        path: &PathSource<'_>,
        content: &Content<'_>,
    ) -> (Finding, io::Result<()>, Buffer) {
        let is_multi_line = self.searcher.multi_line_with_matcher(&*self.matcher);
        let filling = Filling {
            path,
            matcher: &self.matcher,
            mode: self.mode,
            max_rows: self.max_rows,
            watch: &self.watch,
        };
        // Where each line is by itself all there is, it matters how the text is cut for reading.
        let slice = match content {
            Content::Held(held) if is_multi_line || self.matcher.line_terminator().is_some() => {
                held.plain()
            }
            _ => None,
        };
        if let Some(text) = slice {
            let (searcher, narrowing) = (&mut self.searcher, &self.narrowing);
            let (finding, outcome) =
                search_plain(searcher, narrowing, filling, text, is_multi_line);
            return (finding, outcome, Buffer::Fresh);
        }
        let mut reader = Reader {
            input: match content {
                Content::File(file) => Input::File(file),
                Content::Held(held) => Input::Held(held.bytes),
            },
            watch: &self.watch,
            read: 0,
            // A multi-line search holds the whole file, so there a large buffer changes nothing.
            buffer_matters: !is_multi_line,
            buffer: Buffer::Fresh,
        };
        let (builder, matcher) = (&self.builder, &*self.matcher);
        let searcher = self.reading.get_or_insert_with(|| builder.build());
        searcher.set_binary_detection(self.detection.clone());
        let (finding, outcome) = filling.run(|sink| match sink {
            EitherSink::Rows(sink) => searcher.search_reader(matcher, &mut reader, sink),
            EitherSink::Count(sink) => searcher.search_reader(matcher, &mut reader, sink),
        });
        (finding, outcome, reader.buffer)
    }
}

/// Searches a text that has no NUL byte and no mark. It need not be looked at for them again.
fn search_plain(
    searcher: &mut Searcher,
    narrowing: &Narrowing,
    filling: Filling<'_>,
    text: PlainText<'_>,
    is_multi_line: bool,
) -> (Finding, io::Result<()>) {
    let (matcher, bytes) = (filling.matcher, text.bytes);
    let lines = narrowing.lines.as_deref();
    let relaxed = narrowing.relaxed.as_deref().filter(|_| !text.is_ascii);
    if is_multi_line {
        let is_ruled_out = lines.is_some_and(|lines| lines.next(bytes).is_none())
            || relaxed.is_some_and(|relaxed| matches!(relaxed.is_match(bytes), Ok(false)));
        if is_ruled_out {
            return (Finding::default(), Ok(()));
        }
    } else if lines.is_some() || relaxed.is_some() {
        let narrowed = Narrowed::new(matcher, lines, relaxed);
        return filling.run(|sink| match sink {
            EitherSink::Rows(sink) => searcher.search_slice(narrowed, bytes, sink),
            EitherSink::Count(sink) => searcher.search_slice(narrowed, bytes, sink),
        });
    }
    filling.run(|sink| match sink {
        EitherSink::Rows(sink) => searcher.search_slice(matcher, bytes, sink),
        EitherSink::Count(sink) => searcher.search_slice(matcher, bytes, sink),
    })
}

/// What says faster of most lines than the pattern that they do not match.
#[derive(Clone, Debug, Default)]
pub(super) struct Narrowing {
    pub(super) lines: Option<Arc<LineFilter>>,
    /// For texts beyond ASCII. What it does not match in, the pattern does not either.
    pub(super) relaxed: Option<Arc<RegexMatcher>>,
}

/// Which sink to fill.
#[derive(Clone, Copy)]
struct Filling<'a> {
    path: &'a PathSource<'a>,
    matcher: &'a RegexMatcher,
    mode: GrepMode,
    max_rows: usize,
    watch: &'a Watch,
}

impl Filling<'_> {
    /// Makes the sink that the mode asks for, has it filled, and says what it holds.
    fn run(
        self,
        search: impl FnOnce(EitherSink<'_, '_>) -> io::Result<()>,
    ) -> (Finding, io::Result<()>) {
        let pulse = Pulse::new(self.watch);
        match self.mode {
            GrepMode::Content { only_matching, .. } => {
                let mut sink =
                    RowSink::new(self.path, self.matcher, only_matching, self.max_rows, pulse);
                let outcome = search(EitherSink::Rows(&mut sink));
                (sink.into_finding(), outcome)
            }
            GrepMode::FilesWithMatches | GrepMode::Count => {
                let first_only = self.mode == GrepMode::FilesWithMatches;
                let mut sink = CountSink::new(self.matcher, first_only, pulse);
                let outcome = search(EitherSink::Count(&mut sink));
                (sink.into_finding(), outcome)
            }
        }
    }
}

enum EitherSink<'s, 'a> {
    Rows(&'s mut RowSink<'a>),
    Count(&'s mut CountSink<'a>),
}

/// Something to search.
pub(super) enum Content<'a> {
    File(File),
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no index there"))]
    Held(HeldText<'a>),
}

/// What was read of a file before.
pub(super) struct HeldText<'a> {
    /// All of it, or as much as a search could look at.
    pub(super) bytes: &'a [u8],
    /// It has no NUL byte and no byte order mark, so that it is searched as it is.
    pub(super) is_plain: bool,
    pub(super) is_ascii: bool,
    /// Of the whole file.
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

/// A text that is searched as it is.
#[derive(Clone, Copy)]
struct PlainText<'a> {
    bytes: &'a [u8],
    is_ascii: bool,
}

impl<'a> HeldText<'a> {
    fn plain(&self) -> Option<PlainText<'a>> {
        self.is_plain.then_some(PlainText {
            bytes: self.bytes,
            is_ascii: self.is_ascii,
        })
    }
}

impl Content<'_> {
    fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Held(held) => Ok(held.size),
        }
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        match self {
            Self::File(file) => Ok(file.metadata()?.modified().ok()),
            Self::Held(held) => Ok(Some(held.modified)),
        }
    }

    fn rewind(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.rewind(),
            Self::Held(_) => Ok(()),
        }
    }
}

enum Input<'a> {
    File(&'a File),
    /// What is left of it.
    Held(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffer {
    Fresh,
    /// By an earlier file; the attempt ended at once.
    Grown,
}

/// Makes a file without any match stoppable, and notices a buffer that has grown.
struct Reader<'a> {
    input: Input<'a>,
    watch: &'a Watch,
    read: usize,
    buffer_matters: bool,
    buffer: Buffer,
}

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.watch.must_stop() {
            return Err(io::Error::other("the search was stopped"));
        }
        if self.buffer_matters && self.read <= MARK && into.len() > FRESH_BUFFER {
            self.buffer = Buffer::Grown;
            return Err(io::Error::other("the buffer has grown"));
        }
        let count = match &mut self.input {
            Input::File(file) => file.read(into)?,
            Input::Held(bytes) => bytes.read(into)?,
        };
        self.read += count;
        if !self.buffer_matters && self.read > MAX_HELD {
            // It has grown since its size was looked at.
            return Err(io::Error::other("it is growing while it is searched"));
        }
        Ok(count)
    }
}

/// Looks for a stop now and then.
pub(super) struct Pulse<'a> {
    watch: &'a Watch,
    matches: u32,
}

impl<'a> Pulse<'a> {
    fn new(watch: &'a Watch) -> Self {
        Self { watch, matches: 0 }
    }

    pub(super) fn must_stop(&mut self) -> bool {
        self.matches = self.matches.wrapping_add(1);
        self.matches.is_multiple_of(MATCHES_PER_CHECK) && self.watch.must_stop()
    }
}

/// Counts as `rg --count` and `rg --files-with-matches` do.
struct CountSink<'a> {
    matcher: &'a RegexMatcher,
    first_only: bool,
    count: u64,
    binary: Option<u64>,
    pulse: Pulse<'a>,
}

impl<'a> CountSink<'a> {
    fn new(matcher: &'a RegexMatcher, first_only: bool, pulse: Pulse<'a>) -> Self {
        Self {
            matcher,
            first_only,
            count: 0,
            binary: None,
            pulse,
        }
    }
}

impl CountSink<'_> {
    fn into_finding(self) -> Finding {
        let skipped = self.binary.map(|offset| SkipReason::Binary { offset });
        Finding {
            matches: self.count,
            skipped,
            ..Finding::default()
        }
    }
}

impl Sink for CountSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.first_only {
            self.count = 1;
            return Ok(false);
        }
        self.count += if searcher.multi_line_with_matcher(self.matcher) {
            let mut matches = 0;
            each_match(searcher, self.matcher, found, |_| matches += 1)?;
            // Looking again at the lines alone may miss what the whole file matched; it was one
            // match at least.
            matches.max(1)
        } else {
            1
        };
        Ok(!self.pulse.must_stop())
    }

    fn finish(&mut self, searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset();
        if self.binary.is_some() && searcher.binary_detection().quit_byte().is_some() {
            // A count up to the NUL byte would look like a count of the whole file.
            self.count = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::grep::matcher;
    use crate::stop::Stop;

    #[test]
    fn a_long_line_in_one_file_does_not_change_what_is_found_in_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let (long, binary) = (dir.path().join("long"), dir.path().join("binary"));
        fs::write(&long, "x".repeat(300_000)).unwrap();
        fs::write(
            &binary,
            ["needle\n", &"filler\n".repeat(15_000), "\0\n"].concat(),
        )
        .unwrap();
        let mode = GrepMode::Content {
            before: 0,
            after: 0,
            only_matching: false,
        };
        let query = GrepQuery {
            mode,
            ..GrepQuery::new("needle", dir.path())
        };
        let watch = Watch::new(&Stop::never());
        let mut scanner = Scanner::new(
            Arc::new(matcher::build(&query).unwrap()),
            &query,
            usize::MAX,
            &watch,
        );
        let before = scanner
            .search(&binary, || File::open(&binary).map(Some), Naming::Walked)
            .rows;
        assert_eq!(before.len(), 2, "the match and a notice");
        assert_eq!(
            scanner
                .search(&long, || File::open(&long).map(Some), Naming::Walked)
                .skipped,
            None
        );
        let grown = Content::File(File::open(&binary).unwrap());
        let path = || Arc::from(&*binary);
        assert_eq!(scanner.attempt(&path, &grown).2, Buffer::Grown);
        assert_eq!(
            scanner
                .search(&binary, || File::open(&binary).map(Some), Naming::Walked)
                .rows,
            before
        );
        let fresh = Content::File(File::open(&binary).unwrap());
        assert_eq!(
            scanner.attempt(&path, &fresh).2,
            Buffer::Fresh,
            "replaced once, not for every file"
        );
    }
}
