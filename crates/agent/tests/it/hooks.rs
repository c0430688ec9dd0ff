//! Programs of the user's that have a say in the loop.

use std::sync::Arc;

use haft_agent::{Agent, ModelSettings, Reason};
use haft_contract::PermissionMode;
use haft_models::Scripted;
use serde_json::{Value, json};

use crate::rig::{Rig, assert_valid, scripted, shown};

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
