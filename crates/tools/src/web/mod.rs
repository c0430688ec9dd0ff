//! Web pages: `WebFetch` and `WebSearch`.
//!
//! A page is untrusted: it is data, is marked as such, and grants no permissions. An address is
//! checked in these steps:
//!
//! 1. `address` parses it so strictly that no two programs could interpret it differently.
//! 2. Rules and the user decide about the host.
//! 3. The host's name is resolved once, and [`haft_sandbox::network::AllowedAddresses`], which also
//!    checks the connections of commands, checks each address.
//! 4. The connection goes to one of these addresses.
//!
//! Modules:
//!
//! - `download`: downloads with redirects; `cache`: fetched pages
//! - `page`: converts bytes to text; `html`: converts HTML to Markdown; `html_sanitizer`: makes HTML
//!   safe for its parser; `tags`: tags and attributes
//! - `untrusted_text`: marks untrusted text for a model

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
