//! Searches one file from start to end with ripgrep's searcher.
//!
//! A scanner belongs to one thread: it reuses the buffers and the regex's working memory for all
//! files. Files are read, never mapped: if a mapped file shrinks, the whole process is killed.
//!
//! Whether a match before a NUL byte is found depends on how much is read at a time, and the
//! searcher's buffer grows with the longest line so far. The result must not depend on which files
//! a thread searched before, so a searcher whose buffer has grown is replaced before the next file.
//! (ripgrep does not replace it, so its results vary.)

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};

use super::prefilter::{LineFilter, PrefilteredMatcher};
use super::rows::{PathSource, RowSink, each_match};
use super::{GrepMode, GrepQuery, GrepRow};
use crate::skip::SkipReason;
use crate::stop::StopFlag;

/// The number of matches between two checks for a stop: reading the clock takes longer than
/// searching a short line.
const MATCHES_PER_CHECK: u32 = 32;

/// The buffer size of a searcher for texts in memory, which needs none but must have one.
const NO_BUFFER: usize = 1;

/// The maximum number of bytes that a new searcher reads at a time.
const FRESH_BUFFER: usize = 64 * 1024;

/// The number of bytes that the searcher reads first, to detect a byte order mark.
const MARK: usize = 3;

/// The maximum number of bytes of one file that a search holds in memory: a line, or in multiline
/// mode the whole file.
const MAX_HELD: usize = 512 * 1024 * 1024;

/// The reason why a file is searched. It decides what happens if the file is binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOrigin {
    /// Found by the walk: the search of a file ends at a NUL byte.
    Walked,
    /// Named by the caller: searched to its end, because skipping it would contradict the caller.
    Named,
}

/// The results of one file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// Filled only in content mode.
    pub(super) rows: Vec<GrepRow>,
    pub(super) matches: u64,
    /// The modification time. Filled only in files mode, where it decides the order.
    pub(super) modified: Option<SystemTime>,
    /// The reason why the file was not searched, or only in part.
    pub(super) skipped: Option<SkipReason>,
}

#[derive(Clone, Debug)]
pub(super) struct FileScanner {
    /// For texts in memory: it has almost no buffer.
    searcher: Searcher,
    /// For files that are read. Created for the first such file, because allocating its buffer
    /// takes longer than most answers from memory.
    reading: Option<Searcher>,
    builder: SearcherBuilder,
    detection: BinaryDetection,
    /// Shared, because its working memory is shared: the regex engine's caches serve all threads
    /// and calls.
    matcher: Arc<RegexMatcher>,
    /// Rules out most lines faster than the pattern.
    narrowing: Prefilter,
    mode: GrepMode,
    /// The maximum number of rows of one file that can be shown.
    max_rows: usize,
    watch: StopFlag,
}

impl FileScanner {
    pub(super) fn new(
        matcher: Arc<RegexMatcher>,
        query: &GrepQuery,
        max_rows: usize,
        watch: &StopFlag,
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
            // In multiline mode this limit would change how a file is read, so there the file's
            // size is checked instead.
            builder.heap_limit(Some(MAX_HELD));
        }
        Self {
            searcher,
            reading: None,
            builder,
            detection: BinaryDetection::none(),
            matcher,
            narrowing: Prefilter::default(),
            mode: query.mode,
            max_rows,
            watch: watch.clone(),
        }
    }

    /// Adds a prefilter, which is applied to cached texts only.
    #[cfg(target_os = "linux")]
    pub(super) fn with_narrowing(mut self, narrowing: Prefilter) -> Self {
        self.narrowing = narrowing;
        self
    }

    /// Searches one file. Matches found before a read error count, as in ripgrep, which prints
    /// while it reads.
    ///
    /// `open` returns the file to search, or `None` if it no longer exists.
    pub(super) fn search(
        &mut self,
        path: &Path,
        open: impl FnOnce() -> io::Result<Option<File>>,
        naming: FileOrigin,
    ) -> FileMatches {
        let path = || Arc::from(path);
        self.search_content(&path, || Ok(open()?.map(SearchInput::File)), naming)
    }

    /// Like [`Self::search`], but the content may have been read before.
    pub(super) fn search_content<'c>(
        &mut self,
        path: &PathSource<'_>,
        open: impl FnOnce() -> io::Result<Option<SearchInput<'c>>>,
        naming: FileOrigin,
    ) -> FileMatches {
        let mut finding = FileMatches::default();
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
        finding: &mut FileMatches,
        path: &PathSource<'_>,
        mut content: SearchInput<'_>,
        naming: FileOrigin,
    ) -> io::Result<()> {
        if self.searcher.multi_line_with_matcher(&*self.matcher) {
            let bytes = content.size()?;
            if bytes > MAX_HELD as u64 {
                finding.skipped = Some(SkipReason::TooLarge { bytes });
                return Ok(());
            }
        }
        self.detection = match naming {
            FileOrigin::Walked => BinaryDetection::quit(b'\0'),
            FileOrigin::Named => BinaryDetection::convert(b'\0'),
        };
        let (mut attempt, mut outcome, buffer) = self.attempt(path, &content);
        if buffer == BufferState::Grown {
            self.reading = None;
            content.rewind()?;
            (attempt, outcome, _) = self.attempt(path, &content);
        }
        *finding = attempt;
        if naming == FileOrigin::Named {
            // A named file is searched to its end, so nothing was left out.
            finding.skipped = None;
        }
        if self.mode == GrepMode::FilesWithMatches && finding.matches > 0 {
            finding.modified = content.modified()?;
        }
        // After a stop, the error comes from the stop itself.
        if self.watch.has_stopped() {
            Ok(())
        } else {
            outcome
        }
    }

    fn attempt(
        &mut self,
        path: &PathSource<'_>,
        content: &SearchInput<'_>,
    ) -> (FileMatches, io::Result<()>, BufferState) {
        let is_multi_line = self.searcher.multi_line_with_matcher(&*self.matcher);
        let filling = SinkConfig {
            path,
            matcher: &self.matcher,
            mode: self.mode,
            max_rows: self.max_rows,
            watch: &self.watch,
        };
        // Without a line terminator in the regex, the result could depend on how the text is cut
        // for reading, so the text is then read through the same reader as a file.
        let slice = match content {
            SearchInput::Cached(held)
                if is_multi_line || self.matcher.line_terminator().is_some() =>
            {
                held.plain()
            }
            _ => None,
        };
        if let Some(text) = slice {
            let (searcher, narrowing) = (&mut self.searcher, &self.narrowing);
            let (finding, outcome) =
                search_plain(searcher, narrowing, filling, text, is_multi_line);
            return (finding, outcome, BufferState::Fresh);
        }
        let mut reader = StoppableReader {
            input: match content {
                SearchInput::File(file) => ReaderInput::File(file),
                SearchInput::Cached(held) => ReaderInput::Held(held.bytes),
            },
            watch: &self.watch,
            read: 0,
            // A multi-line search reads the whole file, so there a larger buffer changes nothing.
            buffer_matters: !is_multi_line,
            buffer: BufferState::Fresh,
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

/// Searches a text without NUL bytes and byte order mark. It need not be checked for them again.
fn search_plain(
    searcher: &mut Searcher,
    narrowing: &Prefilter,
    filling: SinkConfig<'_>,
    text: PlainText<'_>,
    is_multi_line: bool,
) -> (FileMatches, io::Result<()>) {
    let (matcher, bytes) = (filling.matcher, text.bytes);
    let lines = narrowing.lines.as_deref();
    let relaxed = narrowing.relaxed.as_deref().filter(|_| !text.is_ascii);
    if is_multi_line {
        let is_ruled_out = lines.is_some_and(|lines| lines.next(bytes).is_none())
            || relaxed.is_some_and(|relaxed| matches!(relaxed.is_match(bytes), Ok(false)));
        if is_ruled_out {
            return (FileMatches::default(), Ok(()));
        }
    } else if lines.is_some() || relaxed.is_some() {
        let narrowed = PrefilteredMatcher::new(matcher, lines, relaxed);
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

/// Prefilters that rule out most lines faster than the pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefilter {
    pub(super) lines: Option<Arc<LineFilter>>,
    /// The relaxed pattern, for texts with non-ASCII characters. Where it does not match, the pattern
    /// does not match either.
    pub(super) relaxed: Option<Arc<RegexMatcher>>,
}

/// The parameters of the sink to fill.
#[derive(Clone, Copy)]
struct SinkConfig<'a> {
    path: &'a PathSource<'a>,
    matcher: &'a RegexMatcher,
    mode: GrepMode,
    max_rows: usize,
    watch: &'a StopFlag,
}

impl SinkConfig<'_> {
    /// Creates the sink for the mode, lets `search` fill it, and returns its contents.
    fn run(
        self,
        search: impl FnOnce(EitherSink<'_, '_>) -> io::Result<()>,
    ) -> (FileMatches, io::Result<()>) {
        let pulse = StopPoller::new(self.watch);
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

/// The content to search.
pub(super) enum SearchInput<'a> {
    File(File),
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no index there"))]
    Cached(CachedText<'a>),
}

/// The cached content of a file.
pub(super) struct CachedText<'a> {
    /// The whole content, or as much as a search can see.
    pub(super) bytes: &'a [u8],
    /// True if the text has no NUL byte and no byte order mark, so that it is searched unchanged.
    pub(super) is_plain: bool,
    pub(super) is_ascii: bool,
    /// The size of the whole file.
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

/// A text that is searched unchanged.
#[derive(Clone, Copy)]
struct PlainText<'a> {
    bytes: &'a [u8],
    is_ascii: bool,
}

impl<'a> CachedText<'a> {
    fn plain(&self) -> Option<PlainText<'a>> {
        self.is_plain.then_some(PlainText {
            bytes: self.bytes,
            is_ascii: self.is_ascii,
        })
    }
}

impl SearchInput<'_> {
    fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Cached(held) => Ok(held.size),
        }
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        match self {
            Self::File(file) => Ok(file.metadata()?.modified().ok()),
            Self::Cached(held) => Ok(Some(held.modified)),
        }
    }

    fn rewind(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.rewind(),
            Self::Cached(_) => Ok(()),
        }
    }
}

enum ReaderInput<'a> {
    File(&'a File),
    /// The part that was not read yet.
    Held(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferState {
    Fresh,
    /// The buffer has grown in an earlier file; the attempt ended immediately.
    Grown,
}

/// A reader that fails when the search is stopped, which matters for a file without matches. It also
/// detects a buffer that has grown.
struct StoppableReader<'a> {
    input: ReaderInput<'a>,
    watch: &'a StopFlag,
    read: usize,
    buffer_matters: bool,
    buffer: BufferState,
}

impl Read for StoppableReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.watch.must_stop() {
            return Err(io::Error::other("the search was stopped"));
        }
        if self.buffer_matters && self.read <= MARK && into.len() > FRESH_BUFFER {
            self.buffer = BufferState::Grown;
            return Err(io::Error::other("the buffer has grown"));
        }
        let count = match &mut self.input {
            ReaderInput::File(file) => file.read(into)?,
            ReaderInput::Held(bytes) => bytes.read(into)?,
        };
        self.read += count;
        if !self.buffer_matters && self.read > MAX_HELD {
            // The file has grown since its size was checked.
            return Err(io::Error::other("it is growing while it is searched"));
        }
        Ok(count)
    }
}

/// Checks for a stop once in [`MATCHES_PER_CHECK`] matches.
pub(super) struct StopPoller<'a> {
    watch: &'a StopFlag,
    matches: u32,
}

impl<'a> StopPoller<'a> {
    fn new(watch: &'a StopFlag) -> Self {
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
    stop_poller: StopPoller<'a>,
}

impl<'a> CountSink<'a> {
    fn new(matcher: &'a RegexMatcher, first_only: bool, stop_poller: StopPoller<'a>) -> Self {
        Self {
            matcher,
            first_only,
            count: 0,
            binary: None,
            stop_poller,
        }
    }
}

impl CountSink<'_> {
    fn into_finding(self) -> FileMatches {
        let skipped = self.binary.map(|offset| SkipReason::Binary { offset });
        FileMatches {
            matches: self.count,
            skipped,
            ..FileMatches::default()
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
            // Searching the reported lines again on their own may miss what the whole file matched;
            // it was at least one match.
            matches.max(1)
        } else {
            1
        };
        Ok(!self.stop_poller.must_stop())
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
    use crate::stop::StopCondition;

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
        let watch = StopFlag::new(&StopCondition::never());
        let mut scanner = FileScanner::new(
            Arc::new(matcher::build(&query).unwrap()),
            &query,
            usize::MAX,
            &watch,
        );
        let before = scanner
            .search(
                &binary,
                || File::open(&binary).map(Some),
                FileOrigin::Walked,
            )
            .rows;
        assert_eq!(before.len(), 2, "the match and a notice");
        assert_eq!(
            scanner
                .search(&long, || File::open(&long).map(Some), FileOrigin::Walked)
                .skipped,
            None
        );
        let grown = SearchInput::File(File::open(&binary).unwrap());
        let path = || Arc::from(&*binary);
        assert_eq!(scanner.attempt(&path, &grown).2, BufferState::Grown);
        assert_eq!(
            scanner
                .search(
                    &binary,
                    || File::open(&binary).map(Some),
                    FileOrigin::Walked
                )
                .rows,
            before
        );
        let fresh = SearchInput::File(File::open(&binary).unwrap());
        assert_eq!(
            scanner.attempt(&path, &fresh).2,
            BufferState::Fresh,
            "replaced once, not for every file"
        );
    }
}
