//! Finds the paths and hosts that the sandbox refused to a command in the command's output. haft
//! can then ask the user about them and explain the failure.
//!
//! The messages are those of the C library and of common programs, in English; the environment of
//! commands selects that language.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use haft_sandbox::SandboxNetwork;
use regex::Regex;

/// An access that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SandboxRefusal {
    /// Changing this file or directory (an absolute path).
    Write(PathBuf),
    /// Creating or changing this file, which decides what other programs run (an absolute path).
    Control(PathBuf),
    /// Reading this file or directory (a real path).
    Read(PathBuf),
    /// Reading a path in the home directories that the line does not name.
    Homes,
    /// Contacting this host, or an unknown one.
    Network(Option<String>),
    /// Changing a path that the output does not name. The text is the line of the output.
    Other(String),
}

/// The confinement of the command.
pub(crate) struct RefusalContext<'a> {
    /// The command's directory, to which relative paths refer.
    pub(crate) cwd: &'a Path,
    /// Returns whether the sandbox refuses this path although the user may access it. Otherwise the
    /// failure has another cause.
    pub(crate) forbidden: &'a dyn Fn(&Path) -> bool,
    /// Returns the real path, if the sandbox hides it from reading although the user may read it.
    pub(crate) unreadable: &'a dyn Fn(&Path) -> Option<PathBuf>,
    /// The home directories are closed, because it is not known what the line reads.
    pub(crate) homes_closed: bool,
    /// The hosts that the command may contact.
    pub(crate) network: SandboxNetwork,
}

/// The maximum number of reported refusals.
pub(super) const MAX_COUNT: usize = 20;
/// The maximum length of a message, in bytes.
const MAX_LINE: usize = 4096;

/// The number of bytes at the end of a long output that are searched. The failure that stopped a
/// command is there.
const MAX_SEARCHED: usize = 256 << 10;

/// Returns every refused access, each once, in the order of the output.
pub(crate) fn refusals(
    output: &str,
    code: i32,
    confined: &RefusalContext<'_>,
) -> Vec<SandboxRefusal> {
    let from = output.ceil_char_boundary(output.len().saturating_sub(MAX_SEARCHED));
    let lines: Vec<&str> = output[from..].lines().collect();
    let mut found: Vec<SandboxRefusal> = Vec::new();
    for at in 0..lines.len() {
        if lines[at].len() > MAX_LINE {
            continue;
        }
        let refused = file(&lines, at, code, confined)
            .or_else(|| host(&lines, at, code, confined.network).map(SandboxRefusal::Network));
        if let Some(refused) = refused
            && !found.contains(&refused)
        {
            found.push(refused);
        }
    }
    let named = |refused: &SandboxRefusal| matches!(refused, SandboxRefusal::Network(Some(_)));
    if found.iter().any(named) {
        found.retain(|refused| *refused != SandboxRefusal::Network(None));
    }
    found.truncate(MAX_COUNT);
    found
}

fn file(
    lines: &[&str],
    at: usize,
    code: i32,
    confined: &RefusalContext<'_>,
) -> Option<SandboxRefusal> {
    let line = lines[at];
    let lower = line.to_ascii_lowercase();
    let located = |words: &str| lower.find(words).map(|from| (from, from + words.len()));
    if let Some((from, to)) = located("read-only file system") {
        let path = path_in(line, from, to).or_else(|| path_above(&lines[..at]));
        return Some(match path {
            Some(path) => SandboxRefusal::Write(absolute(confined.cwd, path)),
            None => SandboxRefusal::Other(line.trim().to_owned()),
        });
    }
    if lower.contains("attempt to write a readonly database") {
        return Some(SandboxRefusal::Other(line.trim().to_owned()));
    }
    if let Some(path) = unmade(line, &lower, confined) {
        return Some(SandboxRefusal::Write(path));
    }
    if let Some(refused) = unread(line, &lower, &lines[..at], confined) {
        return Some(refused);
    }
    // With 126, bash found a program that it may not start, which is unrelated to the sandbox.
    let denied = located("permission denied")
        .or_else(|| located("operation not permitted"))
        // The error for replacing a file that is mounted.
        .or_else(|| located("device or resource busy"));
    let (from, to) = denied.filter(|_| code != 126)?;
    let path = path_in(line, from, to).or_else(|| path_above(&lines[..at]))?;
    let path = absolute(confined.cwd, path);
    (confined.forbidden)(&path).then_some(SandboxRefusal::Write(path))
}

/// Returns the path that could not be created because its directory is hidden.
fn unmade(line: &str, lower: &str, confined: &RefusalContext<'_>) -> Option<PathBuf> {
    const MAKES: [&str; 4] = [
        "cannot create",
        "cannot touch",
        "unable to create",
        "could not create",
    ];
    const MISSING: [&str; 2] = ["directory nonexistent", "no such file or directory"];
    if !MAKES.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let words = MISSING.iter().find(|words| lower.contains(**words))?;
    let from = lower.find(words)?;
    let path = path_in(line, from, from + words.len())?;
    let path = absolute(confined.cwd, path);
    (confined.unreadable)(path.parent()?)?;
    Some(path)
}

/// Messages about a file that cannot be found or opened.
const UNREAD: [&str; 6] = [
    "no such file or directory",
    "no such file",
    "permission denied",
    "could not access",
    "file not found",
    "os error 2",
];

/// Returns the path that could not be read although it exists.
fn unread(
    line: &str,
    lower: &str,
    above: &[&str],
    confined: &RefusalContext<'_>,
) -> Option<SandboxRefusal> {
    let words = UNREAD.iter().find(|words| lower.contains(**words))?;
    let from = lower.find(words)?;
    let path = path_in(line, from, from + words.len()).or_else(|| path_above(above));
    match path {
        Some(path) => {
            (confined.unreadable)(&absolute(confined.cwd, path)).map(SandboxRefusal::Read)
        }
        None => (confined.homes_closed && *words == UNREAD[0]).then_some(SandboxRefusal::Homes),
    }
}

fn absolute(cwd: &Path, path: &str) -> PathBuf {
    // Via its components, which removes `./`.
    cwd.join(path).components().collect()
}

/// Returns the path in a message whose reason is at these bytes.
fn path_in(line: &str, from: usize, to: usize) -> Option<&str> {
    path_after_reason(&line[to..]).or_else(|| path_before_reason(&line[..from]))
}

/// Finds a path after the reason: `…: 'path'`, `…, open 'path'`, `… (os error 30) at path "path"`,
/// `… @ rb_sysopen - path`.
fn path_after_reason(text: &str) -> Option<&str> {
    let ruby = || {
        text.strip_prefix(" @ ")?
            .split_once(" - ")
            .map(|(_, path)| path.trim())
    };
    quoted(text).or_else(ruby)
}

/// Finds a path before the reason: `program: cannot do it to 'path'`, `program: path`, `open path`,
/// `path: Cannot open`, `path (`.
fn path_before_reason(text: &str) -> Option<&str> {
    // If none of these endings matches, no reason follows the text.
    let text = text
        .strip_suffix(": ")
        .or_else(|| text.strip_suffix('('))
        .or_else(|| text.strip_suffix("EROFS: "))?;
    let text = text.trim_end_matches([' ', ':']);
    if let Some(path) = quoted(text) {
        return Some(path);
    }
    let segments: Vec<&str> = text.split(": ").collect();
    if let [program, line, rest @ ..] = segments.as_slice()
        && line.starts_with("line ")
        && !program.contains(' ')
        && !rest.is_empty()
    {
        return rest.last().copied();
    }
    let (last, earlier) = segments.split_last()?;
    if let Some(path) = path_in_phrase(last, !earlier.is_empty()) {
        return Some(path);
    }
    // `tar: path: Cannot open: …`; the first part is the program.
    earlier.get(1..)?.last().copied()
}

/// Words that end a phrase but are not paths.
const NO_PATH: &[&str] = &[
    "create",
    "directory",
    "error",
    "fatal",
    "file",
    "open",
    "output",
    "socket",
    "connect",
    "stat",
    "write",
];

fn path_in_phrase(text: &str, behind_program: bool) -> Option<&str> {
    let path = match text.rsplit_once(' ') {
        None if behind_program || text.contains(['/', '.']) => text,
        Some((phrase, word)) if word.contains(['/', '.']) || is_deed(phrase) => word,
        // wget prints only `path: reason`.
        None if !text.is_empty() => text,
        _ => return None,
    };
    (!NO_PATH.contains(&path) && !path.starts_with('[')).then_some(path)
}

fn is_deed(phrase: &str) -> bool {
    let first = phrase.split(' ').next().unwrap_or_default();
    matches!(
        first.to_ascii_lowercase().as_str(),
        "cannot" | "can't" | "couldn't" | "could" | "failed" | "unable" | "open" | "mkdir"
    )
}

/// Returns the last text in quotation marks.
fn quoted(text: &str) -> Option<&str> {
    static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"(?:^|[\s(:=@])(?:'([^']+)'|‘([^’]+)’|"([^"]+)"|`([^`]+)`)"#).ok()
    });
    let found = QUOTED.as_ref()?.captures_iter(text).last()?;
    let path = found.iter().skip(1).flatten().next()?;
    Some(path.as_str())
}

/// Finds `failed to open: /path` a few lines above `(os error 30)`.
fn path_above<'a>(lines: &[&'a str]) -> Option<&'a str> {
    static DEED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            "(?:failed to|could not|couldn't|unable to) [^/`'\"]*[`'\"]?(/[^`'\"]+?)[`'\"]?:?$",
        )
        .ok()
    });
    let near = lines.iter().rev().take(6);
    let mut found = near.filter_map(|line| DEED.as_ref()?.captures(line)?.get(1));
    found.next().map(|path| path.as_str())
}

/// Messages that name the host.
const NAMED: &[&str] = &[
    r"sandbox refused the connection to ([\w.:-]+), port",
    r"could not resolve host(?:name)?:? \(?(?:could not resolve host: )?([\w.-]+)",
    r"unable to resolve host address [‘'`]([\w.-]+)",
    r"temporary failure resolving '([\w.-]+)'",
    r"getaddrinfo (?:eai_again|enotfound|eai_fail) ([\w.-]+)",
    r"\blookup ([\w.-]+)(?: on \S+)?: ",
    r"resolving ([\w.-]+) .*failed: temporary failure",
    r"ping: ([\w.-]+): temporary failure",
    r"unknownhostexception: ([\w.-]+)",
    r"connect (?:enetunreach|eacces|eperm) ([\w.:]+?):\d+",
    r"dial tcp \[?([\w.:-]+?)\]?:\d+: connect: (?:network is unreachable|permission denied|operation not permitted)",
    r"connect to host (\S+) port \d+: (?:network is unreachable|permission denied|operation not permitted)",
    r"failed to connect to (\S+) port \d+",
    r"connecting to ([\w.:-]+?)(?::\d+)?\.* failed: network is unreachable",
    r"/dev/(?:tcp|udp)/([^/]+)/\d+: network is unreachable",
    r"host='([\w.-]+)'.*(?:failed to establish a new connection|max retries exceeded)",
    r"can't complete socks5 connection to ([\w.:-]+?)\.? \(2\)",
];

/// Messages that do not name the host; a URL nearby may.
const UNNAMED: &[&str] = &[
    "network is unreachable",
    "temporary failure in name resolution",
    "connect tunnel failed, response 403",
    "http code 403 from proxy",
    "tunnel connection failed: 403",
    "proxy response (403)",
    "proxy tunneling failed: forbidden",
    "connection not allowed by ruleset",
    "socket: operation not permitted",
    "socket: permission denied",
];

static HOSTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let built = |pattern: &&str| Regex::new(pattern).ok();
    NAMED.iter().filter_map(built).collect()
});

/// Returns the host that the sandbox did not allow, or `Some(None)` if the output does not name it.
fn host(lines: &[&str], at: usize, code: i32, network: SandboxNetwork) -> Option<Option<String>> {
    // Many programs try the network and succeed without it.
    if network == SandboxNetwork::Open || code == 0 {
        return None;
    }
    let lower = lines[at].to_ascii_lowercase();
    let mut named = HOSTS
        .iter()
        .filter_map(|host| host.captures(&lower)?.get(1));
    if let Some(host) = named.next() {
        let host = host.as_str().trim_end_matches(['.', ':']);
        return (!is_local(host)).then(|| Some(host.to_owned()));
    }
    if !UNNAMED.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let near = lines[at.saturating_sub(3)..=at].iter().rev();
    let host = near.filter_map(|line| host_in_url(line)).next();
    match host {
        Some(host) if is_local(&host) => None,
        host => Some(host),
    }
}

fn host_in_url(line: &str) -> Option<String> {
    static URL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?:https?|ssh|git)://(?:[^/@\s]*@)?([\w.-]+)").ok());
    let host = URL.as_ref()?.captures(line)?.get(1)?;
    Some(host.as_str().to_ascii_lowercase())
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.") || host == "::1"
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
