//! Pages of the web: `WebFetch` and `WebSearch`.
//!
//! What a page says was written by a stranger: it is data, marked as such, and permits nothing. Where a page is,
//! is decided in this order: the address is read so strictly that no two programs could read it differently
//! (`address`); rules and people judge the host; only then is its name resolved, once, and every address that it
//! stands for is checked by the same code as the connections of commands
//! ([`haft_sandbox::network::AllowedAddresses`]); the connection goes to one of those.
//!
//! - `download`: from an address to bytes, redirects included; `cache`: pages that were fetched before
//! - `page`: from bytes to text; `html`: from HTML to Markdown; `tame`: HTML that can do no harm to its
//!   reader; `tags`: what it is made of
//! - `marked`: how a model reads a stranger's text

mod address;
mod cache;
mod download;
mod fetch;
mod html;
mod marked;
mod page;
mod search;
mod session;
mod tags;
mod tame;

#[cfg(feature = "browser")]
pub(crate) use address::PageAddress;
#[cfg(feature = "browser")]
pub(crate) use download::{host_rules, is_named};
pub(crate) use fetch::WebFetch;
#[cfg(feature = "browser")]
pub(crate) use marked::harmless;
pub(crate) use search::WebSearch;
pub use session::{WebLimits, WebSession};

/// A door for benchmarks: HTML as WebFetch shows it.
#[doc(hidden)]
pub fn html_to_markdown(html: &str, url: &str) -> String {
    html::to_markdown(html, url).text
}
