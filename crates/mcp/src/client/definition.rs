//! Converts a server's tool description into a tool definition.

use std::time::Duration;

use haft_contract::{
    Effects, Idempotency, ToolAccess, ToolError, ToolOrigin, ToolProfile, ToolSpec, provider_name,
    server_in_rules,
};
use haft_engine::schema::SchemaValidator;
use serde_json::Value;

use super::schema;

/// The maximum length of a name for providers.
const MAX_NAME: usize = 64;
/// The number of characters of a longer name that remain, before a hash that makes it unique.
const KEPT_NAME: usize = 55;
/// The maximum length of a description for the model, in characters.
const MAX_DESCRIPTION: usize = 2_048;
/// The largest result length in characters that a server may request.
const MAX_RESULT: u64 = 500_000;

/// The limits that apply if neither tool nor server sets them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolDefaults {
    /// The maximum length of a result in characters.
    pub(super) result_cap: usize,
    pub(super) timeout: Duration,
    /// If true, only the names of tools are sent until the model requests them.
    pub(super) deferred: bool,
}

/// A tool of a server.
#[derive(Debug)]
pub(super) struct ServerToolDefinition {
    pub(super) spec: ToolSpec,
    /// The server's name for the tool.
    pub(super) called: String,
    /// True if the server declares the tool read-only.
    pub(super) reads: bool,
    /// True if the server declares that repeated calls with the same arguments have no further
    /// effect.
    pub(super) is_idempotent: bool,
    /// True if the server requires the user to agree each time.
    pub(super) interactive: bool,
    /// Validates the input against the server's own schema, if the schema for providers is less
    /// strict.
    pub(super) input: Option<SchemaValidator>,
    /// The schema of its structured results.
    pub(super) output: Option<SchemaValidator>,
}

impl ServerToolDefinition {
    /// Converts an entry of `tools/list`. Returns `None` for an entry without a name.
    pub(super) fn new(server: &str, listed: &Value, defaults: ToolDefaults) -> Option<Self> {
        let called = listed["name"].as_str().filter(|name| !name.is_empty())?;
        let annotations = &listed["annotations"];
        let meta = &listed["_meta"];
        // Hints can only add restrictions to a call: a tool with contradictory hints is not
        // read-only.
        let reads = annotations["readOnlyHint"] == true && annotations["destructiveHint"] != true;
        let (input_schema, told) = schema::fitting(&listed["inputSchema"]);
        let said = listed["description"].as_str().unwrap_or_default().trim();
        let mut description = match said {
            "" => format!("The tool {called} of the server {server}."),
            said => said.chars().take(MAX_DESCRIPTION).collect(),
        };
        if let Some(told) = told {
            description = format!("{description}\n{told}");
        }
        let title = listed["title"].as_str().or(annotations["title"].as_str());
        let cap = meta["anthropic/maxResultSizeChars"].as_u64();
        let cap = cap.map(|cap| usize::try_from(cap.min(MAX_RESULT)).unwrap_or(usize::MAX));
        let hint = meta["anthropic/searchHint"].as_str().unwrap_or_default();
        let given = &listed["inputSchema"];
        let input =
            (*given != input_schema && given.is_object()).then(|| SchemaValidator::new(given).ok());
        let output = listed.get("outputSchema");
        let output = output.and_then(|schema| SchemaValidator::new(schema).ok());
        Some(Self {
            spec: ToolSpec {
                name: name(server, called),
                description,
                input_schema,
                profile: ToolProfile {
                    title: title.map(|title| title.to_owned().into()),
                    family: "mcp".into(),
                    origin: ToolOrigin::Server(server.to_owned().into()),
                    search_hint: hint.to_owned().into(),
                    deferred: defaults.deferred && meta["anthropic/alwaysLoad"] != true,
                    sends_data: annotations["openWorldHint"] != false,
                    access: if reads {
                        ToolAccess::Reads
                    } else {
                        ToolAccess::Anything
                    },
                    result_cap: Some(cap.unwrap_or(defaults.result_cap)),
                    timeout: Some(defaults.timeout),
                    ..ToolProfile::default()
                },
            },
            called: called.to_owned(),
            reads,
            is_idempotent: annotations["idempotentHint"] == true,
            interactive: meta["anthropic/requiresUserInteraction"] == true,
            input: input.flatten(),
            output,
        })
    }

    /// Returns the effects of a call. Only the server knows what it touches; it changes none of
    /// haft's own state.
    pub(super) fn effects(&self) -> Effects {
        if self.reads {
            return Effects::READS;
        }
        Effects {
            patches: false,
            repeat: match self.is_idempotent {
                true => Idempotency::Checkable,
                false => Idempotency::Never,
            },
            ..Effects::EXCLUSIVE
        }
    }

    /// Checks the input against the server's own schema.
    pub(super) fn check(&self, input: &Value) -> Result<(), ToolError> {
        let Some(validator) = &self.input else {
            return Ok(());
        };
        let problems: Vec<String> = validator
            .problems(input)
            .iter()
            .map(ToString::to_string)
            .collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ToolError::Input(problems.join("\n"))),
        }
    }
}

/// Returns `mcp__SERVER__TOOL`, with only characters and a length that providers accept.
pub(super) fn name(server: &str, tool: &str) -> String {
    let name = format!("{}__{}", server_in_rules(server), provider_name(tool));
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash = fnv(format!("{server}\0{tool}").as_bytes());
    format!("{}_{hash:08x}", &name[..KEPT_NAME])
}

/// Returns whether a name may belong to a tool or prompt of this server.
pub(super) fn may_be_of(named: &str, server: &str) -> bool {
    let beginning = name(server, "");
    named.starts_with(&beginning[..beginning.len().min(KEPT_NAME)])
}

/// Returns the FNV-1a hash. It is the same in every build and session, so that permission rules
/// stay valid.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEFAULTS: ToolDefaults = ToolDefaults {
        result_cap: 100,
        timeout: Duration::from_secs(9),
        deferred: true,
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
        let whole = format!("mcp__calc__{long}");
        let (kept, hash) = cut.split_at(55);
        assert_eq!(kept, &whole[..55]);
        let hash = hash.strip_prefix('_').unwrap();
        assert!(hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        // One that just fits stays as it is.
        let fits = "t".repeat(64 - "mcp__calc__".len());
        assert_eq!(name("calc", &fits), format!("mcp__calc__{fits}"));
        assert_ne!(name("calc", &format!("{fits}t")).len(), 65);
        assert_ne!(cut, name("calc", &format!("{long}x")));
        assert_ne!(cut, name("calc2", &long));
        assert!(may_be_of(&cut, "calc") && !may_be_of(&cut, "calc2"));
        assert!(may_be_of("mcp__my_server__t", "my server"));
        assert!(may_be_of(&name(&long, "t"), &long));
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
        let made = ServerToolDefinition::new("calc", &listed, DEFAULTS).unwrap();
        assert_eq!(made.spec.description.len(), 2_048);
        assert_eq!(made.spec.input_schema, listed["inputSchema"]);
        assert_eq!(made.spec.title(), "Addition");
        assert_eq!(made.spec.profile.result_cap, Some(500_000));
        assert_eq!(made.effects(), Effects::READS);
        assert!(!made.interactive);

        let bare = ServerToolDefinition::new("calc", &json!({"name": "x"}), DEFAULTS).unwrap();
        assert_eq!(bare.spec.description, "The tool x of the server calc.");
        assert_eq!(bare.spec.profile.result_cap, Some(100));
        assert!(bare.effects().exclusive && !bare.effects().patches);
        assert!(ServerToolDefinition::new("calc", &json!({"name": ""}), DEFAULTS).is_none());
    }

    #[test]
    fn hints_never_make_a_call_less_careful_than_the_others_say() {
        let effects = |annotations: Value| {
            let listed = json!({"name": "x", "annotations": annotations});
            let made = ServerToolDefinition::new("calc", &listed, DEFAULTS).unwrap();
            (
                made.effects() == Effects::READS,
                made.spec.profile.sends_data,
            )
        };
        assert_eq!(effects(json!({})), (false, true));
        assert_eq!(effects(json!({"readOnlyHint": true})), (true, true));
        let closed =
            json!({"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false});
        assert_eq!(effects(closed), (true, false));
        let both = json!({"readOnlyHint": true, "destructiveHint": true});
        assert_eq!(effects(both), (false, true));
        assert_eq!(effects(json!({"destructiveHint": false})), (false, true));
        assert_eq!(effects(json!({"readOnlyHint": "true"})), (false, true));
    }

    #[test]
    fn input_is_held_to_the_schema_of_the_server_where_ours_says_less() {
        let listed = json!({
            "name": "either",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
        });
        let made = ServerToolDefinition::new("calc", &listed, DEFAULTS).unwrap();
        assert!(made.check(&json!({"a": "x"})).is_ok());
        assert!(made.check(&json!({"a": "x", "b": "y"})).is_err());
        assert!(made.check(&json!({})).is_err());
    }

    #[test]
    fn annotations_say_how_a_call_may_be_repeated_and_when_a_tool_is_always_sent() {
        let listed = json!({
            "name": "put",
            "annotations": {"idempotentHint": true},
            "_meta": {"anthropic/alwaysLoad": true},
        });
        let made = ServerToolDefinition::new("calc", &listed, DEFAULTS).unwrap();
        assert_eq!(made.effects().repeat, Idempotency::Checkable);
        assert!(!made.spec.profile.deferred);
        let plain = ServerToolDefinition::new("calc", &json!({"name": "put"}), DEFAULTS).unwrap();
        assert_eq!(plain.effects().repeat, Idempotency::Never);
        assert!(plain.spec.profile.deferred);
    }
}
