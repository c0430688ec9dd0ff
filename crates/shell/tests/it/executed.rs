//! What bash runs is in the tree: random lines that we accept are given to a bash that finds no
//! program, and every command it looked for must be one that the tree shows, with the same words.

use std::path::Path;

use crate::bash::{self, Stage};
use crate::names::commands;
use haft_shell::syntax::parse;

/// A small random generator; the same seed gives the same line.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Line noise.
const NOISE: [&str; 44] = [
    "'", "\"", "\\", "`", "$", "{", "}", "(", ")", "<", ">", "|", "&", ";", "#", "!", "=", "[",
    "]", "~", "*", "?", ",", "..", "\n", "\t", " ", "\\\n", "$'", "$\"", "${", "$(", "$((", "))",
    "<(", "<<E\n", "\nE\n", "\\\"", "\\\\", "\\`", "\\$", "+=", "é", ":",
];

struct Writer {
    random: Random,
    text: String,
    /// Commands written so far: each has a name of its own.
    count: usize,
    /// How much may still be written.
    fuel: usize,
    noise: bool,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn noise(&mut self) {
        if self.noise && self.random.below(40) == 0 {
            let noise = self.random.one(&NOISE);
            self.put(noise);
        }
    }

    fn list(&mut self) {
        self.command();
        while self.random.below(3) == 0 && self.fuel > 0 {
            let separator = self
                .random
                .one(&["; ", " && ", " || ", " | ", "\n", " & ", ";", "|", " |& "]);
            self.put(separator);
            self.command();
        }
    }

    fn command(&mut self) {
        self.fuel = self.fuel.saturating_sub(1);
        self.noise();
        let choice = if self.fuel == 0 {
            0
        } else {
            self.random.below(40)
        };
        match choice {
            30 => {
                // A name of its own, so that it cannot call itself.
                self.count += 1;
                let name = format!("f{}", self.count);
                self.put(&name);
                self.around("() { ", Self::list, "; }; ");
                self.put(&name);
            }
            31 => {
                self.around("w[", Self::subscript, "]=");
                self.word();
            }
            32 => self.around("declare w=(", Self::words, ")"),
            33 => {
                let operator = self
                    .random
                    .one(&["<<'E'", "<<-E", "<<\\E", "<<-\"E\"", "<<EE"]);
                self.simple();
                self.put(" ");
                self.put(operator);
                self.put("\n");
                self.body();
                let end = self.random.one(&["\nE\n", "\n\tE\n", "\nEE\n"]);
                self.put(end);
            }
            34 => self.around("for ((", Self::clauses, "))\ndo m0; break; done"),
            35 => self.around("export v=", Self::word, ""),
            36 => self.around("{ ", Self::list, "\n} >f 2>&1"),
            37 => {
                self.around("case ", Self::word, " in (");
                self.around("", Self::word, " | *) ");
                self.around("", Self::list, ";;& x) m0;; esac");
            }
            38 => self.around(
                "if ",
                Self::command,
                "; then m0; elif m0; then m0; else m0; fi",
            ),
            0..=15 => self.simple(),
            16 => self.around("{ ", Self::list, "; }"),
            17 => self.around("(", Self::list, ")"),
            18 => {
                self.around("if ", Self::list, "; then ");
                self.around("", Self::list, "; fi");
            }
            19 => {
                self.around("for x in ", Self::words, "; do ");
                self.around("", Self::list, "; done");
            }
            20 => {
                self.around("case ", Self::word, " in ");
                self.around("", Self::word, ") ");
                self.around("", Self::list, ";; esac");
            }
            21 => self.around("[[ ", Self::test, " ]]"),
            22 => self.around("((", Self::arithmetic, "))"),
            23 => self.around("v=", Self::word, ""),
            24 => self.around("w=(", Self::words, ")"),
            25 => self.around("! ", Self::command, ""),
            26 => {
                self.simple();
                self.put(" <<E\n");
                self.body();
                self.put("\nE\n");
            }
            27 => {
                self.around("while ", Self::simple, "; do ");
                self.around("", Self::list, "; done");
            }
            28 => self.around("((", Self::list, ") )"),
            _ => self.around("time ", Self::command, ""),
        }
    }

    fn around(&mut self, before: &str, inner: fn(&mut Self), after: &str) {
        self.put(before);
        self.noise();
        inner(self);
        self.noise();
        self.put(after);
    }

    fn simple(&mut self) {
        self.count += 1;
        let name = format!("m{}", self.count);
        let prefix = self.random.one(&["", "", "", "v=1 ", "\\", "v=$(m0) "]);
        self.put(prefix);
        self.put(&name);
        while self.random.below(3) > 0 && self.fuel > 0 {
            self.put(" ");
            self.word();
        }
        if self.random.below(8) == 0 {
            let redirect = self
                .random
                .one(&[" >f", " 2>&1", " <<<", " >", " <", " 2>/dev/null"]);
            self.put(redirect);
            if redirect.ends_with('<') || redirect.ends_with('>') {
                self.word();
            }
        }
    }

    fn words(&mut self) {
        self.word();
        while self.random.below(2) == 0 && self.fuel > 0 {
            self.put(" ");
            self.word();
        }
    }

    fn word(&mut self) {
        self.fuel = self.fuel.saturating_sub(1);
        self.piece();
        while self.random.below(3) == 0 && self.fuel > 0 {
            self.piece();
        }
    }

    fn piece(&mut self) {
        self.noise();
        let choice = if self.fuel == 0 {
            0
        } else {
            self.random.below(40)
        };
        match choice {
            0..=9 => {
                let text = self
                    .random
                    .one(&["a", "b", "x", "1", "-", "n=", "é", ".c", "a,b", "..", ":"]);
                self.put(text);
            }
            10 | 11 => self.around("'", Self::quoted_text, "'"),
            12 | 13 => self.around("\"", Self::double_quoted, "\""),
            14 => {
                let text = self.random.one(&[
                    "\\ ", "\\$", "\\\\", "\\'", "\\\"", "\\`", "\\*", "\\{", "\\,", "\\\n", "\\a",
                ]);
                self.put(text);
            }
            15 | 16 => {
                let text = self.random.one(&[
                    "$v", "$n", "$1", "$@", "${v}", "${#v}", "${w[0]}", "${w[@]}", "$?", "$$",
                ]);
                self.put(text);
            }
            17..=19 => self.around("$(", Self::list, ")"),
            20 | 21 => self.backquoted(),
            22 | 23 => self.parameter(),
            24 => self.around("$((", Self::arithmetic, "))"),
            25 => self.around("$[", Self::arithmetic, "]"),
            26..=28 => {
                self.around("{", Self::alternative, ",");
                self.around("", Self::alternative, "}");
            }
            29 => {
                let text = self.random.one(&[
                    "{1..3}",
                    "{a..c}",
                    "{a}",
                    "{}",
                    "{",
                    "}",
                    "{,}",
                    "{3..1..2}",
                    "{a..",
                    "{x,..}",
                ]);
                self.put(text);
            }
            30 => {
                let text = self.random.one(&["~", "~/x", "*", "?", "[a]", "[", "]"]);
                self.put(text);
            }
            31 => {
                let text = self.random.one(&[
                    "$'a\\'b'",
                    "$'\\x41\\n'",
                    "$'\\t'",
                    "$'$(m0)'",
                    "$'`m0`'",
                    "$'\\x24(m0)'",
                ]);
                self.put(text);
            }
            32 => self.around("<(", Self::list, ")"),
            33 => self.around("$\"", Self::double_quoted, "\""),
            34 => self.around("$((", Self::list, ") )"),
            35 => self.put("$"),
            36 => self.around("${w[", Self::subscript, "]}"),
            37 => self.around("\"${w[", Self::subscript, "]}\""),
            _ => self.around("$(", Self::list, ")"),
        }
    }

    fn alternative(&mut self) {
        if self.random.below(4) > 0 {
            self.piece();
        }
    }

    fn quoted_text(&mut self) {
        let text = self.random.one(&[
            "a b", "", "$(m0)", "`m0`", "\"", "}", ")", "{x,y}", "\\", "#", "$v", "<(m0)",
        ]);
        self.put(text);
    }

    fn double_quoted(&mut self) {
        while self.random.below(3) > 0 && self.fuel > 0 {
            self.noise();
            self.fuel = self.fuel.saturating_sub(1);
            match self.random.below(14) {
                0..=3 => {
                    let text = self.random.one(&[
                        "a b", "'", "}", ")", "{x,y}", "#", "$v", "\\$(m0)", "\\`", "\\\"", "\\a",
                        "'$v'", "<(m0)", "$'a'", "$",
                    ]);
                    self.put(text);
                }
                4..=6 => self.around("$(", Self::list, ")"),
                7 | 8 => self.backquoted(),
                9..=11 => self.parameter(),
                12 => self.around("$((", Self::arithmetic, "))"),
                _ => self.put("$$"),
            }
        }
    }

    fn backquoted(&mut self) {
        // What stands inside is written and then escaped once, as bash takes it off.
        let outer = std::mem::take(&mut self.text);
        self.list();
        let inner = std::mem::replace(&mut self.text, outer);
        self.put("`");
        let escaped = match self.random.below(4) {
            0 => inner,
            _ => inner.replace('\\', "\\\\").replace('`', "\\`"),
        };
        self.put(&escaped);
        self.put("`");
    }

    fn parameter(&mut self) {
        let operator = self.random.one(&[
            ":-", "-", ":+", "+", "=", ":=", "#", "##", "%", "%%", "/", "//", "^", ",,", ":",
            "/a/", "?",
        ]);
        let name = self.random.one(&["u", "v", "w[0]", "1", "@"]);
        self.put("${");
        self.put(name);
        self.put(operator);
        self.noise();
        if operator == ":" {
            self.arithmetic();
        } else {
            self.word();
        }
        self.noise();
        self.put("}");
    }

    fn arithmetic(&mut self) {
        match self.random.below(8) {
            0..=2 => self.put("1"),
            3 => self.put("1 + 2"),
            4 => self.around("$(", Self::list, ")"),
            5 => self.around("1<(", Self::arithmetic, ")"),
            6 => self.backquoted(),
            _ => self.put("${n:-0}"),
        }
    }

    fn subscript(&mut self) {
        match self.random.below(5) {
            0 => self.put("1"),
            1 => self.put("1 + 1"),
            2 => self.around("\"", Self::double_quoted, "\""),
            3 => self.put("'k'"),
            _ => self.arithmetic(),
        }
    }

    fn clauses(&mut self) {
        self.around("", Self::arithmetic, ";");
        self.around("", Self::arithmetic, ";");
        self.arithmetic();
    }

    fn test(&mut self) {
        match self.random.below(8) {
            5 => {
                self.around("", Self::word, " == @(");
                self.around("a|", Self::word, ")");
            }
            6 => {
                self.around("", Self::word, " =~ (");
                self.around("a|", Self::word, ")$");
            }
            7 => self.around("( ", Self::word, " < a )"),
            0 => self.word(),
            1 => self.around("-n ", Self::word, ""),
            2 => {
                self.around("", Self::word, " == ");
                self.word();
            }
            3 => {
                self.around("", Self::word, " =~ ");
                self.word();
            }
            _ => {
                self.around("", Self::word, " && ");
                self.word();
            }
        }
    }

    fn body(&mut self) {
        while self.random.below(4) > 0 && self.fuel > 0 {
            self.noise();
            self.double_quoted();
            let text = self.random.one(&[" ", "\n", "\"", "'", "a", "\\\n", "\t"]);
            self.put(text);
        }
    }
}

/// A random line that bash can run safely where there are no programs.
pub(crate) fn line(seed: u64) -> String {
    let mut writer = Writer {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        text: String::new(),
        count: 0,
        fuel: 3 + usize::try_from(seed % 23).unwrap_or(0),
        noise: seed.is_multiple_of(2),
    };
    for _ in 0..8 {
        writer.random.below(2);
    }
    writer.list();
    writer.text
}

/// Why the commands that bash ran do not fit the tree.
fn contradiction(stage: &Stage, bash: &Path, line: &str) -> Option<String> {
    let script = parse(line).ok()?;
    let expected = commands(&script);
    if expected.evaluates {
        return None;
    }
    let ran = stage.run(bash, line);
    let fits = |ran: &[String], words: &[Option<String>]| {
        for (index, word) in words.iter().enumerate() {
            match word {
                None => return true,
                Some(word) if ran.get(index) != Some(word) => return false,
                Some(_) => {}
            }
        }
        ran.len() == words.len()
    };
    ran.into_iter()
        .find(|ran| !expected.words.iter().any(|words| fits(ran, words)))
        .map(|ran| format!("{line:?}\n  ran {ran:?}\n  expected {:?}", expected.words))
}

#[test]
fn what_bash_runs_is_in_the_tree() {
    let Some(bash) = bash::path() else { return };
    let setting = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let first = setting("HAFT_SEED").unwrap_or(1);
    let count = setting("HAFT_CASES").unwrap_or(400);
    let stage = Stage::new();
    let mut accepted = 0;
    let mut failures = Vec::new();
    let mut seed = first;
    while accepted < count {
        let line = line(seed);
        seed += 1;
        if parse(&line).is_err() {
            continue;
        }
        accepted += 1;
        failures.extend(contradiction(&stage, bash, &line));
    }
    println!("{accepted} of {} lines accepted", seed - first);
    assert!(
        failures.is_empty(),
        "{}\n{}",
        failures.len(),
        failures.join("\n")
    );
}
