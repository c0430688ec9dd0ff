//! The filter for the functions, aliases and options of the user's shell.
//!
//! haft analyzes a line as written, by the names of its commands. So the snapshot must not contain
//! any definition that changes what the line does: no function or alias that replaces a command or
//! builtin known to the analysis, and no option that changes how bash parses a line. The only
//! exceptions are aliases that only add safe options (`ls --color=auto`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::PathBuf,
};

use haft_shell::{
    Arg, EffectVerdict, LineLocation, analyze,
    ast::{CommandKind, PartKind, ShellScript, ShellWord},
    commands::is_known,
    is_builtin, is_reserved,
    syntax::parse,
};

use super::{ShellDefinitions, ShellSnapshot};

/// Options that change which names patterns match and the exit code of a pipeline. They do not
/// change how bash parses a line or where `cd` goes.
const SHOPT: &[&str] = &[
    "dotglob",
    "failglob",
    "globstar",
    "nocaseglob",
    "nocasematch",
    "nullglob",
];
const SET: &[&str] = &["pipefail"];

/// The function that bash calls if a command is missing. It is slow and meant for interactive use.
const NOT_FOUND: &str = "command_not_found_handle";

/// The maximum size of a snapshot, in bytes. A longer one takes longer to load than most commands
/// run.
const MAX_BYTES: usize = 256 << 10;

pub(super) fn snapshot(defined: ShellDefinitions) -> ShellSnapshot {
    let mut left_out = BTreeSet::new();
    let mut aliases = BTreeMap::new();
    for (name, value) in &defined.aliases {
        match alias(name, value) {
            Some(line) => aliases.insert(name.as_str(), line).map_or((), drop),
            None => drop(left_out.insert(name.clone())),
        }
    }
    let mut functions = BTreeMap::new();
    for (name, text) in &defined.functions {
        if is_function(name, text) {
            functions.insert(name.as_str(), text.as_str());
        } else {
            left_out.insert(name.clone());
        }
    }
    let needed = needed(&functions, &aliases);

    let mut text = String::new();
    // Functions come first: while aliases are off, the bodies of functions are not expanded.
    for (name, body) in functions {
        if !needed.contains(name) {
            continue;
        }
        if text.len() + body.len() > MAX_BYTES {
            left_out.insert(name.to_owned());
            continue;
        }
        text.push_str(body.trim_end());
        text.push('\n');
    }
    for option in defined.options {
        // Writing to a string cannot fail.
        let _ = match option.as_str() {
            name if SHOPT.contains(&name) => writeln!(text, "shopt -s {name}"),
            name if SET.contains(&name) => writeln!(text, "set -o {name}"),
            _ => Ok(()),
        };
    }
    for line in aliases.values() {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("shopt -s expand_aliases\n");
    ShellSnapshot {
        text,
        path: defined.path,
        left_out: left_out.into_iter().collect(),
    }
}

/// Returns the functions that are needed. Completions and prompts define hundreds of functions, so
/// a function whose name begins with an underscore is only included if another included function or
/// alias names it.
fn needed<'a>(
    functions: &BTreeMap<&'a str, &'a str>,
    aliases: &BTreeMap<&str, String>,
) -> BTreeSet<&'a str> {
    let mut needed = BTreeSet::new();
    let mut texts: Vec<&str> = aliases.values().map(String::as_str).collect();
    for (name, body) in functions {
        if !name.starts_with('_') {
            needed.insert(*name);
            texts.push(body);
        }
    }
    while let Some(text) = texts.pop() {
        for word in text.split(|character| !is_name_character(character)) {
            if let Some((name, body)) = functions.get_key_value(word)
                && needed.insert(*name)
            {
                texts.push(body);
            }
        }
    }
    needed
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.:+@-".contains(character)
}

fn is_taken(name: &str) -> bool {
    is_known(name) || is_builtin(name) || is_reserved(name) || name == NOT_FOUND
}

/// Returns whether the text only defines this function, in the syntax that the parser supports. A
/// function with extended patterns could not be loaded.
fn is_function(name: &str, text: &str) -> bool {
    if is_taken(name) || name.starts_with('-') || !name.chars().all(is_name_character) {
        return false;
    }
    let Ok(script) = parse(text) else {
        return false;
    };
    let [item] = script.items.as_slice() else {
        return false;
    };
    let [command] = item.pipeline.commands.as_slice() else {
        return false;
    };
    let plain = !item.pipeline.negated && !item.pipeline.timed && command.redirects.is_empty();
    plain && matches!(&command.kind, CommandKind::Function { name: defined, .. } if defined == name)
}

/// Returns the line that defines this alias, if the alias is accepted.
fn alias(name: &str, value: &str) -> Option<String> {
    // A trailing space would expand the next word as an alias as well.
    let value = value.trim();
    let named = !name.is_empty()
        && name
            .chars()
            .all(|c| is_name_character(c) || ",%^".contains(c));
    if !named || value.is_empty() || value == name || !takes_words(value) {
        return None;
    }
    if is_taken(name) && !only_adds_options(name, value) {
        return None;
    }
    let quoted = value.replace('\'', r"'\''");
    Some(format!("alias -- {name}='{quoted}'"))
}

/// Returns whether text after the alias becomes arguments of its last command. Otherwise the alias
/// could change how the rest of a line is parsed, by an open quote or a comment.
fn takes_words(value: &str) -> bool {
    let (Ok(alone), Ok(with_word)) = (parse(value), parse(&format!("{value} x"))) else {
        return false;
    };
    let (Some(fewer), Some(more)) = (last_words(&alone), last_words(&with_word)) else {
        return false;
    };
    let is_x = |word: &ShellWord| {
        matches!(word.parts.as_slice(), [part]
            if !part.quoted && part.kind == PartKind::Text("x".to_owned()))
    };
    !fewer.is_empty()
        && alone.items.len() == with_word.items.len()
        && fewer.len() + 1 == more.len()
        && more.last().is_some_and(is_x)
}

fn last_words(script: &ShellScript) -> Option<&[ShellWord]> {
    match &script.items.last()?.pipeline.commands.last()?.kind {
        CommandKind::Simple { words, .. } => Some(words),
        _ => None,
    }
}

/// Returns whether the alias is the same command with options that are as safe as the command
/// without them.
fn only_adds_options(name: &str, value: &str) -> bool {
    let place = LineLocation {
        cwd: PathBuf::from("/"),
        home: None,
    };
    // Test with operands as well: an option must not turn an operand into a written file.
    for operands in ["", " x", " x y"] {
        let analysis = analyze(&format!("{value}{operands}"), &place);
        if analysis.verdict != EffectVerdict::ReadOnly {
            return false;
        }
        let [part] = analysis.parts.as_slice() else {
            return false;
        };
        let added = operands.split_whitespace().count();
        let own = part.argv.len().checked_sub(added);
        let Some([_, options @ ..]) = own.and_then(|own| part.argv.get(..own)) else {
            return false;
        };
        let is_option = |arg: &Arg| arg.text().is_some_and(|text| text.starts_with('-'));
        if part.command_name() != Some(name)
            || !part.assignments.is_empty()
            || !options.iter().all(is_option)
        {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_sifted() {
        for (name, value) in [
            ("ll", "ls -alF"),
            ("..", "cd .."),
            ("-", "cd -"),
            ("gs", "git status"),
            ("serve", "cd /x && npm start"),
            ("say", "echo 'it'\\''s'"),
            ("ls", "ls --color=auto"),
            ("grep", "grep --color=auto"),
            ("diff", "diff --color=auto"),
            ("df", "df -h"),
        ] {
            assert!(alias(name, value).is_some(), "{name}={value}");
        }
        for (name, value) in [
            // Another program, or a harmful option, in the place of one that is judged by its name.
            ("ls", "eza"),
            ("cat", "bat --paging=never"),
            ("git", "hub"),
            ("rm", "rm -i"),
            ("cp", "cp -i"),
            ("sed", "sed -i"),
            ("sort", "sort -o"),
            ("grep", "LD_PRELOAD=x grep"),
            ("ls", "clear; ls"),
            ("ls", "ls x"),
            ("ls", "ls $X"),
            ("find", "find -delete"),
            ("cd", "z"),
            ("eval", "echo"),
            ("if", "echo"),
            ("time", "/usr/bin/time"),
            // They change how the rest of the line is read.
            ("open", "echo \""),
            ("rest", "echo #"),
            ("here", "cat <<END"),
            ("loop", "for i in 1 2; do"),
            ("end", "echo hi;"),
            ("back", "echo \\"),
            ("sub", "(cd x)"),
            ("from", "<file"),
            (".", "<file"),
            ("set-it", "A=1"),
            ("empty", ""),
            ("blank", " "),
            // They mean nothing, or what a name cannot hold.
            ("sudo", "sudo "),
            ("a b", "echo"),
            ("a'b", "echo"),
            ("a=b", "echo"),
            ("a;b", "echo"),
            ("$x", "echo"),
        ] {
            assert_eq!(alias(name, value), None, "{name}={value}");
        }
        assert_eq!(
            alias("say", "echo 'hi' ").as_deref(),
            Some(r"alias -- say='echo '\''hi'\'''")
        );
    }

    #[test]
    fn functions_are_sifted() {
        assert!(is_function("mine", "mine () \n{ \n    ls \"$@\"\n}"));
        assert!(is_function("my-fn", "my-fn () \n{ \n    ls\n}\n"));
        for (name, text) in [
            ("ls", "ls () \n{ \n    rm x\n}"),
            ("git", "git () \n{ \n    hub \"$@\"\n}"),
            ("builtin", "builtin () \n{ \n    :\n}"),
            ("mine", "other () \n{ \n    :\n}"),
            ("mine", "mine () \n{ \n    :\n}\nrm x"),
            ("mine", "mine () \n{ \n    :\n} | rm x"),
            ("mine", "mine () \n{ \n    :\n"),
            ("mine", "rm x"),
            ("mine", ""),
            ("a/b", "a/b () \n{ \n    :\n}"),
            ("mine", "mine () \n{ \n    ls !(a|b)\n}"),
        ] {
            assert!(!is_function(name, text), "{name}: {text}");
        }
    }

    #[test]
    fn helpers_come_with_what_calls_them() {
        let text = |name: &str, calls: &str| format!("{name} () \n{{ \n    {calls}\n}}");
        let functions = [
            ("mine", "_one"),
            ("_one", "_two x"),
            ("_two", "true"),
            ("_complete_git", "_three"),
            ("_three", "true"),
            ("_by_alias", "true"),
        ];
        let snapshot = snapshot(ShellDefinitions {
            functions: functions
                .iter()
                .map(|(name, calls)| ((*name).to_owned(), text(name, calls)))
                .collect(),
            aliases: vec![("call".to_owned(), "_by_alias".to_owned())],
            ..ShellDefinitions::default()
        });
        let names: Vec<&str> = snapshot
            .text
            .lines()
            .filter_map(|line| line.strip_suffix(" () "))
            .collect();
        assert_eq!(names, ["_by_alias", "_one", "_two", "mine"]);
    }

    proptest::proptest! {
        #[test]
        fn an_alias_is_one_plain_command(
            name in "[a-z.;$ '-]{1,4}",
            value in "[a-z\"'\\\\ #;|&<>(){}$`\n=-]{0,12}",
        ) {
            if let Some(line) = alias(&name, &value) {
                let script = parse(&line).unwrap();
                proptest::prop_assert_eq!(script.items.len(), 1);
                let words = last_words(&script).map(<[ShellWord]>::len);
                proptest::prop_assert_eq!(words, Some(3), "{}", line);
            }
        }
    }
}
