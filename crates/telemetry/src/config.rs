//! The standard environment variables of OpenTelemetry, and warnings about invalid ones.
//!
//! Nothing is sent unless `CLAUDE_CODE_ENABLE_TELEMETRY` is set, because `OTEL_*` variables are
//! often set for other programs. An invalid variable causes a warning, and the signal that it
//! configures is disabled. Values of headers are never shown.

use std::time::Duration;

/// The variable that enables telemetry.
pub const SWITCH: &str = "CLAUDE_CODE_ENABLE_TELEMETRY";

const ENDPOINT: &str = "http://localhost:4318";
const TIMEOUT: Duration = Duration::from_secs(10);
/// The default timeout of the final flush when a session ends.
const LAST_FLUSH: Duration = Duration::from_secs(2);
/// The upper limit of that timeout, regardless of the variable.
const MAX_FLUSH: Duration = Duration::from_secs(60);

/// The encoding of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireEncoding {
    /// `http/protobuf`
    Protobuf,
    /// `http/json`
    Json,
}

/// The target of one signal.
#[derive(Clone, PartialEq, Eq)]
pub struct SignalTarget {
    /// The address.
    pub url: String,
    /// The names and values of additional headers. Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// The encoding of messages.
    pub encoding: WireEncoding,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The interval between messages.
    pub interval: Duration,
}

// Written by hand, so that no secret ends up in a log.
impl std::fmt::Debug for SignalTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SignalTarget")
            .field("url", &place(&self.url))
            .field("headers", &headers)
            .field("encoding", &self.encoding)
            .field("timeout", &self.timeout)
            .field("interval", &self.interval)
            .finish()
    }
}

/// The signals that are sent, with their targets and contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The target of spans.
    pub traces: Option<SignalTarget>,
    /// The target of metrics.
    pub metrics: Option<SignalTarget>,
    /// The target of events.
    pub logs: Option<SignalTarget>,
    /// The attributes of the resource, by name.
    pub resource: Vec<(String, String)>,
    /// The timeout of the final flush when a session ends.
    pub last_flush: Duration,
    /// Whether the text of prompts is sent.
    pub with_prompts: bool,
    /// Whether the inputs of tools are sent.
    pub with_tool_inputs: bool,
    /// Whether the results of tools are sent.
    pub with_tool_results: bool,
}

impl TelemetryConfig {
    /// Reads the configuration and returns it with warnings about invalid variables. The
    /// configuration is `None` if telemetry is disabled or there is nothing to send.
    pub fn from_variables(
        get: impl Fn(&str) -> Option<String>,
        version: &str,
    ) -> (Option<Self>, Vec<String>) {
        let mut reader = VariableReader {
            get: &get,
            warnings: Vec::new(),
        };
        let config = reader.config(version);
        (config, reader.warnings)
    }
}

struct VariableReader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl VariableReader<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let value = (self.get)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    fn is_on(&self, name: &str) -> bool {
        let value = self.text(name).map(|value| value.to_ascii_lowercase());
        matches!(value.as_deref(), Some("1" | "true" | "yes" | "on"))
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(format!("telemetry: {text}"));
    }

    fn config(&mut self, version: &str) -> Option<TelemetryConfig> {
        if !self.is_on(SWITCH) || self.is_on("OTEL_SDK_DISABLED") {
            return None;
        }
        let traces = self.target("TRACES", "traces", &["OTEL_BSP_SCHEDULE_DELAY"], 5_000);
        let metrics = self.target(
            "METRICS",
            "metrics",
            &["OTEL_METRIC_EXPORT_INTERVAL"],
            60_000,
        );
        let intervals = ["OTEL_LOGS_EXPORT_INTERVAL", "OTEL_BLRP_SCHEDULE_DELAY"];
        let logs = self.target("LOGS", "logs", &intervals, 5_000);
        if traces.is_none() && metrics.is_none() && logs.is_none() {
            if self.warnings.is_empty() && !self.names_an_exporter() {
                self.warn(format!(
                    "{SWITCH} is set, but no target: set OTEL_EXPORTER_OTLP_ENDPOINT, for example to {ENDPOINT}"
                ));
            }
            return None;
        }
        let requested = self.text("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE");
        if let Some(requested) = requested.filter(|value| !value.eq_ignore_ascii_case("cumulative"))
            && metrics.is_some()
        {
            self.warn(format!(
                "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE={requested}: only `cumulative` is supported, and is used"
            ));
        }
        let with_contents = self.is_on("OTEL_LOG_TOOL_CONTENT");
        Some(TelemetryConfig {
            traces,
            metrics,
            logs,
            resource: self.resource(version),
            last_flush: self
                .milliseconds(&["CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS"], LAST_FLUSH)
                .min(MAX_FLUSH),
            with_prompts: self.is_on("OTEL_LOG_USER_PROMPTS"),
            with_tool_inputs: with_contents || self.is_on("OTEL_LOG_TOOL_DETAILS"),
            with_tool_results: with_contents,
        })
    }

    fn names_an_exporter(&self) -> bool {
        ["TRACES", "METRICS", "LOGS"]
            .iter()
            .any(|signal| self.text(&format!("OTEL_{signal}_EXPORTER")).is_some())
    }

    /// Returns the variable for one signal, or the variable for all signals.
    fn signal_variable(&self, signal: &str, what: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_{what}");
        let all = format!("OTEL_EXPORTER_OTLP_{what}");
        let own = self.text(&own).map(|value| (own, value));
        own.or_else(|| self.text(&all).map(|value| (all, value)))
    }

    fn target(
        &mut self,
        signal: &str,
        path: &str,
        intervals: &[&str],
        usual: u64,
    ) -> Option<SignalTarget> {
        let variable = format!("OTEL_{signal}_EXPORTER");
        let named = self.text(&variable).map(|named| named.to_ascii_lowercase());
        let endpoint = self.signal_variable(signal, "ENDPOINT");
        match named.as_deref() {
            // By the standard the default is `otlp`. Here a signal is sent only if an endpoint is
            // set.
            None => drop(endpoint.as_ref()?),
            Some("otlp") => {}
            Some("none") => return None,
            Some(other) => {
                // The value may be a list of exporters.
                if !other.split(',').any(|one| one.trim() == "otlp") {
                    self.warn(format!(
                        "{variable}={other}: only `otlp` and `none` are supported; no {path} are sent"
                    ));
                    return None;
                }
            }
        }
        let encoding = self.encoding(signal, path)?;
        let url = self.url(signal, path, endpoint)?;
        let timeout = format!("OTEL_EXPORTER_OTLP_{signal}_TIMEOUT");
        let timeout = self.milliseconds(&[&timeout, "OTEL_EXPORTER_OTLP_TIMEOUT"], TIMEOUT);
        Some(SignalTarget {
            url,
            headers: self.headers(signal),
            encoding,
            timeout,
            interval: self.milliseconds(intervals, Duration::from_millis(usual)),
        })
    }

    fn encoding(&mut self, signal: &str, path: &str) -> Option<WireEncoding> {
        let Some((name, protocol)) = self.signal_variable(signal, "PROTOCOL") else {
            return Some(WireEncoding::Protobuf);
        };
        match protocol.as_str() {
            "http/protobuf" => Some(WireEncoding::Protobuf),
            "http/json" => Some(WireEncoding::Json),
            "grpc" => {
                self.warn(format!(
                    "{name}=grpc is not offered; no {path} are sent. Set http/protobuf, and the endpoint to the port for \
                     HTTP, usually 4318"
                ));
                None
            }
            other => {
                self.warn(format!(
                    "{name}={other}: expected http/protobuf or http/json; no {path} are sent"
                ));
                None
            }
        }
    }

    fn url(
        &mut self,
        signal: &str,
        path: &str,
        endpoint: Option<(String, String)>,
    ) -> Option<String> {
        let usual = || {
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(),
                ENDPOINT.to_owned(),
            )
        };
        let (name, url) = endpoint.unwrap_or_else(usual);
        let lower = url.to_ascii_lowercase();
        let rest = lower
            .strip_prefix("http://")
            .or_else(|| lower.strip_prefix("https://"));
        let is_url = rest.is_some_and(|rest| {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            !host.is_empty() && !url.contains(|c: char| c.is_whitespace() || c.is_control())
        });
        if !is_url {
            self.warn(format!(
                "{name} is not a URL: expected one that begins with http:// or https://; no {path} are sent"
            ));
            return None;
        }
        // An endpoint for a single signal is used unchanged.
        if name.contains(signal) {
            return Some(url);
        }
        let (base, query) = match url.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (url.as_str(), String::new()),
        };
        Some(format!("{}/v1/{path}{query}", base.trim_end_matches('/')))
    }

    fn headers(&mut self, signal: &str) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_HEADERS");
        for name in ["OTEL_EXPORTER_OTLP_HEADERS", &own] {
            let Some(text) = self.text(name) else {
                continue;
            };
            for (key, value) in self.pairs(name, &text) {
                let key = key.to_ascii_lowercase();
                let is_name = !key.is_empty()
                    && key.bytes().all(|byte| {
                        byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
                    });
                let is_value = !value.contains(|c: char| c.is_control());
                // These headers are set by the exporter.
                let is_ours = ["content-type", "content-length", "host"].contains(&key.as_str());
                if !is_name || !is_value || is_ours {
                    self.warn(format!(
                        "{name}: one of the headers cannot be sent; it is left out"
                    ));
                    continue;
                }
                headers.retain(|(other, _)| *other != key);
                headers.push((key, value));
            }
        }
        headers
    }

    fn resource(&mut self, version: &str) -> Vec<(String, String)> {
        let mut resource = vec![
            ("service.name".to_owned(), "haft".to_owned()),
            ("service.version".to_owned(), version.to_owned()),
            ("os.type".to_owned(), std::env::consts::OS.to_owned()),
            ("host.arch".to_owned(), std::env::consts::ARCH.to_owned()),
        ];
        let mut put = |key: String, value: String| {
            resource.retain(|(other, _)| *other != key);
            resource.push((key, value));
        };
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        if let Some(text) = self.text(name) {
            for (key, value) in self.pairs(name, &text) {
                put(key, value);
            }
        }
        if let Some(service) = self.text("OTEL_SERVICE_NAME") {
            put("service.name".to_owned(), service);
        }
        resource
    }

    /// Parses `a=1,b=%20`.
    fn pairs(&mut self, name: &str, text: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let pair = part
                .split_once('=')
                .and_then(|(key, value)| Some((decoded(key.trim())?, decoded(value.trim())?)));
            match pair.filter(|(key, _)| !key.is_empty()) {
                Some(pair) => pairs.push(pair),
                None => self.warn(format!(
                    "{name}: expected name=value, separated by commas; a part that is not is left out"
                )),
            }
        }
        pairs
    }

    fn milliseconds(&mut self, names: &[&str], usual: Duration) -> Duration {
        for name in names {
            let Some(text) = self.text(name) else {
                continue;
            };
            match text.parse::<u64>() {
                // Longer intervals are limited to a day, so that adding them to a time cannot
                // overflow.
                Ok(number @ 1..) => return Duration::from_millis(number.min(86_400_000)),
                _ => self.warn(format!(
                    "{name}={text}: expected milliseconds, a whole number above 0; using {} instead",
                    usual.as_millis()
                )),
            }
        }
        usual
    }
}

/// Returns the host of an address: the rest may contain secrets.
pub(crate) fn place(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    host.rsplit('@').next().unwrap_or(host)
}

/// Decodes percent-encoding. Returns `None` if the text is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Option<TelemetryConfig>, Vec<String>) {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        TelemetryConfig::from_variables(get, "0.0.0")
    }

    const ON: (&str, &str) = (SWITCH, "1");
    const HERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

    #[test]
    fn nothing_is_sent_unless_it_is_asked_for() {
        for variables in [
            &[HERE][..],
            &[(SWITCH, "0"), HERE],
            &[ON, HERE, ("OTEL_SDK_DISABLED", "true")],
            &[
                ON,
                HERE,
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_METRICS_EXPORTER", "none"),
                ("OTEL_LOGS_EXPORTER", "none"),
            ],
        ] {
            assert_eq!(read(variables), (None, Vec::new()), "{variables:?}");
        }
        let (config, warnings) = read(&[ON]);
        assert_eq!(config, None);
        assert!(
            warnings[0].contains("set OTEL_EXPORTER_OTLP_ENDPOINT"),
            "{warnings:?}"
        );
    }

    #[test]
    fn one_endpoint_serves_all_signals_and_one_may_have_its_own() {
        let (config, warnings) = read(&[
            ON,
            HERE,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/in?x=1"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "Authorization=Bearer%20a%3Db, X-Team = 7",
            ),
            ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-team=8"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=x,team=a%2Cb"),
            ("OTEL_SERVICE_NAME", "agents"),
        ]);
        assert_eq!(warnings, Vec::<String>::new());
        let config = config.unwrap();
        let (traces, metrics, logs) = (
            config.traces.unwrap(),
            config.metrics.unwrap(),
            config.logs.unwrap(),
        );
        assert_eq!(traces.url, "https://other/in?x=1");
        assert_eq!(metrics.url, "http://collector:4318/v1/metrics");
        assert_eq!(
            (traces.encoding, metrics.encoding),
            (WireEncoding::Protobuf, WireEncoding::Json)
        );
        let team = |number: &str| ("x-team".to_owned(), number.to_owned());
        assert_eq!(metrics.headers[0].1, "Bearer a=b");
        assert_eq!(metrics.headers[1], team("7"));
        assert_eq!(logs.headers[1], team("8"));
        assert_eq!(metrics.interval, Duration::from_millis(1_500));
        assert!(
            config
                .resource
                .contains(&("service.name".to_owned(), "agents".to_owned()))
        );
        assert!(
            config
                .resource
                .contains(&("team".to_owned(), "a,b".to_owned()))
        );
        assert!(!format!("{metrics:?}").contains("Bearer"));
        assert!(!config.with_prompts && !config.with_tool_inputs && !config.with_tool_results);
    }

    #[test]
    fn what_makes_no_sense_is_said_and_shows_no_secret() {
        let wrong = [
            (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "4318"),
            (
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon"),
                "http/json",
            ),
            (("OTEL_TRACES_EXPORTER", "console"), "only `otlp`"),
            (("OTEL_METRICS_EXPORTER", "prometheus"), "only `otlp`"),
            (("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"), "http://"),
            (("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"), "http://"),
            (
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "file:///etc/passwd"),
                "http://",
            ),
            (("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a\nb"), "http://"),
            (("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"), "name=value"),
            (("OTEL_EXPORTER_OTLP_HEADERS", "a=%zzhunter2"), "name=value"),
            (
                ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hunter2"),
                "cannot be sent",
            ),
            (
                ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2%0d%0ax: y"),
                "cannot be sent",
            ),
            (
                ("OTEL_EXPORTER_OTLP_HEADERS", "Content-Length=hunter2"),
                "cannot be sent",
            ),
            (("OTEL_METRIC_EXPORT_INTERVAL", "soon"), "milliseconds"),
            (("OTEL_EXPORTER_OTLP_TIMEOUT", "0"), "milliseconds"),
            (("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"), "milliseconds"),
            (
                ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
                "cumulative",
            ),
        ];
        for (variable, expected) in wrong {
            // The last of a name counts here.
            let (_, warnings) = read(&[ON, variable, HERE]);
            assert!(!warnings.is_empty(), "{variable:?}");
            let all = warnings.join("\n");
            assert!(all.contains(expected), "{variable:?}: {all}");
            assert!(!all.contains("hunter2"), "{all}");
        }
        // Nothing is so long that it could overflow.
        let (config, _) = read(&[
            ON,
            HERE,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "99999999999999999"),
        ]);
        assert_eq!(
            config.unwrap().logs.unwrap().timeout,
            Duration::from_secs(86_400)
        );
    }

    #[test]
    fn contents_are_each_asked_for_by_themselves() {
        let (config, _) = read(&[ON, HERE, ("OTEL_LOG_USER_PROMPTS", "1")]);
        let config = config.unwrap();
        assert!(config.with_prompts && !config.with_tool_inputs);
        let (config, _) = read(&[ON, HERE, ("OTEL_LOG_TOOL_DETAILS", "true")]);
        let config = config.unwrap();
        assert!(config.with_tool_inputs && !config.with_tool_results && !config.with_prompts);
        let (config, _) = read(&[ON, HERE, ("OTEL_LOG_TOOL_CONTENT", "1")]);
        let config = config.unwrap();
        assert!(config.with_tool_inputs && config.with_tool_results);
    }
}
