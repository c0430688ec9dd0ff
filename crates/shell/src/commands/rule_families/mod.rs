//! Families of commands that one prefix rule may cover, as rules that users are offered.
//!
//! A family is general: any further operands only choose which item of the same kind is processed.
//! Its commands run what the project says, never what the line says. Options with which they would
//! start another program, load other configuration or work in a directory elsewhere are listed with
//! the family: a prefix rule does not cover them.

mod offline_bundles;
mod table;
#[cfg(test)]
mod tests;

use super::{evaluate_command, is_known, shells};
use crate::{
    analysis::LinePart,
    arg::{Arg, ArgValue},
    builtins::{is_builtin, is_reserved},
    effect::{CommandFinding, EffectVerdict, RuleCoverage},
};
pub use offline_bundles::offline_bundle;
use table::{EXACT_ONLY, EXACT_VERBS, FAMILIES, NEVER, PNPM_COMMANDS};

/// The rules that are offered together for local git writes.
pub const LOCAL_GIT: [&str; 4] = ["git add", "git commit", "git switch", "git checkout -b"];

/// Directories of a project with its installed tools.
const TOOL_DIRECTORIES: [&str; 4] = [
    "node_modules/.bin/",
    ".venv/bin/",
    "venv/bin/",
    "vendor/bin/",
];

/// Options of programs without a table that take no value. The word after them is the subcommand.
const SWITCHES: [&str; 6] = [
    "--readonly",
    "--read-only",
    "--quiet",
    "--verbose",
    "--no-color",
    "--no-pager",
];

/// A family of commands in the table.
struct RuleFamily {
    /// The programs, separated by spaces.
    programs: &'static str,
    /// The words after the program, separated by spaces; `+` joins several words, and `NAME` is any
    /// plain name. Empty: the program alone.
    verbs: &'static str,
    kind: VerbKind,
    form: OptionForm,
    /// Options that need their own rule.
    uncovered: &'static str,
    /// Options with a path as their value, which need their own rule unless the path is relative
    /// and does not climb.
    moves: &'static str,
    /// Other options that take the next word as their value. Only needed for `is_single`.
    values: &'static str,
    /// Further operands would be other tasks, so they need their own rule.
    is_single: bool,
    /// A shell reads the operands, so characters with a meaning for it need their own rule.
    has_shell_operands: bool,
}

/// The kind of the verbs of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerbKind {
    Fixed,
    /// A local git write, which is offered with the others.
    LocalGit,
    /// The name of a script of the project.
    Script,
    /// The name of a tool that the project has installed.
    LockedTool,
}

/// The spelling of a program's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionForm {
    /// Short options bundled, long options abbreviated.
    Gnu,
    /// Short options bundled, long options never abbreviated.
    Whole,
    /// Each word is one option, with one dash or two.
    Words,
}

/// The family of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFamily {
    /// The fixed words of its rule: `cargo test`.
    pub words: String,
    /// The kind of the family.
    pub kind: FamilyKind,
}

/// The kinds of family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FamilyKind {
    /// The table lists it.
    Listed,
    /// A local git write, which is offered with [`LOCAL_GIT`]. The text is the program in front of
    /// git that probably starts it, with a space, if any.
    LocalGit(String),
    /// A tool that `npx` starts. It is a family only if the project has installed this tool.
    LockedTool(String),
    /// A program that no table describes, with a plain second word.
    UnknownProgram,
}

/// Returns the family of a command, if it has one.
pub fn command_family(part: &LinePart) -> Option<CommandFamily> {
    if let Some(found) = listed(&part.argv) {
        let words = found.words();
        let kind = match found.family.kind {
            VerbKind::LocalGit => {
                let starter = found.starter.map(|starter| format!("{starter} "));
                FamilyKind::LocalGit(starter.unwrap_or_default())
            }
            VerbKind::LockedTool if found.starter.is_some() => return None,
            VerbKind::LockedTool => FamilyKind::LockedTool((*found.verbs.last()?).to_owned()),
            VerbKind::Fixed | VerbKind::Script => FamilyKind::Listed,
        };
        return Some(CommandFamily { words, kind });
    }
    let words = unknown_program(part)?;
    Some(CommandFamily {
        words,
        kind: FamilyKind::UnknownProgram,
    })
}

/// Returns whether a rule with the exact text of a command may be proposed. If not, the text does
/// not determine what runs.
pub fn has_exact_rule(part: &LinePart) -> bool {
    let Some(name) = part.base_name() else {
        return false;
    };
    let listed = listed(&part.argv);
    if let Some(found) = &listed
        && found.family.kind != VerbKind::LockedTool
    {
        return true;
    }
    let name = match name {
        "." => "source",
        name => name.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.'),
    };
    let second = part.argv.get(1).and_then(Arg::text);
    let starts_another = second.is_some_and(|second| match name {
        "uv" | "poetry" | "pipenv" | "devbox" | "pdm" | "hatch" => second == "run",
        "npm" | "pnpm" | "yarn" => ["exec", "x", "dlx"].contains(&second),
        _ => second == "exec",
    });
    !has_word(NEVER, name) && !starts_another
}

/// Returns whether the arguments of a program are programs or other commands.
pub fn starts_other_programs(name: &str) -> bool {
    has_word(NEVER, name)
}

/// Returns the program that probably only starts the command after its name, if it has no table and the
/// command has one.
pub fn probable_wrapper(part: &LinePart) -> Option<&str> {
    let (name, inner) = (part.command_name()?, part.argv.get(1)?.text()?);
    let starts = is_known(inner) || is_listed_program(inner);
    (starts && may_be_wrapper(name)).then_some(name)
}

/// Returns whether a user may declare a program as a wrapper: it has no other meaning here.
pub fn may_be_wrapper(name: &str) -> bool {
    is_plain_name(name) && !has_other_rules(name)
}

/// Requires an exact rule if an option or operand is not covered by the rule of the family.
pub(crate) fn with_uncovered_words(argv: &[Arg], finding: CommandFinding) -> CommandFinding {
    let is_open = finding.verdict != EffectVerdict::ReadOnly
        && finding.coverage == RuleCoverage::Prefix
        && listed(argv).is_some_and(|found| found.has_uncovered_word());
    match is_open {
        true => finding.requiring_exact_rule(),
        false => finding,
    }
}

/// A command of a listed family.
struct ListedCommand<'a> {
    family: &'static RuleFamily,
    /// A program that no table describes, in front of the command: probably it starts the command.
    starter: Option<&'a str>,
    name: &'a str,
    verbs: Vec<&'a str>,
    /// The words after the verbs.
    rest: &'a [Arg],
}

/// Returns the listed family of a command, also after a program that no table describes.
fn listed(argv: &[Arg]) -> Option<ListedCommand<'_>> {
    let (first, words) = argv.split_first()?;
    let ArgValue::Literal(name) = &first.value else {
        return None;
    };
    if !is_plain_name(name) || has_other_rules(name) {
        return listed_directly(argv);
    }
    Some(ListedCommand {
        starter: Some(name),
        ..listed_directly(words)?
    })
}

/// Returns the listed family of a command. Of several, the one with the most words.
fn listed_directly(argv: &[Arg]) -> Option<ListedCommand<'_>> {
    let (first, words) = argv.split_first()?;
    let ArgValue::Literal(name) = &first.value else {
        return None;
    };
    let base = tool_name(name)?;
    let words = match base {
        "git" => after_harmless_options(words),
        _ => words,
    };
    let families = FAMILIES.iter();
    let families = families.filter(|family| has_word(family.programs, base));
    let found = families.filter_map(|family| {
        let verbs = family.verb_words(base, words)?;
        let rest = words.get(verbs.len()..)?;
        Some(ListedCommand {
            family,
            starter: None,
            name,
            verbs,
            rest,
        })
    });
    found.max_by_key(|found| {
        // A fixed word is closer than a name.
        (found.verbs.len(), found.family.kind == VerbKind::Fixed)
    })
}

/// Returns git's arguments after the options before the subcommand that a rule for the subcommand
/// ignores.
fn after_harmless_options(words: &[Arg]) -> &[Arg] {
    let mut rest = words;
    while let Some((first, behind)) = rest.split_first() {
        rest = match first.text() {
            Some("--no-pager" | "-P") => behind,
            Some("-C") => behind.get(1..).unwrap_or_default(),
            _ => break,
        };
    }
    rest
}

/// Returns the name of a program of the system or of the project's installed tools.
fn tool_name(name: &str) -> Option<&str> {
    let Some((directory, base)) = name.rsplit_once('/') else {
        return Some(name);
    };
    let directory = &name[..=directory.len()];
    let wrapper = ["gradlew", "mvnw"].contains(&base) && directory == "./";
    let relative = directory.strip_prefix("./").unwrap_or(directory);
    let of_project = TOOL_DIRECTORIES.contains(&relative);
    (wrapper || of_project || crate::walk::TRUSTED.contains(&directory)).then_some(base)
}

impl RuleFamily {
    /// Returns whether `/p:name=value` is an option of the program.
    fn is_msbuild(&self) -> bool {
        self.programs == "dotnet"
    }

    /// Returns the arguments that select the family in a command.
    fn verb_words<'a>(&self, program: &str, words: &'a [Arg]) -> Option<Vec<&'a str>> {
        if self.verbs.is_empty() {
            return Some(Vec::new());
        }
        let verbs = self.verbs.split_ascii_whitespace();
        let matching = verbs.filter_map(|verb| {
            let mut found = Vec::new();
            for (wanted, arg) in verb.split('+').zip(words) {
                let ArgValue::Literal(text) = &arg.value else {
                    return None;
                };
                let is_name = wanted == "NAME"
                    && is_plain_name(text)
                    && !(program == "pnpm" && found.is_empty() && has_word(PNPM_COMMANDS, text));
                if text != wanted && !is_name {
                    return None;
                }
                found.push(text.as_str());
            }
            (found.len() == verb.split('+').count()).then_some(found)
        });
        matching.max_by_key(Vec::len)
    }
}

impl ListedCommand<'_> {
    fn words(&self) -> String {
        let mut words = match self.starter {
            Some(starter) => format!("{starter} {}", self.name),
            None => self.name.to_owned(),
        };
        for verb in &self.verbs {
            words.push(' ');
            words.push_str(verb);
        }
        words
    }

    /// Returns whether an argument after the verbs needs its own rule.
    fn has_uncovered_word(&self) -> bool {
        let family = self.family;
        if family.uncovered.is_empty() && family.moves.is_empty() && !family.has_shell_operands {
            return false;
        }
        let mut words = self.rest.iter();
        let mut after_dashes = false;
        while let Some(arg) = words.next() {
            let Some(text) = certain_beginning(arg) else {
                // The value of an expansion may be an option.
                return true;
            };
            if has_word(family.uncovered, text) {
                return true;
            }
            if text == "--" {
                after_dashes = true;
                continue;
            }
            if after_dashes && !family.has_shell_operands {
                // These are operands, or they are for the program that the command starts.
                continue;
            }
            if !text.starts_with('-') || text == "-" || after_dashes {
                let is_property =
                    family.is_msbuild() && text.starts_with('/') && text.contains(':');
                let is_read_by_shell = family.has_shell_operands && is_for_a_shell(arg);
                if family.is_single || is_property || is_read_by_shell {
                    return true;
                }
                continue;
            }
            if self.names_option(family.uncovered, text) {
                return true;
            }
            if self.names_option(family.moves, text) {
                let value = match (text.split_once('='), self.attached_value(text)) {
                    (Some((_, value)), _) | (None, Some(value)) => Some(value),
                    (None, None) => words.next().and_then(Arg::text),
                };
                if !value.is_some_and(is_below) {
                    return true;
                }
            } else if has_word(family.values, text) || takes_message(self.name, text) {
                words.next();
            }
        }
        false
    }

    /// Returns the value in the same word as a short option: `-Csub`. For a bundle, whose value is in
    /// no certain place, the result is an absolute path.
    fn attached_value<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.family.form == OptionForm::Words || text.starts_with("--") || text.len() == 2 {
            return None;
        }
        match text.get(..2) {
            Some(option) if has_word(self.family.moves, option) => text.get(2..),
            _ => Some("/"),
        }
    }

    /// Returns whether the argument is, or may be, one of these options.
    fn names_option(&self, options: &str, text: &str) -> bool {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        options.split_ascii_whitespace().any(|option| {
            if self.family.form == OptionForm::Words {
                let plain = |word: &str| word.trim_start_matches('-').to_owned();
                // `-Dname=value` is one argument.
                return plain(option) == plain(name)
                    || (option == "-D" && name.starts_with("-D") && is_injected_property(text));
            }
            match (option.strip_prefix("--"), text.strip_prefix("--")) {
                (Some(option), Some(_)) => {
                    let long = name.trim_start_matches('-');
                    long == option
                        || (self.family.form == OptionForm::Gnu
                            && !long.is_empty()
                            && option.starts_with(long))
                }
                // A bundle, or a value in the same word.
                (None, None) if option.len() == 2 => text.contains(&option[1..]),
                (None, None) => name == option || text.starts_with(&format!("{option}:")),
                _ => false,
            }
        })
    }
}

/// Returns whether `-Dname=value` is a property with which a build starts another program.
fn is_injected_property(text: &str) -> bool {
    let name = text.trim_start_matches("-D");
    ["exec.", "maven.ext.", "org.gradle.", "java."]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Returns whether the option of git takes a message: its value is never an option.
fn takes_message(program: &str, text: &str) -> bool {
    program.ends_with("git") && ["-m", "-am", "--message"].contains(&text)
}

/// Returns an argument's text, or its known beginning if that shows that it is not an option.
fn certain_beginning(arg: &Arg) -> Option<&str> {
    let known = match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) => return Some(text),
        ArgValue::Glob(text) => text,
        ArgValue::Unknown { prefix, .. } => prefix,
    };
    let begins_plainly = |next: char| next.is_alphanumeric() || "./@_".contains(next);
    known.starts_with(begins_plainly).then_some(known)
}

/// Returns whether an operand may be more than plain text for a shell.
fn is_for_a_shell(arg: &Arg) -> bool {
    let Some(text) = arg.text() else {
        return true;
    };
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (Some(name), value),
        None => (None, text),
    };
    let is_plain = |next: char| next.is_alphanumeric() || "_./:,+@%=- ".contains(next);
    let special = [
        "SHELL",
        ".SHELLFLAGS",
        "MAKEFLAGS",
        "MFLAGS",
        "GNUMAKEFLAGS",
        "MAKEFILES",
        "MAKE",
    ];
    !value.chars().all(is_plain)
        || name.is_some_and(|name| special.contains(&name.trim_end_matches([':', '+', '?'])))
}

/// Returns whether a path is relative and does not climb.
fn is_below(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '~', '-'])
        && !path.split('/').any(|one| one == "..")
}

/// Returns whether a text is a letter, then letters, digits, `-`, `_` and `:`.
fn is_plain_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|next| next.is_ascii_alphanumeric() || "-_:".contains(next))
}

/// Returns the fixed words for a program that no table describes.
fn unknown_program(part: &LinePart) -> Option<String> {
    let (first, words) = part.argv.split_first()?;
    let is_switch = |arg: &&Arg| arg.text().is_some_and(|text| SWITCHES.contains(&text));
    let switches = words.iter().take_while(is_switch).count();
    let (ArgValue::Literal(name), ArgValue::Literal(verb)) =
        (&first.value, &words.get(switches)?.value)
    else {
        return None;
    };
    let is_plain = is_plain_name(name) && is_plain_name(verb) && !has_word(EXACT_VERBS, verb);
    let starts_none = part.finding.starts.is_empty() && part.opaque_reason().is_none();
    if has_other_rules(name) || !is_plain || !starts_none {
        return None;
    }
    if switches > 0 {
        let switches = words.iter().take(switches).filter_map(Arg::text);
        let fixed: Vec<&str> = [name.as_str()]
            .into_iter()
            .chain(switches)
            .chain([verb.as_str()])
            .collect();
        return (!is_listed_program(verb)).then(|| fixed.join(" "));
    }
    if !is_listed_program(verb) {
        return Some(format!("{name} {verb}"));
    }
    // Probably it starts the program that the second word names. A rule must not cover every command
    // of that program.
    let (inner, third) = (part.argv.get(1..)?, part.argv.get(2)?.text()?);
    let reads = evaluate_command(verb, inner).verdict == EffectVerdict::ReadOnly;
    (reads && is_plain_name(third)).then(|| format!("{name} {verb} {third}"))
}

/// Returns whether rules about this program distinguish its commands.
fn is_listed_program(name: &str) -> bool {
    let mut lists = FAMILIES.iter().map(|family| family.programs);
    has_word(NEVER, name) || has_word(EXACT_ONLY, name) || lists.any(|list| has_word(list, name))
}

/// Returns whether a table describes the program.
fn has_other_rules(name: &str) -> bool {
    let base = name.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.');
    is_known(name)
        || is_builtin(name)
        || is_reserved(name)
        || shells::is_loader(name)
        || super::package_launchers::is_launcher(name)
        || is_listed_program(name)
        || is_listed_program(base)
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}
