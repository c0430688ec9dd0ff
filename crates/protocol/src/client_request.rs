//! The requests of a client to a session.

use haft_contract::PermissionMode;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::SerializeMap,
};
use serde_json::{Map, Value};

use crate::{NoFields, RawOrParsed, lenient};

/// Defines [`ClientRequest`] from the name of each variant, its body and its subtype.
macro_rules! client_requests {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $name:literal,)+) => {
        /// A request of a client, by its subtype.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "subtype", from = "Value")]
        pub enum ClientRequest {
            $($(#[$doc])* #[serde(rename = $name)] $variant($body),)+
            /// An unknown request, unchanged.
            #[serde(untagged)]
            Other(Value),
        }

        impl ClientRequest {
            /// Returns the subtype; empty if it is missing.
            pub fn subtype(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Other(request) => name(request),
                }
            }
        }

        impl From<Value> for ClientRequest {
            fn from(request: Value) -> Self {
                // Every field of a known request accepts any value, so only a non-object fails.
                let nothing = || Self::Other(Value::Null);
                match name(&request).to_owned().as_str() {
                    $($name => lenient::read_object(request).map_or_else(nothing, Self::$variant),)+
                    _ => Self::Other(request),
                }
            }
        }
    };
}

fn name(request: &Value) -> &str {
    let name = request.get("subtype").and_then(Value::as_str);
    name.unwrap_or_default()
}

client_requests! {
    /// Sets up the session before its first message.
    Initialize(Box<InitializeRequest>) = "initialize",
    /// Interrupts the current turn.
    Interrupt(InterruptRequest) = "interrupt",
    /// Changes the permission mode.
    SetPermissionMode(SetModeRequest) = "set_permission_mode",
    /// Changes the model.
    SetModel(SetModelRequest) = "set_model",
    /// Sets the thinking budget of the model.
    SetMaxThinkingTokens(SetThinkingRequest) = "set_max_thinking_tokens",
    /// Returns the status of the MCP servers.
    McpStatus(NoFields) = "mcp_status",
    /// Reconnects an MCP server.
    McpReconnect(ServerRequest) = "mcp_reconnect",
    /// Enables or disables an MCP server.
    McpToggle(ToggleServerRequest) = "mcp_toggle",
    /// Replaces the MCP servers that an earlier request set.
    McpSetServers(SetServersRequest) = "mcp_set_servers",
    /// A message of an MCP server that is not a response.
    McpMessage(ServerMessageRequest) = "mcp_message",
    /// Returns the usage of the context window.
    GetContextUsage(ContextUsageRequest) = "get_context_usage",
    /// Restores files to an earlier state.
    RewindFiles(RewindRequest) = "rewind_files",
    /// Stops a background task.
    StopTask(StopTaskRequest) = "stop_task",
    /// Moves running commands to the background.
    BackgroundTasks(BackgroundRequest) = "background_tasks",
    /// Withdraws a queued message.
    CancelAsyncMessage(CancelMessageRequest) = "cancel_async_message",
    /// Applies settings as if they were given on the command line.
    ApplyFlagSettings(SettingsRequest) = "apply_flag_settings",
    /// Returns the settings.
    GetSettings(NoFields) = "get_settings",
    /// Returns the models.
    ListModels(NoFields) = "list_models",
    /// Returns the permission rules.
    ListPermissionRules(NoFields) = "list_permission_rules",
    /// Returns the cost of the session.
    GetSessionCost(NoFields) = "get_session_cost",
    /// Reloads the skills.
    ReloadSkills(NoFields) = "reload_skills",
    /// Reloads the plugins.
    ReloadPlugins(ReloadPluginsRequest) = "reload_plugins",
    /// Reloads the output styles.
    ReloadOutputStyles(NoFields) = "reload_output_styles",
    /// Writes settings to a settings file of the user.
    UpdateSettings(UpdateSettingsRequest) = "update_settings",
    /// Returns the contents of a file.
    ReadFile(ReadFileRequest) = "read_file",
    /// Marks a file as read.
    SeedReadState(ReadStateRequest) = "seed_read_state",
    /// Sets the title of the session.
    RenameSession(RenameRequest) = "rename_session",
    /// Returns the version of the haft binary.
    GetBinaryVersion(NoFields) = "get_binary_version",
}

/// Sets up the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InitializeRequest {
    /// Hooks that the client runs, by event.
    pub hooks: Option<NamedList<CallbackMatcher>>,
    /// Agent kinds, by name.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub agents: Map<String, Value>,
    /// The names of MCP servers that the client runs.
    #[serde(
        deserialize_with = "lenient::entries",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sdk_mcp_servers: Vec<String>,
    /// The JSON schema of the answer.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub json_schema: Value,
    /// The text that replaces our system prompt.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_prompt: Option<PromptParagraphs>,
    /// The text that is appended to the system prompt.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub append_system_prompt: Option<PromptParagraphs>,
    /// The title of the session.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<String>,
    /// Whether context that varies from day to day is in the first message instead of the system
    /// prompt.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub exclude_dynamic_sections: bool,
    /// Whether the text and thinking of subagents is forwarded too.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub forward_subagent_text: bool,
}

/// The hooks of one event that the client runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallbackMatcher {
    /// The value that the event must match; `None` matches all.
    #[serde(deserialize_with = "lenient::or_default")]
    pub matcher: Option<String>,
    /// The client's ids of its hook functions.
    #[serde(deserialize_with = "lenient::or_default")]
    pub hook_callback_ids: Vec<RawOrParsed<String>>,
    /// The timeout of an answer in seconds.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<f64>,
    /// The effect of a failure: `continue` or `block`.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub on_failure: Option<String>,
}

/// A text, or several paragraphs of one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PromptParagraphs {
    /// A single text.
    One(String),
    /// Several paragraphs; entries that are not text are ignored.
    Many(#[serde(deserialize_with = "lenient::entries_of_list")] Vec<String>),
}

impl PromptParagraphs {
    /// Returns the whole text.
    pub fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(texts) => texts.join("\n\n"),
        }
    }
}

/// Lists by name, in their original order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedList<T>(pub Vec<(String, Vec<T>)>);

impl<T> Default for NamedList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Serialize> Serialize for NamedList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, list) in &self.0 {
            map.serialize_entry(name, list)?;
        }
        map.end()
    }
}

/// Reads a map of lists. A value that is not a map becomes an empty map, an entry that is not a
/// list becomes an empty list, and elements that are not objects are ignored.
impl<'de, T: DeserializeOwned> Deserialize<'de> for NamedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map: Map<String, Value> = lenient::or_default(deserializer)?;
        let list = |value| match value {
            Value::Array(entries) => entries
                .into_iter()
                .filter_map(lenient::read_object)
                .collect(),
            _ => Vec::new(),
        };
        let lists = map.into_iter().map(|(name, value)| (name, list(value)));
        Ok(Self(lists.collect()))
    }
}

/// Defines the bodies of smaller requests. Each field accepts any value; an invalid one is treated
/// as absent.
macro_rules! bodies {
    ($($(#[$about:meta])* $body:ident {
        $($(#[$doc:meta])* $(($wire:literal))? $field:ident: $kind:ty = $skip:literal,)*
    })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $body {
            $($(#[$doc])*
            $(#[serde(rename = $wire)])?
            #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = $skip)]
            pub $field: $kind,)*
        }
    )+};
}

bodies! {
    /// Interrupts the current turn.
    InterruptRequest {
        /// Whether to withdraw the queued messages too.
        cancel_queued: bool = "lenient::is_false",
    }
    /// Changes the permission mode.
    SetModeRequest {
        /// The new mode.
        mode: RawOrParsed<PermissionMode> = "lenient::never",
    }
    /// Changes the model.
    SetModelRequest {
        /// The new model; `None` and `default` select the session's own.
        model: Option<String> = "lenient::never",
    }
    /// Sets the thinking budget of the model.
    SetThinkingRequest {
        /// The budget in tokens; `None` disables thinking.
        max_thinking_tokens: Option<u64> = "lenient::never",
        /// The display of thinking: `summarized` or `omitted`.
        thinking_display: Option<String> = "Option::is_none",
    }
    /// A request about one MCP server.
    ServerRequest {
        /// The name of the server.
        ("serverName") server_name: String = "lenient::never",
    }
    /// Enables or disables an MCP server.
    ToggleServerRequest {
        /// The name of the server.
        ("serverName") server_name: String = "lenient::never",
        /// Whether to enable it.
        enabled: bool = "lenient::never",
    }
    /// Replaces the MCP servers that an earlier request set.
    SetServersRequest {
        /// The configurations of the servers, by name.
        servers: Map<String, Value> = "lenient::never",
    }
    /// A message of an MCP server that is not a response.
    ServerMessageRequest {
        /// The name of the server.
        server_name: String = "lenient::never",
        /// The JSON-RPC message.
        message: Value = "Value::is_null",
    }
    /// Asks for the usage of the context window.
    ContextUsageRequest {
        /// The level of detail.
        detail: Value = "Value::is_null",
    }
    /// Restores files to an earlier state.
    RewindRequest {
        /// The id of the user message before which the state is restored.
        user_message_id: String = "lenient::never",
        /// Whether to return only a preview.
        dry_run: bool = "lenient::is_false",
    }
    /// Stops a background task.
    StopTaskRequest {
        /// The id of the task.
        task_id: String = "lenient::never",
    }
    /// Moves running commands to the background.
    BackgroundRequest {
        /// The call whose command is moved; `None` moves all.
        tool_use_id: Option<String> = "Option::is_none",
    }
    /// Withdraws a queued message.
    CancelMessageRequest {
        /// The id of the message.
        message_uuid: String = "lenient::never",
    }
    /// Applies settings as if they were given on the command line.
    SettingsRequest {
        /// The settings.
        settings: Map<String, Value> = "lenient::never",
    }
    /// Writes settings to a settings file of the user.
    UpdateSettingsRequest {
        /// The file: `localSettings` or `userSettings`.
        source: String = "lenient::never",
        /// The settings.
        settings: Map<String, Value> = "lenient::never",
    }
    /// Asks for the contents of a file.
    ReadFileRequest {
        /// The path.
        path: String = "lenient::never",
        /// The maximum number of bytes to return.
        max_bytes: Option<u64> = "Option::is_none",
        /// The encoding: `utf-8` (the default) or `base64`.
        encoding: Option<String> = "Option::is_none",
    }
    /// Reloads the plugins.
    ReloadPluginsRequest {
        /// Additional plugins to load.
        add_plugins: Vec<Value> = "Vec::is_empty",
        /// Whether to refuse while a turn is running.
        refuse_if_busy: bool = "lenient::is_false",
    }
    /// Marks a file as read.
    ReadStateRequest {
        /// The path.
        path: String = "lenient::never",
        /// The modification time of the version that was read, in milliseconds since 1970.
        mtime: f64 = "lenient::never",
    }
    /// Sets the title of the session.
    RenameRequest {
        /// The new title.
        title: String = "lenient::never",
    }
}
