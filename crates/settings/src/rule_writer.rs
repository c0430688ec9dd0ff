//! Writing to settings files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use haft_contract::{CallId, RuleDestination, RuleList, RuleScope};
use serde_json::Value;

use super::{
    SettingsDocument, SettingsPlaces, document,
    files::{LOCAL, local_root},
    own_writes, rule_lists,
};

/// Saves rules that the user approved: in the local settings file, or in the file of another scope.
#[derive(Debug, Clone)]
pub struct LocalRules {
    /// The folders of settings files.
    pub places: SettingsPlaces,
}

impl LocalRules {
    /// Returns the local settings file.
    pub fn file(&self) -> PathBuf {
        local_root(&self.places).join(LOCAL)
    }

    /// Adds allow rules to the local file; everything else in it is preserved. They apply from now
    /// on, even if other settings in the file need trust.
    pub fn add(&self, rules: &[String]) -> Result<(), String> {
        let directory = local_root(&self.places);
        own_writes::change_local(&self.places, &directory, rules, |old| {
            rule_lists::with_rules(old, "allow", rules)
        })
    }

    /// Returns the file of a scope; `None` for the session.
    pub fn file_of(&self, scope: RuleScope) -> Option<PathBuf> {
        match scope {
            RuleScope::Session => None,
            RuleScope::Local => Some(self.file()),
            RuleScope::Project => Some(self.places.cwd.join(".claude/settings.json")),
            RuleScope::User => Some(self.places.user.join("settings.json")),
        }
    }

    /// Returns the destinations for rules, the default first.
    pub fn rule_places(&self) -> Vec<RuleDestination> {
        let scopes = [
            RuleScope::Local,
            RuleScope::Project,
            RuleScope::User,
            RuleScope::Session,
        ];
        let file = |scope| self.file_of(scope);
        let places = scopes.map(|scope| RuleDestination {
            scope,
            file: file(scope),
        });
        places.into()
    }

    /// Adds rules to a list in the file of a scope; everything else is preserved. Returns the file.
    pub fn add_to(
        &self,
        scope: RuleScope,
        list: RuleList,
        rules: &[String],
    ) -> Result<Option<PathBuf>, String> {
        let agreed = match list {
            RuleList::Allow => rules,
            RuleList::Ask | RuleList::Deny => &[],
        };
        // Files of the workspace cannot declare wrappers.
        let (wrappers, rules): (Vec<String>, Vec<String>) = rules
            .iter()
            .cloned()
            .partition(|rule| rule_lists::wrapper(rule).is_some());
        let mut file = None;
        if !wrappers.is_empty() && scope != RuleScope::Session {
            file = self.change(RuleScope::User, &[], |old| {
                rule_lists::with_rules(old, list.name(), &wrappers)
            })?;
        }
        if rules.is_empty() {
            return Ok(file);
        }
        self.change(scope, agreed, |old| {
            rule_lists::with_rules(old, list.name(), &rules)
        })
    }

    /// Removes a rule from a list in the file of a scope. Returns the file.
    pub fn remove_from(
        &self,
        scope: RuleScope,
        list: RuleList,
        rule: &str,
    ) -> Result<Option<PathBuf>, String> {
        self.change(scope, &[], |old| without_rule(old, list.name(), rule))
    }

    /// Replaces rules of a list in the file of a scope; everything else is preserved. Returns the
    /// file.
    pub fn replace_in(
        &self,
        scope: RuleScope,
        list: RuleList,
        removed: &[String],
        added: &[String],
    ) -> Result<Option<PathBuf>, String> {
        self.change(scope, added, |old| {
            let text = document::without_rules(old, list.name(), removed)?;
            match added {
                [] => Ok(text),
                added => rule_lists::with_rules(&text, list.name(), added),
            }
        })
    }

    fn change(
        &self,
        scope: RuleScope,
        agreed: &[String],
        change: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Option<PathBuf>, String> {
        let Some(file) = self.file_of(scope) else {
            return Ok(None);
        };
        if scope == RuleScope::Local {
            let directory = local_root(&self.places);
            own_writes::change_local(&self.places, &directory, agreed, change)?;
        } else {
            // The project's folder belongs to the workspace: a link in it would decide where we
            // write.
            let is_linked = |path: &Path| path.symlink_metadata().is_ok_and(|is| is.is_symlink());
            let folder = file.parent();
            if scope == RuleScope::Project && (is_linked(&file) || folder.is_some_and(is_linked)) {
                return Err("it is reached through a link".to_owned());
            }
            let old = document::read(&file)?.unwrap_or_default();
            replace(&file, &change(&old)?).map_err(|error| error.to_string())?;
        }
        Ok(Some(file))
    }
}

/// Returns the text of a settings file without a rule; everything else is preserved.
fn without_rule(text: &str, list: &str, rule: &str) -> Result<String, String> {
    let document = SettingsDocument::parse(text).map_err(|broken| broken.to_string())?;
    let known = document.value["permissions"][list].as_array();
    let known = known.map(Vec::as_slice).unwrap_or_default();
    let is_meant = |one: &&Value| one.as_str().is_some_and(|text| text.trim() == rule.trim());
    if !known.iter().any(|one| is_meant(&one)) {
        return Err(format!("it has no {list} rule {rule}"));
    }
    let left = known.iter().filter(|one| !is_meant(one)).cloned().collect();
    document::with_value(text, &["permissions", list], &Value::Array(left))
}

/// Replaces a file atomically; folders are created if needed.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    // A new file with an unpredictable name, so no link can have this name.
    let partial = folder.join(format!(".{}.partial", CallId::new()));
    let write = || {
        let mut file = File::create_new(&partial)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        fs::rename(&partial, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(folder: &Path) -> LocalRules {
        LocalRules {
            places: SettingsPlaces {
                cwd: folder.join("p"),
                home: folder.join("home"),
                user: folder.join("home/.claude"),
                managed: folder.join("managed"),
            },
        }
    }

    #[test]
    fn a_rule_is_kept_where_the_person_wants_it_and_taken_out_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        fs::create_dir(folder.join("p")).unwrap();
        let kept = rules(&folder);
        let rule = vec!["Bash(npm *)".to_owned()];
        for scope in [RuleScope::Local, RuleScope::Project, RuleScope::User] {
            let file = kept.add_to(scope, RuleList::Allow, &rule).unwrap();
            let file = file.unwrap();
            assert_eq!(Some(&file), kept.file_of(scope).as_ref());
            assert!(fs::read_to_string(&file).unwrap().contains("Bash(npm *)"));
            let other = kept.remove_from(scope, RuleList::Deny, &rule[0]);
            assert!(other.unwrap_err().contains("no deny rule"));
            kept.remove_from(scope, RuleList::Allow, &rule[0]).unwrap();
            assert!(!fs::read_to_string(&file).unwrap().contains("npm"));
        }
        let session = kept.add_to(RuleScope::Session, RuleList::Allow, &rule);
        assert_eq!(session, Ok(None));
    }

    #[test]
    fn a_link_in_the_workspace_does_not_say_where_we_write() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        fs::create_dir(folder.join("p")).unwrap();
        fs::create_dir(folder.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("p/.claude")).unwrap();
        let rule = vec!["Read".to_owned()];
        let kept = rules(&folder).add_to(RuleScope::Project, RuleList::Allow, &rule);
        assert!(kept.is_err());
        assert_eq!(fs::read_dir(folder.join("elsewhere")).unwrap().count(), 0);
    }
}
