//! Notifications for a user whose attention may be elsewhere.

/// Shows notifications to the user. A service, as `Arc<dyn UserNotifier>`.
pub trait UserNotifier: Send + Sync {
    /// Shows a notification. The error is the reason why it is not shown, for example that the user
    /// has turned notifications off.
    fn notify(&self, notification: &PushedNotification) -> Result<(), String>;
}

/// A notification that the user should see now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedNotification {
    /// The text, one line.
    pub message: String,
    /// The status, in one or two words.
    pub status: Option<String>,
}
