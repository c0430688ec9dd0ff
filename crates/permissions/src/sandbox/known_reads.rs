//! Determines whether the reads of a line are known before it runs. They are unknown if an
//! expansion, a list or a search names the file, or if links below a directory are followed.

use haft_shell::{ArgValue, Effect, EffectVerdict, LinePart, StartedProgram};

use super::super::shell_facts::{PathAccess, PathLocation, PathUse, ShellFacts};

/// Programs, with the option letters that make them follow links below a directory.
const FOLLOWING: &[(&[&str], &str)] = &[
    (
        &["grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep"],
        "R",
    ),
    (&["rg", "fd", "fdfind", "cpio", "pax"], "L"),
    (&["find"], "LH"),
    (&["ls", "dir", "vdir", "du", "cp", "chmod", "chown"], "LHD"),
    (&["tree"], "l"),
    (&["tar", "bsdtar", "gtar"], "hLH"),
    (&["rsync"], "Lk"),
    (&["ag"], "f"),
];

/// Programs that always follow links.
const ALWAYS: [&str; 12] = [
    "7z", "7za", "7zr", "cloc", "ctags", "diff", "diff3", "meld", "scp", "sdiff", "zip", "zipgrep",
];

/// Beginnings of long options that make programs follow links.
const LONG: [&str; 4] = ["--deref", "--follow", "-follow", "--copy-"];

/// Returns the text in the line that leaves its reads unknown, if they are.
pub(super) fn unknown_read(shell: &ShellFacts) -> Option<String> {
    if shell.analysis.unreadable.is_some() {
        return Some(shell.line.clone());
    }
    let text = |part: &LinePart| {
        let whole = || shell.line.get(part.span.start..part.span.end);
        let text = Some(part.text.as_str()).filter(|text| !text.is_empty());
        text.or_else(whole).unwrap_or_default().to_owned()
    };
    shell.parts().find_map(|(at, part, paths)| {
        if !is_reader(shell, at) {
            return None;
        }
        if part.opaque_reason().is_some() {
            return Some(text(part));
        }
        if let Some(path) = paths.iter().find(|path| is_unsure(path)) {
            let given = Some(path.text.clone()).filter(|text| !text.trim().is_empty());
            return Some(given.unwrap_or_else(|| text(part)));
        }
        let expanded = part.argv.iter().find_map(|arg| match &arg.value {
            ArgValue::Unknown { .. } => shell.line.get(arg.span.start..arg.span.end),
            _ => None,
        });
        if let Some(expanded) = expanded {
            return Some(expanded.to_owned());
        }
        (gets_more(shell, at) || follows(part)).then(|| text(part))
    })
}

/// Returns whether the line computes a path that it reads or lists.
pub(super) fn computes_path(shell: &ShellFacts) -> bool {
    shell.parts().any(|(index, part, paths)| {
        let sees = |effect: &Effect| matches!(effect, Effect::Read(_));
        let takes_paths = part.finding.effects.iter().any(sees) || part.argv.is_empty();
        paths.iter().any(is_unsure) || (takes_paths && gets_more(shell, index))
    })
}

/// Returns whether the part reads files because of its arguments, and not only for its own
/// purposes.
fn is_reader(shell: &ShellFacts, at: usize) -> bool {
    let part = &shell.analysis.parts[at];
    let reads = |effect: &Effect| match effect {
        Effect::Read(read) => read.content,
        Effect::Opaque(_) => true,
        _ => false,
    };
    part.finding.effects.iter().any(reads)
        || follows(part)
        || (part.finding.verdict <= EffectVerdict::ReadsNetwork && gets_more(shell, at))
}

fn is_unsure(path: &PathUse) -> bool {
    matches!(path.access, PathAccess::Read { .. })
        && matches!(path.place, PathLocation::Below(_))
        && !path.resolved
}

/// Returns whether the part starts a command with arguments that the line does not show, or is
/// started in this way.
fn gets_more(shell: &ShellFacts, at: usize) -> bool {
    let more = |part: &LinePart| {
        let mut starts = part.finding.starts.iter();
        starts.any(|start| matches!(start, StartedProgram::Command { more: true, .. }))
    };
    let part = &shell.analysis.parts[at];
    more(part)
        || part
            .outer
            .is_some_and(|outer| more(&shell.analysis.parts[outer]))
}

fn follows(part: &LinePart) -> bool {
    let Some(name) = part.base_name() else {
        return false;
    };
    let words = || part.argv.iter().skip(1).filter_map(|arg| arg.text());
    if name == "git" {
        return words().any(|word| word == "--no-index");
    }
    if ALWAYS.contains(&name) {
        return true;
    }
    let letters = FOLLOWING.iter().find(|(names, _)| names.contains(&name));
    let Some((_, letters)) = letters else {
        return false;
    };
    words().any(|word| {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        // The first word of tar may lack its dash.
        let bare =
            part.argv.get(1).and_then(|arg| arg.text()) == Some(word) && name.ends_with("tar");
        let bundle = short.or(Some(word).filter(|_| bare));
        bundle.is_some_and(|bundle| bundle.contains(|letter| letters.contains(letter)))
            || LONG.iter().any(|long| word.starts_with(long))
    })
}

/// Programs that read files above the working directory: a checkout, a workspace of packages.
const LOOKING_ABOVE: [&str; 24] = [
    "bun", "bundle", "cargo", "composer", "deno", "dotnet", "gem", "git", "go", "gradle", "hg",
    "jj", "mvn", "node", "npm", "php", "pip", "pip3", "pnpm", "python", "python3", "rustc",
    "rustup", "uv",
];

/// Returns whether a part usually reads files above the working directory.
pub(super) fn looks_above(shell: &ShellFacts) -> bool {
    let names = shell.parts().filter_map(|(_, part, _)| part.base_name());
    names.into_iter().any(|name| LOOKING_ABOVE.contains(&name))
}
