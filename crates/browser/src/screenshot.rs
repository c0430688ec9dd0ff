//! Screenshots of pages, in sizes that models accept, and PDFs.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    error::{Result, unusable},
    tab::Tab,
};

/// The maximum length of the longer side of a screenshot, in pixels.
const MAX_EDGE: f64 = 1_568.0;
/// The maximum extent of a page to capture, in CSS pixels.
const MAX_PAGE: f64 = 8_000.0;
/// The size in bytes above which a PNG is replaced by a JPEG.
const MAX_PNG: usize = 500 << 10;

/// A screenshot of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// The image file.
    pub bytes: Vec<u8>,
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    /// The captured area in CSS pixels.
    pub shows: (u32, u32),
    /// The size of the whole page or element, if only a part was captured.
    pub cut_from: Option<(u32, u32)>,
}

/// The area to capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenshotArea {
    /// The visible viewport.
    View,
    /// The whole page.
    Page,
    /// One element.
    Element(u32),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetrics {
    css_visual_viewport: Value,
    css_content_size: Value,
}

#[derive(Deserialize)]
struct CapturedData {
    data: String,
}

impl Tab {
    /// Takes a screenshot.
    ///
    /// # Errors
    /// The page does not answer, or the element no longer exists.
    pub async fn take_screenshot(&self, of: ScreenshotArea) -> Result<Screenshot> {
        let metrics: PageMetrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(0.0);
        let view = &metrics.css_visual_viewport;
        let (page_x, page_y) = (number(view, "pageX"), number(view, "pageY"));
        let (x, y, width, height) = match of {
            ScreenshotArea::View => (
                page_x,
                page_y,
                number(view, "clientWidth"),
                number(view, "clientHeight"),
            ),
            ScreenshotArea::Page => {
                let size = &metrics.css_content_size;
                (0.0, 0.0, number(size, "width"), number(size, "height"))
            }
            ScreenshotArea::Element(number) => {
                let element = self.element(number).await?;
                self.call_on_element(&element, "function() { this.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'}) }", json!([]))
                    .await?;
                let model: Value = self
                    .call("DOM.getBoxModel", json!({"objectId": element.object}))
                    .await
                    .map_err(|_| {
                        unusable(format!(
                            "e{number} is not visible: it has no area on the page."
                        ))
                    })?;
                let metrics: PageMetrics = self.call("Page.getLayoutMetrics", json!({})).await?;
                let view = &metrics.css_visual_viewport;
                let border = |at: usize| model["model"]["border"][at].as_f64().unwrap_or(0.0);
                let x = view["pageX"].as_f64().unwrap_or(0.0) + border(0);
                let y = view["pageY"].as_f64().unwrap_or(0.0) + border(1);
                let side = |name: &str| model["model"][name].as_f64().unwrap_or(0.0);
                (x.max(0.0), y.max(0.0), side("width"), side("height"))
            }
        };
        if width < 1.0 || height < 1.0 {
            return Err(unusable(
                "The page or element has no size: no screenshot can be taken.",
            ));
        }
        let shown = (width.min(MAX_PAGE), height.min(MAX_PAGE));
        let scale = (MAX_EDGE / shown.0.max(shown.1)).min(1.0);
        let beyond = of != ScreenshotArea::View;
        let take = |format: &'static str| {
            let mut params = json!({
                "format": format, "captureBeyondViewport": beyond, "optimizeForSpeed": false,
                "clip": {"x": x, "y": y, "width": shown.0, "height": shown.1, "scale": scale},
            });
            if format == "jpeg" {
                params["quality"] = json!(80);
            }
            self.call::<CapturedData>("Page.captureScreenshot", params)
        };
        let png = decode(&take("png").await?.data)?;
        let (bytes, media_type) = if png.len() > MAX_PNG {
            (decode(&take("jpeg").await?.data)?, "image/jpeg")
        } else {
            (png, "image/png")
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "sizes of a page"
        )]
        let whole = |width: f64, height: f64| (width.round() as u32, height.round() as u32);
        Ok(Screenshot {
            bytes,
            media_type,
            shows: whole(shown.0, shown.1),
            cut_from: (shown != (width, height)).then(|| whole(width, height)),
        })
    }

    /// Prints the page to a PDF.
    ///
    /// # Errors
    /// The page does not answer.
    pub async fn pdf(&self) -> Result<Vec<u8>> {
        let printed: CapturedData = self
            .call("Page.printToPDF", json!({"printBackground": true}))
            .await?;
        decode(&printed.data)
    }
}

fn decode(base64: &str) -> Result<Vec<u8>> {
    data_encoding::BASE64
        .decode(base64.as_bytes())
        .map_err(|error| unusable(format!("the browser sent an invalid image: {error}")))
}
