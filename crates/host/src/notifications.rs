//! Notifications by the model for the user, sent through the events to the front end.

use std::sync::Arc;

use haft_contract::{PushedNotification, UserNotifier};
use serde_json::Value;

use crate::{SessionEvent, event::EventEmitter};

/// The value of the setting if the user has disabled notifications.
const OFF: &str = "notifications_disabled";

pub(crate) struct EventNotifier {
    events: Arc<EventEmitter>,
    are_off: bool,
}

impl EventNotifier {
    /// Creates a notifier with these settings.
    pub(crate) fn from_settings(
        settings: &Value,
        events: &Arc<EventEmitter>,
    ) -> Arc<dyn UserNotifier> {
        Arc::new(Self {
            events: Arc::clone(events),
            are_off: settings["preferredNotifChannel"] == OFF,
        })
    }
}

impl UserNotifier for EventNotifier {
    fn notify(&self, notification: &PushedNotification) -> Result<(), String> {
        if self.are_off {
            return Err("the user has switched notifications off".to_owned());
        }
        self.events.emit(&SessionEvent::Notification {
            text: notification.message.clone(),
            status: notification.status.clone(),
        });
        Ok(())
    }
}
