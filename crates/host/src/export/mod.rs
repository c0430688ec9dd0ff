//! A session as a file for people: one page that a browser shows, or Markdown.
//!
//! What is in a transcript was said by a model, by tools and by whatever they read, so none of it is trusted:
//! the page holds it as data that its script shows as text (`page`), Markdown holds it in quotes and fences that
//! it cannot leave (`markdown`), and characters that change how others are shown are spelled out
//! (`visible`). Nothing is exported that the transcript and those of its subagents do not hold.

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

use haft_agent::transcript::{StoreError, history};
use haft_models::Prices;

use self::outline::Outline;
use crate::{Permitted, SessionConfig, model};

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One page with everything in it.
    Html,
    /// Text with marks.
    Markdown,
}

impl ExportFormat {
    /// By the end of a file's name: `.html` and `.htm` a page, anything else Markdown.
    pub fn of_file(file: &Path) -> Self {
        let end = file.extension().map(|end| end.to_ascii_lowercase());
        match end.as_deref().and_then(|end| end.to_str()) {
            Some("html" | "htm") => Self::Html,
            _ => Self::Markdown,
        }
    }
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// It stays, and nothing is written.
    Keep,
    /// The new one takes its place.
    Replace,
}

/// Why a session is not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Nothing was said in it.
    #[error("the session has no messages")]
    Empty,
    /// Its transcript cannot be read.
    #[error(transparent)]
    Transcript(#[from] StoreError),
    /// There is a file of this name.
    #[error("{file} exists already and was not touched; name another file, or replace it explicitly", file = file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be written.
    #[error("{file}: {source}", file = file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What models cost, as the settings of such a session say; where those cannot be read, by the public list.
pub fn prices(config: &SessionConfig) -> Prices {
    let permitted = Permitted::load(config).ok();
    let prices = permitted.and_then(|one| model::prices(&config.model, &one.settings).ok());
    prices.unwrap_or_else(Prices::listed)
}

/// The session whose transcript this is, as text. Subagents are found beside the transcript. What it cost is worked
/// out from what the transcript says of tokens.
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
    let outline = Outline::of(&id, history, subagents, prices);
    Ok(match format {
        ExportFormat::Html => page::render(&outline),
        ExportFormat::Markdown => markdown::render(&outline),
    })
}

/// The same into a file that only its owner may read. It is there as a whole or not at all.
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
    // Before the work, so that the answer comes at once; it is asked again when the file gets its name.
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
        // A link fails where a name is taken, in the same step in which it would take it.
        ExistingFile::Keep => match fs::hard_link(&partial, file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // Some file systems have no links. This fails where a name is taken, too.
                put_new(file, text)
            }
            linked => linked,
        },
    });
    // Renamed, linked or of no use: the other name goes.
    let _ = fs::remove_file(&partial);
    written
}

/// Writes a file that is not there yet, or none.
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
