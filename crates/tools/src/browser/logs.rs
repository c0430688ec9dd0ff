//! Console messages and network requests of a page, for the model.

use haft_browser::{ConsoleLevel, one_line, visible};
use haft_contract::ToolError;

use super::{
    actions::{BrowserCall, MAX_VALUE},
    output::BrowserOutput,
};

const MAX_BODY: usize = 10_000;

impl BrowserCall<'_> {
    pub(super) fn console(&self) -> Result<BrowserOutput, ToolError> {
        let worst = match self.input.filter.as_deref() {
            None | Some("error") => ConsoleLevel::Error,
            Some("warning") => ConsoleLevel::Warning,
            Some("all") => ConsoleLevel::Info,
            Some(_) => {
                return Err(ToolError::Refused(
                    "filter is error, warning or all.".to_owned(),
                ));
            }
        };
        let (lines, dropped) = self.tab.console(worst);
        let mut text: Vec<String> = lines
            .iter()
            .map(|line| {
                let level = match line.level {
                    ConsoleLevel::Error => "error",
                    ConsoleLevel::Warning => "warning",
                    ConsoleLevel::Info => "log",
                };
                let times = if line.times > 1 {
                    format!(" (×{})", line.times)
                } else {
                    String::new()
                };
                let place = if line.place.is_empty() {
                    String::new()
                } else {
                    format!(" at {}", line.place)
                };
                format!("{level}: {}{times}{place}", line.text)
            })
            .collect();
        if text.is_empty() {
            return Ok(BrowserOutput::from_message(match worst {
                ConsoleLevel::Info => "The console is empty.",
                _ => "The console has none of these since the last navigation.",
            }));
        }
        if dropped > 0 {
            text.insert(0, format!("({dropped} earlier lines dropped)"));
        }
        Ok(BrowserOutput::from_page(visible(
            &text.join("\n"),
            MAX_VALUE,
        )))
    }

    pub(super) async fn network(&self) -> Result<BrowserOutput, ToolError> {
        let (entries, dropped) = self.tab.network();
        if let Some(id) = self.input.id {
            let entry = entries.iter().find(|entry| entry.id == id).ok_or_else(|| {
                ToolError::Failed(format!(
                    "Request {id} does not exist; network lists all requests."
                ))
            })?;
            let mut text = network_line(entry);
            for (title, headers) in [
                ("request headers", &entry.request_headers),
                ("response headers", &entry.response_headers),
            ] {
                text.push_str(&format!("\n{title}:"));
                for (name, value) in headers {
                    text.push_str(&format!("\n  {name}: {value}"));
                }
            }
            match self.tab.body(entry).await {
                Ok(Some(body)) => text.push_str(&format!("\nbody:\n{}", visible(&body, MAX_BODY))),
                Ok(None) => text.push_str("\nbody: not text"),
                Err(_) => text.push_str("\nbody: not available"),
            }
            return Ok(BrowserOutput::from_page(text));
        }
        let wanted = self.input.filter.as_deref().unwrap_or_default();
        let shown: Vec<String> = entries
            .iter()
            .filter(|entry| entry.url.contains(wanted) || entry.kind.eq_ignore_ascii_case(wanted))
            .map(network_line)
            .collect();
        let mut text = shown.join("\n");
        if shown.is_empty() {
            return Ok(BrowserOutput::from_message("No requests."));
        }
        if dropped > 0 {
            text = format!("({dropped} earlier requests dropped)\n{text}");
        }
        Ok(BrowserOutput::from_page(visible(&text, MAX_VALUE)))
    }
}

fn network_line(entry: &haft_browser::NetworkEntry) -> String {
    let came = match (&entry.failure, entry.status, entry.pending) {
        (Some(failure), ..) => failure.clone(),
        (None, Some(status), _) => status.to_string(),
        (None, None, true) => "pending".to_owned(),
        (None, None, false) => "no answer".to_owned(),
    };
    format!(
        "{}: {} {} {came} ({}, {} bytes)",
        entry.id,
        entry.method,
        one_line(&entry.url, 300),
        entry.kind,
        entry.bytes
    )
}
