//! Programs that contact a host. They are never read-only; their findings list the hosts and files
//! they use.

pub(super) mod curl;
pub(super) mod openssl;
pub(super) mod probes;
pub(super) mod remote_shell;
pub(super) mod wget;

use super::{hosts, options::ParsedArguments};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, FileWrite, WriteKind},
};

/// Returns the finding of a refused option that needs an exact rule.
fn refused(parsed: &ParsedArguments<'_>) -> Option<CommandFinding> {
    let finding = parsed.verdict()?;
    (finding.coverage == crate::effect::RuleCoverage::Exact).then_some(finding)
}

fn write(path: &Arg, how: WriteKind) -> Effect {
    Effect::Write(FileWrite {
        path: path.clone(),
        kind: how,
    })
}

/// Returns the host of a URL. The scheme may be missing, as with curl and wget.
fn host_of(text: &str) -> Option<String> {
    hosts::url_host(text).or_else(|| {
        let authority = text.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        (!text.contains("://")).then(|| hosts::authority_host(authority))?
    })
}

/// Returns the last part of a URL's path, which is the file name of the download.
fn download_name(url: &Arg) -> Option<Arg> {
    let text = url.text()?;
    let path = text.split_once("://").map_or(text, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let (_, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then(|| Arg::literal(name, url.span))
}

/// Returns a path below the directory that an option names.
fn inside(directory: Option<&Arg>, name: Arg) -> Arg {
    match directory.map(|directory| directory.text()) {
        None => name,
        Some(Some(directory)) => {
            let text = name.text().unwrap_or_default();
            let joined = format!("{}/{text}", directory.trim_end_matches('/'));
            Arg::literal(joined, name.span)
        }
        Some(None) => directory.cloned().unwrap_or(name),
    }
}
