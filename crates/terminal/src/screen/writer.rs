//! The thread that writes to the terminal. It prints all history in order, but shows only the
//! latest live region, so a slow terminal gets fewer frames and never outdated ones.

use std::{
    fmt,
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{HistoryItem, LiveRegion, Screen, ScreenSize, ViewScreen};
use crate::{
    paint::TerminalControl, restore_guard::RestoreState, style::ColorLevel, text::TextLine,
};

/// The pause between two attempts if a full terminal refuses writes instead of blocking.
const REFUSED: Duration = Duration::from_millis(2);

/// An event reported by the thread.
#[derive(Debug)]
pub enum WriterEvent {
    /// The region with this stamp is on the screen. Reported for every region that was written or
    /// needed no change, but not for regions that were replaced before they were drawn.
    Written {
        /// The stamp of the region.
        stamp: u64,
        /// The time when the write returned.
        at: Instant,
    },
    /// The terminal no longer exists; the thread has stopped writing.
    Failed(io::Error),
}

/// A handle to the thread. Dropping it writes everything pending and ends the thread.
pub struct FrameWriter {
    shared: Arc<WriterShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct WriterShared {
    pending: Mutex<PendingOutput>,
    changed: Condvar,
}

#[derive(Default)]
struct PendingOutput {
    controls: Vec<TerminalControl>,
    history: Vec<HistoryItem>,
    region: Option<LiveRegion>,
    /// `Some(None)`: leave the view.
    view: Option<Option<Vec<TextLine>>>,
    size: Option<ScreenSize>,
    reflows: Option<bool>,
    level: Option<ColorLevel>,
    redraw: bool,
    scroll_away: bool,
    is_ending: bool,
    /// True while the thread is writing.
    is_busy: bool,
    is_finished: bool,
}

impl PendingOutput {
    fn has_work(&self) -> bool {
        !self.controls.is_empty()
            || !self.history.is_empty()
            || self.region.is_some()
            || self.view.is_some()
            || self.reflows.is_some()
            || self.level.is_some()
            || self.redraw
            || self.scroll_away
    }
}

impl fmt::Debug for FrameWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FrameWriter")
            .finish_non_exhaustive()
    }
}

impl FrameWriter {
    /// Starts the thread. It updates `restore` with each change of the screen's state.
    ///
    /// # Errors
    /// If the process has too many threads.
    pub fn start(
        screen: Screen,
        terminal: impl Write + Send + 'static,
        restore: Arc<RestoreState>,
        on_event: impl FnMut(WriterEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(WriterShared::default());
        let view = ViewScreen::new(screen.size(), screen.level());
        let work = WriterThread {
            shared: Arc::clone(&shared),
            screen,
            view,
            in_view: false,
            waiting: Vec::new(),
            region: LiveRegion::default(),
            restore,
            terminal,
            on_event,
        };
        let thread = thread::Builder::new()
            .name("terminal output".into())
            .spawn(move || work.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Prints items after all earlier items. During a view, items wait.
    pub fn print(&self, items: impl IntoIterator<Item = HistoryItem>) {
        self.change(|pending| pending.history.extend(items));
    }

    /// Shows this region. It replaces a region that is not drawn yet.
    pub fn show(&self, region: LiveRegion) {
        self.change(|pending| pending.region = Some(region));
    }

    /// Prints items and shows a region in one frame, so that content that moves from the region to
    /// the history is never visible twice.
    pub fn print_and_show(&self, items: impl IntoIterator<Item = HistoryItem>, region: LiveRegion) {
        self.change(|pending| {
            pending.history.extend(items);
            pending.region = Some(region);
        });
    }

    /// Shows rows on the alternate screen.
    pub fn show_view(&self, rows: Vec<TextLine>) {
        self.change(|pending| pending.view = Some(Some(rows)));
    }

    /// Returns to the main screen and prints the history that waited.
    pub fn leave_view(&self) {
        self.change(|pending| pending.view = Some(None));
    }

    /// Sends controls after everything else that is pending: modes are entered after the first
    /// frame and left after the last. The [`RestoreState`] records what must be undone.
    pub fn send(&self, controls: impl IntoIterator<Item = TerminalControl>) {
        self.change(|pending| pending.controls.extend(controls));
    }

    /// Sets the size. This alone draws nothing; the next region is drawn completely.
    pub fn resize(&self, size: ScreenSize) {
        self.change(|pending| pending.size = Some(size));
    }

    /// Sets whether the terminal rewraps rows when its width changes.
    pub fn set_reflows(&self, reflows: bool) {
        self.change(|pending| pending.reflows = Some(reflows));
    }

    /// Changes the number of colours.
    pub fn set_level(&self, level: ColorLevel) {
        self.change(|pending| pending.level = Some(level));
    }

    /// Draws the whole region again, after another program used the screen.
    pub fn redraw(&self) {
        self.change(|pending| pending.redraw = true);
    }

    /// Scrolls everything visible away and draws the region on an empty screen.
    pub fn scroll_away(&self) {
        self.change(|pending| pending.scroll_away = true);
    }

    /// Waits until all pending output is written. Returns `false` after the timeout, or if the
    /// thread has ended.
    pub fn flush(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut pending = self.shared.lock();
        while (pending.has_work() || pending.is_busy) && !pending.is_finished {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let wait = self.shared.changed.wait_timeout(pending, left);
            pending = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        !pending.is_finished
    }

    fn change(&self, change: impl FnOnce(&mut PendingOutput)) {
        change(&mut self.shared.lock());
        self.shared.changed.notify_all();
    }
}

impl Drop for FrameWriter {
    fn drop(&mut self) {
        self.change(|pending| pending.is_ending = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WriterShared {
    fn lock(&self) -> MutexGuard<'_, PendingOutput> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next work, or `None` if the thread must end.
    fn next(&self) -> Option<PendingOutput> {
        let mut pending = self.lock();
        pending.is_busy = false;
        self.changed.notify_all();
        loop {
            if pending.has_work() {
                let is_ending = pending.is_ending;
                // A new size alone is not work, but it applies to the next work.
                let work = std::mem::take(&mut *pending);
                pending.is_ending = is_ending;
                pending.is_busy = true;
                return Some(work);
            }
            if pending.is_ending {
                return None;
            }
            pending = self
                .changed
                .wait(pending)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct WriterThread<W, F> {
    shared: Arc<WriterShared>,
    screen: Screen,
    view: ViewScreen,
    in_view: bool,
    /// History that came during a view.
    waiting: Vec<HistoryItem>,
    region: LiveRegion,
    restore: Arc<RestoreState>,
    terminal: W,
    on_event: F,
}

impl<W: Write, F: FnMut(WriterEvent)> WriterThread<W, F> {
    fn run(mut self) {
        while let Some(work) = self.shared.next() {
            if let Err(error) = self.perform(work) {
                (self.on_event)(WriterEvent::Failed(error));
                break;
            }
        }
        self.shared.lock().is_finished = true;
        self.shared.changed.notify_all();
    }

    fn perform(&mut self, work: PendingOutput) -> io::Result<()> {
        if let Some(size) = work.size {
            self.screen.resize(size);
            self.view.resize(size);
        }
        if let Some(reflows) = work.reflows {
            self.screen.set_reflows(reflows);
        }
        if let Some(level) = work.level {
            self.screen.set_level(level);
        }
        if work.redraw {
            self.screen.redraw();
        }
        self.waiting.extend(work.history);
        let stamp = work.region.as_ref().map(|region| region.stamp);
        if let Some(region) = work.region {
            self.region = region;
        }
        match work.view {
            Some(Some(rows)) => {
                self.in_view = true;
                self.restore.set_in_view(true);
                let frame = self.view.frame(&rows);
                self.write(&frame.unwrap_or_default())?;
            }
            Some(None) if self.in_view => {
                self.in_view = false;
                let bytes = self.view.leave();
                self.write(&bytes)?;
                self.restore.set_in_view(false);
                self.screen.redraw();
            }
            _ => {}
        }
        if !self.in_view {
            if work.scroll_away {
                let bytes = self.screen.scroll_away();
                self.write(&bytes)?;
            }
            let history = std::mem::take(&mut self.waiting);
            for frame in self.screen.frames(&history, &self.region) {
                self.write(&frame)?;
            }
            let (up, rows) = self.screen.extent();
            self.restore.set_region(up, rows);
            if let Some(stamp) = stamp {
                (self.on_event)(WriterEvent::Written {
                    stamp,
                    at: Instant::now(),
                });
            }
        }
        self.send(&work.controls)
    }

    /// Sends controls. What must be undone later is recorded before it is sent.
    fn send(&mut self, controls: &[TerminalControl]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for control in controls {
            match control {
                TerminalControl::EnterModes => self.restore.set_modes(true),
                TerminalControl::PushTitle => self.restore.set_title(true),
                _ => {}
            }
            control.write(&mut bytes);
        }
        self.write(&bytes)?;
        for control in controls {
            match control {
                TerminalControl::LeaveModes => self.restore.set_modes(false),
                TerminalControl::PopTitle => self.restore.set_title(false),
                _ => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.restore.is_closed() {
            match self.terminal.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another program left the terminal in non-blocking mode.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(REFUSED),
                Err(error) => return Err(error),
            }
        }
        self.terminal.flush()
    }
}
