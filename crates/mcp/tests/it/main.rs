//! What is promised of the protocol, against programs that are not ours where there are any.

mod conformance;
mod fixture;
mod server_http;
mod server_lines;
