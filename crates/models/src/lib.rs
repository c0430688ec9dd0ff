//! Model providers: a request goes in, a stream of events comes out.
//!
//! [`Model`] is the only trait. The providers ([`anthropic`], [`openai`], [`scripted`]) implement
//! it. So do the wrappers around any model ([`Retry`], [`Fallback`], [`Recorder`]) and [`Replay`],
//! which replaces a provider with a recording.
//!
//! # Layout
//! - [`conversation`]: the messages so far; a call cannot be in it without its result
//! - [`request`], [`event`], [`error`]: the input, the output and the failures of a model
//! - [`assemble`]: builds blocks from events; returns tool calls when they are complete
//! - [`retry`], [`fallback`], [`record`]: the wrappers
//! - [`sse`], [`http`]: the transport that the providers use; the only HTTP clients of the product
//! - [`key`]: API keys that are fetched on demand
//! - [`model_listing`]: the models that a provider offers; [`price`]: the cost of a reply
//!
//! A tool call is recognised by its block, never by the stop reason of the reply.

#![warn(missing_docs)]

pub mod anthropic;
pub mod assemble;
pub mod conversation;
pub mod error;
pub mod event;
pub mod fallback;
mod fragments;
pub mod http;
pub mod key;
mod list_prices;
pub mod model;
pub mod model_listing;
pub mod openai;
pub mod price;
pub mod record;
mod reply_progress;
pub mod request;
pub mod retry;
pub mod scripted;
pub mod sse;
mod stream_block;

pub use anthropic::Anthropic;
pub use assemble::{BadInput, Reply, ReplyAssembler, ToolCall};
pub use conversation::{
    Block, Conversation, ConversationError, HistoryRepair, Message, RequestHistory, ToolResult,
};
pub use error::{ErrorKind, ModelError};
pub use event::{BlockStart, ModelEvent, StopReason, Usage};
pub use fallback::Fallback;
pub use http::{Http, HttpOptions, WebClient, WebSockets};
pub use key::KeyHelper;
pub use list_prices::LIST_PRICES_DATE;
pub use model::{EventStream, Model};
pub use model_listing::ModelInfo;
pub use openai::OpenAi;
pub use price::{Price, Prices};
pub use record::{Recorder, Replay};
pub use request::{
    ModelRequest, RequestPrefix, SystemBlock, ThinkingMode, ToolChoice, ToolDefinition,
};
pub use retry::{Retry, RetryClock, RetryPolicy};
pub use scripted::ScriptedModel;
