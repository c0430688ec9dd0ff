//! Emulates other screens and environments in one tab.

use serde_json::json;

use crate::{cdp_pipe::IgnoredResult, error::Result, tab::Tab};

/// The emulated properties of a tab. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emulation {
    /// The viewport width in CSS pixels.
    pub width: Option<u32>,
    /// The viewport height in CSS pixels.
    pub height: Option<u32>,
    /// Emulates a phone: touch input and a mobile viewport.
    pub mobile: Option<bool>,
    /// The user prefers a dark colour scheme.
    pub dark: Option<bool>,
    /// The network is disconnected.
    pub offline: Option<bool>,
}

impl Tab {
    /// Applies the fields that are set to the tab, and returns all emulated properties.
    ///
    /// # Errors
    /// The page does not answer.
    pub async fn emulate(&self, wanted: &Emulation) -> Result<Emulation> {
        let now = self.with(|tab| tab.emulated.clone().unwrap_or_default())?;
        let all = Emulation {
            width: wanted
                .width
                .map(|width| width.clamp(100, 4_000))
                .or(now.width),
            height: wanted
                .height
                .map(|height| height.clamp(100, 4_000))
                .or(now.height),
            mobile: wanted.mobile.or(now.mobile),
            dark: wanted.dark.or(now.dark),
            offline: wanted.offline.or(now.offline),
        };
        let mobile = all.mobile == Some(true);
        let (width, height) = if mobile { (390, 844) } else { (1280, 800) };
        let screen = json!({
            "width": all.width.unwrap_or(width), "height": all.height.unwrap_or(height),
            "deviceScaleFactor": 1, "mobile": mobile,
        });
        self.call::<IgnoredResult>("Emulation.setDeviceMetricsOverride", screen)
            .await?;
        self.call::<IgnoredResult>(
            "Emulation.setTouchEmulationEnabled",
            json!({"enabled": mobile}),
        )
        .await?;
        let scheme = match all.dark {
            Some(true) => "dark",
            Some(false) => "light",
            None => "",
        };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call::<IgnoredResult>("Emulation.setEmulatedMedia", media)
            .await?;
        let network = json!({
            "offline": all.offline == Some(true), "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        self.call::<IgnoredResult>("Network.emulateNetworkConditions", network)
            .await?;
        self.with(|tab| tab.emulated = Some(all.clone()))?;
        Ok(all)
    }
}
