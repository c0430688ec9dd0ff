//! Actions on a page, performed as a user would: with the mouse at the position of an element
//! (`pointer`), with keys, and in form fields (`fields`).

use std::time::Duration;

use serde_json::json;

use crate::{
    cdp_pipe::IgnoredResult,
    error::{ChromiumError, Result, unusable},
    keys,
    scripts::READY,
    tab::Tab,
};

/// An action on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageAction {
    /// Clicks an element.
    Click {
        /// The ref of the element.
        on: u32,
        /// True for a double click.
        double: bool,
    },
    /// Moves the mouse over an element.
    Hover(u32),
    /// Replaces the text of a field.
    Type {
        /// The ref of the field.
        into: u32,
        /// The text.
        text: String,
        /// True to press Enter afterwards.
        submit: bool,
    },
    /// Sets the values of several fields.
    Fill(Vec<(u32, String)>),
    /// Selects options of a list by label or value.
    Select {
        /// The ref of the list.
        of: u32,
        /// The options.
        values: Vec<String>,
    },
    /// Sets the files of a file field, with paths as the browser process sees them.
    Upload {
        /// The ref of the field.
        to: u32,
        /// The files.
        files: Vec<String>,
    },
    /// Presses a key.
    Press(String),
    /// Drags one element to another.
    Drag {
        /// The ref of the element to drag.
        from: u32,
        /// The ref of the target.
        to: u32,
    },
    /// Scrolls an element into view, or the page down by 90 % of its height.
    Scroll(Option<u32>),
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionOutcome {
    /// True if the tab shows another page.
    pub navigated: bool,
    /// Remarks for the reader, for example that a field contains another text than was typed.
    pub remarks: Vec<String>,
}

impl Tab {
    /// Performs an action and waits until the page is quiet.
    ///
    /// # Errors
    /// The element no longer exists, is covered or disabled; a dialog opened; or a navigation was
    /// refused.
    pub async fn act(&self, action: &PageAction) -> Result<ActionOutcome> {
        let before = self.settle_baseline()?;
        let mut remarks = Vec::new();
        match action {
            PageAction::Click { on, double } => {
                let element = self.element(*on).await?;
                self.click(&element, *double).await?;
            }
            PageAction::Hover(on) => {
                let element = self.element(*on).await?;
                let point = self.reach(&element, false).await?;
                self.mouse("mouseMoved", point, 0).await?;
            }
            PageAction::Type { into, text, submit } => {
                let element = self.element(*into).await?;
                remarks.extend(self.type_into(&element, text).await?);
                if *submit {
                    self.press("Enter").await?;
                }
            }
            PageAction::Fill(fields) => {
                for (number, value) in fields {
                    let element = self.element(*number).await?;
                    remarks.extend(self.fill(&element, value).await?);
                }
            }
            PageAction::Select { of, values } => {
                let element = self.element(*of).await?;
                self.select_options(&element, values).await?;
            }
            PageAction::Upload { to, files } => {
                let element = self.element(*to).await?;
                let params = json!({"files": files, "backendNodeId": element.entry.node});
                let set = self
                    .call::<IgnoredResult>("DOM.setFileInputFiles", params)
                    .await;
                if let Err(ChromiumError::Protocol { .. }) = set {
                    return Err(unusable(format!(
                        "e{to} takes no files: it is not a file field."
                    )));
                }
                set?;
            }
            PageAction::Press(key) => self.press(key).await?,
            PageAction::Drag { from, to } => self.drag(*from, *to).await?,
            PageAction::Scroll(on) => self.scroll(*on).await?,
        }
        let navigated = self.wait_until_settled(before).await?;
        Ok(ActionOutcome { navigated, remarks })
    }

    pub(crate) async fn press(&self, name: &str) -> Result<()> {
        let key = keys::parse(name)?;
        let mut down = json!({
            "type": if key.text.is_some() { "keyDown" } else { "rawKeyDown" },
            "key": key.key, "code": key.code, "modifiers": key.modifiers,
            "windowsVirtualKeyCode": key.number, "nativeVirtualKeyCode": key.number,
        });
        if let Some(text) = &key.text {
            down["text"] = json!(text);
        }
        if key.modifiers == 2 && key.key.eq_ignore_ascii_case("a") {
            down["commands"] = json!(["selectAll"]);
        }
        self.call_within::<IgnoredResult>(Duration::from_secs(10), "Input.dispatchKeyEvent", down)
            .await?;
        let up = json!({
            "type": "keyUp", "key": key.key, "code": key.code, "modifiers": key.modifiers,
            "windowsVirtualKeyCode": key.number, "nativeVirtualKeyCode": key.number,
        });
        self.call_within::<IgnoredResult>(Duration::from_secs(10), "Input.dispatchKeyEvent", up)
            .await
            .map(drop)
    }

    async fn scroll(&self, on: Option<u32>) -> Result<()> {
        match on {
            Some(number) => {
                let element = self.element(number).await?;
                self.call_on_element(&element, READY, json!([]))
                    .await
                    .map(drop)
            }
            None => {
                let main = self.with(|tab| tab.main.clone())?;
                let script =
                    "() => window.scrollBy({top: window.innerHeight * 0.9, behavior: 'instant'})";
                self.in_frame(&main, script, Duration::from_secs(10))
                    .await
                    .map(drop)
            }
        }
    }
}
