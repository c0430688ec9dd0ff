//! Waits for text to appear or disappear.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    error::{ChromiumError, Result, unusable},
    tab::Tab,
};

impl Tab {
    /// Waits until the page contains `text`, and no longer contains `gone`.
    ///
    /// # Errors
    /// This does not happen within `limit`.
    pub async fn wait_for(
        &self,
        text: Option<&str>,
        gone: Option<&str>,
        limit: Duration,
    ) -> Result<()> {
        const HAS: &str = "(function has(document) {
            const shown = document.body ? document.body.innerText : '';
            const titles = [...document.querySelectorAll('input,textarea,button')].map(e => e.value ?? '').join('\\n');
            return shown + '\\n' + titles;
        })";
        let deadline = Instant::now() + limit;
        let mut shown;
        loop {
            shown = String::new();
            let frames: Vec<String> = self.with(|tab| tab.frames.keys().cloned().collect())?;
            for frame in frames {
                let script = format!("() => {HAS}(document).slice(0, 2000000)");
                match self
                    .in_frame(&frame, &script, Duration::from_secs(10))
                    .await
                {
                    Ok(Value::String(text)) => shown.push_str(&text),
                    Ok(_) | Err(ChromiumError::Protocol { .. } | ChromiumError::Timeout { .. }) => {
                    }
                    Err(other) => return Err(other),
                }
            }
            let has = |wanted: &str| {
                let flat = |text: &str| {
                    text.split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" ")
                        .to_lowercase()
                };
                flat(&shown).contains(&flat(wanted))
            };
            if text.is_none_or(has) && gone.is_none_or(|gone| !has(gone)) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let seconds = limit.as_secs_f32();
        if let Some(gone) = gone.filter(|gone| shown.to_lowercase().contains(&gone.to_lowercase()))
        {
            return Err(unusable(format!(
                "The text \"{gone}\" is still there after {seconds} s."
            )));
        }
        let text = text.unwrap_or_default();
        let near = self.similar_lines(text).await.unwrap_or_default();
        let near = if near.is_empty() {
            String::new()
        } else {
            format!(" Near: {}", near.join(" · "))
        };
        Err(unusable(format!(
            "No text \"{text}\" within {seconds} s.{near}"
        )))
    }
}
