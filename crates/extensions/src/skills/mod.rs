//! Skills and commands: instructions that are listed with their purpose, and read when they are
//! called.

mod arguments;
mod definition;
mod ledger;
mod listing;
mod render;
mod settings;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use self::{
    definition::{FoundSkill, command_name},
    ledger::SkillReadLedger,
};
use crate::{
    ExtensionOrigin, ExtensionPlaces, ExtensionPlugin, ExtensionWarning,
    bounded_read::{self, real},
    patterns::PathPatterns,
};

pub use arguments::split_arguments;
pub use definition::Skill;
pub use render::{SkillCall, SkillPart, render};
pub use settings::{SkillOverride, SkillSettings};

/// The maximum number of skills in one folder.
const MAX_COUNT: usize = 1000;

/// A folder with this name is reserved for other programs.
const RESERVED: &str = "synced";

/// The skills and commands of a session. More are found when files are read.
#[derive(Debug)]
pub struct Skills {
    places: ExtensionPlaces,
    settings: SkillSettings,
    state: Mutex<SkillsState>,
}

#[derive(Debug, Default)]
struct SkillsState {
    /// By descending priority; names are unique.
    found: Vec<Arc<Skill>>,
    /// Folders that were read, with links resolved.
    seen: HashSet<PathBuf>,
    /// Directories below the working directory that were searched.
    entered: HashSet<PathBuf>,
    /// Skills with patterns that matched a file that was read.
    active: BTreeSet<String>,
    /// The skills that the model has read.
    read: SkillReadLedger,
    /// The plugins, if they were replaced since the start.
    plugins: Option<Vec<ExtensionPlugin>>,
    /// The file stamps at the time of the last check.
    stamps: BTreeMap<PathBuf, SkillStamp>,
    /// Files whose change a hook objected to: their skills cannot be called.
    vetoed: HashSet<PathBuf>,
}

/// Inode, size, and times of the last content and status change of a file.
type SkillStamp = Option<(u64, u64, [i64; 4])>;

fn skill_stamp(file: &Path) -> SkillStamp {
    let is = fs::metadata(file).ok()?;
    let times = [is.mtime(), is.mtime_nsec(), is.ctime(), is.ctime_nsec()];
    Some((is.ino(), is.len(), times))
}

impl Skills {
    /// Finds all skills and commands.
    pub fn load(places: ExtensionPlaces, settings: SkillSettings) -> (Self, Vec<ExtensionWarning>) {
        let mut warnings = Vec::new();
        let state = find_all(&places, &settings, &mut warnings);
        let skills = Self {
            places,
            settings,
            state: Mutex::new(state),
        };
        (skills, warnings)
    }

    /// Returns all skills, sorted by name.
    pub fn all(&self) -> Vec<Arc<Skill>> {
        let mut all = self.state().found.clone();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns a skill by its name; a command in a subfolder also by the last part of its name. If
    /// it is unknown, all folders are searched again, because it may have just been created.
    pub fn get(&self, name: &str) -> Option<Arc<Skill>> {
        let known = self.find_loaded(name);
        if known.is_some() {
            return known;
        }
        let mut fresh = find_all(&self.places_now(), &self.settings, &mut Vec::new());
        {
            let mut state = self.state();
            let added = fresh.found.drain(..).filter(|skill| {
                let mut found = state.found.iter();
                !found.any(|known| known.name == skill.name)
            });
            let added: Vec<_> = added.collect();
            state.found.extend(added);
        }
        self.find_loaded(name)
    }

    /// Searches all skills again: finds new, changed and removed ones.
    pub fn reload(&self) -> Vec<ExtensionWarning> {
        let mut warnings = Vec::new();
        let mut fresh = find_all(&self.places_now(), &self.settings, &mut warnings);
        let mut state = self.state();
        for directory in std::mem::take(&mut state.entered) {
            self.enter(&directory, &mut fresh, &mut warnings);
            fresh.entered.insert(directory);
        }
        fresh.active = std::mem::take(&mut state.active);
        fresh.read = std::mem::take(&mut state.read);
        fresh.plugins = state.plugins.take();
        fresh.stamps = std::mem::take(&mut state.stamps);
        fresh.vetoed = std::mem::take(&mut state.vetoed);
        *state = fresh;
        warnings
    }

    /// Returns the skill files that have changed since the last call; costs one `stat` call for
    /// each skill.
    pub fn changed_files(&self) -> Vec<PathBuf> {
        let mut state = self.state();
        let is_first = state.stamps.is_empty();
        let files: Vec<PathBuf> = state.found.iter().map(|skill| skill.file.clone()).collect();
        let mut changed = Vec::new();
        for file in files {
            let now = skill_stamp(&file);
            let before = state.stamps.insert(file.clone(), now);
            // A file that was not known before is new, not changed.
            if !is_first && before.is_some_and(|before| before != now) {
                changed.push(file);
            }
        }
        changed
    }

    /// Sets whether a hook objects to the change of a file.
    pub fn set_vetoed(&self, file: &Path, objects: bool) {
        let mut state = self.state();
        match objects {
            true => state.vetoed.insert(file.to_path_buf()),
            false => state.vetoed.remove(file),
        };
    }

    /// Returns whether a hook objects to the present content of the skill's file.
    pub fn is_vetoed(&self, skill: &Skill) -> bool {
        self.state().vetoed.contains(&skill.file)
    }

    /// Like [`Self::reload`], but with other plugins.
    pub fn reload_with(&self, plugins: Vec<ExtensionPlugin>) -> Vec<ExtensionWarning> {
        self.state().plugins = Some(plugins);
        self.reload()
    }

    fn places_now(&self) -> ExtensionPlaces {
        let plugins = self.state().plugins.clone();
        ExtensionPlaces {
            plugins: plugins.unwrap_or_else(|| self.places.plugins.clone()),
            ..self.places.clone()
        }
    }

    fn find_loaded(&self, name: &str) -> Option<Arc<Skill>> {
        let state = self.state();
        let mut found = state.found.iter();
        found
            .find(|skill| skill.name == name)
            .or_else(|| {
                let mut found = state.found.iter();
                found.find(|skill| skill.bare_name() == Some(name))
            })
            .cloned()
    }

    /// Returns similar names, the most similar first.
    pub fn similar_names(&self, name: &str) -> Vec<String> {
        let mut near: Vec<(usize, String)> = self
            .all()
            .iter()
            .filter_map(|skill| {
                let distance = strsim::damerau_levenshtein(name, &skill.name);
                let holds = !name.is_empty() && skill.name.contains(name);
                // For a short name, a distance of half its length would match unrelated names.
                let is_near = distance <= 1 + name.chars().count() / 5;
                (is_near || holds).then(|| (distance, skill.name.clone()))
            })
            .collect();
        near.sort_unstable();
        near.into_iter().take(5).map(|(_, name)| name).collect()
    }

    /// Returns the list of skills that the model may call; `None` if it is empty. `window` is
    /// the size of its context window in tokens.
    pub fn listing(&self, window: u64) -> Option<String> {
        let all = self.all();
        let state = self.state();
        let listed: Vec<&Skill> = all
            .iter()
            .filter(|skill| skill.model_invocable)
            .filter(|skill| skill.paths.is_empty() || state.active.contains(&skill.name))
            .map(Arc::as_ref)
            .collect();
        self.listing_for(&listed, window)
    }

    /// Formats the list entries of skills that were found later.
    pub fn listing_for(&self, skills: &[&Skill], window: u64) -> Option<String> {
        if skills.is_empty() {
            return None;
        }
        let budget = self.settings.budget(window);
        let longest = self.settings.max_description_length;
        Some(listing::lines(skills, longest, budget))
    }

    /// Returns the skills that become available because this file was read or changed, as far as
    /// the model may call them.
    pub fn on_file_touched(&self, file: &Path) -> (Vec<Arc<Skill>>, Vec<ExtensionWarning>) {
        let mut warnings = Vec::new();
        let mut new = Vec::new();
        let mut state = self.state();
        if let Ok(below) = file.strip_prefix(&self.places.cwd)
            && self.places.sources.project
        {
            let untrusted = self.places.untrusted();
            let mut directory = self.places.cwd.clone();
            for part in below.parent().into_iter().flat_map(Path::iter) {
                directory.push(part);
                if state.entered.insert(directory.clone()) && !untrusted.include(&directory) {
                    new.extend(self.enter(&directory, &mut state, &mut warnings));
                }
            }
        }
        let known: Vec<Arc<Skill>> = state.found.clone();
        for skill in known {
            if skill.paths.is_empty() || state.active.contains(&skill.name) {
                continue;
            }
            let patterns = PathPatterns::new(&skill.paths, &base(&skill, &self.places));
            if patterns.is_match(file) {
                state.active.insert(skill.name.clone());
                new.push(skill);
            }
        }
        new.retain(|skill| {
            skill.model_invocable && (skill.paths.is_empty() || state.active.contains(&skill.name))
        });
        (new, warnings)
    }

    /// Finds the skills of a directory below the working directory.
    fn enter(
        &self,
        directory: &Path,
        state: &mut SkillsState,
        warnings: &mut Vec<ExtensionWarning>,
    ) -> Vec<Arc<Skill>> {
        let mut finder = SkillFinder {
            settings: &self.settings,
            state: SkillsState {
                seen: std::mem::take(&mut state.seen),
                ..SkillsState::default()
            },
            warnings,
        };
        finder.skills(
            &directory.join(".claude/skills"),
            ExtensionOrigin::Project,
            None,
        );
        state.seen = finder.state.seen;
        let mut new = Vec::new();
        for skill in finder.state.found {
            let is_taken = state.found.iter().any(|known| known.name == skill.name);
            let skill = match (is_taken, directory.strip_prefix(&self.places.cwd)) {
                (true, Ok(below)) => {
                    let name = format!("{}:{}", below.display(), skill.name);
                    Arc::new(Arc::unwrap_or_clone(skill).renamed(name))
                }
                _ => skill,
            };
            state.found.push(Arc::clone(&skill));
            new.push(skill);
        }
        new
    }

    /// Returns the folders of skills outside the project, as real paths: their files may be read
    /// like the skill itself.
    pub fn readable_folders(&self) -> Vec<PathBuf> {
        let folders = self.all();
        let folders = folders
            .iter()
            // A link in the project must not make other folders readable.
            .filter(|skill| skill.origin != ExtensionOrigin::Project)
            .filter_map(|skill| real(skill.folder.as_deref()?));
        let folders: BTreeSet<PathBuf> = folders.collect();
        folders.into_iter().collect()
    }

    /// Records that the model is about to read a skill. Returns `false` if the same text is in its
    /// context.
    pub fn record_read(&self, name: &str, text: &str) -> bool {
        self.state().read.record(name, text)
    }

    /// Forgets what the model has read, because the conversation was cleared.
    pub fn clear_read(&self) {
        self.state().read = SkillReadLedger::default();
    }

    /// Returns the skill texts that the model must not lose by compaction, the latest first, for a
    /// reminder.
    pub fn carry_over(&self) -> Option<String> {
        let read = self.state().read.carry_over();
        let texts: Vec<String> = read
            .into_iter()
            .map(|(name, text)| format!("The skill {name} was called before:\n\n{text}"))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Returns the settings for skills.
    pub fn settings(&self) -> &SkillSettings {
        &self.settings
    }

    /// Returns the folders that are searched.
    pub fn places(&self) -> &ExtensionPlaces {
        &self.places
    }

    fn state(&self) -> MutexGuard<'_, SkillsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the base directory of a skill's patterns: the directory that contains its `.claude`, if
/// the skill belongs to the project.
fn base(skill: &Skill, places: &ExtensionPlaces) -> PathBuf {
    let above = skill
        .folder
        .as_deref()
        .and_then(|path| path.ancestors().nth(3));
    match above {
        Some(above) if skill.origin == ExtensionOrigin::Project => above.to_path_buf(),
        _ => places.cwd.clone(),
    }
}

fn find_all(
    places: &ExtensionPlaces,
    settings: &SkillSettings,
    warnings: &mut Vec<ExtensionWarning>,
) -> SkillsState {
    let mut finder = SkillFinder {
        settings,
        state: SkillsState::default(),
        warnings,
    };
    // By descending priority; skills before commands, so that a skill hides a
    // command with the same name.
    let mut folders = vec![(places.managed.join(".claude"), ExtensionOrigin::Managed)];
    if places.sources.user {
        folders.push((places.user.clone(), ExtensionOrigin::User));
    }
    let project = places.project_folders().into_iter();
    folders.extend(project.map(|folder| (folder, ExtensionOrigin::Project)));
    for (folder, origin) in &folders {
        finder.skills(&folder.join("skills"), *origin, None);
    }
    for (folder, origin) in &folders {
        finder.commands(&folder.join("commands"), *origin, None);
    }
    for plugin in &places.plugins {
        let named = (plugin.name.clone(), plugin.root.clone());
        finder.skills(
            &plugin.root.join("skills"),
            ExtensionOrigin::Plugin,
            Some(&named),
        );
        finder.commands(
            &plugin.root.join("commands"),
            ExtensionOrigin::Plugin,
            Some(&named),
        );
    }
    finder.state
}

struct SkillFinder<'a> {
    settings: &'a SkillSettings,
    state: SkillsState,
    warnings: &'a mut Vec<ExtensionWarning>,
}

impl SkillFinder<'_> {
    fn skills(
        &mut self,
        folder: &Path,
        origin: ExtensionOrigin,
        plugin: Option<&(String, PathBuf)>,
    ) {
        let entries = bounded_read::entries(folder, MAX_COUNT);
        if entries.len() > MAX_COUNT {
            let what = format!("it holds more than {MAX_COUNT} skills: the rest is left out");
            self.warnings.push(ExtensionWarning::new(folder, what));
        }
        for folder in entries.into_iter().take(MAX_COUNT) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let file = folder.join("SKILL.md");
            if name == RESERVED || !folder.is_dir() {
                continue;
            }
            // A skill that is linked twice is read once.
            let is_new = real(&folder).is_some_and(|real| self.state.seen.insert(real));
            if !is_new {
                continue;
            }
            let name = match plugin {
                Some((plugin, _)) => format!("{plugin}:{name}"),
                None => name.into_owned(),
            };
            self.read(FoundSkill {
                name,
                file,
                folder: Some(folder),
                origin,
                plugin: plugin.cloned(),
            });
        }
    }

    fn commands(
        &mut self,
        folder: &Path,
        origin: ExtensionOrigin,
        plugin: Option<&(String, PathBuf)>,
    ) {
        for file in bounded_read::markdown_below(folder, self.warnings) {
            let Some(name) = command_name(folder, &file) else {
                continue;
            };
            let name = match plugin {
                Some((plugin, _)) => format!("{plugin}:{name}"),
                None => name,
            };
            self.read(FoundSkill {
                name,
                file,
                folder: None,
                origin,
                plugin: plugin.cloned(),
            });
        }
    }

    fn read(&mut self, found: FoundSkill) {
        let file = found.file.clone();
        let skill = match Skill::read(found, self.warnings) {
            Ok(Some((skill, _))) => skill,
            Ok(None) => return,
            Err(error) => {
                let what = format!("it cannot be read: {error}");
                self.warnings.push(ExtensionWarning::new(file, what));
                return;
            }
        };
        let Some(skill) = self.settings.apply(skill) else {
            return;
        };
        let mut found = self.state.found.iter();
        if !found.any(|known| known.name == skill.name) {
            self.state.found.push(Arc::new(skill));
        }
    }
}

#[cfg(test)]
mod tests;
