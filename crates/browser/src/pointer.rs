//! The mouse: finds the position of an element, checks that the mouse can reach it there, clicks
//! and drags.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    cdp_pipe::IgnoredResult,
    error::{ChromiumError, Result, unusable},
    scripts::{IN_LINE, NEXT_FRAME, READY},
    tab::{PageElement, Tab},
    text::one_line,
};

/// The time an element may take to stop moving.
const COMES_TO_REST: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct ContentQuads {
    quads: Vec<[f64; 8]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HitTest {
    backend_node_id: i64,
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutMetrics {
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

/// A position of the mouse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MousePoint {
    x: f64,
    y: f64,
}

impl Tab {
    pub(crate) async fn click(&self, element: &PageElement, double: bool) -> Result<()> {
        let point = self.reach(element, true).await?;
        self.mouse("mouseMoved", point, 0).await?;
        for count in 1..=if double { 2 } else { 1 } {
            self.mouse("mousePressed", point, count).await?;
            self.mouse("mouseReleased", point, count).await?;
        }
        Ok(())
    }

    pub(crate) async fn mouse(&self, kind: &str, at: MousePoint, clicks: u32) -> Result<()> {
        let pressed = kind != "mouseMoved";
        let params = json!({
            "type": kind, "x": at.x, "y": at.y, "clickCount": clicks,
            "button": if pressed { "left" } else { "none" },
            "buttons": u32::from(kind == "mousePressed"),
        });
        self.call_within::<IgnoredResult>(
            Duration::from_secs(10),
            "Input.dispatchMouseEvent",
            params,
        )
        .await
        .map(drop)
    }

    /// Scrolls an element into view and waits until it stops moving. Returns the point where the
    /// mouse reaches it.
    pub(crate) async fn reach(&self, element: &PageElement, enabled: bool) -> Result<MousePoint> {
        let number = element.number;
        let deadline = Instant::now() + COMES_TO_REST;
        // Not `scrollIntoViewIfNeeded`, which waits for the page's smooth scrolling.
        let ready = self.call_on_element(element, READY, json!([])).await?;
        if ready == "hidden" {
            return Err(unusable(format!(
                "e{number} is not visible: it has no area on the page."
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
            self.call_on_element(element, NEXT_FRAME, json!([])).await?;
        }
    }

    async fn centre(&self, element: &PageElement) -> Result<MousePoint> {
        let hidden = || {
            unusable(format!(
                "e{} is not visible: it has no area on the page.",
                element.number
            ))
        };
        let quads = self
            .call::<ContentQuads>("DOM.getContentQuads", json!({"objectId": element.object}))
            .await;
        let quads = match quads {
            Ok(quads) => quads.quads,
            Err(ChromiumError::Protocol { .. }) => return Err(hidden()),
            Err(other) => return Err(other),
        };
        let metrics: LayoutMetrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let view = metrics.css_visual_viewport;
        for quad in &quads {
            // The part of the element that is in view.
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
                return Ok(MousePoint {
                    x: (left + right) / 2.0,
                    y: (top + bottom) / 2.0,
                });
            }
        }
        Err(hidden())
    }

    /// Checks that the topmost element at the point is the element, its label, one of its ancestors
    /// or one of its descendants.
    async fn uncovered(&self, element: &PageElement, point: MousePoint) -> Result<()> {
        let metrics: LayoutMetrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let view = metrics.css_visual_viewport;
        #[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
        let (x, y) = (
            (point.x + view.page_x) as i64,
            (point.y + view.page_y) as i64,
        );
        let params = json!({"x": x, "y": y, "includeUserAgentShadowDOM": false});
        let hit = self.call::<HitTest>("DOM.getNodeForLocation", params).await;
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
                .call_on_element(element, IN_LINE, json!([{"objectId": object}]))
                .await?
                == true
            {
                return Ok(());
            }
        } else if self
            .call_on_element(
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

    /// Returns the snapshot line of the covering element, or of its nearest ancestor that has a
    /// line.
    async fn cover_line(&self, hit: &HitTest) -> Result<String> {
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
        if let Some(number) = self.assign_ref(&hit.frame_id, hit.backend_node_id) {
            line.push_str(&format!(" [ref=e{number}]"));
        }
        Ok(line)
    }

    /// Drags with the mouse. If the page then starts a native drag and drop, the drop is sent with
    /// drag events.
    pub(crate) async fn drag(&self, from: u32, to: u32) -> Result<()> {
        let (from, to) = (self.element(from).await?, self.element(to).await?);
        let start = self.reach(&from, true).await?;
        self.call::<IgnoredResult>("Input.setInterceptDrags", json!({"enabled": true}))
            .await?;
        let dragged = self.drag_between(&to, start).await;
        self.call::<IgnoredResult>("Input.setInterceptDrags", json!({"enabled": false}))
            .await?;
        dragged
    }

    async fn drag_between(&self, to: &PageElement, start: MousePoint) -> Result<()> {
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
            // A move that starts a native drag is answered only when the drag has started.
            let call = self.shared.wire.call::<IgnoredResult>(
                Some(&self.session),
                "Input.dispatchMouseEvent",
                moved(part),
            );
            let drag = self
                .shared
                .wait_until(Instant::now() + Duration::from_secs(2), |state| {
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
                self.call::<IgnoredResult>("Input.dispatchDragEvent", params)
                    .await?;
            }
        }
        self.mouse("mouseReleased", end, 1).await
    }
}
