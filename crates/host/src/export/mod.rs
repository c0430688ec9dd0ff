//! Exports a session as a file: one HTML page, or Markdown.
//!
//! A transcript contains text from a model, from tools and from files and pages, so it is
//! untrusted. The page stores it as data that its script displays as text (`page`). Markdown puts
//! it in quotes and fences that it cannot leave (`markdown`). Characters that change the display of
//! others are replaced with their code points (`visible`). The export contains only data from the
//! transcript and those of its subagents.

mod markdown;
mod outline;
mod page;
mod reader;
mod visible;

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use haft_agent::transcript::{TranscriptStoreError, history};
use haft_models::Prices;

use self::outline::ExportOutline;
use crate::{ResolvedSettings, SessionConfig, model};

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One self-contained HTML page.
    Html,
    /// Markdown.
    Markdown,
}

impl ExportFormat {
    /// Returns the format for a file name: `.html` and `.htm` mean a page, all others Markdown.
    pub fn from_file_name(file: &Path) -> Self {
        let end = file.extension().map(|end| end.to_ascii_lowercase());
        match end.as_deref().and_then(|end| end.to_str()) {
            Some("html" | "htm") => Self::Html,
            _ => Self::Markdown,
        }
    }
}

/// The handling of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// Keeps it and writes nothing.
    Keep,
    /// Replaces it.
    Replace,
}

/// The reason why a session could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The session has no messages.
    #[error("the session has no messages")]
    Empty,
    /// The transcript cannot be read.
    #[error(transparent)]
    Transcript(#[from] TranscriptStoreError),
    /// The file already exists.
    #[error("{file} exists already and was not touched; name another file, or replace it explicitly", file = file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be written.
    #[error("{file}: {source}", file = file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Returns the model prices from the settings, or the public list if the settings cannot be read.
pub fn prices(config: &SessionConfig) -> Prices {
    let permitted = ResolvedSettings::load(config).ok();
    let prices = permitted.and_then(|one| model::prices(&config.model, &one.settings).ok());
    prices.unwrap_or_else(Prices::listed)
}

/// Renders the session of a transcript. The transcripts of subagents are found next to it. The cost
/// is computed from the tokens in the transcript.
pub fn render(
    transcript: &Path,
    format: ExportFormat,
    prices: &Prices,
) -> Result<String, ExportError> {
    let history = history::read(transcript)?;
    if history.records.is_empty() {
        return Err(ExportError::Empty);
    }
    let id = transcript.file_stem().unwrap_or_default().to_string_lossy();
    let subagents = history::read_subagents(transcript);
    let outline = ExportOutline::from_history(&id, history, subagents, prices);
    Ok(match format {
        ExportFormat::Html => page::render(&outline),
        ExportFormat::Markdown => markdown::render(&outline),
    })
}

/// Like [`render`], but writes into a file that only its owner may read. The file is written
/// completely or not at all.
pub fn write(
    transcript: &Path,
    format: ExportFormat,
    prices: &Prices,
    file: &Path,
    existing: ExistingFile,
) -> Result<(), ExportError> {
    let exists = || ExportError::Exists {
        file: file.to_path_buf(),
    };
    // Fails early; the check is repeated when the file is put in place.
    if existing == ExistingFile::Keep && fs::symlink_metadata(file).is_ok() {
        return Err(exists());
    }
    let text = render(transcript, format, prices)?;
    put(file, &text, existing).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists if existing == ExistingFile::Keep => exists(),
        _ => ExportError::Write {
            file: file.to_path_buf(),
            source,
        },
    })
}

fn put(file: &Path, text: &str, existing: ExistingFile) -> io::Result<()> {
    let name = file
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "names no file"))?;
    if file.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let unique = haft_agent::random_id().simple();
    let partial = file.with_file_name(format!(".{}.{unique}", name.to_string_lossy()));
    let written = put_new(&partial, text).and_then(|()| match existing {
        ExistingFile::Replace => fs::rename(&partial, file),
        // Creating a hard link fails atomically if the name is taken.
        ExistingFile::Keep => match fs::hard_link(&partial, file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // Some file systems have no hard links. This also fails if the name is taken.
                put_new(file, text)
            }
            linked => linked,
        },
    });
    // The temporary name is removed in every case.
    let _ = fs::remove_file(&partial);
    written
}

/// Creates a new file. On an error the file is removed again.
fn put_new(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut open = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    let written = open
        .write_all(text.as_bytes())
        .and_then(|()| open.sync_all());
    written.inspect_err(|_| {
        let _ = fs::remove_file(file);
    })
}

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
