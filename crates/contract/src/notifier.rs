//! Getting the attention of a person who may look elsewhere.

/// Shows a person something they should see now. A service, as `Arc<dyn PersonNotifier>`.
pub trait PersonNotifier: Send + Sync {
    /// Shows it. The error says why it is not shown, such as that the person wants none.
    fn notify(&self, notification: &PushedNotification) -> Result<(), String>;
}

/// What a person should see now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedNotification {
    /// What it says, one line.
    pub message: String,
    /// How things stand, in a word or two.
    pub status: Option<String>,
}
