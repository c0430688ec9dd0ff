//! Form fields: text, check boxes, lists.

use serde_json::{Value, json};

use crate::{
    cdp_pipe::IgnoredResult,
    error::{Result, unusable},
    scripts::{CONCEAL, FIELD_KIND, HOLDS, SELECT, SET_VALUE, TAKE_FIELD},
    tab::{PageElement, Tab},
    text::one_line,
};

impl Tab {
    /// Returns the addresses of all documents that can read a field's text: the document that
    /// contains it, and all documents around that one.
    ///
    /// # Errors
    /// The field no longer exists.
    pub async fn addresses_around(&self, number: u32) -> Result<Vec<String>> {
        let element = self.element(number).await?;
        self.with(|tab| {
            let mut found = Vec::new();
            let mut next = Some(element.entry.frame.clone());
            while let Some(name) = next.take()
                && found.len() < tab.frames.len()
                && let Some(frame) = tab.frames.get(&name)
            {
                found.push(frame.url.clone());
                next.clone_from(&frame.parent);
            }
            found
        })
    }

    /// Masks the contents of a field with dots, as in a password field.
    ///
    /// # Errors
    /// The field no longer exists.
    pub async fn conceal(&self, number: u32) -> Result<()> {
        let element = self.element(number).await?;
        self.call_on_element(&element, CONCEAL, json!([]))
            .await
            .map(drop)
    }

    /// Replaces the contents of a field. Returns a remark if the field then contains something
    /// else.
    pub(crate) async fn type_into(
        &self,
        element: &PageElement,
        text: &str,
    ) -> Result<Option<String>> {
        let number = element.number;
        match self
            .call_on_element(element, TAKE_FIELD, json!([]))
            .await?
            .as_str()
        {
            Some("field") => {}
            Some("disabled") => return Err(unusable(format!("e{number} is disabled."))),
            Some("readonly") => return Err(unusable(format!("e{number} is read-only."))),
            // Fields for dates, colours and ranges cannot be typed into.
            Some("set") => {
                let set = self
                    .call_on_element(element, SET_VALUE, json!([{"value": text}]))
                    .await?;
                return Ok((set != true)
                    .then(|| format!("e{number} does not take \"{}\"", one_line(text, 60))));
            }
            _ => {
                return Err(unusable(format!(
                    "e{number} is not a text field. Use click, select or fill for it."
                )));
            }
        }
        if text.is_empty() {
            self.press("Delete").await?;
        } else {
            self.call::<IgnoredResult>("Input.insertText", json!({"text": text}))
                .await?;
        }
        let holds = self.call_on_element(element, HOLDS, json!([])).await?;
        let same = |held: &str| {
            held.replace("\r\n", "\n").trim_end_matches('\n')
                == text.replace("\r\n", "\n").trim_end_matches('\n')
        };
        Ok(match (&holds["secret"], holds["value"].as_str()) {
            (Value::Bool(true), Some(held)) if held.len() != text.encode_utf16().count() => {
                Some(format!("e{number} now holds {} characters", held.len()))
            }
            (Value::Bool(false), Some(held)) if !same(held) => {
                Some(format!("e{number} now holds \"{}\"", one_line(held, 200)))
            }
            _ => None,
        })
    }

    pub(crate) async fn fill(&self, element: &PageElement, value: &str) -> Result<Option<String>> {
        let number = element.number;
        let kind = self.call_on_element(element, FIELD_KIND, json!([])).await?;
        match kind["kind"].as_str() {
            Some("check") => {
                let wanted = match value {
                    "true" => true,
                    "false" => false,
                    _ => {
                        return Err(unusable(format!(
                            "e{number} is a check box: its value is true or false."
                        )));
                    }
                };
                if kind["on"] != wanted {
                    self.click(element, false).await?;
                    let now = self.call_on_element(element, FIELD_KIND, json!([])).await?;
                    if now["on"] != wanted {
                        return Ok(Some(format!("e{number} did not change")));
                    }
                }
                Ok(None)
            }
            Some("select") => self
                .select_options(element, std::slice::from_ref(&value.to_owned()))
                .await
                .map(|()| None),
            _ => {
                let remark = self.type_into(element, value).await?;
                // The `change` event fires when the field loses the focus.
                self.call_on_element(element, "function() { this.blur() }", json!([]))
                    .await?;
                Ok(remark)
            }
        }
    }

    pub(crate) async fn select_options(
        &self,
        element: &PageElement,
        values: &[String],
    ) -> Result<()> {
        let number = element.number;
        let done = self
            .call_on_element(element, SELECT, json!([{"value": values}]))
            .await?;
        match done["result"].as_str() {
            Some("set") => Ok(()),
            Some("disabled") => Err(unusable(format!("e{number} is disabled."))),
            Some("missing") => {
                let options: Vec<String> = done["options"]
                    .as_array()
                    .map_or(&[][..], Vec::as_slice)
                    .iter()
                    .filter_map(|option| {
                        option
                            .as_str()
                            .map(|option| format!("\"{}\"", one_line(option, 60)))
                    })
                    .collect();
                Err(unusable(format!(
                    "e{number} has no option \"{}\". It has: {}.",
                    one_line(done["value"].as_str().unwrap_or_default(), 60),
                    options.join(", ")
                )))
            }
            Some("single") => Err(unusable(format!("e{number} takes one value."))),
            _ => Err(unusable(format!(
                "e{number} is not a `select` element. Click it, then its option."
            ))),
        }
    }
}
