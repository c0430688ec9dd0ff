//! Handles termination signals.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU8, Ordering},
};

use haft::CancellationToken;
use haft_host::{SessionInput, StopKind};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// Handler of SIGINT, SIGTERM and SIGHUP. The first signal ends the run. A SIGINT after it exits
/// the process immediately.
pub(crate) struct StopSignals {
    stop: CancellationToken,
    code: Arc<AtomicU8>,
    /// The session that a signal stops.
    session: Arc<OnceLock<SessionInput>>,
}

impl StopSignals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let signals = Self {
            stop: CancellationToken::new(),
            code: Arc::default(),
            session: Arc::default(),
        };
        let (stop, code) = (signals.stop.clone(), Arc::clone(&signals.code));
        let session = Arc::clone(&signals.session);
        haft::spawn_boxed(async move {
            loop {
                let exit = tokio::select! {
                    _ = interrupt.recv() => Exit::Interrupted,
                    _ = terminate.recv() => Exit::Terminated,
                    _ = hang_up.recv() => Exit::Terminated,
                };
                if stop.is_cancelled() && exit == Exit::Interrupted {
                    std::process::exit(exit as i32);
                }
                code.store(exit as u8, Ordering::Relaxed);
                stop.cancel();
                if let Some(session) = session.get() {
                    session.stop(kind(exit));
                }
            }
        });
        Ok(signals)
    }

    /// Makes a signal stop this session. If a signal has already arrived, stops the session
    /// immediately.
    pub(crate) fn end(&self, session: &SessionInput) {
        let _ = self.session.set(session.clone());
        if let Some(exit) = self.requested_exit() {
            session.stop(kind(exit));
        }
    }

    /// Returns a token that the first signal cancels.
    pub(crate) fn token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Waits for the first signal.
    pub(crate) async fn wait(&self) {
        self.stop.cancelled().await;
    }

    /// Returns the exit code of the last signal that arrived, if any.
    pub(crate) fn requested_exit(&self) -> Option<Exit> {
        if !self.stop.is_cancelled() {
            return None;
        }
        match self.code.load(Ordering::Relaxed) {
            code if code == Exit::Terminated as u8 => Some(Exit::Terminated),
            _ => Some(Exit::Interrupted),
        }
    }

    /// Runs `work`. Returns `None` if a signal arrives first.
    pub(crate) async fn run_until_signalled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.wait() => None,
        }
    }
}

fn kind(exit: Exit) -> StopKind {
    match exit {
        Exit::Terminated => StopKind::Terminate,
        _ => StopKind::Interrupt,
    }
}
