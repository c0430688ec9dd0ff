//! Model providers: a request goes in, a stream of events comes out.
//!
//! [`Model`] is the one trait. Providers implement it ([`anthropic`], [`openai`], [`scripted`]), and so
//! do the wrappers that stand around any of them: [`Retry`], [`Fallback`], [`Recorder`] and, instead of
//! a provider, [`Replay`].
//!
//! # Layout
//! - [`conversation`]: what was said; cannot hold a call without its result
//! - [`request`], [`event`], [`error`]: what goes in, what comes out, what goes wrong
//! - [`assemble`]: from events to blocks; a complete tool call is handed out as soon as it is one
//! - [`retry`], [`fallback`], [`record`]: the wrappers
//! - [`sse`], [`http`]: the wire below the providers; the only HTTP client of the product
//! - [`key`]: keys that are fetched when they are needed
//! - [`listing`]: which models a provider has; [`price`]: what they cost
//!
//! Tool calls are recognised by their blocks, never by the reason a reply stopped for.

#![warn(missing_docs)]

pub mod anthropic;
pub mod assemble;
pub mod conversation;
pub mod error;
pub mod event;
pub mod fallback;
mod fragments;
mod generate;
mod handed_out;
pub mod http;
pub mod key;
mod list_prices;
pub mod listing;
pub mod model;
pub mod openai;
pub mod price;
pub mod record;
pub mod request;
pub mod retry;
pub mod scripted;
pub mod sse;

pub use anthropic::Anthropic;
pub use assemble::{Assembler, BadInput, Reply, ToolCall};
pub use conversation::{
    Block, Conversation, ConversationError, History, HistoryRepair, Message, ToolResult,
};
pub use error::{ErrorKind, ModelError};
pub use event::{BlockStart, ModelEvent, StopReason, Usage};
pub use fallback::Fallback;
pub use http::{Http, HttpOptions, WebClient, WebSockets};
pub use key::KeyHelper;
pub use list_prices::LIST_PRICES_DATE;
pub use listing::ModelInfo;
pub use model::{EventStream, Model};
pub use openai::OpenAi;
pub use price::{Price, Prices};
pub use record::{Recorder, Replay};
pub use request::{ModelRequest, Prefix, SystemBlock, Thinking, ToolChoice, ToolDefinition};
pub use retry::{Clock, Retry, RetryPolicy};
pub use scripted::Scripted;
