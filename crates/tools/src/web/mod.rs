//! Web pages: `WebFetch` and `WebSearch`.
//!
//! A page was written by strangers: it is data, is marked as such, and grants no permissions. The
//! address is checked in these steps: it is read so strictly that no two programs could interpret
//! it differently (`address`); rules and users decide about the host; then its name is resolved
//! once, and the code for connections of commands ([`haft_sandbox::network::AllowedAddresses`])
//! checks each address; the connection goes to one of these addresses.
//!
//! - `download`: downloads with redirects; `cache`: fetched pages
//! - `page`: converts bytes to text; `html`: converts HTML to Markdown; `tame`: makes HTML safe for
//!   its parser; `tags`: tags and attributes
//! - `marked`: how untrusted text is shown to a model

mod address;
mod cache;
mod download;
mod fetch;
mod html;
mod html_sanitizer;
mod page;
mod search;
mod session;
mod tags;
mod untrusted_text;

#[cfg(feature = "browser")]
pub(crate) use address::PageUrl;
#[cfg(feature = "browser")]
pub(crate) use download::{host_rules, is_named};
pub(crate) use fetch::WebFetch;
pub(crate) use search::WebSearch;
pub use session::{WebLimits, WebSession};
#[cfg(feature = "browser")]
pub(crate) use untrusted_text::strip_invisible;

/// For benchmarks: HTML as WebFetch shows it.
#[doc(hidden)]
pub fn html_to_markdown(html: &str, url: &str) -> String {
    html::to_markdown(html, url).text
}
