//! How servers that speak OpenAI's language differ from each other.

use crate::fragments::Dialect;

/// What a server wants differently. The default suits most that are not OpenAI's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quirks {
    /// The limit of tokens is called `max_completion_tokens`. Found out by itself where it is wrong.
    pub max_completion_tokens: bool,
    /// The system prompt is said by a `developer`.
    pub developer_role: bool,
    /// `content: null` is refused; an empty string is sent.
    pub no_null_content: bool,
    /// The model's thinking goes back with its messages.
    pub echo_reasoning: EchoReasoning,
    /// No two messages of the user's in a row.
    pub strict_alternation: bool,
    /// Call ids are nine letters or digits.
    pub nine_character_ids: bool,
    /// A tool's message names the tool.
    pub tool_name_in_result: bool,
    /// Only the common parts of JSON schema are understood.
    pub plain_schemas: bool,
    /// Thinking is sent as text between `<think>` and `</think>`.
    pub think_tags: bool,
    /// Tool calls are printed as text. Text is not streamed then.
    pub printed_calls: bool,
}

/// Whether and how a server wants to have its model's thinking back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EchoReasoning {
    /// It does not.
    #[default]
    No,
    /// As `reasoning_content`, with messages that call tools.
    Content,
    /// As `reasoning` and `reasoning_details`.
    Details,
}

impl Quirks {
    /// What is known of the server at this address.
    pub fn of_server(base_url: &str) -> Self {
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

    /// Everything that changes how a message is written.
    pub(super) fn message_dialect(&self) -> Dialect {
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
        Dialect(0x100 | echo << 4 | flags)
    }

    pub(super) fn system_dialect(&self) -> Dialect {
        Dialect(0x200 | u32::from(self.developer_role))
    }

    pub(super) fn tools_dialect(&self) -> Dialect {
        Dialect(0x300 | u32::from(self.plain_schemas))
    }
}
