//! The revisions of the protocol.

use std::fmt;

/// A revision of the protocol, identified by its date. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first revision: HTTP with server-sent events.
    V2024_11_05,
    /// Streamable HTTP, tool annotations, batches.
    V2025_03_26,
    /// Structured output, elicitation, resource links; no batches.
    V2025_06_18,
    /// Elicitation by URL.
    V2025_11_25,
    /// Stateless: no `initialize`; each request identifies the client.
    V2026_07_28,
}

impl Revision {
    /// All supported revisions, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The newest revision with `initialize`.
    pub const NEWEST_WITH_INITIALIZE: Self = Self::V2025_11_25;

    /// Parses a date. Returns `None` for an unsupported revision.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == date)
    }

    /// Returns the date in the form of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns whether a connection starts with `initialize`.
    pub fn has_initialize(self) -> bool {
        self <= Self::NEWEST_WITH_INITIALIZE
    }

    /// Returns the newest supported revision of these dates.
    pub fn newest_of<'a>(dates: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        dates.into_iter().filter_map(Self::parse).max()
    }

    /// Returns the server's answer to `initialize` with this date: the same revision if it is
    /// supported and has `initialize`, otherwise the newest one that has it.
    pub fn answer_to(date: &str) -> Self {
        Self::parse(date)
            .filter(|one| one.has_initialize())
            .unwrap_or(Self::NEWEST_WITH_INITIALIZE)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Keys of `_meta` in requests, notifications and answers of the stateless revision.
pub mod meta {
    /// The revision of a request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client's name and version.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The client's capabilities.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The minimum level of log messages to send.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The server's name and version.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The subscription that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_revision_that_both_know_is_used() {
        let both = Revision::newest_of(["2024-11-05", "2025-06-18", "2031-01-01"]);
        assert_eq!(both, Some(Revision::V2025_06_18));
        assert_eq!(Revision::newest_of(["1999-01-01"]), None);
        assert_eq!(Revision::answer_to("2025-03-26"), Revision::V2025_03_26);
        assert_eq!(Revision::answer_to("2031-01-01"), Revision::V2025_11_25);
        assert_eq!(Revision::answer_to("2026-07-28"), Revision::V2025_11_25);
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for one in Revision::ALL {
            assert_eq!(Revision::parse(one.as_str()), Some(one));
        }
        assert!(Revision::ALL.is_sorted());
    }
}
