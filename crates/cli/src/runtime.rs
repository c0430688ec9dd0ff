//! The async runtime of commands, and logging.

use std::env;

use anyhow::Context;
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use crate::show;

/// Logs to stderr with the filter in `HAFT_LOG`. Without that variable nothing is logged.
pub(crate) fn log() {
    // A panic in a tool becomes the call's result, so it is printed only if `HAFT_LOG` is set.
    std::panic::set_hook(Box::new(|panic| {
        if env::var_os("HAFT_LOG").is_some() {
            show::warn(&format!("haft: {panic}"));
        }
    }));
    if let Ok(filter) = env::var("HAFT_LOG") {
        // `EnvFilter::new` would print errors to stderr itself, past our output functions.
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

/// Runs `work` to its end on a new multi-threaded runtime. Threads that are blocked on input do not
/// delay the exit.
pub(crate) fn block_on<T: Send + 'static>(
    work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> anyhow::Result<T> {
    run(Builder::new_multi_thread(), work)
}

/// Like [`block_on`], but on a single thread, for work in many small steps: moving them between
/// threads would cost more than it gains. Long operations still run on blocking threads.
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
    // Spawned as a task, so that a call that `work` starts runs on the same worker thread without
    // waking another.
    let result = runtime.block_on(async { tokio::spawn(work).await });
    runtime.shutdown_background();
    result?
}
