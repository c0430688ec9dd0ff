//! Restores the rules of a confinement that another process sent as data.
//!
//! Until its rules are restored, a confinement is the strictest one. If its data cannot be parsed,
//! it stays that way.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use haft_contract::{
    Confinement, ControlFiles, ControlledFiles, HiddenFiles, HiddenFilter, HiddenRules,
    HomeControl, HostLists, HostPolicy, NetworkAccess,
};

use super::{
    home_control::{HomeRules, home_control},
    is_protected,
    rules::PathPattern,
    sandbox::{SettingsHosts, controlled},
};

/// Restores the rules of a confinement.
pub fn restore_rules(confinement: &mut Confinement) {
    if let Some(files) = confinement.control.files() {
        confinement.control = control(files);
    }
    if let NetworkAccess::ByRule(hosts) | NetworkAccess::Only(hosts) = &mut confinement.network {
        *hosts = restore_hosts(hosts.lists());
    }
}

/// Restores the rules of hidden files.
pub fn restore_hidden(files: HiddenFiles) -> HiddenFilter {
    if files == HiddenFiles::default() {
        return HiddenFilter::default();
    }
    match patterns(&files.patterns) {
        Ok(patterns) => HiddenFilter::from_rules(HiddenPaths {
            patterns,
            control: files.control,
            home: files.home,
        }),
        Err(_) => HiddenFilter::from_rules(files),
    }
}

/// Returns a filter for files that decide what other programs run, by their names and by their
/// places in a home that the session works in.
pub fn control_names(roots: &[PathBuf], home: Option<&Path>) -> HiddenFilter {
    static BY_NAME: LazyLock<HiddenFilter> =
        LazyLock::new(|| control_hidden(HomeControl::default()));
    let home = home_control(roots, home);
    match home.homes.is_empty() {
        true => BY_NAME.clone(),
        false => control_hidden(home),
    }
}

fn control_hidden(home: HomeControl) -> HiddenFilter {
    HiddenFilter::from_rules(HiddenPaths {
        patterns: Vec::new(),
        control: true,
        home,
    })
}

fn restore_hosts(lists: HostLists) -> HostPolicy {
    HostPolicy::from_evaluator(SettingsHosts::from_lists(&lists))
}

fn control(files: ControlledFiles) -> ControlFiles {
    let Ok(locked) = patterns(&files.locked) else {
        return ControlFiles::from_rules(files);
    };
    let control = controlled(files.roots, locked, files.permitted, files.home);
    match files.granted.is_empty() {
        true => control,
        false => control.except(files.granted),
    }
}

fn patterns(globs: &[haft_contract::PathGlob]) -> Result<Vec<PathPattern>, String> {
    globs.iter().map(PathPattern::from_glob).collect()
}

struct HiddenPaths {
    patterns: Vec<PathPattern>,
    control: bool,
    home: HomeControl,
}

impl HiddenRules for HiddenPaths {
    fn hides(&self, path: &Path) -> bool {
        self.patterns.iter().any(|pattern| pattern.covers(path))
            || (self.control && (is_protected(path) || self.home.is_control(path)))
    }

    fn files(&self) -> HiddenFiles {
        HiddenFiles {
            patterns: self.patterns.iter().map(PathPattern::glob).collect(),
            control: self.control,
            home: self.home.clone(),
        }
    }
}
