//! A signal that the user has sent a message while tools run.

use tokio::sync::watch;

/// Signals a user message that the model has not read yet. A service: tools that only wait end
/// early when a message arrives.
#[derive(Debug)]
pub struct PendingInput(watch::Sender<bool>);

impl Default for PendingInput {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl PendingInput {
    /// Sets whether there is an unread message.
    pub fn set(&self, wanted: bool) {
        self.0.send_replace(wanted);
    }

    /// Waits until a message is unread; returns immediately if one already is.
    pub async fn wait_for_input(&self) {
        // The sender is in `self`, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|wanted| *wanted).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_lasts_until_it_is_heard() {
        let attention = PendingInput::default();
        for wanted in [false, true, false] {
            attention.set(wanted);
            let now = tokio::select! {
                biased;
                () = attention.wait_for_input() => true,
                () = async {} => false,
            };
            assert_eq!(now, wanted);
        }
    }
}
