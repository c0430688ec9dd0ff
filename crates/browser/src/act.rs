//! Acting on a page as a person does: by the mouse at the place where the element is, by keys.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    error::{ChromiumError, Result, unusable},
    keys,
    scripts::{FIELD_KIND, HOLDS, IN_LINE, NEXT_FRAME, READY, SELECT, SET_VALUE, TAKE_FIELD},
    tab::{Element, Tab},
    text::one_line,
    wire::Nothing,
};

/// How long an element may take to come to rest.
const COMES_TO_REST: Duration = Duration::from_secs(2);

/// Something done to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageAction {
    /// Presses the mouse on an element.
    Click {
        /// Its ref.
        on: u32,
        /// Twice.
        double: bool,
    },
    /// Moves the mouse there.
    Hover(u32),
    /// Replaces a field's text.
    Type {
        /// Its ref.
        into: u32,
        /// The text.
        text: String,
        /// Enter follows.
        submit: bool,
    },
    /// Sets several fields.
    Fill(Vec<(u32, String)>),
    /// Chooses options of a list by label or value.
    Select {
        /// The list's ref.
        of: u32,
        /// Its options.
        values: Vec<String>,
    },
    /// Gives files, by paths that the program sees, to a field.
    Upload {
        /// The field's ref.
        to: u32,
        /// The files.
        files: Vec<String>,
    },
    /// Presses a key.
    Press(String),
    /// Drags one element to another.
    Drag {
        /// What is dragged.
        from: u32,
        /// Where to.
        to: u32,
    },
    /// Scrolls an element into view, or one page down.
    Scroll(Option<u32>),
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    /// The tab shows another page.
    pub navigated: bool,
    /// What the reader should know, such as a field that holds another text than was typed.
    pub remarks: Vec<String>,
}

#[derive(Deserialize)]
struct Quads {
    quads: Vec<[f64; 8]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hit {
    backend_node_id: i64,
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_visual_viewport: VisualViewport,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VisualViewport {
    page_x: f64,
    page_y: f64,
    client_width: f64,
    client_height: f64,
}

/// Where the mouse goes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

impl Tab {
    /// Does it, and waits until the page has come to rest.
    ///
    /// # Errors
    /// The element is gone, covered or disabled; a dialog opened; the page went where it may not.
    pub async fn act(&self, action: &PageAction) -> Result<Acted> {
        let before = self.before()?;
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
                let set = self.call::<Nothing>("DOM.setFileInputFiles", params).await;
                if let Err(ChromiumError::Protocol { .. }) = set {
                    return Err(unusable(format!(
                        "e{to} takes no files: it is no field for them."
                    )));
                }
                set?;
            }
            PageAction::Press(key) => self.press(key).await?,
            PageAction::Drag { from, to } => self.drag(*from, *to).await?,
            PageAction::Scroll(on) => self.scroll(*on).await?,
        }
        let navigated = self.settle(before).await?;
        Ok(Acted { navigated, remarks })
    }

    /// Waits until the page has `text`, or has it no more.
    ///
    /// # Errors
    /// It does not come to that in time.
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
        let near = self.near(text).await.unwrap_or_default();
        let near = if near.is_empty() {
            String::new()
        } else {
            format!(" Near: {}", near.join(" · "))
        };
        Err(unusable(format!(
            "No text \"{text}\" within {seconds} s.{near}"
        )))
    }

    async fn click(&self, element: &Element, double: bool) -> Result<()> {
        let point = self.reach(element, true).await?;
        self.mouse("mouseMoved", point, 0).await?;
        for count in 1..=if double { 2 } else { 1 } {
            self.mouse("mousePressed", point, count).await?;
            self.mouse("mouseReleased", point, count).await?;
        }
        Ok(())
    }

    async fn mouse(&self, kind: &str, at: Point, clicks: u32) -> Result<()> {
        let pressed = kind != "mouseMoved";
        let params = json!({
            "type": kind, "x": at.x, "y": at.y, "clickCount": clicks,
            "button": if pressed { "left" } else { "none" },
            "buttons": u32::from(kind == "mousePressed"),
        });
        self.call_within::<Nothing>(Duration::from_secs(10), "Input.dispatchMouseEvent", params)
            .await
            .map(drop)
    }

    /// Brings an element into view and to rest; the place where the mouse meets it.
    async fn reach(&self, element: &Element, enabled: bool) -> Result<Point> {
        let number = element.number;
        let deadline = Instant::now() + COMES_TO_REST;
        // Not `scrollIntoViewIfNeeded`, which waits for smooth scrolling of the page's own.
        let ready = self.on(element, READY, json!([])).await?;
        if ready == "hidden" {
            return Err(unusable(format!(
                "e{number} cannot be seen: it has no place on the page."
            )));
        }
        if enabled && ready == "disabled" {
            return Err(unusable(format!("e{number} is disabled.")));
        }
        let mut last = None;
        loop {
            let point = self.centre(element).await?;
            if last == Some(point) || Instant::now() >= deadline {
                self.uncovered(element, point).await?;
                return Ok(point);
            }
            last = Some(point);
            self.on(element, NEXT_FRAME, json!([])).await?;
        }
    }

    async fn centre(&self, element: &Element) -> Result<Point> {
        let hidden = || {
            unusable(format!(
                "e{} cannot be seen: it has no place on the page.",
                element.number
            ))
        };
        let quads = self
            .call::<Quads>("DOM.getContentQuads", json!({"objectId": element.object}))
            .await;
        let quads = match quads {
            Ok(quads) => quads.quads,
            Err(ChromiumError::Protocol { .. }) => return Err(hidden()),
            Err(other) => return Err(other),
        };
        let metrics: Metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let view = metrics.css_visual_viewport;
        for quad in &quads {
            // What of it is in view.
            let xs = [quad[0], quad[2], quad[4], quad[6]].map(|x| x.clamp(0.0, view.client_width));
            let ys = [quad[1], quad[3], quad[5], quad[7]].map(|y| y.clamp(0.0, view.client_height));
            let (left, right) = (
                xs.into_iter().fold(f64::MAX, f64::min),
                xs.into_iter().fold(0.0, f64::max),
            );
            let (top, bottom) = (
                ys.into_iter().fold(f64::MAX, f64::min),
                ys.into_iter().fold(0.0, f64::max),
            );
            if right - left >= 1.0 && bottom - top >= 1.0 {
                return Ok(Point {
                    x: (left + right) / 2.0,
                    y: (top + bottom) / 2.0,
                });
            }
        }
        Err(hidden())
    }

    /// That what lies at the point is the element, its label, or in line with it.
    async fn uncovered(&self, element: &Element, point: Point) -> Result<()> {
        let metrics: Metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let view = metrics.css_visual_viewport;
        #[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
        let (x, y) = (
            (point.x + view.page_x) as i64,
            (point.y + view.page_y) as i64,
        );
        let params = json!({"x": x, "y": y, "includeUserAgentShadowDOM": false});
        let hit = self.call::<Hit>("DOM.getNodeForLocation", params).await;
        let hit = match hit {
            Ok(hit) => hit,
            Err(ChromiumError::Protocol { .. }) => return Ok(()),
            Err(other) => return Err(other),
        };
        if hit.backend_node_id == element.entry.node {
            return Ok(());
        }
        let same_frame = hit.frame_id == element.entry.frame;
        if same_frame {
            let object = self.object(hit.backend_node_id, &hit.frame_id).await?;
            if self
                .on(element, IN_LINE, json!([{"objectId": object}]))
                .await?
                == true
            {
                return Ok(());
            }
        } else if self
            .on(
                element,
                "function() { return this.nodeName === 'IFRAME' }",
                json!([]),
            )
            .await?
            == true
        {
            return Ok(());
        }
        let by = self.cover_line(&hit).await?;
        Err(ChromiumError::Covered {
            number: element.number,
            by,
        })
    }

    /// The line of what covers an element: of it, or of the nearest one above it that has one.
    async fn cover_line(&self, hit: &Hit) -> Result<String> {
        let Ok(mut object) = self.object(hit.backend_node_id, &hit.frame_id).await else {
            return Ok("another element".to_owned());
        };
        let mut node = hit.backend_node_id;
        for _ in 0..8 {
            if let Some(line) = self.line_of(node).await? {
                return Ok(line.trim_start_matches("- ").to_owned());
            }
            let params = json!({
                "functionDeclaration": "function() { return this.parentElement || this.getRootNode().host }",
                "objectId": object,
            });
            let above: Value = self.call("Runtime.callFunctionOn", params).await?;
            let Some(next) = above["result"]["objectId"].as_str() else {
                break;
            };
            object = next.to_owned();
            let described: Value = self
                .call("DOM.describeNode", json!({"objectId": object}))
                .await?;
            if matches!(
                described["node"]["nodeName"].as_str(),
                Some("BODY" | "HTML")
            ) {
                break;
            }
            node = described["node"]["backendNodeId"].as_i64().unwrap_or(-1);
        }
        let params = json!({"backendNodeId": hit.backend_node_id});
        let described: Value = self.call("DOM.describeNode", params).await?;
        let name = described["node"]["localName"].as_str().unwrap_or("element");
        let attributes = described["node"]["attributes"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let of = |wanted: &str| {
            attributes
                .chunks(2)
                .find(|pair| pair[0] == wanted)
                .and_then(|pair| pair.get(1)?.as_str())
                .map(|value| one_line(value, 60))
        };
        let mut line = one_line(name, 30);
        if let Some(id) = of("id") {
            line.push_str(&format!("#{id}"));
        } else if let Some(class) = of("class") {
            line.push_str(&format!(" (class {class})"));
        }
        if let Some(number) = self.give_ref(&hit.frame_id, hit.backend_node_id) {
            line.push_str(&format!(" [ref=e{number}]"));
        }
        Ok(line)
    }

    /// Replaces what a field holds, and compares.
    async fn type_into(&self, element: &Element, text: &str) -> Result<Option<String>> {
        let number = element.number;
        match self.on(element, TAKE_FIELD, json!([])).await?.as_str() {
            Some("field") => {}
            Some("disabled") => return Err(unusable(format!("e{number} is disabled."))),
            Some("readonly") => return Err(unusable(format!("e{number} is read-only."))),
            // Fields for dates, colours, ranges take no typing.
            Some("set") => {
                let set = self
                    .on(element, SET_VALUE, json!([{"value": text}]))
                    .await?;
                return Ok((set != true)
                    .then(|| format!("e{number} does not take \"{}\"", one_line(text, 60))));
            }
            _ => {
                return Err(unusable(format!(
                    "e{number} is no field for text. Use click, select or fill for it."
                )));
            }
        }
        if text.is_empty() {
            self.press("Delete").await?;
        } else {
            self.call::<Nothing>("Input.insertText", json!({"text": text}))
                .await?;
        }
        let holds = self.on(element, HOLDS, json!([])).await?;
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

    async fn fill(&self, element: &Element, value: &str) -> Result<Option<String>> {
        let number = element.number;
        let kind = self.on(element, FIELD_KIND, json!([])).await?;
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
                    let now = self.on(element, FIELD_KIND, json!([])).await?;
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
                // `change` comes when a field is left.
                self.on(element, "function() { this.blur() }", json!([]))
                    .await?;
                Ok(remark)
            }
        }
    }

    async fn select_options(&self, element: &Element, values: &[String]) -> Result<()> {
        let number = element.number;
        let done = self.on(element, SELECT, json!([{"value": values}])).await?;
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
                "e{number} is no list of the page's own kind (select). Click it, then its option."
            ))),
        }
    }

    async fn press(&self, name: &str) -> Result<()> {
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
        self.call_within::<Nothing>(Duration::from_secs(10), "Input.dispatchKeyEvent", down)
            .await?;
        let up = json!({
            "type": "keyUp", "key": key.key, "code": key.code, "modifiers": key.modifiers,
            "windowsVirtualKeyCode": key.number, "nativeVirtualKeyCode": key.number,
        });
        self.call_within::<Nothing>(Duration::from_secs(10), "Input.dispatchKeyEvent", up)
            .await
            .map(drop)
    }

    /// By the mouse; where the page then drags by the browser's own means, by those.
    async fn drag(&self, from: u32, to: u32) -> Result<()> {
        let (from, to) = (self.element(from).await?, self.element(to).await?);
        let start = self.reach(&from, true).await?;
        self.call::<Nothing>("Input.setInterceptDrags", json!({"enabled": true}))
            .await?;
        let dragged = self.drag_between(&to, start).await;
        self.call::<Nothing>("Input.setInterceptDrags", json!({"enabled": false}))
            .await?;
        dragged
    }

    async fn drag_between(&self, to: &Element, start: Point) -> Result<()> {
        self.with(|tab| tab.drag = None)?;
        self.mouse("mouseMoved", start, 0).await?;
        self.mouse("mousePressed", start, 1).await?;
        let end = self.centre(to).await?;
        let moved = |part: f64| {
            json!({
                "type": "mouseMoved", "button": "left", "buttons": 1,
                "x": start.x + (end.x - start.x) * part, "y": start.y + (end.y - start.y) * part,
            })
        };
        for part in [0.1, 0.5, 1.0] {
            // The answer to a move that begins a drag comes with the drag only.
            let call = self.shared.wire.call::<Nothing>(
                Some(&self.session),
                "Input.dispatchMouseEvent",
                moved(part),
            );
            let drag = self
                .shared
                .until(Instant::now() + Duration::from_secs(2), |state| {
                    state
                        .tabs
                        .get(&self.number)
                        .is_none_or(|tab| tab.drag.is_some())
                        .then_some(())
                });
            tokio::select! {
                answer = call => drop(answer?),
                drag = drag => drop(drag?),
            }
        }
        if let Some(data) = self.with(|tab| tab.drag.take())? {
            for kind in ["dragEnter", "dragOver", "drop"] {
                let params = json!({"type": kind, "x": end.x, "y": end.y, "data": data});
                self.call::<Nothing>("Input.dispatchDragEvent", params)
                    .await?;
            }
        }
        self.mouse("mouseReleased", end, 1).await
    }

    async fn scroll(&self, on: Option<u32>) -> Result<()> {
        match on {
            Some(number) => {
                let element = self.element(number).await?;
                self.on(&element, READY, json!([])).await.map(drop)
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
