//! Edits a text in the user's editor (`$VISUAL`, `$EDITOR`, `vi`) and waits for it to exit. Before
//! the call, the caller must release the terminal.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{self, Command},
    time::{SystemTime, UNIX_EPOCH},
};

use haft_host::Environment;

/// Returns the text after the editor has exited, or an error message.
pub(crate) fn edit(text: &str, environment: &Environment) -> Result<String, String> {
    let editor = editor(environment);
    let folder = environment.variable("TMPDIR").map(PathBuf::from);
    let file = TextFile::new(text, &folder.unwrap_or_else(|| PathBuf::from("/tmp")))?;
    // The variables may contain arguments, as in `code --wait`, so a shell splits them.
    let ended = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(&file.0)
        .status()
        .map_err(|error| format!("{editor}: {error}"))?;
    if !ended.success() {
        return Err(format!("{editor} failed ({ended}); the draft is unchanged"));
    }
    let bytes = fs::read(&file.0).map_err(|error| format!("{}: {error}", file.0.display()))?;
    let mut text = String::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned())?;
    // Removes the line end that editors append.
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Returns the editor command.
pub(crate) fn editor(environment: &Environment) -> String {
    let named = |name: &str| {
        let value = environment.variable(name)?;
        Some(value).filter(|value| !value.trim().is_empty())
    };
    named("VISUAL")
        .or_else(|| named("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned())
}

/// A temporary file that only the user can read, removed on drop.
struct TextFile(PathBuf);

impl TextFile {
    fn new(text: &str, folder: &Path) -> Result<Self, String> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let moment = since.unwrap_or_default().as_nanos();
        let path = folder.join(format!("haft-edit-{}-{moment}.md", process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(variables: &[(&str, &str)]) -> (Result<String, String>, usize) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_str().unwrap();
        let given = variables.iter().copied().chain([("TMPDIR", folder)]);
        let result = edit("one\ntwo", &Environment::from_variables(given));
        (result, fs::read_dir(dir.path()).unwrap().count())
    }

    #[test]
    fn the_text_comes_back_and_the_file_goes() {
        let (text, left) = edited(&[("EDITOR", "false"), ("VISUAL", "sed -i s/one/1/")]);
        assert_eq!((text.unwrap().as_str(), left), ("1\ntwo", 0));
    }

    #[test]
    fn an_editor_that_fails_changes_nothing() {
        let (text, left) = edited(&[("EDITOR", "exit 3;")]);
        let why = text.unwrap_err();
        assert!(why.contains("the draft is unchanged"), "{why}");
        assert_eq!(left, 0);
        assert_eq!(
            editor(&Environment::from_variables([("VISUAL", " "), ("X", "")])),
            "vi"
        );
    }
}
