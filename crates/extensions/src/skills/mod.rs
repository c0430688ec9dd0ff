//! Skills and commands: instructions that are listed by what they are for, and read when they are called.

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
    definition::{Found, command_name},
    ledger::Ledger,
};
use crate::{
    ExtensionOrigin, ExtensionPlaces, ExtensionPlugin, Warning,
    patterns::Patterns,
    reading::{self, real},
};

pub use arguments::words;
pub use definition::Skill;
pub use render::{SkillCall, SkillPart, render};
pub use settings::{Override, SkillSettings};

/// Of one folder no more skills than this are looked at.
const MOST: usize = 1000;

/// A folder of this name belongs to others.
const RESERVED: &str = "synced";

/// The skills and commands of a session. More are found as files are read.
#[derive(Debug)]
pub struct Skills {
    places: ExtensionPlaces,
    settings: SkillSettings,
    state: Mutex<SkillsState>,
}

#[derive(Debug, Default)]
struct SkillsState {
    /// From strong to weak; of one name there is one.
    found: Vec<Arc<Skill>>,
    /// Folders that were read, links followed.
    seen: HashSet<PathBuf>,
    /// Directories below the working directory that were looked into.
    entered: HashSet<PathBuf>,
    /// Those with patterns of which a file was read.
    active: BTreeSet<String>,
    /// What the model has read.
    read: Ledger,
    /// The plugins, where they are not those of the start any more.
    plugins: Option<Vec<ExtensionPlugin>>,
    /// What tells one version of a file from another, as it was when it was looked at last.
    stamps: BTreeMap<PathBuf, SkillStamp>,
    /// Files whose change someone objects to: their skills cannot be called.
    held: HashSet<PathBuf>,
}

/// Which file it is, how long it is, and when it and anything about it changed.
type SkillStamp = Option<(u64, u64, [i64; 4])>;

fn skill_stamp(file: &Path) -> SkillStamp {
    let is = fs::metadata(file).ok()?;
    let times = [is.mtime(), is.mtime_nsec(), is.ctime(), is.ctime_nsec()];
    Some((is.ino(), is.len(), times))
}

impl Skills {
    /// Finds them.
    pub fn load(places: ExtensionPlaces, settings: SkillSettings) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let state = find(&places, &settings, &mut warnings);
        let skills = Self {
            places,
            settings,
            state: Mutex::new(state),
        };
        (skills, warnings)
    }

    /// All of them, in order of their names.
    pub fn all(&self) -> Vec<Arc<Skill>> {
        let mut all = self.state().found.clone();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// One by its name; a command in a folder also by the last part of it. Where there is none, it is
    /// looked for again: it may just have been written.
    pub fn get(&self, name: &str) -> Option<Arc<Skill>> {
        let known = self.known(name);
        if known.is_some() {
            return known;
        }
        let mut fresh = find(&self.places_now(), &self.settings, &mut Vec::new());
        {
            let mut state = self.state();
            let added = fresh.found.drain(..).filter(|skill| {
                let mut found = state.found.iter();
                !found.any(|known| known.name == skill.name)
            });
            let added: Vec<_> = added.collect();
            state.found.extend(added);
        }
        self.known(name)
    }

    /// Looks for all of them again: new ones, changed ones, and those that are gone.
    pub fn reload(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut fresh = find(&self.places_now(), &self.settings, &mut warnings);
        let mut state = self.state();
        for directory in std::mem::take(&mut state.entered) {
            self.enter(&directory, &mut fresh, &mut warnings);
            fresh.entered.insert(directory);
        }
        fresh.active = std::mem::take(&mut state.active);
        fresh.read = std::mem::take(&mut state.read);
        fresh.plugins = state.plugins.take();
        fresh.stamps = std::mem::take(&mut state.stamps);
        fresh.held = std::mem::take(&mut state.held);
        *state = fresh;
        warnings
    }

    /// The files of skills that have changed since this was last asked; a few `stat` calls.
    pub fn changed_files(&self) -> Vec<PathBuf> {
        let mut state = self.state();
        let is_first = state.stamps.is_empty();
        let files: Vec<PathBuf> = state.found.iter().map(|skill| skill.file.clone()).collect();
        let mut changed = Vec::new();
        for file in files {
            let now = skill_stamp(&file);
            let before = state.stamps.insert(file.clone(), now);
            // One that was not known yet is new, not changed.
            if !is_first && before.is_some_and(|before| before != now) {
                changed.push(file);
            }
        }
        changed
    }

    /// Someone objects to how this file has changed, or no longer does.
    pub fn hold(&self, file: &Path, objects: bool) {
        let mut state = self.state();
        match objects {
            true => state.held.insert(file.to_path_buf()),
            false => state.held.remove(file),
        };
    }

    /// Does someone object to what it says now?
    pub fn is_held(&self, skill: &Skill) -> bool {
        self.state().held.contains(&skill.file)
    }

    /// The same with these plugins in place of those there were.
    pub fn reload_with(&self, plugins: Vec<ExtensionPlugin>) -> Vec<Warning> {
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

    fn known(&self, name: &str) -> Option<Arc<Skill>> {
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

    /// Names that someone may have meant, the nearest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        let mut near: Vec<(usize, String)> = self
            .all()
            .iter()
            .filter_map(|skill| {
                let distance = strsim::damerau_levenshtein(name, &skill.name);
                let holds = !name.is_empty() && skill.name.contains(name);
                // Half of a short word is another word.
                let is_near = distance <= 1 + name.chars().count() / 5;
                (is_near || holds).then(|| (distance, skill.name.clone()))
            })
            .collect();
        near.sort_unstable();
        near.into_iter().take(5).map(|(_, name)| name).collect()
    }

    /// What the model reads about those it may call; `None` if there are none. `window` is what it can
    /// read, in tokens.
    pub fn listing(&self, window: u64) -> Option<String> {
        let all = self.all();
        let state = self.state();
        let listed: Vec<&Skill> = all
            .iter()
            .filter(|skill| skill.model_invocable)
            .filter(|skill| skill.paths.is_empty() || state.active.contains(&skill.name))
            .map(Arc::as_ref)
            .collect();
        self.told(&listed, window)
    }

    /// What the model reads about skills that came to light.
    pub fn told(&self, skills: &[&Skill], window: u64) -> Option<String> {
        if skills.is_empty() {
            return None;
        }
        let budget = self.settings.budget(window);
        let longest = self.settings.longest_description;
        Some(listing::lines(skills, longest, budget))
    }

    /// A file was read or changed: skills that come to light by it, those that the model may call.
    pub fn touched(&self, file: &Path) -> (Vec<Arc<Skill>>, Vec<Warning>) {
        let mut warnings = Vec::new();
        let mut new = Vec::new();
        let mut state = self.state();
        if let Ok(below) = file.strip_prefix(&self.places.cwd)
            && self.places.sources.project
        {
            let mut directory = self.places.cwd.clone();
            for part in below.parent().into_iter().flat_map(Path::iter) {
                directory.push(part);
                if state.entered.insert(directory.clone()) {
                    new.extend(self.enter(&directory, &mut state, &mut warnings));
                }
            }
        }
        let known: Vec<Arc<Skill>> = state.found.clone();
        for skill in known {
            if skill.paths.is_empty() || state.active.contains(&skill.name) {
                continue;
            }
            let patterns = Patterns::new(&skill.paths, &base(&skill, &self.places));
            if patterns.fit(file) {
                state.active.insert(skill.name.clone());
                new.push(skill);
            }
        }
        new.retain(|skill| {
            skill.model_invocable && (skill.paths.is_empty() || state.active.contains(&skill.name))
        });
        (new, warnings)
    }

    /// The skills of a directory below the working directory.
    fn enter(
        &self,
        directory: &Path,
        state: &mut SkillsState,
        warnings: &mut Vec<Warning>,
    ) -> Vec<Arc<Skill>> {
        let mut finder = Finder {
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

    /// Folders of skills that lie outside the project and are the user's own: their files may be read
    /// like the skill itself. Real paths.
    pub fn readable_folders(&self) -> Vec<PathBuf> {
        let folders = self.all();
        let folders = folders
            .iter()
            // What a project links to is not the project's to open.
            .filter(|skill| skill.origin != ExtensionOrigin::Project)
            .filter_map(|skill| real(skill.folder.as_deref()?));
        let folders: BTreeSet<PathBuf> = folders.collect();
        folders.into_iter().collect()
    }

    /// The model is about to read what a skill says. `false`: it has these very words before it.
    pub fn note_read(&self, name: &str, text: &str) -> bool {
        self.state().read.note(name, text)
    }

    /// The conversation is forgotten, and so is what was read.
    pub fn forget_read(&self) {
        self.state().read = Ledger::default();
    }

    /// The conversation was summarized: what the model has read of skills and must not lose, the latest
    /// first, for a reminder.
    pub fn carry_over(&self) -> Option<String> {
        let read = self.state().read.carry_over();
        let texts: Vec<String> = read
            .into_iter()
            .map(|(name, text)| format!("The skill {name} was called before:\n\n{text}"))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// What the settings say.
    pub fn settings(&self) -> &SkillSettings {
        &self.settings
    }

    /// Where they were looked for.
    pub fn places(&self) -> &ExtensionPlaces {
        &self.places
    }

    fn state(&self) -> MutexGuard<'_, SkillsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the patterns of a skill start: at the directory that holds its `.claude`, if that is the
/// project's.
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

fn find(
    places: &ExtensionPlaces,
    settings: &SkillSettings,
    warnings: &mut Vec<Warning>,
) -> SkillsState {
    let mut finder = Finder {
        settings,
        state: SkillsState::default(),
        warnings,
    };
    // From strong to weak; skills before commands, so that a skill of the same name wins.
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

struct Finder<'a> {
    settings: &'a SkillSettings,
    state: SkillsState,
    warnings: &'a mut Vec<Warning>,
}

impl Finder<'_> {
    fn skills(
        &mut self,
        folder: &Path,
        origin: ExtensionOrigin,
        plugin: Option<&(String, PathBuf)>,
    ) {
        let entries = reading::entries(folder, MOST);
        if entries.len() > MOST {
            let what = format!("it holds more than {MOST} skills: the rest is left out");
            self.warnings.push(Warning::of(folder, what));
        }
        for folder in entries.into_iter().take(MOST) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let file = folder.join("SKILL.md");
            if name == RESERVED || !folder.is_dir() {
                continue;
            }
            // One that is linked to twice is one.
            let is_new = real(&folder).is_some_and(|real| self.state.seen.insert(real));
            if !is_new {
                continue;
            }
            let name = match plugin {
                Some((plugin, _)) => format!("{plugin}:{name}"),
                None => name.into_owned(),
            };
            self.read(Found {
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
        for file in reading::markdown_below(folder, self.warnings) {
            let Some(name) = command_name(folder, &file) else {
                continue;
            };
            let name = match plugin {
                Some((plugin, _)) => format!("{plugin}:{name}"),
                None => name,
            };
            self.read(Found {
                name,
                file,
                folder: None,
                origin,
                plugin: plugin.cloned(),
            });
        }
    }

    fn read(&mut self, found: Found) {
        let file = found.file.clone();
        let skill = match Skill::read(found, self.warnings) {
            Ok(Some((skill, _))) => skill,
            Ok(None) => return,
            Err(error) => {
                let what = format!("it cannot be read: {error}");
                self.warnings.push(Warning::of(file, what));
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
