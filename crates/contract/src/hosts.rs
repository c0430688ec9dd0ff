//! The host policy: rules for the hosts that a command may connect to.
//!
//! The rules are data ([`HostLists`]). The crate that can match patterns builds a [`HostEvaluator`]
//! from the data. Data that was deserialized in another process allows no host until an evaluator is
//! built from it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The host policy. Cheap to clone.
#[derive(Clone)]
pub struct HostPolicy(Arc<dyn HostEvaluator>);

/// Evaluates hosts.
pub trait HostEvaluator: Send + Sync {
    /// Evaluates a host and a port. The host is unchanged from the request, but without brackets.
    fn evaluate(&self, host: &str, port: u16) -> HostVerdict;

    /// Returns the rules as data.
    fn lists(&self) -> HostLists;

    /// Returns this policy extended by the rules that name hosts for this tool only, such as
    /// `Browser(domain:HOST)`. `None`: no such rules exist.
    fn for_tool(&self, _tool: &str) -> Option<HostPolicy> {
        None
    }
}

/// The decision on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostVerdict {
    /// Connections are allowed.
    Allowed,
    /// Connections are denied.
    Denied,
    /// No rule names the host; the user may be asked.
    Ask,
}

/// Host rules as data. Denied overrides asked, and asked overrides allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLists {
    /// Hosts that are allowed.
    pub allowed: Vec<HostGlob>,
    /// Hosts that the user is asked about each time.
    pub asked: Vec<HostGlob>,
    /// Hosts that are denied, regardless of the other lists.
    pub denied: Vec<HostGlob>,
    /// Hosts that no list names are denied without asking.
    pub closed: bool,
}

/// A host pattern, as written in rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGlob {
    /// A name, `*.name`, or an address.
    pub host: String,
    /// The only port it applies to; `None`: every port.
    pub port: Option<u16>,
}

impl HostPolicy {
    /// Creates a policy from an evaluator.
    pub fn from_evaluator(rules: impl HostEvaluator + 'static) -> Self {
        Self(Arc::new(rules))
    }

    /// Returns a policy without rules: the user is asked about each host.
    pub fn ask_all() -> Self {
        Self::from_evaluator(HostLists::default())
    }

    /// Evaluates a host and a port.
    pub fn evaluate(&self, host: &str, port: u16) -> HostVerdict {
        self.0.evaluate(host, port)
    }

    /// Returns the rules as data.
    pub fn lists(&self) -> HostLists {
        self.0.lists()
    }

    /// Returns this policy extended by the rules that name hosts for this tool only.
    #[must_use]
    pub fn for_tool(&self, tool: &str) -> Self {
        self.0.for_tool(tool).unwrap_or_else(|| self.clone())
    }
}

impl fmt::Debug for HostPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostPolicy").field(&self.lists()).finish()
    }
}

impl Serialize for HostPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lists().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HostPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        HostLists::deserialize(deserializer).map(Self::from_evaluator)
    }
}

/// Data that cannot match its patterns: unless it is empty, every host is denied.
impl HostEvaluator for HostLists {
    fn evaluate(&self, _: &str, _: u16) -> HostVerdict {
        let asks = Self::default() == *self;
        if asks {
            HostVerdict::Ask
        } else {
            HostVerdict::Denied
        }
    }

    fn lists(&self) -> HostLists {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_alone_allows_no_host() {
        let lists = HostLists {
            allowed: vec![HostGlob {
                host: "*.example.com".to_owned(),
                port: Some(443),
            }],
            ..HostLists::default()
        };
        let written = serde_json::to_string(&HostPolicy::from_evaluator(lists.clone())).unwrap();
        let read: HostPolicy = serde_json::from_str(&written).unwrap();
        assert_eq!(read.lists(), lists);
        assert_eq!(read.evaluate("a.example.com", 443), HostVerdict::Denied);
        assert_eq!(
            HostPolicy::ask_all().evaluate("a.example.com", 443),
            HostVerdict::Ask
        );
    }
}
