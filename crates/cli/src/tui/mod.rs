//! The interactive terminal user interface, a front end that contains no session logic.
//!
//! - `ui`: the main thread with all state, and its helper threads; `driver`: opens and follows the
//!   session; `guard`: a process that restores the terminal if this one cannot
//! - `app`: the state and its transitions; `keys`: key handling; `events`: session events
//! - `region`: the part of the screen below the history; `reply`, `running_calls`, `cards`, `queue`,
//!   `status`: its components
//! - `ask`: questions; `full_question`: a question in full screen; `overlay`: the interface of full-screen
//!   views
//! - `ui_style`, `settings`, `number_format`: appearance

mod app;
mod ask;
mod cards;
mod clipboard;
mod commands;
mod complete;
mod driver;
mod events;
mod external_editor;
#[cfg(test)]
mod facts_tests;
mod first_run;
mod full_question;
mod guard;
mod history_file;
mod hook_sequence;
mod jobs;
mod keybindings;
mod keys;
#[cfg(test)]
mod keys_tests;
#[cfg(test)]
mod legible_tests;
#[cfg(test)]
mod long_session_tests;
mod notify;
mod number_format;
mod overlay;
pub(crate) mod plain;
mod popup;
mod queue;
#[cfg(test)]
mod random_tests;
mod region;
mod reply;
mod resume;
mod running_calls;
#[cfg(test)]
mod screens_tests;
mod search;
mod settings;
#[cfg(test)]
mod special_offer_tests;
mod status;
mod status_line;
#[cfg(test)]
mod test_bench;
mod theme;
mod todos;
mod ui;
mod ui_style;
#[cfg(test)]
mod vectors_tests;
mod view;

use std::{
    fs::{File, OpenOptions},
    panic,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use haft::SecretFile;
use haft_host::{Environment, SessionConfig, StopKind};
use haft_terminal::{
    Capabilities, RestoreState, TerminalEnvironment,
    input::{RawMode, SavedModes, terminal_size},
};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
};

pub(crate) use self::guard::serve_if_asked;
use self::{
    app::App,
    settings::TuiSettings,
    ui::{Ui, UiEvent},
};
use crate::{exit::Exit, show};

/// The start parameters from the command line.
pub(crate) struct InteractiveStart {
    pub(crate) config: SessionConfig,
    /// A prompt that is sent immediately.
    pub(crate) prompt: Option<String>,
    /// No animations, and all times show 0 s.
    pub(crate) is_still: bool,
    /// Whether the user picks the session to resume first.
    pub(crate) picks_session: bool,
}

/// Returns whether the plain interface is requested, as far as that is known before the settings
/// are loaded.
pub(crate) fn is_plain(flag: bool) -> bool {
    plain::is_wanted(flag, &Environment::from_process(), &TuiSettings::default())
}

/// Runs the user interface until it exits.
pub(crate) fn run(start: InteractiveStart) -> anyhow::Result<Exit> {
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .context("cannot open the terminal")?;
    let raw = RawMode::enter(&terminal).context("the terminal cannot be used")?;
    let restore = Arc::new(RestoreState::new());
    restore_on_panic(&terminal, &restore, raw.saved().clone())?;
    let variable = |name: &str| std::env::var(name).ok();
    let capabilities = Capabilities::from_environment(&TerminalEnvironment::new(&variable));
    let size = terminal_size(&terminal);
    let mut app = App::new(capabilities, size, start.config.cwd.clone(), start.is_still);
    if let Some(prompt) = &start.prompt {
        app.send_text(prompt, Instant::now());
    }
    let (sender, receiver) = channel();
    let mut ui = Ui::start(terminal, raw, restore, app, sender.clone())?;
    ui.listen()?;
    let runtime = runtime()?;
    listen_to_signals(&runtime, sender)?;
    log_to_file(&start.config);
    ui.open(runtime.handle().clone(), start.config.clone());
    if start.picks_session {
        ui.pick_session();
    }
    let end = ui.run(&receiver);
    let farewell = ui.exit_summary(end.session.as_ref());
    let becomes_plain = ui.becomes_plain;
    drop(ui);
    if becomes_plain {
        let run = plain::run(start.config, start.prompt);
        return runtime.block_on(async { tokio::spawn(run).await })?;
    }
    runtime.shutdown_background();
    for line in farewell.lines() {
        show::line(&line)?;
    }
    Ok(end.exit)
}

/// Redirects logs to a file in the settings folder, because on stderr they would be drawn over.
fn log_to_file(config: &SessionConfig) {
    if std::env::var_os("HAFT_LOG").is_none() {
        return;
    }
    let places = config.environment.settings_places(&config.cwd);
    let log = SecretFile::TerminalLog.below(&places.user);
    let folder = log.parent().unwrap_or(&log);
    let file = std::fs::create_dir_all(folder)
        .and_then(|()| File::options().append(true).create(true).open(&log));
    if let Ok(file) = file {
        show::log_to(file);
    }
}

/// The timeout for the exit after SIGTERM or SIGHUP. It is longer than the sum of the timeouts of the session, its hooks
/// and the last frame.
const MAX_END: Duration = Duration::from_secs(8);

/// The number of runtime threads. A session mostly waits, and long work has its own threads. More threads would cost
/// memory: each has an allocator arena that grows to the size of the largest request that the thread wrote.
const WORKERS: usize = 2;

fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .context("no runtime")
}

/// Restores the terminal before a panic of our own threads is reported. A panic in a tool becomes
/// the call's result.
fn restore_on_panic(
    terminal: &File,
    restore: &Arc<RestoreState>,
    modes: SavedModes,
) -> anyhow::Result<()> {
    let (terminal, restore) = (terminal.try_clone()?, Arc::clone(restore));
    let own = thread::current().id();
    panic::set_hook(Box::new(move |panic| {
        let thread = thread::current();
        let is_ours = thread.id() == own
            || thread
                .name()
                .is_some_and(|name| name.starts_with("terminal "));
        if is_ours {
            let _ = restore.restore(&terminal, &modes);
            show::warn(&format!("haft: {panic}"));
        }
    }));
    Ok(())
}

fn listen_to_signals(runtime: &Runtime, sender: Sender<UiEvent>) -> anyhow::Result<()> {
    let _runtime = runtime.enter();
    let mut resized = signal(SignalKind::window_change())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    runtime.spawn(async move {
        loop {
            let event = tokio::select! {
                _ = resized.recv() => UiEvent::Resized,
                _ = interrupted.recv() => UiEvent::Stop(StopKind::Interrupt),
                _ = terminated.recv() => UiEvent::Stop(StopKind::Terminate),
                _ = hung_up.recv() => UiEvent::Stop(StopKind::Terminate),
            };
            let must_end = matches!(event, UiEvent::Stop(StopKind::Terminate));
            if sender.send(event).is_err() {
                return;
            }
            if must_end {
                end_at_the_latest();
            }
        }
    });
    Ok(())
}

/// Exits after [`MAX_END`] if the process has not ended by then, for example because no program reads its terminal any
/// longer. The guard restores the terminal as soon as a program reads it again.
fn end_at_the_latest() {
    thread::spawn(|| {
        thread::sleep(MAX_END);
        std::process::exit(Exit::Terminated as i32);
    });
}
