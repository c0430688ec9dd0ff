//! Files whose names look like those of a call.
//!
//! The user may mistake a file name in a permission question for another one: composed and decomposed letters look
//! the same, and so do letters of different scripts. The question names each look-alike in the same directory.

use std::{fs, path::Path};

use unicode_normalization::UnicodeNormalization;

use super::{
    CallFacts, TouchedPath,
    shell_facts::{PathLocation, ShellFacts},
};

/// The maximum number of paths that are checked for one call.
const MAX_PATHS: usize = 16;

/// The maximum number of entries of a directory that are compared.
const MAX_ENTRIES: usize = 10_000;

/// Letters of other scripts, each followed by the ASCII character that it looks like.
const CONFUSABLES: &str = "\
    аaеeоoрpсcуyхxіiјjѕsԁdԛqԝwһhкkѵvгrпnтtмmАAВBЕEЗ3ІIЈJКKМMНHОOРPСCТTУYХXЅSԌGԚQԜWҮYӀlӏl\
    αaνvοoρpτtυuχxγyκkιiϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹCıiȷjɡgɑaսuօoոnհhᴏoᴄcᴠvᴡwᴢz";

/// Returns a sentence for each entry that looks like a path of the call and is in the same directory.
/// Characters beyond ASCII are escaped.
pub fn find_look_alikes(facts: &CallFacts) -> Vec<String> {
    let shell = facts.shell.iter().flat_map(ShellFacts::parts);
    let places = shell
        .flat_map(|(_, _, paths)| paths)
        .map(|path| match &path.place {
            PathLocation::Known(places) => places.as_slice(),
            PathLocation::Below(_) => &[],
        });
    let touched = facts
        .writes
        .iter()
        .chain(&facts.reads)
        .chain(places.flatten());
    let mut checked: Vec<&TouchedPath> = Vec::new();
    for one in touched {
        if checked.len() < MAX_PATHS && !checked.contains(&one) {
            checked.push(one);
        }
    }
    let mut sentences = Vec::new();
    for path in checked.iter().map(|touched| touched.given.as_path()) {
        for other in others_like(path) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let sentence = format!(
                "{} is not {}, which is in the same directory and looks alike",
                escape(&name),
                escape(&other)
            );
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    sentences
}

fn others_like(path: &Path) -> Vec<String> {
    let (Some(directory), Some(name)) = (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    ) else {
        return Vec::new();
    };
    let skeleton = skeleton(name);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| entry.file_name().into_string().ok());
    let others = names.filter(|other| {
        let plain = name.is_ascii() && other.is_ascii();
        !plain && other != name && self::skeleton(other) == skeleton
    });
    others.collect()
}

/// Returns the same text for names that look alike.
fn skeleton(name: &str) -> String {
    name.nfkc()
        .filter(|letter| !is_invisible(*letter))
        .map(|letter| {
            let mut letters = CONFUSABLES.chars();
            loop {
                match (letters.next(), letters.next()) {
                    (Some(other), Some(ascii)) if other == letter => return ascii,
                    (Some(_), Some(_)) => {}
                    _ => return letter,
                }
            }
        })
        .collect()
}

fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

/// Writes characters beyond ASCII, and controls, as their code points.
fn escape(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter.is_ascii() && !letter.is_ascii_control() {
            true => text.push(letter),
            false => text += &format!("<U+{:04X}>", u32::from(letter)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_have_one_skeleton() {
        let pairs = [
            ("caf\u{e9}.txt", "cafe\u{301}.txt"),
            ("config", "c\u{43e}nfig"),
            ("deploy.sh", "d\u{435}pl\u{43e}\u{443}.sh"),
            ("\u{391}LPHA", "ALPHA"),
            ("rm", "\u{ff52}m"),
            ("a.txt", "a\u{200b}.txt"),
            ("con\u{fb01}g", "config"),
        ];
        for (name, other) in pairs {
            assert_eq!(skeleton(name), skeleton(other), "{name:?} {other:?}");
        }
        for (name, other) in [("cafe", "caf\u{e9}"), ("a.txt", "b.txt"), ("日本", "日木")] {
            assert_ne!(skeleton(name), skeleton(other), "{name:?} {other:?}");
        }
    }

    #[test]
    fn only_entries_of_the_same_directory_that_differ_are_named() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in [
            "caf\u{e9}.txt",
            "cafe\u{301}.txt",
            "plain.txt",
            "c\u{43e}nfig",
        ] {
            fs::write(directory.path().join(name), "").expect("a file");
        }
        let others = |name: &str| others_like(&directory.path().join(name));
        assert_eq!(others("caf\u{e9}.txt"), ["cafe\u{301}.txt"]);
        assert_eq!(others("config"), ["c\u{43e}nfig"]);
        assert!(others("plain.txt").is_empty());
        assert_eq!(escape("cafe\u{301}.txt"), "cafe<U+0301>.txt");
    }
}
