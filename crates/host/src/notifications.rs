//! How the model gets a person's attention: through the events, to whatever face there is.

use std::sync::Arc;

use haft_contract::{PersonNotifier, PushedNotification};
use serde_json::Value;

use crate::{SessionEvent, event::Events};

/// What the settings say where a person wants none.
const OFF: &str = "notifications_disabled";

pub(crate) struct Notifications {
    events: Arc<Events>,
    are_off: bool,
}

impl Notifications {
    /// As these settings have it.
    pub(crate) fn of(settings: &Value, events: &Arc<Events>) -> Arc<dyn PersonNotifier> {
        Arc::new(Self {
            events: Arc::clone(events),
            are_off: settings["preferredNotifChannel"] == OFF,
        })
    }
}

impl PersonNotifier for Notifications {
    fn notify(&self, notification: &PushedNotification) -> Result<(), String> {
        if self.are_off {
            return Err("the person has switched notifications off".to_owned());
        }
        self.events.emit(&SessionEvent::Notification {
            text: notification.message.clone(),
            status: notification.status.clone(),
        });
        Ok(())
    }
}
