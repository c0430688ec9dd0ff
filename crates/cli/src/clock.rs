//! The clock for schedules: the machine's, or in debug builds one that a test controls.

use std::sync::Arc;

use haft_host::SessionClock;

/// Returns the clock of every session that this process opens.
#[cfg(not(debug_assertions))]
pub(crate) fn session_clock() -> Arc<dyn SessionClock> {
    Arc::new(haft_host::MachineClock)
}

/// Returns the clock of every session that this process opens. Tests can control it:
/// `HAFT_TEST_CLOCK` names a file that contains the seconds since 1970.
#[cfg(debug_assertions)]
pub(crate) fn session_clock() -> Arc<dyn SessionClock> {
    match std::env::var_os("HAFT_TEST_CLOCK") {
        Some(file) => Arc::new(file_clock::FileClock(file.into())),
        None => Arc::new(haft_host::MachineClock),
    }
}

#[cfg(debug_assertions)]
mod file_clock {
    use std::{
        fs,
        path::PathBuf,
        time::{Duration, SystemTime},
    };

    use haft::BoxFuture;
    use haft_host::SessionClock;

    /// The interval at which the file is read while a task waits for a time.
    const FILE_CHECK_INTERVAL: Duration = Duration::from_millis(20);

    pub(super) struct FileClock(pub(super) PathBuf);

    impl SessionClock for FileClock {
        fn now(&self) -> SystemTime {
            let text = fs::read_to_string(&self.0).unwrap_or_default();
            let seconds = text.trim().parse();
            SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unwrap_or_default())
        }

        fn sleep_until(&self, moment: SystemTime) -> BoxFuture<'_, ()> {
            Box::pin(async move {
                let before = self.now();
                // A clock that was set back to before the wait began also ends the wait.
                while (before..moment).contains(&self.now()) {
                    tokio::time::sleep(FILE_CHECK_INTERVAL).await;
                }
            })
        }
    }
}
