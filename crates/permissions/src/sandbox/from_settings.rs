//! Reads the sandbox settings from settings files.
//!
//! For flags, the file with the highest rank wins; lists are merged. Settings of an untrusted
//! workspace apply only if they are stricter. The others are left out and reported.

use std::path::PathBuf;

use haft_contract::SecretFile;
use haft_settings::{
    PatternBases, Settings, SettingsFile, SettingsProblem, SettingsScope, extend_unique, real_path,
    sandbox::{ALLOWING, LOOSENING, pointer, value},
};
use serde_json::Value;

use super::{ExcludedCommand, SandboxSettings, SettingsHost};
use crate::{
    is_protected,
    rules::{List, PathPattern, RuleClass},
};

/// The settings files that may contain a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedSource {
    Anybody,
    /// Not a file of the workspace.
    User,
    Managed,
}

impl AllowedSource {
    fn includes(self, scope: SettingsScope) -> bool {
        match self {
            Self::Anybody => true,
            Self::User => scope.is_users(),
            Self::Managed => scope == SettingsScope::Managed,
        }
    }
}

/// All known keys, by the object that contains them. Keys for other systems have no effect here.
const KEYS: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            "allowAppleEvents",
            "allowUnsandboxedCommands",
            "autoAllowBashIfSandboxed",
            "bwrapPath",
            "credentials",
            "enableWeakerNestedSandbox",
            "enableWeakerNetworkIsolation",
            "enabled",
            "excludedCommands",
            "failIfUnavailable",
            "filesystem",
            "ignoreViolations",
            "network",
            "offlineCommands",
            "ripgrep",
            "socatPath",
        ],
    ),
    (
        "filesystem",
        &[
            "allowManagedReadPathsOnly",
            "allowRead",
            "allowWrite",
            "denyRead",
            "denyWrite",
            "disabled",
        ],
    ),
    (
        "network",
        &[
            "allowAllUnixSockets",
            "allowLocalBinding",
            "allowMachLookup",
            "allowManagedDomainsOnly",
            "allowUnixSockets",
            "allowedDomains",
            "deniedDomains",
            "httpProxyPort",
            "readDomains",
            "socksProxyPort",
            "strictAllowlist",
            "tlsTerminate",
        ],
    ),
    ("credentials", &["envVars", "files"]),
];

/// Reads the sandbox settings. Whether the machine supports them is determined elsewhere.
pub(crate) fn read(settings: &mut Settings) -> SandboxSettings {
    let mut reading = SandboxSettingsReader {
        settings,
        problems: Vec::new(),
        waiting: Vec::new(),
    };
    reading.check_unknown_keys();
    let sandbox = reading.sandbox();
    let SandboxSettingsReader {
        problems, waiting, ..
    } = reading;
    settings.problems.extend(problems);
    settings.left_out.extend(waiting);
    sandbox
}

struct SandboxSettingsReader<'a> {
    settings: &'a Settings,
    problems: Vec<SettingsProblem>,
    waiting: Vec<String>,
}

/// An entry of a list, with its file and its place there.
struct SettingsEntry<'a> {
    layer: &'a SettingsFile,
    pointer: String,
    value: &'a Value,
}

impl<'a> SandboxSettingsReader<'a> {
    fn sandbox(&mut self) -> SandboxSettings {
        let enabled = self.flag("enabled", AllowedSource::Anybody);
        let auto = self.flag("autoAllowBashIfSandboxed", AllowedSource::Anybody);
        let managed_reads = self.flag(
            "filesystem.allowManagedReadPathsOnly",
            AllowedSource::Managed,
        );
        let managed_hosts = self.flag("network.allowManagedDomainsOnly", AllowedSource::Managed);
        let only = |managed: Option<bool>| match managed {
            Some(true) => Some(SettingsScope::Managed),
            _ => None,
        };
        let deny_read = self.patterns("filesystem.denyRead");
        let credentials = self.credentials();
        let mut sandbox = SandboxSettings {
            enabled,
            trusted: self.settings.trust.runs,
            required: self.flag("failIfUnavailable", AllowedSource::Anybody) == Some(true),
            lets_through: auto != Some(false) && self.is_enabled_by_trust(enabled, auto),
            asks_confined: auto == Some(false),
            auto_ignores_command_rules: self.settings.auto_ignores_command_rules(),
            excluded: self.excluded(),
            may_be_lifted: self.flag("allowUnsandboxedCommands", AllowedSource::Anybody)
                != Some(false),
            files_open: self.flag("filesystem.disabled", AllowedSource::User) == Some(true),
            allow_write: self.paths("filesystem.allowWrite", None),
            deny_write: self.patterns("filesystem.denyWrite"),
            deny_read,
            allow_read: self.paths("filesystem.allowRead", only(managed_reads)),
            allowed_hosts: self.hosts("network.allowedDomains", only(managed_hosts)),
            denied_hosts: self.hosts("network.deniedDomains", None),
            strict_hosts: self.flag("network.strictAllowlist", AllowedSource::User) == Some(true),
            managed_hosts_only: managed_hosts == Some(true),
            withheld: self.withheld(),
            own_directory: vec![
                self.settings.places.user.clone(),
                real_path::resolve_links(&self.settings.places.user),
            ],
            own_secrets: self.own_secrets(),
            ..SandboxSettings::default()
        };
        extend_unique(&mut sandbox.deny_read, credentials);
        extend_unique(&mut sandbox.deny_write, self.own_folder());
        sandbox
    }

    /// Returns a pattern for the user's settings directory, which also stores trust decisions. No
    /// confined command may change it, even if `CLAUDE_CONFIG_DIR` sets it. Under its usual name it
    /// is protected anyway.
    fn own_folder(&self) -> Option<PathPattern> {
        let places = &self.settings.places;
        if is_protected(&places.user) {
            return None;
        }
        let bases = PatternBases {
            cwd: places.cwd.clone(),
            home: places.home.clone(),
            slash: places.cwd.clone(),
        };
        let folder = places.user.to_string_lossy();
        PathPattern::new(&format!("/{folder}"), List::Deny, &bases).ok()
    }

    /// Returns the paths at which haft stores secrets, under each name of the settings directory.
    fn own_secrets(&self) -> Vec<PathBuf> {
        let user = &self.settings.places.user;
        let mut found = Vec::new();
        for directory in [user.clone(), real_path::resolve_links(user)] {
            extend_unique(
                &mut found,
                SecretFile::hidden_names().map(|name| directory.join(name)),
            );
        }
        found
    }

    fn check_unknown_keys(&mut self) {
        for layer in &self.settings.layers {
            for (key, known) in KEYS {
                let pointer = pointer(key);
                let Some(value) = layer.document.value.pointer(&pointer) else {
                    continue;
                };
                let Some(object) = value.as_object() else {
                    self.warn(layer, &pointer, "an object is expected; it is left out");
                    continue;
                };
                for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    let place = format!("{pointer}/{escaped}");
                    let shown = place.trim_start_matches('/').replace('/', ".");
                    let what = format!("no setting is called {shown}; is it spelled right?");
                    self.problems.push(layer.problem(&place, &what));
                }
            }
        }
    }

    /// Returns whether the file comes from an untrusted workspace.
    fn waits(&self, layer: &SettingsFile) -> bool {
        layer.from_workspace && !self.settings.trust.allows
    }

    /// Reports a problem with a value by its key, because a line may contain several.
    fn warn(&mut self, layer: &SettingsFile, place: &str, what: &str) {
        let name = place.trim_start_matches('/').replace('/', ".");
        let what = format!("{name}: {what}");
        self.problems.push(layer.problem(place, &what));
    }

    fn wait_for(&mut self, key: &str) {
        extend_unique(&mut self.waiting, [format!("sandbox.{key}")]);
    }

    /// Returns whether this file may contain the key. Reports why not.
    fn may_say(&mut self, layer: &SettingsFile, key: &str, who: AllowedSource) -> bool {
        let may = who.includes(layer.scope);
        if !may {
            let whose = match who {
                AllowedSource::Managed => "managed settings",
                AllowedSource::Anybody | AllowedSource::User => "the user's own settings",
            };
            let what = format!("it applies only in {whose}; it is left out");
            self.warn(layer, &pointer(key), &what);
        }
        may
    }

    /// Returns the value of a flag. The file with the highest rank wins.
    fn flag(&mut self, key: &str, who: AllowedSource) -> Option<bool> {
        let loose = LOOSENING.iter().find(|(name, _)| *name == key);
        let settings = self.settings;
        let mut found = None;
        let mut waits = false;
        for layer in &settings.layers {
            let Some(value) = value(layer, key) else {
                continue;
            };
            if !self.may_say(layer, key, who) {
                continue;
            }
            let Some(flag) = value.as_bool() else {
                let what = "true or false is expected; it is left out";
                self.warn(layer, &pointer(key), what);
                continue;
            };
            if self.waits(layer) && loose.is_some_and(|(_, loose)| *loose == flag) {
                waits = true;
            } else {
                found = found.or(Some(flag));
            }
        }
        // Except for `enabled`, the looser value is also the default.
        if waits && (key == "enabled" || found.is_some()) {
            self.wait_for(key);
        }
        found
    }

    /// Returns whether a trusted file enables the sandbox, so that sandboxed commands may run
    /// without asking.
    fn is_enabled_by_trust(&mut self, enabled: Option<bool>, auto: Option<bool>) -> bool {
        let trusted = self.settings.layers.iter();
        let trusted = trusted.filter(|layer| !self.waits(layer));
        let flags = trusted.filter_map(|layer| value(layer, "enabled")?.as_bool());
        let by_trust = flags.take(1).next() == Some(true);
        if enabled == Some(true) && !by_trust && auto != Some(false) {
            self.wait_for("autoAllowBashIfSandboxed");
        }
        by_trust
    }

    /// Returns the entries of a list that apply, the highest rank first.
    fn entries(&mut self, key: &str, only: Option<SettingsScope>) -> Vec<SettingsEntry<'a>> {
        let settings: &'a Settings = self.settings;
        let pointer = pointer(key);
        let mut found = Vec::new();
        for layer in &settings.layers {
            let Some(value) = layer.document.value.pointer(&pointer) else {
                continue;
            };
            let Some(entries) = value.as_array() else {
                self.warn(layer, &pointer, "a list is expected; it is left out");
                continue;
            };
            if only.is_some_and(|only| only != layer.scope) || entries.is_empty() {
                continue;
            }
            if self.waits(layer) && ALLOWING.contains(&key) {
                self.wait_for(key);
                continue;
            }
            found.extend(entries.iter().enumerate().map(|(at, value)| SettingsEntry {
                layer,
                pointer: format!("{pointer}/{at}"),
                value,
            }));
        }
        found
    }

    /// Like [`Self::entries`], but parses each entry. Reports entries that cannot be parsed.
    fn read<T: PartialEq>(
        &mut self,
        key: &str,
        only: Option<SettingsScope>,
        read: impl Fn(&Settings, &SettingsEntry<'a>) -> Result<T, String>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for entry in self.entries(key, only) {
            match read(self.settings, &entry) {
                Ok(one) => extend_unique(&mut found, [one]),
                Err(what) => {
                    let what = format!("{what}; it is left out");
                    self.warn(entry.layer, &entry.pointer, &what);
                }
            }
        }
        found
    }

    fn excluded(&mut self) -> Vec<ExcludedCommand> {
        self.read("excludedCommands", None, |_, entry| {
            let text = text(entry.value)?;
            // A rule for commands, written with the tool's name or without.
            let bare = text
                .strip_prefix(RuleClass::Commands.word())
                .and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
            Ok(ExcludedCommand::new(bare.unwrap_or(text)))
        })
    }

    fn hosts(&mut self, key: &str, only: Option<SettingsScope>) -> Vec<SettingsHost> {
        self.read(key, only, |_, entry| SettingsHost::new(text(entry.value)?))
    }

    fn paths(&mut self, key: &str, only: Option<SettingsScope>) -> Vec<PathBuf> {
        self.read(key, only, |settings, entry| {
            let text = text(entry.value)?;
            let plain = stripped(text);
            if plain.contains(['*', '?', '[']) {
                return Err(format!("{text:?} holds a wildcard; name the directory"));
            }
            let home = &settings.places.home;
            Ok(match (plain.strip_prefix("~/"), plain) {
                (Some(rest), _) => home.join(rest),
                (None, "~") => home.clone(),
                (None, plain) if plain.starts_with('/') => {
                    PathBuf::from(format!("/{}", plain.trim_start_matches('/')))
                }
                (None, plain) => entry.layer.slash.join(plain.trim_start_matches("./")),
            })
        })
    }

    fn patterns(&mut self, key: &str) -> Vec<PathPattern> {
        self.read(key, None, |settings, entry| {
            pattern(settings, entry.layer, text(entry.value)?)
        })
    }

    /// Returns the files with keys, which are hidden.
    fn credentials(&mut self) -> Vec<PathPattern> {
        self.read("credentials.files", None, |settings, entry| {
            let path = named(entry.value, "path")?;
            pattern(settings, entry.layer, path)
        })
    }

    /// Returns the variables with secrets. A command does not get them at all, even if the entry
    /// requests a placeholder.
    fn withheld(&mut self) -> Vec<String> {
        self.read("credentials.envVars", None, |_, entry| {
            Ok(named(entry.value, "name")?.to_owned())
        })
    }
}

fn text(value: &Value) -> Result<&str, String> {
    let text = value.as_str().map(str::trim);
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| "a text is expected".to_owned())
}

/// Returns the text of the key `name` in an object, or the value itself if it is a text.
fn named<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let inner = value.get(name).unwrap_or(value);
    text(inner).map_err(|_| format!("an object with `{name}` is expected"))
}

/// Removes a suffix that only marks a directory.
fn stripped(path: &str) -> &str {
    let path = path.strip_suffix("/**").unwrap_or(path);
    match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    }
}

/// Parses a path pattern. `/x` is absolute here, and `x` is relative to the settings file's
/// directory.
fn pattern(settings: &Settings, layer: &SettingsFile, path: &str) -> Result<PathPattern, String> {
    let bases = PatternBases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: layer.slash.clone(),
    };
    let pattern = match stripped(path) {
        "~" => "~/".to_owned(),
        path if path.starts_with("~/") => path.to_owned(),
        path if path.starts_with('/') => format!("//{}", path.trim_start_matches('/')),
        path => format!("/{}", path.trim_start_matches("./")),
    };
    PathPattern::new(&pattern, List::Deny, &bases)
}
