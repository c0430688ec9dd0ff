//! Differences between OpenAI-compatible servers.

use crate::fragments::BodyDialect;

/// The quirks of a server. The default fits most servers other than OpenAI's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quirks {
    /// The token limit is called `max_completion_tokens`. If the setting is wrong, the client
    /// corrects it after the server's first error.
    pub max_completion_tokens: bool,
    /// The system prompt has the role `developer`.
    pub developer_role: bool,
    /// `content: null` is rejected: an empty string is sent instead.
    pub no_null_content: bool,
    /// The format of the model's thinking when it is sent back with its messages.
    pub echo_reasoning: EchoReasoning,
    /// Two user messages must not follow each other.
    pub strict_alternation: bool,
    /// Call ids must have exactly nine letters or digits.
    pub nine_character_ids: bool,
    /// The message with a tool's result must contain the tool's name.
    pub tool_name_in_result: bool,
    /// Only the common parts of JSON schema are supported.
    pub plain_schemas: bool,
    /// Thinking arrives as text between `<think>` and `</think>`.
    pub think_tags: bool,
    /// Tool calls arrive as text. If set, text is not streamed.
    pub printed_calls: bool,
}

/// The format of the model's thinking that a server expects back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EchoReasoning {
    /// Not at all.
    #[default]
    No,
    /// As `reasoning_content`, in messages that call tools.
    Content,
    /// As `reasoning` and `reasoning_details`.
    Details,
}

impl Quirks {
    /// Returns the quirks of the server at this address.
    pub fn for_server(base_url: &str) -> Self {
        let host = reqwest::Url::parse(base_url).ok();
        let host = host.as_ref().and_then(|url| url.host_str()).unwrap_or("");
        let is = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        let none = Self::default();
        if is("api.openai.com") || is("openai.azure.com") {
            Self {
                max_completion_tokens: true,
                developer_role: true,
                ..none
            }
        } else if is("mistral.ai") {
            Self {
                strict_alternation: true,
                nine_character_ids: true,
                ..none
            }
        } else if is("deepseek.com") {
            Self {
                echo_reasoning: EchoReasoning::Content,
                ..none
            }
        } else if is("openrouter.ai") {
            Self {
                echo_reasoning: EchoReasoning::Details,
                ..none
            }
        } else if is("generativelanguage.googleapis.com") {
            Self {
                plain_schemas: true,
                ..none
            }
        } else {
            Self {
                think_tags: true,
                ..none
            }
        }
    }

    /// Returns the dialect of messages: a number made of the quirks that change how a message is
    /// written.
    pub(super) fn message_dialect(&self) -> BodyDialect {
        let echo = match self.echo_reasoning {
            EchoReasoning::No => 0,
            EchoReasoning::Content => 1,
            EchoReasoning::Details => 2,
        };
        let flags = [
            self.no_null_content,
            self.strict_alternation,
            self.nine_character_ids,
            self.tool_name_in_result,
        ];
        let flags = flags
            .iter()
            .fold(0, |bits, flag| bits << 1 | u32::from(*flag));
        BodyDialect(0x100 | echo << 4 | flags)
    }

    pub(super) fn system_dialect(&self) -> BodyDialect {
        BodyDialect(0x200 | u32::from(self.developer_role))
    }

    pub(super) fn tools_dialect(&self) -> BodyDialect {
        BodyDialect(0x300 | u32::from(self.plain_schemas))
    }
}
