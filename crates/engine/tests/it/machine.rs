//! A machine with settings files of everyone, in a temporary folder.

use std::{path::Path, process::Command};

use haft_engine::{
    SessionContext,
    permissions::{CallFacts, Decision, PathContext, PermissionSettings, Policy, RuleSet, decide},
    settings::{Settings, SettingsFlags, SettingsPlaces, TrustFile, TrustState},
};
use haft_testkit::TempProject;
use serde_json::Value;

use crate::judged;

pub(crate) const MANAGED: &str = "etc/managed-settings.json";
pub(crate) const USER: &str = "home/.claude/settings.json";
pub(crate) const PROJECT: &str = "p/.claude/settings.json";
pub(crate) const LOCAL: &str = "p/.claude/settings.local.json";

pub(crate) struct Machine {
    pub(crate) files: TempProject,
    pub(crate) places: SettingsPlaces,
}

impl Machine {
    /// One whose user works in `p`.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = TempProject::new(files);
        for folder in ["home", "p", "etc"] {
            std::fs::create_dir_all(files.path(folder)).unwrap();
        }
        Self {
            places: SettingsPlaces {
                cwd: files.path("p"),
                home: files.path("home"),
                user: files.path("home/.claude"),
                managed: files.path("etc"),
            },
            files,
        }
    }

    /// The same, started in another directory.
    pub(crate) fn started_in(mut self, cwd: &str) -> Self {
        std::fs::create_dir_all(self.files.path(cwd)).unwrap();
        self.places.cwd = self.files.path(cwd);
        self
    }

    pub(crate) fn load(&self) -> Settings {
        self.load_with(&SettingsFlags::default())
    }

    /// As a session loads them.
    pub(crate) fn load_with(&self, flags: &SettingsFlags) -> Settings {
        let mut settings = Settings::load(self.places.clone(), flags, TrustState::default());
        settings.trust = TrustState::evaluate(&self.places, flags, &settings.executable_items());
        settings
    }

    /// What `haft permissions trust` does.
    pub(crate) fn trust(&self) {
        let things = self.load().executable_items();
        TrustFile::add(&self.places, &things).unwrap();
    }

    /// Every rule that counts, as `list text`.
    pub(crate) fn rules(&self) -> Vec<String> {
        texts(&self.load().rules(&[], &[]))
    }

    pub(crate) fn context(&self) -> SessionContext {
        let mut settings = self.load();
        SessionContext::new(&self.places.cwd)
            .with_rules(settings.rules(&[], &[]))
            .with_home(Some(self.places.home.clone()))
    }

    /// What comes of a call under the settings as they are.
    pub(crate) fn decide(&self, tool: &str, input: &Value) -> Decision {
        let mut settings = self.load();
        let mut roots = vec![self.places.cwd.clone()];
        roots.extend(settings.directories());
        let mode = settings.default_mode().unwrap_or_default();
        let policy = Policy {
            rules: settings.rules(&[], &[]).into(),
            ..Policy::for_directories(mode, &roots).with_home(Some(&self.places.home))
        };
        decide(&policy, &self.facts(tool, input))
    }

    /// The word alone.
    pub(crate) fn verdict(&self, tool: &str, input: &Value) -> &'static str {
        self.decide(tool, input).behavior.name()
    }

    pub(crate) fn facts(&self, tool: &str, input: &Value) -> CallFacts {
        let setting = PathContext {
            cwd: self.places.cwd.clone(),
            home: Some(self.places.home.clone()),
            wrappers: self.load().rules(&[], &[]).wrappers().to_vec(),
        };
        judged::facts(tool, input, &setting)
    }

    /// What is wrong with the settings, with the machine's folder taken out.
    pub(crate) fn problems(&self, settings: &Settings) -> Vec<String> {
        let problems = settings.problems.iter().map(ToString::to_string);
        problems.map(|text| self.plain(&text)).collect()
    }

    pub(crate) fn plain(&self, text: &str) -> String {
        text.replace(&self.files.root().display().to_string(), "")
    }
}

pub(crate) fn texts(rules: &RuleSet) -> Vec<String> {
    let text = |rule: &haft_engine::permissions::rules::Rule| {
        format!("{} {}", rule.list.name(), rule.text)
    };
    rules.iter().map(text).collect()
}

pub(crate) fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=x", "-c", "user.email=x"])
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "git {args:?}: {said}");
}
