//! The effects of calling a skill besides its text: a model, and hooks.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use haft_engine::{
    hook_conditions,
    permissions::{PatternBases, SettingsScope},
};
use haft_extensions::{ExtensionOrigin, ExtensionPlaces, Skill};
use haft_tools::SkillEffects;
use serde_json::Value;

use crate::AgentSession;

/// Returns the functions that apply these effects in the session.
pub(crate) fn session_skill_effects(session: &AgentSession) -> SkillEffects {
    let (names, budget) = (session.model.names.clone(), session.shared.budget.clone());
    let resolve = move |name: String| {
        let (names, budget) = (names.clone(), budget.clone());
        Box::pin(async move {
            let id = names.resolve(&name).await?;
            budget.warn_if_unpriced(&id);
            Ok(id)
        }) as _
    };
    let places = session.extensions.places.clone();
    // Running code requires more trust than allow rules.
    let trusted = session.settings.settings.trust.runs;
    let managed_only = session.settings.settings.hooks_are_off();
    let hooks = session.settings.hooks.clone();
    let known: Mutex<HashSet<String>> = Mutex::default();
    let register = move |skill: &Skill| {
        let scope = match scope(skill, &places, trusted) {
            Some(scope) if scope == SettingsScope::Managed || !managed_only => scope,
            Some(_) => {
                return vec![format!(
                    "hooks of the skill {} are switched off",
                    skill.name
                )];
            }
            None => {
                let name = &skill.name;
                return vec![format!(
                    "hooks of the skill {name} do not run: this directory is not trusted with what it runs"
                )];
            }
        };
        let value = Value::Object(skill.hooks.clone().unwrap_or_default());
        let is_new = known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(format!("{} {value}", skill.name));
        if !is_new {
            return Vec::new();
        }
        let bases = PatternBases {
            cwd: places.cwd.clone(),
            home: places.home.clone(),
            slash: places.cwd.clone(),
        };
        let (handlers, problems) = hook_conditions::read(scope, Some(&skill.file), &value, &bases);
        let handlers = handlers.into_iter().map(|one| one.with_skill(&skill.name));
        hooks.add(handlers.collect());
        problems.iter().map(ToString::to_string).collect()
    };
    SkillEffects {
        model: Some(Arc::new(resolve)),
        hooks: Some(Arc::new(register)),
    }
}

/// Returns the scope of a skill's hooks; `None` if they are not trusted.
fn scope(skill: &Skill, places: &ExtensionPlaces, trusted: bool) -> Option<SettingsScope> {
    match skill.origin {
        ExtensionOrigin::Managed => Some(SettingsScope::Managed),
        ExtensionOrigin::User | ExtensionOrigin::Plugin => Some(SettingsScope::User),
        ExtensionOrigin::Project if trusted && places.is_of_project(&skill.file) => {
            Some(SettingsScope::Project)
        }
        _ => None,
    }
}
