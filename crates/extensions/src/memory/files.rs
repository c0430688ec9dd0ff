//! Reading memory files and the files that they import.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use haft_settings::UntrustedDirectories;

use super::{
    AgentsMd, ConditionalRule, MemoryFile, MemoryOptions, MemoryOwner, MemoryReason, MemoryState,
    excluded,
};
use crate::{
    ExtensionPlaces, ExtensionWarning,
    bounded_read::{self, MAX_LENGTH, real},
    front_matter,
    markdown::{mentions, without_comments},
    patterns::PathPatterns,
};

/// The maximum depth of imports.
const MAX_IMPORT_DEPTH: usize = 4;

/// The maximum number of imports in one file.
const MAX_IMPORTS: usize = 100;

/// The maximum size of all memory files together, in bytes, so that space remains for the task
/// itself.
const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// The maximum number of files that are opened.
const MAX_FILES: usize = 1000;

/// The maximum number of lines of auto memory; `KEPT_BYTES` is the maximum size.
const KEPT_LINES: usize = 200;
const KEPT_BYTES: usize = 25 * 1024;

pub(super) struct MemoryReader<'a> {
    places: &'a ExtensionPlaces,
    options: &'a MemoryOptions,
    state: &'a mut MemoryState,
    excluded: PathPatterns,
    untrusted: UntrustedDirectories,
    /// The project's root with links resolved.
    root: PathBuf,
    files: Vec<MemoryFile>,
    warnings: Vec<ExtensionWarning>,
}

impl<'a> MemoryReader<'a> {
    pub(super) fn new(
        places: &'a ExtensionPlaces,
        options: &'a MemoryOptions,
        state: &'a mut MemoryState,
    ) -> Self {
        let root = places.project();
        Self {
            root: real(&root).unwrap_or(root),
            excluded: excluded(options),
            untrusted: places.untrusted(),
            places,
            options,
            state,
            files: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn into_parts(self) -> (Vec<MemoryFile>, Vec<ExtensionWarning>) {
        (self.files, self.warnings)
    }

    /// Reads all files that are loaded at the start.
    pub(super) fn start(&mut self) {
        let sources = self.places.sources;
        if let Some(text) = &self.options.managed_text {
            self.add_file(
                None,
                MemoryOwner::Managed,
                MemoryReason::Start,
                text.clone(),
                Vec::new(),
            );
        }
        let managed = self.places.managed.join("CLAUDE.md");
        self.read_file(&managed, MemoryOwner::Managed, &MemoryReason::Start);
        if sources.user {
            let user = self.places.user.clone();
            self.read_file(
                &user.join("CLAUDE.md"),
                MemoryOwner::User,
                &MemoryReason::Start,
            );
            self.read_rules(&user.join("rules"), MemoryOwner::User, &MemoryReason::Start);
        }
        let above: Vec<&Path> = self.places.cwd.ancestors().collect();
        for directory in above.into_iter().rev() {
            self.read_directory(directory, &MemoryReason::Start);
        }
        if self.options.include_directories {
            for directory in self.places.directories.clone() {
                self.read_directory(&directory, &MemoryReason::Start);
            }
        }
        if let Some(kept) = self.options.auto_memory.clone() {
            self.read_auto_memory(&kept);
        }
    }

    /// Reads the files of one directory.
    pub(super) fn read_directory(&mut self, directory: &Path, reason: &MemoryReason) {
        let sources = self.places.sources;
        if sources.project && self.is_trusted_directory(directory) {
            let claude = directory.join("CLAUDE.md");
            let hidden = directory.join(".claude/CLAUDE.md");
            let reads_agents = match self.options.agents_md {
                AgentsMd::Always => true,
                AgentsMd::Fallback => !claude.exists() && !hidden.exists(),
                AgentsMd::Never => false,
            };
            if reads_agents {
                self.read_file(&directory.join("AGENTS.md"), MemoryOwner::Project, reason);
            }
            self.read_file(&claude, MemoryOwner::Project, reason);
            // The user's own folder is never part of the project, even if the project contains it.
            if real(&directory.join(".claude")) != real(&self.places.user) {
                self.read_file(&hidden, MemoryOwner::Project, reason);
                self.read_rules(
                    &directory.join(".claude/rules"),
                    MemoryOwner::Project,
                    reason,
                );
            }
        }
        if sources.local && self.is_trusted_directory(directory) {
            self.read_file(
                &directory.join("CLAUDE.local.md"),
                MemoryOwner::Local,
                reason,
            );
        }
    }

    /// Returns whether files of a directory may be used. Outside the project, a directory is used
    /// only if it belongs to the user or to root and is not world-writable: any user can put files
    /// into a directory such as `/tmp`.
    fn is_trusted_directory(&self, directory: &Path) -> bool {
        if real(directory).is_some_and(|real| real.starts_with(&self.root)) {
            return true;
        }
        let own = rustix::process::geteuid().as_raw();
        fs::metadata(directory).is_ok_and(|metadata| {
            let others_write = metadata.mode() & 0o002 != 0;
            [own, 0].contains(&metadata.uid()) && !others_write
        })
    }

    /// Reads rules: those without patterns immediately, the others when a matching file is read.
    fn read_rules(&mut self, folder: &Path, owner: MemoryOwner, reason: &MemoryReason) {
        for path in bounded_read::markdown_below(folder, &mut self.warnings) {
            let Some(text) = self.read_permitted(&path, owner, folder) else {
                continue;
            };
            let parsed = front_matter::parse(&text);
            if let Some(fault) = &parsed.error {
                let what = format!("{}: the rule is used for all files", fault.message);
                self.warnings
                    .push(ExtensionWarning::new(&path, what).with_line(fault.line));
            }
            parsed.warn_of_duplicate_key(&path, &mut self.warnings);
            let written = parsed.head.patterns("paths").unwrap_or_default();
            if written.is_empty() {
                self.with_imports(&path, owner, reason.clone(), parsed.body, &[folder]);
                continue;
            }
            let base = match folder.parent().and_then(Path::parent) {
                Some(directory) if owner == MemoryOwner::Project => directory,
                _ => &self.places.cwd,
            };
            self.state.waiting.push(ConditionalRule {
                patterns: PathPatterns::new(&written, base),
                path,
                owner,
                written,
                text: parsed.body.to_owned(),
            });
        }
    }

    /// Reads the rules that wait for this file.
    pub(super) fn load_matching_rules(&mut self, file: &Path) {
        let (awake, waiting) = std::mem::take(&mut self.state.waiting)
            .into_iter()
            .partition(|rule: &ConditionalRule| rule.patterns.is_match(file));
        self.state.waiting = waiting;
        for rule in awake {
            let at = self.files.len();
            let reason = MemoryReason::Pattern(file.to_path_buf());
            let home = rule.path.parent().unwrap_or(&rule.path);
            self.with_imports(&rule.path, rule.owner, reason, &rule.text, &[home]);
            if let Some(told) = self.files.get_mut(at) {
                told.patterns = rule.written;
            }
        }
    }

    fn read_auto_memory(&mut self, path: &Path) {
        let text = match bounded_read::read(path, KEPT_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(error) => {
                self.warnings
                    .push(ExtensionWarning::new(path, error.to_string()));
                return;
            }
        };
        let mut head: Vec<&str> = text.text.lines().take(KEPT_LINES).collect();
        if text.is_cut || text.text.lines().nth(KEPT_LINES).is_some() {
            head.push("[the rest of this file is left out]");
        }
        let path = Some(path.to_path_buf());
        self.add_file(
            path,
            MemoryOwner::Auto,
            MemoryReason::Start,
            head.join("\n"),
            Vec::new(),
        );
    }

    /// Reads one file and its imports.
    fn read_file(&mut self, path: &Path, owner: MemoryOwner, reason: &MemoryReason) {
        let home = path.parent().unwrap_or(path);
        if let Some(text) = self.read_permitted(path, owner, home) {
            self.with_imports(path, owner, reason.clone(), &text, &[home]);
        }
    }

    /// Adds a text and its imports. `chain` has the directory of the first file, followed by the
    /// files whose imports led to this text.
    fn with_imports(
        &mut self,
        path: &Path,
        owner: MemoryOwner,
        reason: MemoryReason,
        text: &str,
        chain: &[&Path],
    ) {
        if let Some(real) = real(path)
            && !self.state.seen.insert(real)
        {
            return;
        }
        let text = without_comments(text);
        let named = Some(path.to_path_buf());
        let is_deepest = chain.len() > MAX_IMPORT_DEPTH;
        if !self.add_file(named, owner, reason, text.clone(), Vec::new()) || is_deepest {
            return;
        }
        let further = [chain, &[path]].concat();
        for import in mentions(&text).into_iter().take(MAX_IMPORTS) {
            let Some(target) = self.resolve(import, path) else {
                continue;
            };
            // Text like `@name` is not a file name and stays unchanged.
            let Some(real) = real(&target).filter(|real| real.is_file()) else {
                continue;
            };
            if self.is_untrusted(&real, owner) || !self.may_read(&target, &real, owner) {
                continue;
            }
            if self.is_outside(&real, owner, chain[0]) {
                self.state.left_out.insert(real);
                let what = format!(
                    "the import @{import} is outside the project and is left out: the user has not \
                     approved it. `haft permissions trust` shows it and asks"
                );
                self.warnings.push(ExtensionWarning::new(path, what));
                continue;
            }
            if let Some(text) = self.text(&target, &real) {
                let reason = MemoryReason::Import(path.to_path_buf());
                self.with_imports(&target, owner, reason, &text, &further);
            }
        }
    }

    fn resolve(&self, import: &str, by: &Path) -> Option<PathBuf> {
        let path = match import.strip_prefix("~/") {
            Some(below) => self.places.home.join(below),
            None => by.parent()?.join(import),
        };
        Some(path)
    }

    /// Returns whether a real path is outside the project although a project file refers to it. A
    /// file above the project may use files in its own directory, `home`.
    fn is_outside(&self, target: &Path, owner: MemoryOwner, home: &Path) -> bool {
        let approved =
            self.options.outside_imports || self.options.approved_imports.contains(target);
        if approved || !matches!(owner, MemoryOwner::Project | MemoryOwner::Local) {
            return false;
        }
        let home = real(home).filter(|home| self.root.starts_with(home));
        let directories = self.places.directories.iter().filter_map(|path| real(path));
        let mut roots = [self.root.clone()]
            .into_iter()
            .chain(home)
            .chain(directories);
        !roots.any(|root| target.starts_with(root))
    }

    /// Returns the text of a file if it may be read. The file is checked and opened by the same
    /// real path.
    fn read_permitted(&mut self, path: &Path, owner: MemoryOwner, home: &Path) -> Option<String> {
        let real = real(path)?;
        if self.is_untrusted(&real, owner)
            || !self.may_read(path, &real, owner)
            || self.is_outside(&real, owner, home)
        {
            return None;
        }
        self.text(path, &real)
    }

    /// Returns whether a file must not be used, because a command created its directory and the user has
    /// not trusted it.
    fn is_untrusted(&self, real: &Path, owner: MemoryOwner) -> bool {
        matches!(owner, MemoryOwner::Project | MemoryOwner::Local) && self.untrusted.include(real)
    }

    fn may_read(&self, path: &Path, real: &Path, owner: MemoryOwner) -> bool {
        let is = |says: &dyn Fn(&Path) -> bool| [path, real].into_iter().any(says);
        if owner != MemoryOwner::Managed && is(&|path| self.excluded.is_match(path)) {
            return false;
        }
        !self
            .options
            .denied
            .as_ref()
            .is_some_and(|denied| is(&|path| denied(path)))
    }

    /// Returns the text of a file, unless it was already read or a limit is reached.
    fn text(&mut self, path: &Path, real: &Path) -> Option<String> {
        let is_known = self.state.seen.contains(real);
        if is_known || self.state.total > MAX_TOTAL_BYTES || self.state.opened == MAX_FILES {
            return None;
        }
        self.state.opened += 1;
        match bounded_read::read_real(real, MAX_LENGTH) {
            Ok(Some(text)) if text.is_cut => {
                let what = format!(
                    "it is longer than {} KiB: the rest is left out",
                    MAX_LENGTH >> 10
                );
                self.warnings.push(ExtensionWarning::new(path, what));
                Some(text.text + "\n[the rest of this file is left out]")
            }
            Ok(text) => Some(text?.text),
            Err(error) => {
                let what = format!("it cannot be read and is left out: {error}");
                self.warnings.push(ExtensionWarning::new(path, what));
                None
            }
        }
    }

    /// Adds a file; returns whether it was added.
    fn add_file(
        &mut self,
        path: Option<PathBuf>,
        owner: MemoryOwner,
        reason: MemoryReason,
        text: String,
        patterns: Vec<String>,
    ) -> bool {
        if text.trim().is_empty() {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        text.trim().hash(&mut hasher);
        if !self.state.texts.insert(hasher.finish()) {
            return false;
        }
        self.state.total += text.len();
        if self.state.total > MAX_TOTAL_BYTES {
            if !std::mem::replace(&mut self.state.has_warned, true) {
                self.warnings.push(ExtensionWarning {
                    file: path,
                    line: None,
                    message: format!(
                        "memory files are longer than {} KiB together: this one and what follows are \
                         left out",
                        MAX_TOTAL_BYTES >> 10
                    ),
                });
            }
            return false;
        }
        self.files.push(MemoryFile {
            path,
            owner,
            reason,
            text,
            patterns,
        });
        true
    }
}
