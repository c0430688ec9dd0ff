//! Permissions as their users meet them.
//!
//! - `judged`: the facts of a call, as the pipeline finds them
//! - `accepted`: command lines in the mode `acceptEdits`
//! - `properties`: what holds of any policy and any call
//! - `denials`: ways around a deny rule; `lines`: harmless lines, run
//! - `families`: the choices of rules in a question about a command
//! - `suggestions`: the exact rules of a question and of a denial; `understood`: rules and the tools there are
//! - `variables`: lines that set a variable and use it
//! - `offline`: commands without network; `read_domains`: reads at hosts, formatters, wrappers
//! - `revived`: what was permitted, recorded and read again

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod accepted;
mod auto;
mod denials;
mod denied_lines;
mod families;
mod judged;
mod lines;
mod offline;
mod private_tmp;
mod properties;
mod read_domains;
mod revived;
mod shadowed;
mod suggestions;
mod understood;
mod variables;
