//! What a client may ask of a session.

use haft_contract::PermissionMode;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::SerializeMap,
};
use serde_json::{Map, Value};

use crate::{AsWritten, NoFields, lenient};

/// The requests by their subtypes, once: the names of the variants, and what each holds.
macro_rules! client_requests {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $name:literal,)+) => {
        /// A request of a client, by its subtype.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "subtype", from = "Value")]
        pub enum ClientRequest {
            $($(#[$doc])* #[serde(rename = $name)] $variant($body),)+
            /// A request that is not known here, as it was written.
            #[serde(untagged)]
            Other(Value),
        }

        impl ClientRequest {
            /// Its name; empty where it has none.
            pub fn subtype(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Other(request) => name(request),
                }
            }
        }

        impl From<Value> for ClientRequest {
            fn from(request: Value) -> Self {
                // Every field of a request that is known takes any value.
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
    /// Sets the session up, before its first message.
    Initialize(Box<InitializeRequest>) = "initialize",
    /// Ends what runs.
    Interrupt(InterruptRequest) = "interrupt",
    /// Another permission mode from now on.
    SetPermissionMode(SetModeRequest) = "set_permission_mode",
    /// Another model from now on.
    SetModel(SetModelRequest) = "set_model",
    /// How much the model may think.
    SetMaxThinkingTokens(SetThinkingRequest) = "set_max_thinking_tokens",
    /// How the MCP servers are.
    McpStatus(NoFields) = "mcp_status",
    /// Connect a server again.
    McpReconnect(ServerRequest) = "mcp_reconnect",
    /// Switch a server on or off.
    McpToggle(ToggleServerRequest) = "mcp_toggle",
    /// These servers in the place of those that were set before.
    McpSetServers(SetServersRequest) = "mcp_set_servers",
    /// A message of a server that answers no request.
    McpMessage(ServerMessageRequest) = "mcp_message",
    /// How full the model's window is.
    GetContextUsage(ContextUsageRequest) = "get_context_usage",
    /// Make the files what they were.
    RewindFiles(RewindRequest) = "rewind_files",
    /// End a task in the background.
    StopTask(StopTaskRequest) = "stop_task",
    /// Wait no longer for commands.
    BackgroundTasks(BackgroundRequest) = "background_tasks",
    /// Withdraw a message that waits.
    CancelAsyncMessage(CancelMessageRequest) = "cancel_async_message",
    /// Settings as if they stood on the command line.
    ApplyFlagSettings(SettingsRequest) = "apply_flag_settings",
    /// The settings.
    GetSettings(NoFields) = "get_settings",
    /// The models.
    ListModels(NoFields) = "list_models",
    /// The rules.
    ListPermissionRules(NoFields) = "list_permission_rules",
    /// What was spent.
    GetSessionCost(NoFields) = "get_session_cost",
    /// Look for skills again.
    ReloadSkills(NoFields) = "reload_skills",
    /// Look for plugins again.
    ReloadPlugins(ReloadPluginsRequest) = "reload_plugins",
    /// Look for output styles again.
    ReloadOutputStyles(NoFields) = "reload_output_styles",
    /// Write settings into a file of the user's.
    UpdateSettings(UpdateSettingsRequest) = "update_settings",
    /// What is in a file.
    ReadFile(ReadFileRequest) = "read_file",
    /// A file counts as read.
    SeedReadState(ReadStateRequest) = "seed_read_state",
    /// What people call the session.
    RenameSession(RenameRequest) = "rename_session",
    /// Which haft this is.
    GetBinaryVersion(NoFields) = "get_binary_version",
}

/// Sets the session up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InitializeRequest {
    /// Hooks that the client runs, by event.
    pub hooks: Option<NamedList<CallbackMatcher>>,
    /// Kinds of subagents, by name.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub agents: Map<String, Value>,
    /// Names of MCP servers that the client runs.
    #[serde(
        deserialize_with = "lenient::entries",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sdk_mcp_servers: Vec<String>,
    /// What an answer must look like: a JSON schema.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub json_schema: Value,
    /// In place of our system prompt.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_prompt: Option<PromptParagraphs>,
    /// After the system prompt.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub append_system_prompt: Option<PromptParagraphs>,
    /// What people call the session.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<String>,
    /// What differs from day to day is said in the first message, not in the system prompt.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub exclude_dynamic_sections: bool,
    /// What subagents say and think is passed on too.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub forward_subagent_text: bool,
}

/// Which hooks of an event the client runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallbackMatcher {
    /// What the event must be about; everything where nothing is said.
    #[serde(deserialize_with = "lenient::or_default")]
    pub matcher: Option<String>,
    /// What the client knows its functions by.
    #[serde(deserialize_with = "lenient::or_default")]
    pub hook_callback_ids: Vec<AsWritten<String>>,
    /// How long an answer may take, in seconds.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<f64>,
    /// What a failure means: `continue` or `block`.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub on_failure: Option<String>,
}

/// A text, or several that are paragraphs of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PromptParagraphs {
    /// One.
    One(String),
    /// Several; what is no text among them is passed over.
    Many(#[serde(deserialize_with = "lenient::entries_of_list")] Vec<String>),
}

impl PromptParagraphs {
    /// The text.
    pub fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(texts) => texts.join("\n\n"),
        }
    }
}

/// Lists by name, in the order in which they were written.
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

/// What is no map is an empty one, what is no list in it is empty too, and of a list what is no object is
/// passed over.
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

/// The bodies of smaller requests: each field takes any value, and what cannot be understood is absent.
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
    /// Ends what runs.
    InterruptRequest {
        /// And what waits for its turn.
        cancel_queued: bool = "lenient::is_false",
    }
    /// Another permission mode.
    SetModeRequest {
        /// Which.
        mode: AsWritten<PermissionMode> = "lenient::never",
    }
    /// Another model.
    SetModelRequest {
        /// Which; the session's own where none is named, or `default`.
        model: Option<String> = "lenient::never",
    }
    /// How much the model may think.
    SetThinkingRequest {
        /// In tokens; not at all where nothing is said.
        max_thinking_tokens: Option<u64> = "lenient::never",
        /// `summarized` or `omitted`.
        thinking_display: Option<String> = "Option::is_none",
    }
    /// About a server.
    ServerRequest {
        /// Which.
        ("serverName") server_name: String = "lenient::never",
    }
    /// Switch a server on or off.
    ToggleServerRequest {
        /// Which.
        ("serverName") server_name: String = "lenient::never",
        /// On?
        enabled: bool = "lenient::never",
    }
    /// These servers from now on.
    SetServersRequest {
        /// Their configurations, by name.
        servers: Map<String, Value> = "lenient::never",
    }
    /// A server has something to say.
    ServerMessageRequest {
        /// Which.
        server_name: String = "lenient::never",
        /// What, in JSON-RPC.
        message: Value = "Value::is_null",
    }
    /// How full the window is.
    ContextUsageRequest {
        /// How much is to be said of it.
        detail: Value = "Value::is_null",
    }
    /// Make the files what they were.
    RewindRequest {
        /// When this message came.
        user_message_id: String = "lenient::never",
        /// Only say what that would do.
        dry_run: bool = "lenient::is_false",
    }
    /// End a task.
    StopTaskRequest {
        /// Which.
        task_id: String = "lenient::never",
    }
    /// Wait no longer for commands.
    BackgroundRequest {
        /// For that of this call; for all of them where none is named.
        tool_use_id: Option<String> = "Option::is_none",
    }
    /// Withdraw a message.
    CancelMessageRequest {
        /// Which.
        message_uuid: String = "lenient::never",
    }
    /// Settings as if they stood on the command line.
    SettingsRequest {
        /// The settings.
        settings: Map<String, Value> = "lenient::never",
    }
    /// Write settings into a file of the user's.
    UpdateSettingsRequest {
        /// `localSettings` or `userSettings`.
        source: String = "lenient::never",
        /// The settings.
        settings: Map<String, Value> = "lenient::never",
    }
    /// What is in a file.
    ReadFileRequest {
        /// Which.
        path: String = "lenient::never",
        /// At most this much of it.
        max_bytes: Option<u64> = "Option::is_none",
        /// `utf-8`, where nothing is said, or `base64`.
        encoding: Option<String> = "Option::is_none",
    }
    /// Look for plugins again.
    ReloadPluginsRequest {
        /// Plugins that are to be loaded as well.
        add_plugins: Vec<Value> = "Vec::is_empty",
        /// Not while a message is answered.
        refuse_if_busy: bool = "lenient::is_false",
    }
    /// A file counts as read.
    ReadStateRequest {
        /// Which.
        path: String = "lenient::never",
        /// As it was then, in milliseconds since 1970.
        mtime: f64 = "lenient::never",
    }
    /// What people call the session.
    RenameRequest {
        /// What.
        title: String = "lenient::never",
    }
}
