//! What a server says of a tool, as a definition of ours.

use std::time::Duration;

use haft::{Access, Effects, Profile, ToolSpec};
use haft_protocol::DescribedTool;

use super::schema;

/// How long a name may be for providers.
const LONGEST_NAME: usize = 64;
/// So much of a longer one is kept, before a hash that tells it from others.
const KEPT_NAME: usize = 55;
/// How much of a description the model is told, in characters.
const LONGEST_DESCRIPTION: usize = 2_048;
/// The most that a server may ask to be shown of a result, in characters.
const LONGEST_RESULT: u64 = 500_000;

/// How results and calls are held, where neither tool nor server says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    /// The longest result, in characters.
    pub(super) result_cap: usize,
    pub(super) timeout: Duration,
}

/// A tool of a server.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) spec: ToolSpec,
    /// As its server names it.
    pub(super) called: String,
    /// It only reads, says the server.
    pub(super) reads: bool,
    /// It wants a person to agree each time.
    pub(super) interactive: bool,
}

impl Definition {
    /// From an entry of `tools/list`; `None` for one without a name.
    pub(super) fn new(server: &str, listed: &DescribedTool, defaults: Defaults) -> Option<Self> {
        let called = Some(&listed.name).filter(|name| !name.is_empty())?;
        let annotations = listed.annotations.clone().unwrap_or_default();
        let meta = listed.meta.clone().unwrap_or_default();
        let reads = annotations.read_only_hint == Some(true);
        let (input_schema, told) = schema::fitting(&listed.input_schema);
        let said = listed.description.as_deref().unwrap_or_default().trim();
        let mut description = match said {
            "" => format!("The tool {called} of the server {server}."),
            said => said.chars().take(LONGEST_DESCRIPTION).collect(),
        };
        if let Some(told) = told {
            description = format!("{description}\n{told}");
        }
        let title = listed.title.clone().or(annotations.title);
        let cap = meta.max_result_size_chars;
        let cap = cap.map(|cap| usize::try_from(cap.min(LONGEST_RESULT)).unwrap_or(usize::MAX));
        let hint = meta.search_hint.unwrap_or_default();
        Some(Self {
            spec: ToolSpec {
                name: name(server, called),
                description,
                input_schema,
                profile: Profile {
                    title: title.map(Into::into),
                    family: "mcp".into(),
                    search_hint: hint.into(),
                    access: if reads {
                        Access::Reads
                    } else {
                        Access::Anything
                    },
                    result_cap: Some(cap.unwrap_or(defaults.result_cap)),
                    timeout: Some(defaults.timeout),
                    ..Profile::default()
                },
            },
            called: called.to_owned(),
            reads,
            interactive: meta.requires_user_interaction,
        })
    }

    /// What a call touches. Nobody can tell but the server; and nothing of ours.
    pub(super) fn effects(&self) -> Effects {
        if self.reads {
            return Effects::READS;
        }
        Effects {
            patches: false,
            ..Effects::EXCLUSIVE
        }
    }
}

/// `mcp__SERVER__TOOL`, of characters and a length that providers take.
pub(super) fn name(server: &str, tool: &str) -> String {
    let plain = |text: &str| -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        text.chars()
            .map(|c| if fits(c) { c } else { '_' })
            .collect()
    };
    let name = format!("mcp__{}__{}", plain(server), plain(tool));
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let hash = fnv(format!("{server}\0{tool}").as_bytes());
    format!("{}_{hash:08x}", &name[..KEPT_NAME])
}

/// FNV-1a: the same in every build and session, so that rules keep their meaning.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEFAULTS: Defaults = Defaults {
        result_cap: 100,
        timeout: Duration::from_secs(9),
    };

    #[test]
    fn names_are_of_characters_and_a_length_that_providers_take() {
        let long = "t".repeat(80);
        let cases = [
            ("calc", "add", "mcp__calc__add"),
            ("my server.x", "a/b", "mcp__my_server_x__a_b"),
            ("é", "ü", "mcp______"),
        ];
        for (server, tool, expected) in cases {
            assert_eq!(name(server, tool), expected);
        }
        let cut = name("calc", &long);
        assert_eq!(cut.len(), 64);
        assert!(cut.starts_with("mcp__calc__ttt"));
        assert_ne!(cut, name("calc", &format!("{long}x")));
        assert_ne!(cut, name("calc2", &long));
    }

    #[test]
    fn a_definition_is_what_the_server_says_within_bounds() {
        let listed = json!({
            "name": "add",
            "description": "x".repeat(5_000),
            "annotations": {"readOnlyHint": true, "title": "Addition"},
            "_meta": {"anthropic/maxResultSizeChars": 9_000_000},
            "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
        });
        let defined = |listed| Definition::new("calc", &DescribedTool::from(listed), DEFAULTS);
        let made = defined(listed).unwrap();
        assert_eq!(made.spec.description.len(), LONGEST_DESCRIPTION);
        assert_eq!(made.spec.title(), "Addition");
        assert_eq!(made.spec.profile.result_cap, Some(500_000));
        assert_eq!(made.effects(), Effects::READS);
        assert!(!made.interactive);

        let bare = defined(json!({"name": "x"})).unwrap();
        assert_eq!(bare.spec.description, "The tool x of the server calc.");
        assert_eq!(bare.spec.profile.result_cap, Some(100));
        assert!(bare.effects().exclusive && !bare.effects().patches);
        assert!(defined(json!({"name": ""})).is_none());
    }
}
