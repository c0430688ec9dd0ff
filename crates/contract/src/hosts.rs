//! Hosts that a command may talk to, by rule.
//!
//! The rules are data ([`HostLists`]); the one who knows how patterns are matched brings [`JudgeHosts`] made from
//! it. Data alone, as it comes from another process, allows no host until someone does.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Hosts by rule. Cheap to clone.
#[derive(Clone)]
pub struct Hosts(Arc<dyn JudgeHosts>);

/// Knows what is said of hosts.
pub trait JudgeHosts: Send + Sync {
    /// What is said of this one; asked with a host as it was requested, without brackets, and a port.
    fn judge(&self, host: &str, port: u16) -> HostVerdict;

    /// The same as data.
    fn lists(&self) -> HostLists;

    /// The same with rules that name hosts for this tool alone, such as `Browser(domain:HOST)`. `None`: there are
    /// no such rules.
    fn for_tool(&self, _tool: &str) -> Option<Hosts> {
        None
    }
}

/// What the rules say of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostVerdict {
    /// It may be talked to.
    Allowed,
    /// It may not.
    Denied,
    /// They do not name it, and a person may be asked.
    Ask,
}

/// What is said of hosts, as data. Denied beats asked beats allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLists {
    /// May be talked to.
    pub allowed: Vec<HostGlob>,
    /// Are asked about each time.
    pub asked: Vec<HostGlob>,
    /// May not be talked to, whatever else says so.
    pub denied: Vec<HostGlob>,
    /// What is not named is denied, and not asked about.
    pub closed: bool,
}

/// Hosts of one pattern, as rules write them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGlob {
    /// A name, `*.name`, or an address.
    pub host: String,
    /// At this port only.
    pub port: Option<u16>,
}

impl Hosts {
    /// As these rules say.
    pub fn by(rules: impl JudgeHosts + 'static) -> Self {
        Self(Arc::new(rules))
    }

    /// No rule names any: a person is asked about each.
    pub fn asking() -> Self {
        Self::by(HostLists::default())
    }

    /// What the rules say of this one.
    pub fn judge(&self, host: &str, port: u16) -> HostVerdict {
        self.0.judge(host, port)
    }

    /// The same as data.
    pub fn lists(&self) -> HostLists {
        self.0.lists()
    }

    /// With the rules that name hosts for this tool alone.
    #[must_use]
    pub fn for_tool(&self, tool: &str) -> Self {
        self.0.for_tool(tool).unwrap_or_else(|| self.clone())
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hosts").field(&self.lists()).finish()
    }
}

impl Serialize for Hosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lists().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        HostLists::deserialize(deserializer).map(Self::by)
    }
}

/// No one here knows how patterns are matched.
impl JudgeHosts for HostLists {
    fn judge(&self, _: &str, _: u16) -> HostVerdict {
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
        let written = serde_json::to_string(&Hosts::by(lists.clone())).unwrap();
        let read: Hosts = serde_json::from_str(&written).unwrap();
        assert_eq!(read.lists(), lists);
        assert_eq!(read.judge("a.example.com", 443), HostVerdict::Denied);
        assert_eq!(
            Hosts::asking().judge("a.example.com", 443),
            HostVerdict::Ask
        );
    }
}
