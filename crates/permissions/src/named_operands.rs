//! Paths in the arguments of a program whose effects no table describes completely.
//!
//! A table says what a program reads and writes. For other programs, and for arguments that no
//! table describes, the program may open any path that an argument names.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use haft_shell::{Arg, ArgValue, EffectVerdict, LinePart, StartedProgram, commands::is_known};

use super::{
    Policy, TouchedPath,
    facts::MAX_PATH,
    globs,
    removed_trees::RemovedTree,
    rule_matching::{MAY_START, denied_paths},
    rules::{PathPattern, RuleClass},
    shell_facts::{PathLocation, PathUse, absolute},
};

/// The maximum number of paths that are resolved for one part of a line.
const MAX_PATHS: usize = 256;

/// The maximum number of directories that are scanned for one part of a line.
const MAX_SCANS: usize = 8;

/// Programs that use their arguments as text, and programs whose tables describe every operand.
const OPENS_NO_OPERAND: &[&str] = &[
    "[", "alias", "cp", "declare", "export", "git", "hash", "kill", "let", "local", "mv", "pkill",
    "read", "readonly", "set", "test", "trap", "typeset", "umask", "unalias", "unset",
];

/// Programs that read their operands and never change them.
const READS_OPERANDS: &[&str] = &[
    "bandit",
    "flake8",
    "hadolint",
    "mypy",
    "py.test",
    "pylint",
    "pyright",
    "pytest",
    "shellcheck",
    "yamllint",
];

/// Programs whose bare words are verbs or targets more often than directories: `make docs`.
const TAKES_VERBS: &[&str] = &[
    "ant",
    "apt",
    "apt-get",
    "aws",
    "bazel",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "dnf",
    "docker",
    "dotnet",
    "gcloud",
    "gem",
    "gh",
    "glab",
    "gmake",
    "go",
    "gradle",
    "gulp",
    "helm",
    "just",
    "kubectl",
    "lerna",
    "mage",
    "make",
    "meson",
    "mill",
    "mix",
    "mvn",
    "ninja",
    "npm",
    "npx",
    "nx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rake",
    "rustup",
    "sbt",
    "stack",
    "systemctl",
    "task",
    "turbo",
    "uv",
    "yarn",
    "zig",
];

/// The paths that the arguments of one part name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedOperands {
    paths: Vec<TouchedPath>,
    /// The directories among them, scanned.
    directories: Vec<RemovedTree>,
    /// There are more paths than [`MAX_PATHS`] or more directories than [`MAX_SCANS`], or a path is longer
    /// than [`MAX_PATH`].
    more: bool,
    /// No table describes the program, so its operands are uncertain even inside the sandbox.
    unknown_program: bool,
    /// The program never changes its operands.
    only_reads: bool,
}

impl NamedOperands {
    /// Collects the paths in the arguments of `part` that `described` (the uses that the table
    /// declares) does not contain.
    pub(super) fn collect(part: &LinePart, described: &[PathUse]) -> Self {
        let mut named = Self::default();
        let Some(name) = part.base_name() else {
            return named;
        };
        named.unknown_program = !is_known(name) || name == "openssl";
        let describes_all = part.finding.verdict == EffectVerdict::ReadOnly;
        if !named.unknown_program && (describes_all || OPENS_NO_OPERAND.contains(&name)) {
            return named;
        }
        named.only_reads = READS_OPERANDS.contains(&name);
        let takes_verbs = TAKES_VERBS.contains(&name);
        let runs_text = named.unknown_program || MAY_START.contains(&name);
        let mut seen = BTreeSet::new();
        for arg in part.argv.iter().skip(1) {
            if is_started(part, arg) {
                continue;
            }
            let bare = arg.text().is_some_and(|text| !text.contains(['/', '.']));
            for path in paths_of(arg, runs_text, part.cwd.as_deref()) {
                if !seen.insert(path.clone()) {
                    continue;
                }
                if named.paths.len() == MAX_PATHS || path.as_os_str().len() > MAX_PATH {
                    named.more = true;
                    return named;
                }
                let touched = TouchedPath::new(&path);
                if is_described(&touched, described) {
                    continue;
                }
                if !(takes_verbs && bare) {
                    named.scan(&touched);
                }
                named.paths.push(touched);
            }
        }
        named
    }

    fn scan(&mut self, touched: &TouchedPath) {
        if !touched.real.is_dir() {
            return;
        }
        if self.directories.len() == MAX_SCANS {
            self.more = true;
            return;
        }
        self.directories.push(RemovedTree::scan(&touched.real));
    }

    /// Returns why the part may access denied paths, if that is uncertain. `open` means that the
    /// kernel does not prevent the access.
    fn uncertainty(&self, denied: &[&PathPattern], open: bool) -> Option<String> {
        if !self.unknown_program && !open {
            return None;
        }
        let covers = |path: &Path| denied.iter().any(|pattern| pattern.covers(path));
        let direct = self.paths.iter();
        let direct = direct.filter(|touched| touched.given_and_real().into_iter().any(covers));
        let mut direct = direct.map(|touched| touched.given.as_path());
        // A confined program cannot open denied files below a directory.
        let below = self.directories.iter().filter(|_| open);
        let mut below = below.filter_map(|directory| directory.first_denied(denied));
        if let Some(path) = direct.next().or_else(|| below.next()) {
            return Some(format!(
                "what it does with {}, which is denied, is not known",
                path.display()
            ));
        }
        self.more.then(|| {
            format!(
                "it names more than {MAX_PATHS} paths or {MAX_SCANS} directories, or one of more \
                 than {MAX_PATH} bytes"
            )
        })
    }
}

/// Returns the first part whose arguments name a denied path that no table describes, and why that
/// is uncertain.
pub(super) fn undescribed(
    policy: &Policy,
    named: &[NamedOperands],
    open: bool,
) -> Option<(usize, String)> {
    let all = denied_paths(policy, |_| true);
    if all.is_empty() {
        return None;
    }
    let unread = denied_paths(policy, |rule| rule.class != RuleClass::Edits);
    named.iter().enumerate().find_map(|(index, operands)| {
        let denied = if operands.only_reads { &unread } else { &all };
        Some((index, operands.uncertainty(denied, open)?))
    })
}

/// Returns whether the argument belongs to a command or text that the part starts, which is
/// evaluated as its own part.
fn is_started(part: &LinePart, arg: &Arg) -> bool {
    part.finding.starts.iter().any(|start| match start {
        StartedProgram::Command { argv, .. } => argv.contains(arg),
        StartedProgram::Script(text) => text == arg,
    })
}

fn is_described(touched: &TouchedPath, described: &[PathUse]) -> bool {
    described.iter().any(|path| match &path.place {
        PathLocation::Known(places) => places.iter().any(|place| place.given == touched.given),
        PathLocation::Below(_) => false,
    })
}

/// Returns every path that an argument may name. `runs_text`: the argument may contain a command.
fn paths_of(arg: &Arg, runs_text: bool, cwd: Option<&[PathBuf]>) -> Vec<PathBuf> {
    let text = match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) => text,
        ArgValue::Glob(text) => {
            let files = globs::expand_on_disk(text, cwd).unwrap_or_default();
            return files.into_iter().map(|touched| touched.given).collect();
        }
        ArgValue::Unknown { .. } => return Vec::new(),
    };
    let mut paths = Vec::new();
    for piece in pieces(text) {
        paths.extend(absolute(piece, cwd).unwrap_or_default());
    }
    if runs_text && text.contains([' ', '\t', '\n', '(', '{', '$']) {
        let blank = |letter: char| letter.is_whitespace() || "()<>|;&'\"`${}".contains(letter);
        for word in text.split(blank) {
            let words = pieces(word).into_iter();
            paths.extend(words.filter_map(|word| absolute(word, cwd)).flatten());
        }
    }
    paths
}

/// Returns the argument and every piece of it that programs take as a path: `--file=name`,
/// `-oname`, `@name`, `part=@name`, `name:/mount`, `file://name`, `type=bind,src=name`.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = vec![text];
    if let Some((_, value)) = text.split_once('=') {
        pieces.push(value);
    }
    if let Some((_, value)) = text.split_once("://") {
        pieces.push(value);
    }
    if let Some(rest) = text.strip_prefix('-')
        && let Some((end, _)) = rest.char_indices().nth(1)
        && !rest.starts_with('-')
    {
        pieces.push(&rest[end..]);
    }
    let separated = text.split(['=', ':', ',', '@', ';', '<', '|']);
    pieces.extend(separated.filter(|piece| *piece != text));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn a_path_is_found_in_every_form_of_an_argument() {
        for text in [
            ".env",
            "--env-file=.env",
            "-o.env",
            "@.env",
            "file=@.env",
            ".env:/run/env",
            "type=bind,src=.env,dst=/x",
            "file://.env",
            "fileb://.env",
            "if=.env",
        ] {
            assert!(pieces(text).contains(&".env"), "{text}: {:?}", pieces(text));
        }
    }
}
