//! Calls of file tools for files of the session's own `/tmp`.
//!
//! A tool gets the place of the file on the machine. Its results contain the path that a command
//! would use.

use std::path::Path;

use haft_contract::Content;
use serde_json::Value;

use super::PreparedCall;
use crate::{
    permissions::{CallFacts, Policy, PrivateTmp},
    settings::real_path,
};

/// Returns the input of a call with the places of the session's files, if it names any.
pub(super) fn input_with_places(
    prepared: &PreparedCall,
    facts: &CallFacts,
    policy: &Policy,
) -> Option<Value> {
    let places = facts.private_places(policy);
    let mut input = prepared.input().clone();
    let mut is_changed = false;
    let mut replace = |value: &mut Value| {
        let Value::String(text) = value else {
            return;
        };
        let path = real_path::normalize(Path::new(text.as_str()));
        let place = places.iter().find(|(given, _)| *given == path);
        if let Some(place) = place.and_then(|(_, place)| place.to_str()) {
            *text = place.to_owned();
            is_changed = true;
        }
    };
    for name in prepared.spec().profile.paths {
        match input.get_mut(*name) {
            Some(Value::Array(several)) => several.iter_mut().for_each(&mut replace),
            Some(one) => replace(one),
            None => {}
        }
    }
    is_changed.then_some(input)
}

/// The places of the session's files, and the paths that results contain instead.
#[derive(Debug, Clone, Default)]
pub(super) struct PrivateNames(Vec<(String, String)>);

impl PrivateNames {
    pub(super) fn new(private: &PrivateTmp) -> Self {
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let names = private.directories().iter();
        Self(
            names
                .filter_map(|(path, folder)| Some((text(folder)?, text(path)?)))
                .collect(),
        )
    }

    /// Returns a text with the paths that commands use.
    pub(super) fn in_text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, (folder, path)| {
            match text.contains(folder.as_str()) {
                true => text.replace(folder.as_str(), path),
                false => text,
            }
        })
    }

    pub(super) fn in_content(&self, content: &mut [Content]) {
        for block in content {
            if let Content::Text { text } = block {
                *text = self.in_text(std::mem::take(text));
            }
        }
    }

    pub(super) fn in_value(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.in_text(std::mem::take(text)),
            Value::Array(values) => values.iter_mut().for_each(|value| self.in_value(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.in_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
