//! A person has said something while tools run.

use tokio::sync::watch;

/// Whether someone has said something that the model has not read yet. A service: what only waits
/// ends early for it.
#[derive(Debug)]
pub struct PendingInput(watch::Sender<bool>);

impl Default for PendingInput {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl PendingInput {
    /// Someone has said something; or everything that was said has been read.
    pub fn set(&self, wanted: bool) {
        self.0.send_replace(wanted);
    }

    /// Waits until someone has said something; at once if they have.
    pub async fn wanted(&self) {
        // The sender is ours, so the wait cannot fail.
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
                () = attention.wanted() => true,
                () = async {} => false,
            };
            assert_eq!(now, wanted);
        }
    }
}
