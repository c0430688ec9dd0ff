//! Captures the output of a command while it runs.
//!
//! Output up to a limit stays in memory. A longer output is also streamed to a file that only the
//! owner can read, up to another limit. The end of the output always stays in memory, because error
//! messages are usually there.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{monitor::LineQueue, output_mask::OutputMask};
use crate::blocking::blocking;

/// The maximum size of the output file in bytes.
pub(crate) const FILE_LIMIT: u64 = 64 << 20;
/// The number of bytes at the end of the output that always stay in memory.
const TAIL: usize = 64 << 10;
/// The prefix of an image, and the maximum size in bytes of an image that is shown.
const PICTURE: &[u8] = b"data:image/";
const PICTURE_WINDOW: usize = 8 << 20;
/// The maximum number of bytes per read from the pipe.
const CHUNK: usize = 1 << 20;

/// The output of a command. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct OutputCapture {
    state: Arc<Mutex<CaptureState>>,
    /// Receives the output as it arrives.
    follower: Option<LineQueue>,
    mask: Option<OutputMask>,
}

#[derive(Debug)]
struct CaptureState {
    /// The first bytes, at most `window`.
    head: Vec<u8>,
    window: usize,
    /// The last bytes, once the output is longer than `head`.
    tail: Vec<u8>,
    total: u64,
    /// The path of the output file, if one is needed.
    place: PathBuf,
    file: Option<File>,
    in_file: u64,
    /// The reason that the file is missing or incomplete.
    file_error: Option<String>,
}

/// The output at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CaptureSnapshot {
    /// The complete output or its beginning.
    pub(crate) head: Vec<u8>,
    /// The end, if `head` is not the complete output. The part in between is only in the file.
    pub(crate) tail: Option<Vec<u8>>,
    /// The total number of bytes.
    pub(crate) total: u64,
    /// The output file and the number of bytes in it.
    pub(crate) file: Option<(PathBuf, u64)>,
    /// The reason that the file is missing or incomplete.
    pub(crate) file_error: Option<String>,
}

impl OutputCapture {
    /// Creates an empty capture. Up to `window` bytes of the beginning stay in memory. A longer
    /// output is written to a new file at `place`.
    pub(crate) fn new(place: PathBuf, window: usize) -> Self {
        let kept = CaptureState {
            head: Vec::new(),
            window,
            tail: Vec::new(),
            total: 0,
            place,
            file: None,
            in_file: 0,
            file_error: None,
        };
        Self {
            state: Arc::new(Mutex::new(kept)),
            follower: None,
            mask: None,
        }
    }

    /// Returns the capture with secret values masked.
    pub(crate) fn masked_by(mut self, mask: Option<OutputMask>) -> Self {
        self.mask = mask;
        self
    }

    /// Returns the capture, which also passes all output to `lines` as it arrives.
    pub(crate) fn followed_by(mut self, lines: LineQueue) -> Self {
        self.follower = Some(lines);
        self
    }

    /// Reads the output until its end, an error, or more than `most` bytes. Returns whether the
    /// limit was exceeded.
    pub(crate) async fn fill(&self, mut output: impl AsyncRead + Unpin, most: u64) -> CaptureEnd {
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut mask = self.mask.clone();
        loop {
            chunk.clear();
            let read = output.read_buf(&mut chunk).await;
            if let (Some(mask), Ok(1..)) = (&mut mask, &read) {
                let shown = mask.push(&chunk);
                chunk.clear();
                chunk.extend_from_slice(&shown);
            }
            match read {
                Ok(0) => {
                    self.finish(mask).await;
                    return CaptureEnd::Whole;
                }
                Ok(_) => chunk = self.push(chunk).await,
                Err(error) => {
                    self.finish(mask).await;
                    self.lock_state().file_error =
                        Some(format!("its output could not be read: {error}"));
                    return CaptureEnd::Whole;
                }
            }
            if self.total() > most {
                return CaptureEnd::TooMuch;
            }
        }
    }

    async fn finish(&self, mask: Option<OutputMask>) {
        if let Some(mut mask) = mask {
            self.push(mask.finish()).await;
        }
    }

    async fn push(&self, chunk: Vec<u8>) -> Vec<u8> {
        if let Some(lines) = &self.follower {
            lines.push(&chunk);
        }
        self.take(chunk).await
    }

    /// Stores a chunk and returns its buffer for reuse.
    async fn take(&self, chunk: Vec<u8>) -> Vec<u8> {
        {
            let mut kept = self.lock_state();
            if !kept.needs_file(&chunk) {
                kept.add(&chunk);
                return chunk;
            }
        }
        // Runs on a thread that may wait for the disk. Until then the command waits too, because
        // its pipe is full.
        let this = self.clone();
        let written = blocking(move || {
            this.lock_state().add(&chunk);
            chunk
        });
        written.await.unwrap_or_else(|_| Vec::with_capacity(CHUNK))
    }

    /// Returns the number of bytes so far.
    pub(crate) fn total(&self) -> u64 {
        self.lock_state().total
    }

    /// Returns a snapshot of the output so far.
    pub(crate) fn snapshot(&self) -> CaptureSnapshot {
        let kept = self.lock_state();
        let whole = kept.total == kept.head.len() as u64;
        CaptureSnapshot {
            head: kept.head.clone(),
            tail: (!whole).then(|| kept.last(TAIL)),
            total: kept.total,
            file: kept
                .file
                .as_ref()
                .map(|_| (kept.place.clone(), kept.in_file)),
            file_error: kept.file_error.clone(),
        }
    }

    /// Ensures that the complete output, including later output, is written to a file. Returns the
    /// file's path. Waits for the disk.
    pub(crate) fn ensure_file(&self) -> io::Result<PathBuf> {
        let mut kept = self.lock_state();
        kept.open()?;
        Ok(kept.place.clone())
    }

    /// Returns at most `most` bytes of the file starting at `offset`. Waits for the disk.
    pub(crate) fn read_at(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let (file, end) = {
            let kept = self.lock_state();
            let Some(file) = &kept.file else {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = kept.head.get(from..).unwrap_or_default();
                return Ok(rest[..rest.len().min(most)].to_vec());
            };
            (file.try_clone()?, kept.in_file)
        };
        let there = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; there.min(most)];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Returns at most `most` bytes of the end of the output.
    pub(crate) fn end(&self, most: usize) -> Vec<u8> {
        self.lock_state().last(most.min(TAIL))
    }

    fn lock_state(&self) -> MutexGuard<'_, CaptureState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why reading the output ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureEnd {
    /// The output has ended or could not be read any further.
    Whole,
    /// The output exceeded the limit.
    TooMuch,
}

impl CaptureState {
    /// Returns whether these bytes would have to be written to a file.
    fn needs_file(&self, more: &[u8]) -> bool {
        let open = self.file.is_some() && self.in_file < FILE_LIMIT;
        open || (self.file.is_none() && self.head.len() + more.len() > self.window(more))
    }

    /// Returns the size of the window in memory after these bytes. It is larger for images, which
    /// may be in a single chunk.
    fn window(&self, more: &[u8]) -> usize {
        let begin = self.head.iter().chain(more).take(PICTURE.len());
        match begin.eq(PICTURE) {
            true => self.window.max(PICTURE_WINDOW),
            false => self.window,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.file.is_none() && self.head.len() + bytes.len() > self.window(bytes) {
            // A storage error is reported at the end; the command continues.
            let _ = self.open();
        }
        let room = self.window(bytes).saturating_sub(self.head.len());
        let into_head = &bytes[..bytes.len().min(room)];
        self.head.extend_from_slice(into_head);
        remember_end(&mut self.tail, bytes);
        self.write(bytes);
    }

    /// Creates the file and writes the output so far to it.
    fn open(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        match create(&self.place) {
            Ok(file) => {
                self.file = Some(file);
                let before = std::mem::take(&mut self.head);
                self.write(&before);
                self.head = before;
                Ok(())
            }
            Err(error) => {
                self.file_error = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if self.file_error.is_some() {
            return; // A file with a hole in it would mislead.
        }
        let room = usize::try_from(FILE_LIMIT.saturating_sub(self.in_file)).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        match file.write_all(part) {
            Ok(()) => self.in_file += part.len() as u64,
            Err(error) => self.file_error = Some(error.to_string()),
        }
    }

    fn last(&self, most: usize) -> Vec<u8> {
        let all = if self.total == self.head.len() as u64 {
            &self.head
        } else {
            &self.tail
        };
        all[all.len().saturating_sub(most)..].to_vec()
    }
}

/// Adds bytes to the end of the output. Only the last [`TAIL`] bytes are needed; up to twice as
/// many are stored, so that not every chunk has to move them.
fn remember_end(tail: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() >= TAIL {
        tail.clear();
        tail.extend_from_slice(&bytes[bytes.len() - TAIL..]);
        return;
    }
    if tail.len() + bytes.len() > 2 * TAIL {
        let surplus = tail.len() + bytes.len() - TAIL;
        tail.drain(..surplus);
    }
    tail.extend_from_slice(bytes);
}

/// Creates a file that only its owner can read, in a folder that only its owner can enter. Fails if
/// the file exists, also as a symlink.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("tool-results/out.txt");
        (dir, place)
    }

    #[tokio::test]
    async fn what_fits_stays_in_memory() {
        let (_dir, place) = place();
        let capture = OutputCapture::new(place.clone(), 10);
        assert_eq!(
            capture.fill(&b"0123456789"[..], 100).await,
            CaptureEnd::Whole
        );
        let captured = capture.snapshot();
        assert_eq!(captured.head, b"0123456789");
        assert_eq!(
            (captured.tail, captured.total, captured.file),
            (None, 10, None)
        );
        assert!(!place.exists());
        assert_eq!(capture.read_at(7, 2).unwrap(), b"78");
        assert_eq!(capture.end(3), b"789");
    }

    #[tokio::test]
    async fn a_secret_is_masked_in_memory_in_the_file_and_at_the_end() {
        let mask = |value: &str| {
            let confinement = haft_contract::Confinement {
                env: [("A_TOKEN".to_owned(), value.to_owned())]
                    .into_iter()
                    .collect::<std::collections::BTreeMap<_, _>>()
                    .into(),
                masked: ["A_TOKEN".to_owned()].into(),
                ..haft_contract::Confinement::none()
            };
            OutputMask::for_confinement(&confinement)
        };
        let text = "a hunter22hunter b hunter22hunter";
        for window in [4, 1000] {
            let (_dir, place) = place();
            let capture =
                OutputCapture::new(place.clone(), window).masked_by(mask("hunter22hunter"));
            capture.fill(text.as_bytes(), 100).await;
            capture.ensure_file().unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), "a [masked] b [masked]");
            assert_eq!(capture.end(8), b"[masked]");
        }
    }

    #[tokio::test]
    async fn a_picture_that_comes_in_one_piece_stays_in_memory_too() {
        let (_dir, place) = place();
        let capture = OutputCapture::new(place.clone(), 20);
        let picture = [PICTURE, &[b'A'; 100]].concat();
        assert_eq!(capture.fill(&picture[..], 1000).await, CaptureEnd::Whole);
        assert_eq!(capture.snapshot().head, picture);
        assert!(!place.exists());
    }

    #[tokio::test]
    async fn what_does_not_fit_goes_to_a_file_whole_and_only_its_owner_can_read_it() {
        let (_dir, place) = place();
        let capture = OutputCapture::new(place.clone(), 10);
        let text: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(capture.fill(&*text, u64::MAX).await, CaptureEnd::Whole);
        let captured = capture.snapshot();
        assert_eq!(captured.head, text[..10]);
        assert_eq!(captured.tail.unwrap(), text[text.len() - TAIL..]);
        assert_eq!(captured.file, Some((place.clone(), text.len() as u64)));
        assert_eq!(fs::read(&place).unwrap(), text);
        assert_eq!(capture.read_at(400, 4).unwrap(), 100_u32.to_le_bytes());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o600);
        assert_eq!(mode(place.parent().unwrap()), 0o700);
    }

    #[tokio::test]
    async fn a_file_that_is_asked_for_holds_what_came_before_and_after() {
        let (_dir, place) = place();
        let capture = OutputCapture::new(place.clone(), 100);
        capture.fill(&b"before "[..], 100).await;
        assert_eq!(capture.ensure_file().unwrap(), place);
        capture.fill(&b"after"[..], 100).await;
        assert_eq!(fs::read(&place).unwrap(), b"before after");
        assert_eq!(capture.snapshot().head, b"before after");
    }

    #[tokio::test]
    async fn a_flood_is_cut_off() {
        let (_dir, place) = place();
        let capture = OutputCapture::new(place, 10);
        let flood = tokio::io::repeat(b'x');
        assert_eq!(
            capture.fill(flood, FILE_LIMIT * 2).await,
            CaptureEnd::TooMuch
        );
        let captured = capture.snapshot();
        assert_eq!(captured.file.unwrap().1, FILE_LIMIT);
        assert!(captured.total > FILE_LIMIT * 2);
    }

    #[tokio::test]
    async fn a_file_is_never_written_over_and_what_is_lost_is_said() {
        let (_dir, place) = place();
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "mine").unwrap();
        let capture = OutputCapture::new(place.clone(), 4);
        capture.fill(&b"0123456789"[..], 100).await;
        let captured = capture.snapshot();
        assert_eq!((captured.file, captured.total), (None, 10));
        assert_eq!(captured.tail.unwrap(), b"0123456789");
        assert!(captured.file_error.unwrap().contains("exists"));
        assert_eq!(fs::read(&place).unwrap(), b"mine");
    }
}
