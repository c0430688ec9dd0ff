//! The runtime that a command runs on, and what is logged.

use std::env;

use anyhow::Context;
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use crate::show;

/// Logs to stderr what `HAFT_LOG` asks for; without it nothing is set up at all.
pub(crate) fn log() {
    // A panic of a tool is answered as its result; the default report would be noise.
    std::panic::set_hook(Box::new(|panic| {
        if env::var_os("HAFT_LOG").is_some() {
            show::warn(&format!("haft: {panic}"));
        }
    }));
    if let Ok(filter) = env::var("HAFT_LOG") {
        // Not `new`, which writes past us where the filter makes no sense.
        let filter = match EnvFilter::try_new(&filter) {
            Ok(filter) => filter,
            Err(problem) => {
                show::warn(&format!(
                    "haft: HAFT_LOG={filter}: {problem}; nothing is logged"
                ));
                return;
            }
        };
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(show::LogLines)
            .with_ansi(false)
            .init();
    }
}

/// Runs to the end on a runtime of its own. Threads that wait for input do not hold up the exit.
pub(crate) fn block_on<T: Send + 'static>(
    work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> anyhow::Result<T> {
    run(Builder::new_multi_thread(), work)
}

/// The same on one thread, where what is done in turn is little each time: handing it from thread to thread would cost
/// more than it saves. What takes long runs on threads for that all the same.
pub(crate) fn block_on_one_thread<T: Send + 'static>(
    work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> anyhow::Result<T> {
    run(Builder::new_current_thread(), work)
}

fn run<T: Send + 'static>(
    mut builder: Builder,
    work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> anyhow::Result<T> {
    let runtime = builder.enable_all().build().context("no runtime")?;
    // On a worker: a call it starts then runs on the same thread, without waking another.
    let result = runtime.block_on(async { tokio::spawn(work).await });
    runtime.shutdown_background();
    result?
}
