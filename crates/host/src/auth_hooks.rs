//! Notifies hooks of a login, outside of any session (`Notification`, `auth_success`).

use std::sync::Arc;

use haft_contract::SessionId;
use haft_engine::hooks::{HookCommonFields, HookEventKind, HookInvocation};
use haft_models::{Http, HttpOptions};
use serde_json::{Map, json};

use crate::{SessionConfig, resolved_settings::ResolvedSettings};

/// Runs the notification hooks in the settings, and waits for them. They cannot undo the login:
/// their output, and settings that cannot be read, are only traced.
pub async fn notify_login(config: &SessionConfig, message: &str) {
    let permitted = match ResolvedSettings::load(config) {
        Ok(permitted) => permitted,
        Err(error) => {
            tracing::debug!(%error, "the login is not reported to hooks");
            return;
        }
    };
    let environment = &permitted.environment;
    let http = HttpOptions::from_variables(|name| environment.variable(name));
    let hooks = permitted
        .hooks
        .with_http(Arc::new(Http::new(http)), permitted.http_hooks);
    let event = HookEventKind::NOTIFICATION;
    if hooks.has_no_handlers(event) {
        return;
    }
    let kind = "auth_success";
    let mut fields = Map::new();
    fields.insert("message".to_owned(), json!(message));
    fields.insert("title".to_owned(), json!("Logged in"));
    fields.insert("notification_type".to_owned(), json!(kind));
    let occasion = HookInvocation {
        event,
        names: &[kind],
        fields,
        call: None,
        cwd: &config.cwd,
    };
    // Outside of a session no transcript exists.
    let mut common = HookCommonFields::for_session(SessionId::new(), &config.cwd);
    common.transcript_path.clear();
    for heard in hooks.fire(&occasion, &common).await {
        if let Some(failure) = heard.output.failure {
            tracing::debug!(failure, "a hook failed after the login");
        }
    }
}
