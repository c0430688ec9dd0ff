//! The actions of the Browser tool and their results.

use std::time::Duration;

use data_encoding::BASE64;
use haft_browser::{
    ChromiumError, Emulation, NavigationResult, PageAction, ScreenshotArea, SnapshotPart, Tab,
    is_loopback_url, one_line, ref_number, visible,
};
use haft_contract::{
    CallContext, Card, Content, ToolError, ToolOutput, ToolUse, output::MediaSource,
};

use super::{
    AgentTab, BrowserSession, PageSecrets,
    agent_tab::AgentTabs,
    output::{self, BrowserOutput},
    tool::{BrowserAction, Input, NAME},
};
use crate::{shell::host_questions::NamedCall, web::PageUrl};

/// The maximum number of characters of a requested snapshot, of one after a navigation, and of a
/// difference.
const WHOLE: usize = 20_000;
const AFTER_NAVIGATION: usize = 6_000;
const DIFFERENCE: usize = 4_000;
pub(super) const MAX_VALUE: usize = 20_000;
/// Parts of Chromium's error names: no connection was established (`NO_CONNECTION`), or a
/// connection failed or got no answer (`NO_ANSWER`).
const NO_CONNECTION: [&str; 2] = ["CONNECTION_REFUSED", "SOCKS"];
const NO_ANSWER: [&str; 4] = [
    "CONNECTION_",
    "SOCKS",
    "SOCKET_NOT_CONNECTED",
    "EMPTY_RESPONSE",
];
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Checks a URL that a model wrote.
pub(super) fn readable(url: &str) -> Result<(), ToolError> {
    if url == "about:blank" {
        return Ok(());
    }
    PageUrl::read(url).map(drop).map_err(|why| {
        if !url.contains("//") && PageUrl::read(&format!("http://{url}")).is_ok() {
            return ToolError::Refused(format!(
                "{url:?} is not a file of the project. Did you mean http://{url}?"
            ));
        }
        let hint = match url.starts_with("file:") || url.starts_with('/') {
            true => " Files of the project are at http://haft.localhost/PATH, relative to the working directory.",
            false => "",
        };
        ToolError::Refused(format!("{why}.{hint}"))
    })
}

pub(super) async fn perform(input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    let session = cx.services.get::<BrowserSession>()?;
    let _turn = session.turn.lock().await;
    let secrets = cx.services.get::<PageSecrets>().ok();
    let masked = |text: &str| match &secrets {
        Some(secrets) => secrets.masked(text),
        None => text.to_owned(),
    };
    let is_last = input.action == BrowserAction::Close && input.tab.is_none();
    if is_last && cx.services.get::<AgentTab>().is_err() {
        let closed = match session.close().await {
            true => "The browser is closed.",
            false => "No browser is running.",
        };
        return Ok(BrowserOutput::from_message(closed).output(&[], None, None, &masked));
    }
    let named = NamedCall {
        card: Card::new(NAME, input.action.name()),
        asked: ToolUse {
            id: cx.tool_use_id.to_string(),
            name: NAME.to_owned(),
            input: serde_json::to_value(input).unwrap_or_default(),
        },
    };
    session.hosts.open_for(cx, &named).await;
    // The guard ensures that haft asks no question on behalf of this call after its end.
    let _closing = HostApprovalGuard(&session);
    let (browser, count) = session.browser(cx).await?;
    let parting = session.take_parting();
    let tabs = AgentTabs::for_call(cx, &browser, count);
    let tab = tabs.tab().await.map_err(failed)?;
    if let Some(page) = &input.page {
        let acts = !matches!(input.action, BrowserAction::Navigate | BrowserAction::Tabs);
        // The call was permitted for this page only.
        let now = session.page(cx).await.unwrap_or_default();
        if acts && host_of(page) != host_of(&now) {
            return Err(ToolError::Failed(format!(
                "The page has changed from {page} to {now}. Take a snapshot before you act on it."
            )));
        }
        session.hosts.permit(page, acts);
    }
    let doing = BrowserCall {
        input,
        cx,
        session: &session,
        secrets: secrets.as_deref(),
        tabs: &tabs,
        tab: &tab,
    };
    let done = doing.perform_action().await;
    let mut notes = browser.take_notices();
    notes.extend(session.keep_downloads(&browser).await);
    let selected = match tabs.current() {
        Some(number) => browser.tab(number).await.ok(),
        None => None,
    };
    let shown = selected.as_ref().unwrap_or(&tab);
    match done {
        Ok(mut answer) => {
            if let Some(parting) = parting {
                answer.messages.insert(0, parting);
            }
            Ok(answer.output(&notes, Some(shown), Some(&tabs), &masked))
        }
        Err(error) => Err(output::failure(error, &notes, &masked)),
    }
}

struct HostApprovalGuard<'a>(&'a BrowserSession);

impl Drop for HostApprovalGuard<'_> {
    fn drop(&mut self) {
        self.0.hosts.close();
    }
}

fn host_of(url: &str) -> String {
    PageUrl::read(url)
        .map(|address| format!("{}:{}", address.host, address.port))
        .unwrap_or_default()
}

fn failed(error: ChromiumError) -> ToolError {
    ToolError::Failed(crate::web::strip_invisible(&error.to_string()))
}

pub(super) struct BrowserCall<'a> {
    pub(super) input: &'a Input,
    cx: &'a CallContext,
    session: &'a BrowserSession,
    secrets: Option<&'a PageSecrets>,
    tabs: &'a AgentTabs<'a>,
    pub(super) tab: &'a Tab,
}

impl BrowserCall<'_> {
    async fn perform_action(&self) -> Result<BrowserOutput, ToolError> {
        let Input { action, .. } = self.input;
        match action {
            BrowserAction::Navigate => self.navigate(self.tab).await,
            BrowserAction::Back => {
                self.navigation_output(self.tab, self.tab.go_history(-1, self.loading()).await)
                    .await
            }
            BrowserAction::Forward => {
                self.navigation_output(self.tab, self.tab.go_history(1, self.loading()).await)
                    .await
            }
            BrowserAction::Reload => {
                self.navigation_output(self.tab, self.tab.reload(self.loading()).await)
                    .await
            }
            BrowserAction::Snapshot => self.snapshot().await,
            BrowserAction::WaitFor => {
                let (text, gone) = (self.input.text.as_deref(), self.input.gone.as_deref());
                self.tab
                    .wait_for(text, gone, self.limit())
                    .await
                    .map_err(failed)?;
                Ok(BrowserOutput::from_message(match (text, gone) {
                    (Some(text), _) => format!("\"{text}\" is there."),
                    (None, gone) => format!("\"{}\" has disappeared.", gone.unwrap_or_default()),
                }))
            }
            BrowserAction::Tabs => self.tabs().await,
            BrowserAction::Dialog => {
                let accept = self.input.accept.unwrap_or_default();
                self.tab
                    .answer_dialog(accept, self.input.text.as_deref())
                    .await
                    .map_err(failed)?;
                self.changed(&[]).await
            }
            BrowserAction::Evaluate => self.evaluate().await,
            BrowserAction::Screenshot => self.screenshot().await,
            BrowserAction::Console => self.console(),
            BrowserAction::Network => self.network().await,
            BrowserAction::Pdf => {
                let bytes = self.tab.pdf().await.map_err(failed)?;
                let size = bytes.len();
                let path = self.save(bytes).await?;
                Ok(BrowserOutput::from_message(format!(
                    "The page was written to {path} ({size} bytes)."
                )))
            }
            BrowserAction::Emulate => self.emulate().await,
            BrowserAction::Trace => self.trace().await,
            BrowserAction::Close => {
                let number = self.input.tab.unwrap_or(self.tab.number());
                self.tabs.close(number).await.map_err(failed)?;
                Ok(BrowserOutput::from_message(format!(
                    "Tab {number} is closed."
                )))
            }
            _ => {
                let action = self.page_action().await?;
                let acted = self.tab.act(&action).await.map_err(failed)?;
                if acted.navigated {
                    return self
                        .show(
                            self.tab,
                            BrowserOutput::from_message(format!(
                                "The page is now {}.",
                                self.tab.url()
                            )),
                        )
                        .await;
                }
                let quiet = matches!(action, PageAction::Hover(_) | PageAction::Scroll(_));
                match quiet {
                    true => Ok(BrowserOutput::from_message("Done.")),
                    false => self.changed(&acted.remarks).await,
                }
            }
        }
    }

    fn limit(&self) -> Duration {
        Duration::from_millis(self.input.timeout.unwrap_or(10_000)).min(MAX_WAIT)
    }

    fn loading(&self) -> Duration {
        Duration::from_millis(self.input.timeout.unwrap_or(30_000)).min(MAX_WAIT)
    }

    fn reference(&self) -> Result<Option<u32>, ToolError> {
        self.input.reference.as_deref().map(number).transpose()
    }

    fn required(&self) -> Result<u32, ToolError> {
        number(self.input.reference.as_deref().unwrap_or_default())
    }

    async fn page_action(&self) -> Result<PageAction, ToolError> {
        let input = self.input;
        let values = || input.values.clone().unwrap_or_default();
        Ok(match input.action {
            BrowserAction::Click => PageAction::Click {
                on: self.required()?,
                double: input.double == Some(true),
            },
            BrowserAction::Hover => PageAction::Hover(self.required()?),
            BrowserAction::Type => {
                let (into, text) = (self.required()?, input.text.as_deref());
                PageAction::Type {
                    into,
                    text: self.field_text(into, text.unwrap_or_default()).await?,
                    submit: input.submit == Some(true),
                }
            }
            BrowserAction::Fill => {
                let mut fields = Vec::new();
                for field in input.fields.iter().flatten() {
                    let into = number(&field.reference)?;
                    fields.push((into, self.field_text(into, &field.value).await?));
                }
                PageAction::Fill(fields)
            }
            BrowserAction::Select => PageAction::Select {
                of: self.required()?,
                values: values(),
            },
            BrowserAction::Upload => PageAction::Upload {
                to: self.required()?,
                files: self.copy_upload_files().await?,
            },
            BrowserAction::Press => PageAction::Press(input.key.clone().unwrap_or_default()),
            BrowserAction::Drag => PageAction::Drag {
                from: self.required()?,
                to: number(input.to.as_deref().unwrap_or_default())?,
            },
            _ => PageAction::Scroll(self.reference()?),
        })
    }

    /// Returns the text to type into a field. Secrets that the text names are filled in, and the
    /// field is hidden from snapshots.
    async fn field_text(&self, into: u32, text: &str) -> Result<String, ToolError> {
        let secrets = self.secrets;
        let Some(secrets) = secrets.filter(|secrets| !secrets.named_in(text).is_empty()) else {
            return Ok(text.to_owned());
        };
        // A ref belongs to one document: when it is used afterwards, it is still in the document
        // that is checked here, or it no longer exists.
        let addresses = self.tab.addresses_around(into).await.map_err(failed)?;
        let text = secrets.fill_in(text, &addresses).await?;
        self.tab.conceal(into).await.map_err(failed)?;
        Ok(text)
    }

    /// Copies the files to upload into a folder that the browser can see. Only files that may be
    /// read are copied.
    async fn copy_upload_files(&self) -> Result<Vec<String>, ToolError> {
        let scratch = self
            .session
            .scratch()
            .await
            .ok_or(ToolError::Unavailable("the browser"))?;
        let mut files = Vec::new();
        for (at, given) in self.input.values.iter().flatten().enumerate() {
            let path = self.cx.cwd.join(given);
            let hidden = self.cx.permissions.hidden.clone();
            let folder = scratch
                .join("uploads")
                .join(format!("{at}-{}", self.cx.call));
            let copied = crate::blocking::blocking(move || {
                let real = std::fs::canonicalize(&path)?;
                if hidden.hides(&path) || hidden.hides(&real) || !real.is_file() {
                    return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
                }
                std::fs::create_dir_all(&folder)?;
                let name = real.file_name().unwrap_or_default();
                let copy = folder.join(name);
                std::fs::copy(&real, &copy)?;
                Ok(copy)
            });
            let copy = copied.await?.map_err(|source| ToolError::Read {
                path: given.into(),
                source,
            })?;
            files.push(copy.display().to_string());
        }
        Ok(files)
    }

    async fn navigate(&self, tab: &Tab) -> Result<BrowserOutput, ToolError> {
        let url = self.input.url.as_deref().unwrap_or_default();
        self.navigation_output(tab, tab.navigate(url, self.loading()).await)
            .await
    }

    async fn navigation_output(
        &self,
        tab: &Tab,
        arrival: Result<NavigationResult, ChromiumError>,
    ) -> Result<BrowserOutput, ToolError> {
        let arrival = match arrival {
            Ok(arrival) => arrival,
            Err(ChromiumError::Unreachable { error, url }) => {
                return Err(self.unreachable(&error, &url).await);
            }
            Err(error) => return Err(failed(error)),
        };
        let status = arrival
            .status
            .map(|status| format!(" ({status})"))
            .unwrap_or_default();
        let mut answer = BrowserOutput::from_message(format!("{}{status}", arrival.url));
        answer.status = arrival.status;
        if arrival.busy {
            answer = answer.with("It still loads.");
        }
        self.show(tab, answer).await
    }

    async fn unreachable(&self, error: &str, url: &str) -> ToolError {
        let hosts = &self.session.hosts;
        let said = match PageUrl::read(url) {
            Ok(address) if is_loopback_url(url) => {
                // A server may have started or ended since the last check.
                hosts.scan_ports().await;
                let at = format!("{}:{}", address.host, address.port);
                let is_any = |kinds: &[&str]| kinds.iter().any(|kind| error.contains(kind));
                match hosts.server(url) {
                    Some(by) if is_any(&NO_ANSWER) => Some(format!(
                        "{at} does not answer ({error}), though {by} listens there. What does its output say?"
                    )),
                    None if is_any(&NO_CONNECTION) => Some(hosts.ended(url).unwrap_or_else(|| {
                        format!("Nothing listens at {at}. Is the dev server running?")
                    })),
                    _ => None,
                }
            }
            _ => None,
        };
        ToolError::Failed(said.unwrap_or_else(|| format!("{error} at {url}.")))
    }

    /// Adds a snapshot of the page after a navigation.
    async fn show(&self, tab: &Tab, mut answer: BrowserOutput) -> Result<BrowserOutput, ToolError> {
        let part = SnapshotPart {
            max_chars: AFTER_NAVIGATION,
            ..SnapshotPart::default()
        };
        let shown = tab.snapshot(&part).await.map_err(failed)?;
        answer.page = Some(format!("title \"{}\"\n{shown}", tab.title()));
        Ok(answer)
    }

    async fn changed(&self, remarks: &[String]) -> Result<BrowserOutput, ToolError> {
        let mut answer =
            BrowserOutput::from_page(self.tab.difference(DIFFERENCE).await.map_err(failed)?);
        answer
            .messages
            .extend(remarks.iter().map(|remark| format!("Note: {remark}.")));
        Ok(answer)
    }

    async fn snapshot(&self) -> Result<BrowserOutput, ToolError> {
        let part = SnapshotPart {
            within: self.reference()?,
            find: self.input.text.clone(),
            max_chars: WHOLE,
        };
        Ok(BrowserOutput::from_page(
            self.tab.snapshot(&part).await.map_err(failed)?,
        ))
    }

    async fn tabs(&self) -> Result<BrowserOutput, ToolError> {
        if let Some(number) = self.input.tab {
            let tab = self.tabs.select(number).await.map_err(failed)?;
            return self
                .show(
                    &tab,
                    BrowserOutput::from_message(format!("Tab {number} is selected.")),
                )
                .await;
        }
        if self.input.url.is_some() {
            let tab = self.tabs.open().await.map_err(failed)?;
            return self.navigate(&tab).await;
        }
        let tabs = self.tabs.browser.tabs();
        let current = self.tabs.current();
        let lines = tabs.iter().map(|tab| {
            let selected = match (Some(tab.number) == current, self.tabs.has(tab.owner)) {
                (true, _) => " (selected)",
                (false, true) => "",
                (false, false) => " (another agent's)",
            };
            let waits = tab
                .dialog
                .as_ref()
                .map(|dialog| format!(" [{} open]", dialog.kind))
                .unwrap_or_default();
            format!(
                "{}: {} \"{}\"{selected}{waits}",
                tab.number,
                one_line(&tab.url, 300),
                tab.title
            )
        });
        Ok(BrowserOutput::from_page(
            lines.collect::<Vec<_>>().join("\n"),
        ))
    }

    async fn evaluate(&self) -> Result<BrowserOutput, ToolError> {
        let script = self.input.script.as_deref().unwrap_or_default();
        let value = self
            .tab
            .evaluate(script, self.reference()?, self.limit())
            .await
            .map_err(failed)?;
        let text = match &value {
            serde_json::Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        Ok(BrowserOutput::from_page(visible(&text, MAX_VALUE)))
    }

    async fn screenshot(&self) -> Result<BrowserOutput, ToolError> {
        let of = match (self.reference()?, self.input.full) {
            (Some(number), _) => ScreenshotArea::Element(number),
            (None, Some(true)) => ScreenshotArea::Page,
            (None, _) => ScreenshotArea::View,
        };
        let picture = self.tab.take_screenshot(of).await.map_err(failed)?;
        let extension = if picture.media_type == "image/png" {
            "png"
        } else {
            "jpg"
        };
        let name = format!("page-{}.{extension}", self.cx.call);
        let saved = self.session.store_file(name, picture.bytes.clone()).await?;
        let (width, height) = picture.shows;
        let mut answer = BrowserOutput::from_message(format!(
            "{width}×{height} px, saved as {}",
            saved.display()
        ));
        if let Some((width, height)) = picture.cut_from {
            answer = answer.with(format!("Cut: the page has {width}×{height} px."));
        }
        if self.input.save.is_some() {
            let path = self.save(picture.bytes.clone()).await?;
            answer = answer.with(format!("Written to {path}."));
        }
        answer.blocks.push(Content::Image {
            source: MediaSource::Base64 {
                media_type: picture.media_type.to_owned(),
                data: BASE64.encode(&picture.bytes),
            },
        });
        Ok(answer)
    }

    /// Writes to the path that was permitted.
    async fn save(&self, bytes: Vec<u8>) -> Result<String, ToolError> {
        let path = std::path::PathBuf::from(self.input.save.clone().unwrap_or_default());
        crate::fs::create(NAME, &path, bytes, self.cx).await?;
        Ok(path.display().to_string())
    }

    async fn emulate(&self) -> Result<BrowserOutput, ToolError> {
        let wanted = self.input.emulate.clone().unwrap_or_default();
        let wanted = Emulation {
            width: wanted.width,
            height: wanted.height,
            mobile: wanted.mobile,
            dark: wanted.dark,
            offline: wanted.offline,
        };
        let now = self.tab.emulate(&wanted).await.map_err(failed)?;
        let mut words = Vec::new();
        words.extend(now.width.map(|width| format!("width {width}")));
        words.extend(now.height.map(|height| format!("height {height}")));
        for (name, value) in [
            ("mobile", now.mobile),
            ("dark", now.dark),
            ("offline", now.offline),
        ] {
            words.extend(value.map(|value| format!("{name} {value}")));
        }
        Ok(BrowserOutput::from_message(format!(
            "This tab now has: {}.",
            words.join(", ")
        )))
    }

    async fn trace(&self) -> Result<BrowserOutput, ToolError> {
        let trace = self.tab.trace(self.loading()).await.map_err(failed)?;
        let ms =
            |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.0} ms"));
        let lcp = match trace.lcp {
            Some((at, Some(number))) => format!("{at:.0} ms [ref=e{number}]"),
            Some((at, None)) => format!("{at:.0} ms"),
            None => "none".to_owned(),
        };
        let mut answer = BrowserOutput::from_message(format!(
            "TTFB {}, FCP {}, LCP {lcp}, CLS {:.3}, long tasks {} ({:.0} ms), requests {} ({} KB), heap {} KB, nodes {}",
            ms(trace.ttfb),
            ms(trace.fcp),
            trace.cls,
            trace.long_tasks.0,
            trace.long_tasks.1,
            trace.requests.0,
            trace.requests.1 / 1024,
            trace.heap / 1024,
            trace.nodes
        ));
        answer.status = trace.arrival.status;
        Ok(answer)
    }
}

fn number(reference: &str) -> Result<u32, ToolError> {
    ref_number(reference).ok_or_else(|| {
        ToolError::Refused(format!(
            "\"{}\" is not a ref. Snapshots contain the refs, such as e5.",
            one_line(reference, 40)
        ))
    })
}
