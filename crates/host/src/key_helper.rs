//! `apiKeyHelper`: the user's command that prints the API key, run when a key is needed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_contract::BoxFuture;
use haft_engine::settings::Settings;
use haft_models::KeyHelper;
use tokio::{process::Command, sync::Mutex, time::timeout};

use crate::Environment;

/// The default time for which a key is reused.
const USUAL_AGE: Duration = Duration::from_secs(5 * 60);
/// The timeout of the command.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The name of the setting.
pub(crate) const SETTING: &str = "apiKeyHelper";

/// Runs the command and caches its output.
pub(crate) struct KeyCommand {
    command: String,
    environment: Environment,
    cwd: PathBuf,
    age: Duration,
    kept: Mutex<Option<(String, Instant)>>,
}

impl KeyCommand {
    /// Returns the command in the settings. Only the user's files are used, because the author of
    /// the command can read the key.
    pub(crate) fn from_settings(
        settings: &Settings,
        environment: &Environment,
    ) -> Option<Arc<dyn KeyHelper>> {
        let mut users = settings.layers.iter();
        let command = users.find_map(|layer| {
            let is_users = !layer.from_workspace && layer.scope.is_users();
            let value = layer.document.value.get(SETTING)?.as_str()?;
            is_users.then(|| value.trim().to_owned())
        });
        let command = command.filter(|command| !command.is_empty())?;
        let age = environment.variable("CLAUDE_CODE_API_KEY_HELPER_TTL_MS");
        let age = age.and_then(|age| age.trim().parse().ok());
        Some(Arc::new(Self {
            command,
            environment: environment.clone(),
            cwd: settings.places.cwd.clone(),
            age: age.map_or(USUAL_AGE, Duration::from_millis),
            kept: Mutex::default(),
        }))
    }

    async fn run(&self) -> Result<String, String> {
        let printed = printed_by(&self.command, &self.environment, &self.cwd).await;
        printed.map_err(|why| format!("the command of {SETTING} gave no key: {why}"))
    }
}

/// Returns the trimmed output of a user's command; an error if it is empty.
pub(crate) async fn printed_by(
    line: &str,
    environment: &Environment,
    cwd: &Path,
) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    environment.apply_to(&mut command);
    command
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let ended = timeout(MAX_WAIT, command.output()).await;
    let ended = ended.map_err(|_| {
        let seconds = MAX_WAIT.as_secs();
        format!("it took longer than {seconds} s")
    })?;
    let ended = ended.map_err(|error| error.to_string())?;
    if !ended.status.success() {
        let errors = String::from_utf8_lossy(&ended.stderr);
        let last = errors.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map(|line| format!(": {}", line.trim()));
        return Err(format!("{}{}", ended.status, last.unwrap_or_default()));
    }
    let printed = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
    match printed.is_empty() {
        true => Err("it printed nothing".to_owned()),
        false => Ok(printed),
    }
}

impl KeyHelper for KeyCommand {
    fn key(&self, is_refused: bool) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            // Concurrent callers wait, and get the same key.
            let mut kept = self.kept.lock().await;
            if let Some((key, since)) = &*kept
                && !is_refused
                && since.elapsed() < self.age
            {
                return Ok(key.clone());
            }
            *kept = None;
            let key = self.run().await?;
            *kept = Some((key.clone(), Instant::now()));
            Ok(key)
        })
    }
}
