//! The permission mode `auto`: whether a session may use it.
//!
//! The mode needs a sandbox that sees every change of a file, so that undo is exact. If something is
//! missing, the session uses the mode `default` and reports the reason once.

use std::path::{Path, PathBuf};

use haft_engine::{
    permissions::SandboxSettings,
    settings::{Settings, TrustFile},
};

use crate::{OpenError, ResolvedSettings, SessionConfig};

/// The part of a file system that stays free in any case: a fiftieth, at most 1 GiB.
const MAX_RESERVE: u64 = 1 << 30;
const RESERVED_PART: u64 = 50;

/// Returns the reason why a session with these settings cannot use the mode `auto`, as one line for
/// the user without the consequence.
pub fn auto_mode_problem(
    config: &SessionConfig,
    settings: &Settings,
    sandbox: &SandboxSettings,
) -> Option<String> {
    let sentences = unread_sentences(settings);
    missing_requirement(config, settings, sandbox).or_else(|| {
        let sentence = sentences.first()?;
        Some(format!(
            "auto cannot enforce autoMode.hard_deny {sentence:?}; write a permission rule instead, or \
             start a session in this mode in a terminal and accept that"
        ))
    })
}

/// Returns the sentences of `autoMode.hard_deny` because of which this session does not use the mode
/// `auto`: haft cannot enforce them, and the user has not accepted that. Empty if the session does not
/// request the mode, or something else is missing.
pub fn sentences_to_accept(config: &SessionConfig, resolved: &ResolvedSettings) -> Vec<String> {
    let (settings, sandbox) = (&resolved.settings, &resolved.sandbox);
    if resolved.auto_warning.is_none() || missing_requirement(config, settings, sandbox).is_some() {
        return Vec::new();
    }
    unread_sentences(settings)
}

/// Records that the user has read these sentences of `autoMode.hard_deny`, which haft cannot enforce.
pub fn accept_sentences(
    resolved: &ResolvedSettings,
    sentences: &[String],
) -> Result<(), OpenError> {
    let stored = TrustFile::add_auto_sentences(&resolved.settings.places, sentences);
    Ok(stored.map_err(anyhow::Error::from)?)
}

/// Returns the sentences of `autoMode.hard_deny` that the user has not accepted as not enforced.
fn unread_sentences(settings: &Settings) -> Vec<String> {
    let mut sentences = settings.auto_sentences();
    if !sentences.is_empty() {
        let file = TrustFile::read(&settings.places);
        sentences.retain(|sentence| !file.has_auto_sentence(sentence));
    }
    sentences
}

/// Returns what is missing for the mode `auto`, apart from the user's answer.
fn missing_requirement(
    config: &SessionConfig,
    settings: &Settings,
    sandbox: &SandboxSettings,
) -> Option<String> {
    if settings.auto_is_disabled() {
        return Some("auto is switched off by the settings (disableAutoMode)".to_owned());
    }
    if !settings.trust.allows {
        return Some("auto needs a trusted directory; this one is not trusted".to_owned());
    }
    if sandbox.enabled == Some(false) {
        return Some("auto needs the sandbox; sandbox.enabled is false".to_owned());
    }
    if sandbox.files_open {
        return Some("auto needs the sandbox; sandbox.filesystem.disabled is true".to_owned());
    }
    if let Some(found) = weaker_mechanism(config) {
        return Some(format!("auto needs the full sandbox; here: {found}"));
    }
    let folder = journal_parent(config);
    if !has_free_space(&folder) {
        return Some(format!(
            "auto needs free space for undo; {} has none",
            folder.display()
        ));
    }
    None
}

/// Returns the line that reports why the mode `auto` is not used.
pub fn auto_mode_fallback(problem: &str) -> String {
    format!("{problem}. Using default.")
}

/// Returns the name of the mechanism on this machine, unless it sees every change of a file.
fn weaker_mechanism(config: &SessionConfig) -> Option<&'static str> {
    #[cfg(feature = "shell")]
    {
        use haft_tools::sandbox::{Mechanism, strongest};
        let among = config.environment.temporary_folder();
        match strongest(config.program.as_deref(), &among) {
            Mechanism::Namespaces | Mechanism::Bubblewrap => None,
            Mechanism::Reduced => Some("reduced (no user namespaces)"),
            Mechanism::None => Some("none"),
        }
    }
    #[cfg(not(feature = "shell"))]
    {
        let _ = config; // a build without commands confines none
        Some("none")
    }
}

/// Returns the closest existing directory above the session's undo journal.
fn journal_parent(config: &SessionConfig) -> PathBuf {
    let environment = &config.environment;
    let folder = config.state_folder.clone();
    let folder = folder.or_else(|| environment.project_folder(&config.cwd));
    let folder = folder.unwrap_or_else(|| environment.temporary_folder());
    let existing = folder.ancestors().find(|ancestor| ancestor.is_dir());
    existing.map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}

fn has_free_space(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| {
        let block = found.f_frsize.max(1);
        let total = found.f_blocks.saturating_mul(block);
        let free = found.f_bavail.saturating_mul(block);
        free > MAX_RESERVE.min(total / RESERVED_PART)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_space_is_recognized() {
        // Every read of these pseudo file systems reports no blocks.
        assert!(!has_free_space(Path::new("/proc")));
        assert!(!has_free_space(Path::new("/no/such/directory")));
    }
}
