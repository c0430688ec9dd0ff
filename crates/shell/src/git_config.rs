//! A parser for git's configuration files, and a list of the keys that make git start a program.
//!
//! Read-only git commands can start programs that the repository's configuration names. Most of
//! these keys contain a name that the repository chooses (`filter.NAME.clean`), so no option can
//! disable them, and the configuration must be searched for them. The functions here are pure.

mod config_additions;

pub use config_additions::added_risks;

/// A setting in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// The section, in lower case.
    pub section: String,
    /// The subsection, as written.
    pub subsection: Option<String>,
    /// The key, in lower case.
    pub key: String,
    /// The value. `None` means a key without a value, which git treats as true.
    pub value: Option<String>,
    /// The line of the key, from 1.
    pub line: usize,
}

impl GitSetting {
    /// Returns the full name: `section.subsection.key`.
    pub fn name(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.key),
            None => format!("{}.{}", self.section, self.key),
        }
    }

    /// Returns the value as a boolean, or `None` for any other value.
    fn switch(&self) -> Option<bool> {
        let Some(value) = &self.value else {
            return Some(true);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" | "" => Some(false),
            _ => None,
        }
    }
}

/// A line that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitConfigFault {
    /// The line number, from 1.
    pub line: usize,
    /// The fault in the line.
    pub what: &'static str,
}

/// A key that makes git start a program, contact a host or read other configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitConfigRisk {
    /// The key's full name, or a text for a line that cannot be parsed.
    pub key: String,
    /// The line number, from 1.
    pub line: usize,
    /// The key's effect, phrased to follow the key.
    pub effect: &'static str,
}

/// Another file that a configuration includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitInclude {
    /// The condition of an `includeIf`.
    pub condition: Option<String>,
    /// The path, as written.
    pub path: String,
    /// The line number, from 1.
    pub line: usize,
}

/// The values with which a key is a risk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RiskCondition {
    Always,
    /// Every value except a boolean, which only enables or disables a safe feature of git.
    NoSwitch,
    /// Every value except false.
    On,
    /// A value that begins with `!`.
    Bang,
    /// A format that checks signatures.
    Signature,
}

use RiskCondition::{Always, Bang, NoSwitch, On, Signature};

/// The section, its subsection, the key (`*` means any), the condition, and the key's effect.
#[rustfmt::skip]
const RISKS: &[(&str, SubsectionRule, &str, RiskCondition, &str)] = &[
    ("core", SubsectionRule::No, "fsmonitor", NoSwitch, "starts a program whenever git scans the working tree"),
    ("core", SubsectionRule::No, "hookspath", Always, "chooses the hooks that git starts"),
    ("core", SubsectionRule::No, "pager", Always, "starts a program to page output"),
    ("core", SubsectionRule::No, "editor", Always, "starts a program to edit texts"),
    ("core", SubsectionRule::No, "sshcommand", Always, "starts a program to reach remotes"),
    ("core", SubsectionRule::No, "askpass", Always, "starts a program to ask for passwords"),
    ("core", SubsectionRule::Any, "gitproxy", Always, "starts a program to reach remotes"),
    ("core", SubsectionRule::No, "alternaterefscommand", Always, "starts a program to list references"),
    ("diff", SubsectionRule::No, "external", Always, "starts a program to compare"),
    ("diff", SubsectionRule::No, "submodule", Always, "may start git in submodules, with their own settings"),
    ("diff", SubsectionRule::Yes, "command", Always, "starts a program to compare"),
    ("diff", SubsectionRule::Yes, "textconv", Always, "starts a program to show files as text"),
    ("filter", SubsectionRule::Yes, "clean", Always, "starts a program to compare working files"),
    ("filter", SubsectionRule::Yes, "smudge", Always, "starts a program to write working files"),
    ("filter", SubsectionRule::Yes, "process", Always, "starts a program to compare working files"),
    ("merge", SubsectionRule::Yes, "driver", Always, "starts a program to merge"),
    ("gpg", SubsectionRule::Any, "program", Always, "starts a program to check signatures"),
    ("gpg", SubsectionRule::Yes, "defaultkeycommand", Always, "starts a program to find keys"),
    ("log", SubsectionRule::No, "showsignature", On, "starts gpg for each commit"),
    ("format", SubsectionRule::No, "pretty", Signature, "starts gpg for each commit"),
    ("pretty", SubsectionRule::No, "*", Signature, "names a format that starts gpg for each commit"),
    ("pager", SubsectionRule::No, "*", NoSwitch, "starts a program to page output"),
    ("pager", SubsectionRule::Yes, "*", NoSwitch, "starts a program to page output"),
    ("include", SubsectionRule::No, "path", Always, "includes another configuration"),
    ("includeif", SubsectionRule::Yes, "path", Always, "includes another configuration"),
    ("credential", SubsectionRule::Any, "helper", Always, "starts a program to fetch credentials"),
    ("uploadpack", SubsectionRule::No, "packobjectshook", Always, "starts a program to serve objects"),
    ("interactive", SubsectionRule::No, "difffilter", Always, "starts a program to show hunks"),
    ("sequence", SubsectionRule::No, "editor", Always, "starts a program to edit lists of commits"),
    ("remote", SubsectionRule::Yes, "uploadpack", Always, "chooses the program that runs on the other side"),
    ("remote", SubsectionRule::Yes, "receivepack", Always, "chooses the program that runs on the other side"),
    ("remote", SubsectionRule::Yes, "vcs", Always, "starts a helper to reach the remote"),
    // A partial clone fetches what it lacks in the middle of `git show`.
    ("remote", SubsectionRule::Yes, "promisor", On, "makes git fetch missing objects from a remote"),
    ("extensions", SubsectionRule::No, "partialclone", Always, "makes git fetch missing objects from a remote"),
    ("protocol", SubsectionRule::Any, "allow", Always, "may let an address run a command"),
    ("submodule", SubsectionRule::Yes, "update", Bang, "starts a program to update a submodule"),
    ("trailer", SubsectionRule::Yes, "command", Always, "starts a program to make trailers"),
    ("trailer", SubsectionRule::Yes, "cmd", Always, "starts a program to make trailers"),
    ("tar", SubsectionRule::Yes, "command", Always, "starts a program to pack archives"),
];

/// The subsections with which an entry matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubsectionRule {
    Yes,
    No,
    Any,
}

/// Returns the keys that make git start a program, contact a host or read other configuration.
///
/// `alias.*` is not included, because an alias cannot replace a git command. If a line cannot be
/// parsed, that line is the only risk: git may read it differently.
pub fn executable_keys(text: &str) -> Vec<GitConfigRisk> {
    let settings = match parse(text) {
        Ok(settings) => settings,
        Err(fault) => {
            return vec![GitConfigRisk {
                key: "a line of it".to_owned(),
                line: fault.line,
                effect: "cannot be read",
            }];
        }
    };
    settings.iter().filter_map(risk).collect()
}

fn risk(setting: &GitSetting) -> Option<GitConfigRisk> {
    let (.., why) = RISKS.iter().find(|(section, sub, key, when, _)| {
        setting.section == *section
            && match sub {
                SubsectionRule::Yes => setting.subsection.is_some(),
                SubsectionRule::No => setting.subsection.is_none(),
                SubsectionRule::Any => true,
            }
            && (*key == "*" || setting.key == *key)
            && match when {
                Always => true,
                NoSwitch => setting.switch().is_none(),
                On => setting.switch() != Some(false),
                Bang => setting
                    .value
                    .as_ref()
                    .is_some_and(|value| value.trim_start().starts_with('!')),
                Signature => setting.value.as_deref().is_some_and(checks_signatures),
            }
    })?;
    Some(GitConfigRisk {
        key: setting.name(),
        line: setting.line,
        effect: why,
    })
}

/// Returns whether a format has a placeholder that starts gpg: `%G?`, also with a modifier (`% G?`,
/// `%+G?`, `%-G?`). Every `G` counts that only modifiers, digits or padding separate from a `%`.
pub(crate) fn checks_signatures(format: &str) -> bool {
    let after_percent = format.split('%').skip(1);
    let mut placeholders = after_percent.map(|rest| {
        rest.trim_start_matches(|letter: char| {
            " +-<>|(),.".contains(letter) || letter.is_ascii_digit()
        })
    });
    placeholders.any(|rest| rest.starts_with('G')) || format.contains("signature")
}

/// Returns the files that a configuration includes.
pub fn includes(settings: &[GitSetting]) -> Vec<GitInclude> {
    let includes = settings.iter().filter(|setting| {
        setting.key == "path"
            && match setting.section.as_str() {
                "include" => setting.subsection.is_none(),
                "includeif" => true,
                _ => false,
            }
    });
    includes
        .filter_map(|setting| {
            Some(GitInclude {
                condition: setting.subsection.clone(),
                path: setting.value.clone()?,
                line: setting.line,
            })
        })
        .collect()
}

/// Returns the working tree that a configuration sets, relative to the repository's directory.
pub fn working_tree(text: &str) -> Option<String> {
    let settings = parse(text).ok()?;
    let mut named = settings
        .into_iter()
        .filter(|setting| setting.section == "core" && setting.subsection.is_none())
        .filter(|setting| setting.key == "worktree");
    named.next_back()?.value
}

/// Returns whether git also reads the file `config.worktree` next to this configuration.
pub fn has_worktree_config(settings: &[GitSetting]) -> bool {
    settings.iter().any(|setting| {
        setting.section == "extensions"
            && setting.key == "worktreeconfig"
            && setting.switch() != Some(false)
    })
}

/// Parses a configuration file.
///
/// # Errors
/// Returns the first line that git cannot parse either.
pub fn parse(text: &str) -> Result<Vec<GitSetting>, GitConfigFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ConfigReader {
        rest: text,
        line: 1,
    };
    let mut settings = Vec::new();
    let mut place: Option<(String, Option<String>)> = None;
    while let Some(letter) = reader.next() {
        match letter {
            '\n' | ' ' | '\t' | '\r' | '\u{b}' | '\u{c}' => {}
            '#' | ';' => reader.skip_line(),
            '[' => place = Some(reader.section()?),
            letter if letter.is_ascii_alphabetic() => {
                let line = reader.line;
                let (key, value) = reader.setting(letter)?;
                let Some((section, subsection)) = place.clone() else {
                    return Err(reader.fault("a key appears before the first section"));
                };
                settings.push(GitSetting {
                    section,
                    subsection,
                    key,
                    value,
                    line,
                });
            }
            _ => return Err(reader.fault("neither section, key nor comment")),
        }
    }
    Ok(settings)
}

struct ConfigReader<'a> {
    rest: &'a str,
    line: usize,
}

impl ConfigReader<'_> {
    /// Reads the next character. Skips a carriage return before a line feed.
    fn next(&mut self) -> Option<char> {
        if self.rest.starts_with("\r\n") {
            self.rest = &self.rest[1..];
        }
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        if letter == '\n' {
            self.line += 1;
        }
        Some(letter)
    }

    fn peek(&self) -> Option<char> {
        let rest = match self.rest.strip_prefix('\r') {
            Some(rest) if rest.starts_with('\n') => rest,
            _ => self.rest,
        };
        rest.chars().next()
    }

    fn skip_line(&mut self) {
        while let Some(letter) = self.next() {
            if letter == '\n' {
                return;
            }
        }
    }

    fn fault(&self, what: &'static str) -> GitConfigFault {
        GitConfigFault {
            line: self.line,
            what,
        }
    }

    /// Parses the text after `[`: `name]`, `name.sub]` or `name "sub"]`.
    fn section(&mut self) -> Result<(String, Option<String>), GitConfigFault> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(']') => break,
                Some(letter) if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.') => {
                    name.push(letter.to_ascii_lowercase());
                }
                Some(' ' | '\t') => return self.quoted_subsection(name),
                _ => return Err(self.fault("a section's name does not end")),
            }
        }
        Ok(match name.split_once('.') {
            Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
            None => (name, None),
        })
    }

    fn quoted_subsection(
        &mut self,
        name: String,
    ) -> Result<(String, Option<String>), GitConfigFault> {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next();
        }
        if self.next() != Some('"') {
            return Err(self.fault("a subsection is not quoted"));
        }
        let mut subsection = String::new();
        loop {
            match self.next() {
                Some('"') => break,
                Some('\\') => match self.next() {
                    Some(letter) if letter != '\n' => subsection.push(letter),
                    _ => return Err(self.fault("a subsection does not end")),
                },
                Some(letter) if letter != '\n' => subsection.push(letter),
                _ => return Err(self.fault("a subsection does not end")),
            }
        }
        if self.next() != Some(']') {
            return Err(self.fault("a section does not end"));
        }
        Ok((name, Some(subsection)))
    }

    fn setting(&mut self, first: char) -> Result<(String, Option<String>), GitConfigFault> {
        let mut key = String::from(first.to_ascii_lowercase());
        while let Some(letter) = self.peek()
            && (letter.is_ascii_alphanumeric() || letter == '-')
        {
            key.push(letter.to_ascii_lowercase());
            self.next();
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next();
        }
        match self.peek() {
            None => Ok((key, None)),
            Some('\n') => {
                self.next();
                Ok((key, None))
            }
            Some('=') => {
                self.next();
                Ok((key, Some(self.value()?)))
            }
            Some(_) => Err(self.fault("a key is followed by neither = nor the end of the line")),
        }
    }

    /// Parses a value up to the end of the line, with quotes, escapes and continued lines. Spaces
    /// at both ends are removed.
    fn value(&mut self) -> Result<String, GitConfigFault> {
        let mut value = String::new();
        let (mut quoted, mut comment) = (false, false);
        // The length without trailing spaces, which belong to the value only if more text follows.
        let mut trimmed = 0;
        while let Some(letter) = self.next() {
            match letter {
                '\n' => {
                    if quoted {
                        self.line -= 1;
                        return Err(self.fault("a quote does not end"));
                    }
                    value.truncate(trimmed);
                    return Ok(value);
                }
                _ if comment => {}
                '\0' => return Err(self.fault("a value contains a NUL")),
                ' ' | '\t' | '\r' | '\u{b}' | '\u{c}' if !quoted => {
                    if !value.is_empty() {
                        value.push(letter);
                    }
                }
                '#' | ';' if !quoted => comment = true,
                '"' => {
                    quoted = !quoted;
                    trimmed = value.len();
                }
                '\\' => {
                    match self.next() {
                        Some('\n') => continue,
                        Some('n') => value.push('\n'),
                        Some('t') => value.push('\t'),
                        Some('b') => value.push('\u{8}'),
                        Some(letter @ ('\\' | '"')) => value.push(letter),
                        _ => return Err(self.fault("an escape is unknown")),
                    }
                    trimmed = value.len();
                }
                letter => {
                    value.push(letter);
                    trimmed = value.len();
                }
            }
        }
        if quoted {
            return Err(self.fault("a quote does not end"));
        }
        value.truncate(trimmed);
        Ok(value)
    }
}

#[cfg(test)]
#[path = "git_config_tests.rs"]
mod tests;
