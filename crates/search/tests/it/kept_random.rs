//! Random trees, random questions, random changes in between: what is kept never gives another answer
//! than a plain walk.
//!
//! `HAFT_SEARCH_LONG=N` makes N comparisons instead of some hundred.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use haft_search::{GlobQuery, GrepMode, GrepQuery, IndexSettings};
use haft_testkit::command;

use crate::kept::Both;
use crate::tree::Tree;

const COMPARISONS: usize = 400;

/// So many questions are asked of one tree.
const PER_TREE: usize = 50;

/// Repeatable numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    fn path(&mut self) -> PathBuf {
        let folders = ["", "", "src", "src/deep", "Lib", "a.d", "out", ".hid"];
        let names = [
            "a.rs", "b.rs", "c.txt", "d.log", ".env", "e.md", "f", "g.toml", "h.txt",
        ];
        PathBuf::from(self.pick(&folders)).join(self.pick(&names))
    }

    fn text(&mut self) -> Vec<u8> {
        let words = [
            "fn main", "needle", "Needle", "NEEDLE", "ask", "aſK", "foo_bar(", "struct X", "é",
            "ß", "\u{212a}", "abc", "  ", "\n", "\n", "\n", "\r\n", "\t", "0x1f", "TODO:", "héllo",
            "ab", "b", "x", "123", "7", "XYZ", "١٢٣", "_",
        ];
        let mut text = Vec::new();
        for _ in 0..self.below(40) {
            text.extend(self.pick(&words).as_bytes());
        }
        match self.below(24) {
            0 => text.push(0),
            1 => text.insert(0, 0),
            2 => text.push(0xff),
            3 => text = [b"\xef\xbb\xbf", text.as_slice()].concat(),
            4 => {
                let wide = String::from_utf8_lossy(&text).into_owned();
                text = [0xff, 0xfe]
                    .into_iter()
                    .chain(wide.encode_utf16().flat_map(u16::to_le_bytes))
                    .collect();
            }
            5 => text = [text, b"filler line\n".repeat(6000), b"needle\0\n".to_vec()].concat(),
            _ => {}
        }
        text
    }

    fn pattern(&mut self) -> String {
        let atoms = [
            "needle",
            "Needle",
            "fn",
            "main",
            "foo",
            "_bar",
            r"\(",
            "a",
            "b",
            "é",
            "ask",
            "ß",
            ".",
            r"\w+",
            r"\s",
            "[a-f]",
            "[^a]",
            r"\d",
            "^",
            "$",
            r"\b",
            "(abc|x)",
            "(foo|needle|TODO:)",
            ".*",
            "K",
            r"\n",
            "(?i:ask)",
            r"\p{L}",
            "x?",
            "(ab)+",
            "e{2}",
            r"\A",
            "(?s:.)",
            r"\d{3}",
            "[a-z]{2}[0-9]+",
            "[A-Z]{3}",
            r"(?:\d\d|_)x",
        ];
        (0..1 + self.below(4)).map(|_| self.pick(&atoms)).collect()
    }

    fn query(&mut self, tree: &Tree) -> GrepQuery {
        let mode = match self.below(4) {
            0 => GrepMode::FilesWithMatches,
            1 => GrepMode::Count,
            _ => GrepMode::Content {
                before: [0, 0, 1, 3][self.below(4)],
                after: [0, 0, 2][self.below(3)],
                only_matching: self.one_in(4),
            },
        };
        let mut query = tree.query(&self.pattern(), mode);
        if self.one_in(6) {
            // As `-F` and `-w` are written.
            let word = self.pick(&["foo_bar(", "needle", "héllo", "a.b"]);
            let escaped: String = word
                .chars()
                .flat_map(|c| match c {
                    '(' | '.' => vec!['\\', c],
                    c => vec![c],
                })
                .collect();
            query.pattern = if self.one_in(2) {
                format!(r"\b(?:{escaped})\b")
            } else {
                escaped
            };
        }
        query.case_insensitive = self.one_in(3);
        query.multiline = self.one_in(4);
        if self.one_in(4) {
            let globs = [
                "*.rs",
                "!*.txt",
                "*.log",
                "src/**",
                "out/**",
                ".env*",
                "/src",
                "!a*",
                "*.{md,toml}",
            ];
            query.globs = (0..1 + self.below(2))
                .map(|_| self.pick(&globs).to_owned())
                .collect();
        }
        if self.one_in(6) {
            query.file_type = Some(self.pick(&["rust", "txt", "md", "toml"]).to_owned());
        }
        if self.one_in(3) {
            query.head_limit = Some(1 + self.below(6));
            query.offset = self.below(4);
        }
        if self.one_in(5) {
            query.path = tree
                .root
                .join(self.pick(&["src", "Lib", "a.d", "out", "src/deep", "c.txt"]));
        }
        query
    }

    fn glob(&mut self, tree: &Tree) -> GlobQuery {
        let patterns = [
            "**",
            "*.rs",
            "src/**",
            "./*",
            "**/*.txt",
            "src/*.rs",
            ".*",
            "{src,Lib}/**",
        ];
        let mut query = GlobQuery::new(self.pick(&patterns), &tree.root);
        query.hidden = !self.one_in(3);
        query.respect_ignore = !self.one_in(6);
        query.limit = self.one_in(4).then_some(3);
        query
    }

    /// Changes something, in one of the ways in which programs do.
    fn change(&mut self, tree: &Tree, outside: &Path, both: &Both) {
        let (path, other) = (self.path(), self.path());
        let (full, target) = (tree.root.join(&path), tree.root.join(&other));
        let made = |path: &PathBuf| {
            let _ = fs::create_dir_all(path.parent().unwrap());
        };
        // Whatever fails because of what is there already is no change.
        match self.below(19) {
            0..=4 => {
                made(&full);
                let _ = fs::write(full, self.text());
            }
            5 => {
                // As our own tools write.
                let aside = full.with_extension("tmp-1");
                made(&full);
                let text = self.text();
                if fs::write(&aside, &text).is_ok() {
                    match fs::rename(&aside, &full) {
                        Ok(()) => both.wrote(&full, &text),
                        Err(_) => drop(fs::remove_file(aside)),
                    }
                }
            }
            6 => {
                let _ = fs::remove_file(full);
            }
            7 => {
                made(&target);
                let _ = fs::rename(full, target);
            }
            8 => {
                let names = ["src", "Lib", "a.d", "out", "src/deep", "moved"];
                let [from, to] = [self.pick(&names), self.pick(&names)];
                let _ = fs::rename(tree.root.join(from), tree.root.join(to));
            }
            9 => {
                let _ = fs::remove_dir_all(
                    tree.root
                        .join(self.pick(&["src", "Lib", "out", "src/deep"])),
                );
            }
            10 => {
                let rules = [
                    "*.log\n",
                    "out/\n",
                    "!d.log\n",
                    "src/deep\n",
                    "*.txt\n!c.txt\n",
                    "{bad\n",
                    "",
                ];
                let name = self.pick(&[
                    ".gitignore",
                    ".ignore",
                    ".rgignore",
                    "src/.gitignore",
                    "src/.ignore",
                ]);
                let full = tree.root.join(name);
                made(&full);
                let _ = match self.one_in(4) {
                    true => fs::remove_file(full),
                    false => fs::write(full, self.pick(&rules)),
                };
            }
            11 => {
                let git = tree.root.join(self.pick(&[".git", "src/.git"]));
                let _ = match self.one_in(3) {
                    true => fs::remove_dir_all(git),
                    false => {
                        let _ = fs::create_dir_all(git.join("info"));
                        fs::write(git.join("info/exclude"), self.pick(&["f\n", "e.md\n", ""]))
                    }
                };
            }
            12 => {
                made(&full);
                let _ = symlink(target, full);
            }
            13 => {
                made(&target);
                let _ = fs::hard_link(full, target);
            }
            // By names outside, some of them of files that have no other name any more.
            16 | 17 => {
                let name = outside.join(self.pick(&["1", "2", "3"]));
                match self.below(4) {
                    0 => drop(fs::remove_file(name)),
                    1 | 2 => {
                        let _ = fs::hard_link(full, &name);
                        let _ = fs::write(name, self.text());
                    }
                    _ if name.exists() => drop(fs::write(name, self.text())),
                    _ => {}
                }
            }
            14 => {
                if let Ok(file) = fs::File::options().append(true).open(full) {
                    let _ = std::io::Write::write_all(&mut &file, b"appended needle\n");
                    let _ = file.set_modified(std::time::SystemTime::UNIX_EPOCH);
                }
            }
            15 => {
                if let Ok(file) = fs::File::options().write(true).open(full) {
                    let _ = file.set_len(self.below(20) as u64);
                }
            }
            _ => {
                let line = format!(
                    "mkdir -p x/y && echo needle > x/y/{} ; rm -f {}",
                    self.below(5),
                    path.display()
                );
                let _ = command("sh")
                    .args(["-c", &line])
                    .current_dir(&tree.root)
                    .status();
            }
        }
    }
}

#[test]
fn whatever_changes_the_answers_are_those_of_a_plain_walk() {
    let wanted = std::env::var("HAFT_SEARCH_LONG")
        .ok()
        .and_then(|number| number.parse().ok());
    let wanted = wanted.unwrap_or(COMPARISONS);
    let seed = std::env::var("HAFT_SEARCH_SEED")
        .ok()
        .and_then(|number| number.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 17 | 1);
    let mut chance = Chance(seed);
    let mut made = 0;
    while made < wanted {
        let started = chance.0;
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one_tree(&mut chance)));
        match told {
            Ok(count) => made += count,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("", String::as_str);
                panic!("HAFT_SEARCH_SEED={started}: {text}");
            }
        }
    }
}

fn one_tree(chance: &mut Chance) -> usize {
    let (tree, outside) = (Tree::new(), Tree::new());
    let both = Both::with(IndexSettings {
        at_once: true,
        few_files: [1, 3, 8, 300][chance.below(4)],
        memory: [None, Some(0), Some(2000)][chance.below(3)],
        watched_files: [None, None, Some(0), Some(4)][chance.below(4)],
        checked_candidates: [0, 5, 500][chance.below(3)],
        ..IndexSettings::default()
    });
    for _ in 0..20 {
        let path = tree.root.join(chance.path());
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = fs::write(path, chance.text());
    }
    for _ in 0..PER_TREE {
        for _ in 0..chance.below(4) {
            chance.change(&tree, &outside.root, &both);
        }
        match chance.one_in(5) {
            true => both.glob(&chance.glob(&tree)),
            false => both.grep(&chance.query(&tree)),
        };
    }
    PER_TREE
}
