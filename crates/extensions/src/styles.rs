//! Output styles: instructions about the model's answers, in files.

use std::path::{Path, PathBuf};

use crate::{
    ExtensionOrigin, ExtensionPlaces, ExtensionWarning,
    bounded_read::{self, MAX_LENGTH},
    front_matter,
};

/// The name of the default style.
pub const DEFAULT: &str = "default";

/// An output style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    /// The name for choosing it.
    pub name: String,
    /// The description for users.
    pub description: String,
    /// Whether haft's own coding instructions stay in the system prompt.
    pub keep_coding_instructions: bool,
    /// The text that is added to the system prompt.
    pub text: String,
    /// Its source.
    pub origin: ExtensionOrigin,
    /// Its file.
    pub file: PathBuf,
}

/// Returns the built-in styles.
fn built_in() -> [OutputStyle; 2] {
    let style = |name: &str, description: &str, text: &str| OutputStyle {
        name: name.to_owned(),
        description: description.to_owned(),
        keep_coding_instructions: true,
        text: text.trim().to_owned(),
        origin: ExtensionOrigin::BuiltIn,
        file: PathBuf::new(),
    };
    [
        style(
            "Explanatory",
            "Explains choices and how the code works on the way",
            include_str!("styles/explanatory.md"),
        ),
        style(
            "Learning",
            "Leaves small, instructive parts for you to write",
            include_str!("styles/learning.md"),
        ),
    ]
}

/// Loads all output styles, sorted by name; if several have the same name, the one with the highest
/// priority is used.
pub fn load(places: &ExtensionPlaces) -> (Vec<OutputStyle>, Vec<ExtensionWarning>) {
    let mut styles: Vec<OutputStyle> = Vec::new();
    let mut warnings = Vec::new();
    let mut folders = vec![(places.managed.join(".claude"), ExtensionOrigin::Managed)];
    let project = places.project_folders().into_iter();
    folders.extend(project.map(|folder| (folder, ExtensionOrigin::Project)));
    if places.sources.user {
        folders.push((places.user.clone(), ExtensionOrigin::User));
    }
    for (folder, origin) in folders {
        let folder = folder.join("output-styles");
        for file in bounded_read::markdown_below(&folder, &mut warnings) {
            match read(&file, origin, &mut warnings) {
                Some(style) if !styles.iter().any(|known| known.name == style.name) => {
                    styles.push(style);
                }
                _ => {}
            }
        }
    }
    let is_new = |style: &OutputStyle| !styles.iter().any(|known| known.name == style.name);
    let own: Vec<OutputStyle> = built_in().into_iter().filter(is_new).collect();
    styles.extend(own);
    styles.sort_by(|a, b| a.name.cmp(&b.name));
    (styles, warnings)
}

fn read(
    file: &Path,
    origin: ExtensionOrigin,
    warnings: &mut Vec<ExtensionWarning>,
) -> Option<OutputStyle> {
    let text = match bounded_read::read(file, MAX_LENGTH) {
        Ok(text) => text?,
        Err(error) => {
            warnings.push(ExtensionWarning::new(file, error.to_string()));
            return None;
        }
    };
    let parsed = front_matter::parse(&text.text);
    if let Some(fault) = &parsed.error {
        let what = format!("{}: only the text below it is used", fault.message);
        warnings.push(ExtensionWarning::new(file, what).with_line(fault.line));
    }
    parsed.warn_of_duplicate_key(file, warnings);
    let head = &parsed.head;
    let named = || Some(file.file_stem()?.to_string_lossy().into_owned());
    Some(OutputStyle {
        name: head.text("name").or_else(named)?,
        description: head.text("description").unwrap_or_default(),
        keep_coding_instructions: head.boolean("keep-coding-instructions").unwrap_or(false),
        text: parsed.body.trim().to_owned(),
        origin,
        file: file.to_path_buf(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::extension_places::tests::places;

    #[test]
    fn styles_of_the_project_and_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        let write = |folder: PathBuf, text: &str| {
            fs::create_dir_all(folder.join("output-styles")).unwrap();
            fs::write(folder.join("output-styles/terse.md"), text).unwrap();
        };
        write(places.user.clone(), "---\nname: Short\n---\nmine");
        write(
            places.cwd.join(".claude"),
            "---\ndescription: d\nkeep-coding-instructions: yes\n---\n\nBe brief.\n",
        );
        let (styles, warnings) = load(&places);
        assert_eq!(warnings, []);
        let own = |style: &&OutputStyle| style.origin != ExtensionOrigin::BuiltIn;
        let told: Vec<_> = styles
            .iter()
            .filter(own)
            .map(|style| {
                (
                    style.name.as_str(),
                    style.text.as_str(),
                    style.keep_coding_instructions,
                )
            })
            .collect();
        assert_eq!(
            told,
            [("Short", "mine", false), ("terse", "Be brief.", true)]
        );
        let names: Vec<_> = styles.iter().map(|style| style.name.as_str()).collect();
        assert_eq!(names, ["Explanatory", "Learning", "Short", "terse"]);
    }
}
