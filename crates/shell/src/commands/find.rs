//! find: the expression decides what the command does.

use std::borrow::Cow;

use super::{
    options::{content, names, written as written_as},
    spec::KnownCommand,
};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict, FileRead, StartedProgram, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("find", find)];

/// Tests, operators and actions without a value that only inspect and print.
const ALONE: &str = "! ( ) , --help --version -a -and -d -daystart -depth -empty -executable -false \
     -follow -help -ignore_readdir_race -ls -mount -nogroup -noignore_readdir_race -noleaf -not \
     -nouser -nowarn -o -or -print -print0 -prune -quit -readable -true -version -warn -writable -xdev";

/// Like [`ALONE`], but with a value.
const WITH_VALUE: &str = "-amin -atime -cmin -context -ctime -fstype -gid -group -ilname -iname -inum \
     -ipath -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -path -perm \
     -printf -regex -regextype -size -type -uid -used -user -wholename -xtype";

/// Like [`ALONE`], but with a file whose dates are read.
const WITH_FILE: &str = "-anewer -cnewer -newer -samefile";

fn find(argv: &[Arg]) -> CommandFinding {
    let mut expression = FindExpression {
        argv,
        at: 1,
        roots: Vec::new(),
        refusal: None,
        exact: false,
        deletes: false,
        effects: Vec::new(),
        starts: Vec::new(),
    };
    expression.options();
    expression.roots();
    while expression.at < argv.len() {
        expression.term();
    }
    expression.finding()
}

/// Returns a read of the names of everything below a path.
pub(super) fn names_below(arg: &Arg) -> Effect {
    Effect::Read(FileRead {
        path: arg.clone(),
        content: false,
        is_recursive: true,
    })
}

/// Returns the directory in which the command runs.
pub(super) fn here(argv: &[Arg]) -> Arg {
    let span = argv
        .first()
        .map_or(Span { start: 0, end: 0 }, |arg| arg.span);
    Arg::literal(".", span)
}

struct FindExpression<'a> {
    argv: &'a [Arg],
    at: usize,
    roots: Vec<Arg>,
    /// The most severe part of the expression that is not read-only.
    refusal: Option<(EffectVerdict, Cow<'static, str>, Span)>,
    exact: bool,
    deletes: bool,
    effects: Vec<Effect>,
    starts: Vec<StartedProgram>,
}

impl<'a> FindExpression<'a> {
    fn refuse(&mut self, verdict: EffectVerdict, why: impl Into<Cow<'static, str>>, span: Span) {
        if self
            .refusal
            .as_ref()
            .is_none_or(|(worst, ..)| verdict > *worst)
        {
            self.refusal = Some((verdict, why.into(), span));
        }
    }

    fn doubt(&mut self, why: impl Into<Cow<'static, str>>, span: Span) {
        self.refuse(EffectVerdict::Unknown, why, span);
    }

    /// Reads `-H`, `-L`, `-P`, `-D …` and `-O…`, which must come first.
    fn options(&mut self) {
        while let Some(text) = self.argv.get(self.at).and_then(Arg::text) {
            match text {
                "-H" | "-L" | "-P" => self.at += 1,
                "-D" => {
                    let name = &self.argv[self.at];
                    self.at += 1;
                    self.value(name);
                }
                "--" => {
                    self.at += 1;
                    return;
                }
                _ if text.starts_with("-O") => self.at += 1,
                _ => return,
            }
        }
    }

    /// Reads the starting points, which precede the expression.
    fn roots(&mut self) {
        while let Some(arg) = self.argv.get(self.at) {
            match arg.text() {
                Some(text) if is_expression_start(text) => break,
                Some(_) => {}
                None => self.doubt("the result of an expansion may be an action", arg.span),
            }
            self.roots.push(arg.clone());
            self.at += 1;
        }
        if self.roots.is_empty() {
            self.roots.push(here(self.argv));
        }
    }

    fn term(&mut self) {
        let arg = &self.argv[self.at];
        self.at += 1;
        let Some(text) = arg.text() else {
            self.doubt("the result of an expansion may be an action", arg.span);
            return;
        };
        match text {
            _ if lists(ALONE, text) => {}
            _ if lists(WITH_VALUE, text) => {
                self.value(arg);
            }
            _ if lists(WITH_FILE, text) => self.file(arg, names),
            "-files0-from" => {
                self.doubt(
                    "-files0-from takes its starting points from a file",
                    arg.span,
                );
                self.file(arg, content);
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => self.command(arg, text),
            "-delete" => {
                self.exact = true;
                self.deletes = true;
                self.refuse(
                    EffectVerdict::Mutating,
                    "-delete removes what it finds",
                    arg.span,
                );
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                self.exact = true;
                self.refuse(
                    EffectVerdict::Mutating,
                    format!("{text} writes a file"),
                    arg.span,
                );
                self.file(arg, written);
                if text == "-fprintf" {
                    self.value(arg);
                }
            }
            _ => match text.strip_prefix("-newer").map(str::as_bytes) {
                Some([b'a' | b'B' | b'c' | b'm', b't']) => {
                    self.value(arg);
                }
                Some([b'a' | b'B' | b'c' | b'm', b'a' | b'B' | b'c' | b'm']) => {
                    self.file(arg, names);
                }
                _ => self.doubt(format!("its {text} is not known to be safe"), arg.span),
            },
        }
    }

    /// Returns the value of a test.
    fn value(&mut self, name: &Arg) -> Option<&'a Arg> {
        let Some(value) = self.argv.get(self.at) else {
            self.doubt("its expression lacks an argument", name.span);
            return None;
        };
        self.at += 1;
        // If an expansion becomes several arguments, the extra ones change the expression.
        let one = matches!(value.value, ArgValue::Unknown { one: true, .. });
        if value.text().is_none() && !one {
            self.doubt("the result of an expansion may be an action", value.span);
        }
        Some(value)
    }

    fn file(&mut self, name: &Arg, effect: fn(&Arg) -> Effect) {
        if let Some(file) = self.value(name) {
            self.effects.push(effect(file));
        }
    }

    /// Reads `-exec … ;` or `-exec … {} +`.
    fn command(&mut self, action: &Arg, name: &str) {
        self.exact = true;
        let below = matches!(name, "-execdir" | "-okdir");
        if below {
            let why = format!("{name} runs its command in every directory it comes to");
            self.doubt(why, action.span);
        }
        // `-ok` does not support `+`.
        let ends_with_all = name.starts_with("-exec");
        let mut argv: Vec<Arg> = Vec::new();
        let mut all = false;
        loop {
            let Some(arg) = self.argv.get(self.at) else {
                self.doubt(format!("the end of {name} is missing"), action.span);
                break;
            };
            self.at += 1;
            if arg.text().is_none() {
                self.doubt("the result of an expansion may end the command", arg.span);
            }
            if arg.is(";") {
                break;
            }
            let previous = self.argv.get(self.at - 2);
            if ends_with_all && arg.is("+") && previous.is_some_and(|previous| previous.is("{}")) {
                all = true;
                break;
            }
            argv.push(arg.clone());
        }
        let prefix = match self.roots.as_slice() {
            _ if below => "./",
            // A long root that replaces many placeholders would make a short line huge.
            [root] => root.text().filter(|text| text.len() < 256).unwrap_or(""),
            _ => "",
        };
        for arg in &mut argv {
            fill(arg, prefix, !all);
        }
        self.starts
            .push(StartedProgram::Command { argv, more: true });
    }

    fn finding(self) -> CommandFinding {
        let mut finding = match self.refusal {
            Some((EffectVerdict::Mutating, why, span)) => {
                CommandFinding::mutating(why).with_span(span)
            }
            Some((_, why, span)) => CommandFinding::unknown(why).with_span(span),
            None => CommandFinding::read_only("it only reads names and dates"),
        };
        if self.exact {
            finding = finding.requiring_exact_rule();
        }
        finding.effects = self.roots.iter().map(names_below).collect();
        if self.deletes {
            finding.effects.extend(self.roots.iter().map(written));
            // The line does not name the files below that the command removes.
            let trees = self
                .roots
                .iter()
                .map(|root| written_as(root, WriteKind::Tree));
            finding.effects.extend(trees);
        }
        finding.effects.extend(self.effects);
        finding.starts = self.starts;
        finding
    }
}

/// Replaces `{}` with an unknown path that begins with the starting point.
fn fill(arg: &mut Arg, found: &str, one: bool) {
    let (before, one) = match arg.text().and_then(|text| text.split_once("{}")) {
        Some(("", "")) => ("", one),
        Some((before, _)) => (before, true),
        None => return,
    };
    arg.value = ArgValue::Unknown {
        prefix: format!("{before}{found}"),
        one,
    };
}

/// Returns whether the expression begins with this argument. The arguments before it are starting
/// points.
fn is_expression_start(text: &str) -> bool {
    matches!(text, "(" | "!") || (text.starts_with('-') && text != "-")
}

fn lists(words: &str, text: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == text)
}

fn written(path: &Arg) -> Effect {
    written_as(path, WriteKind::OptionWrite)
}

#[cfg(test)]
mod tests {
    use crate::arg::{Arg, ArgValue};
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, effects, find, verdict,
    };
    use crate::effect::{RuleCoverage, StartedProgram};

    #[test]
    fn looking_is_harmless() {
        assert_read_only(&[
            "find",
            "find .",
            "find . -name '*.rs'",
            "find src tests -type f",
            "find . -type f -name '*.rs' -not -path './target/*'",
            "find . ( -name a -o -name b ) -a ! -empty -print",
            "find . -path ./target -prune -o -name '*.rs' -print",
            "find . -maxdepth 2 -mindepth 1 -type d",
            "find . -mtime -7 -size +10k -ls",
            "find . -newer Cargo.toml -newermt 2024-01-01 -neweraB f",
            "find . -printf '%p %s\\n'",
            "find . -print0",
            "find -L . -xtype l",
            "find -H -O3 -D tree . -name x",
            "find . -regextype posix-extended -regex '.*\\.(c|h)'",
            "find . -perm -u+x -user root -group root",
            "find . -empty -quit",
            "find . -name -delete",
            "find . -iname -exec -size 1",
            "find -- . -name x",
            "find . -samefile a , -inum 5",
            "find --version",
            "find . -daystart -mmin -60 -o -cmin 5 -links 2",
            "find . -exec cat {} ;",
            "find . -name '*.rs' -exec grep -l x {} +",
            "find . -ok cat {} ;",
        ]);
    }

    #[test]
    fn actions_are_not() {
        assert_not_read_only(&[
            "find . -delete",
            "find . -name x -delete",
            "find . -fprint out",
            "find . -fprint0 out",
            "find . -fls out",
            "find . -fprintf out %p",
            "find . -execdir cat {} ;",
            "find . -okdir cat {} ;",
            "find . -exec cat {}",
            "find . -files0-from list",
            "find . -odd",
            "find . -newerxy f",
            "find . -name",
            "find . -name x foo",
            "find $dir -name x",
            "find . $test",
            "find . -name $x",
            "find . -name *.rs",
            "find *",
            "find . -exec $command ;",
            "find . -exec echo $x -delete {} +",
        ]);
    }

    #[test]
    fn reasons_and_effects_say_what_happens() {
        let cases = [
            (
                "find . -delete -odd",
                "mutating: -delete removes what it finds",
            ),
            ("find . -odd -fls out", "mutating: -fls writes a file"),
            ("find . -odd", "unknown: its -odd is not known to be safe"),
        ];
        for (line, expected) in cases {
            assert_eq!(verdict(line), expected, "{line}");
        }
        let cases: [(&str, &[&str]); 5] = [
            ("find", &["names below ."]),
            (
                "find a b -newer c",
                &["names below a", "names below b", "names c"],
            ),
            ("find a -fprintf o %p", &["names below a", "OptionWrite o"]),
            (
                "find a b -delete",
                &[
                    "names below a",
                    "names below b",
                    "OptionWrite a",
                    "OptionWrite b",
                    "Tree a",
                    "Tree b",
                ],
            ),
            ("find $d -name x", &["names below $"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
        for line in ["find . -delete", "find . -fls o", "find . -exec cat {} ;"] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
        assert_eq!(find("find . -odd").coverage, RuleCoverage::Prefix);
    }

    fn started(line: &str) -> Vec<(Vec<String>, bool)> {
        let word = |arg: &Arg| match &arg.value {
            ArgValue::Unknown { prefix, one } => {
                format!("{prefix}…{}", if *one { "" } else { "s" })
            }
            _ => arg.text().unwrap_or("?").to_owned(),
        };
        let starts = find(line).starts;
        starts
            .iter()
            .map(|start| match start {
                StartedProgram::Command { argv, more } => (argv.iter().map(word).collect(), *more),
                StartedProgram::Script(_) => panic!("{line} starts a script"),
            })
            .collect()
    }

    #[test]
    fn commands_that_it_starts_are_looked_at_on_their_own() {
        let cases: [(&str, &[&[&str]]); 6] = [
            ("find . -exec rm {} ;", &[&["rm", ".…"]]),
            ("find src -exec wc -l {} +", &[&["wc", "-l", "src…s"]]),
            ("find a b -exec cp {} {}.bak ;", &[&["cp", "…", "…"]]),
            ("find . -execdir sh -c x{}y ;", &[&["sh", "-c", "x./…"]]),
            (
                "find . -exec a ; -ok b {} + ;",
                &[&["a"], &["b", ".…", "+"]],
            ),
            ("find . -exec {} ;", &[&[".…"]]),
        ];
        for (line, expected) in cases {
            let got = started(line);
            let words: Vec<&Vec<String>> = got.iter().map(|(words, _)| words).collect();
            assert_eq!(words, expected, "{line}");
            assert!(got.iter().all(|(_, more)| *more), "{line}");
        }
    }

    #[test]
    fn a_quoted_expansion_may_be_the_value_of_a_test_but_not_a_term() {
        let argv = |last: &str| {
            let mut argv = crate::commands::testing::argv(last);
            let span = argv[0].span;
            argv.push(Arg {
                span,
                value: ArgValue::Unknown {
                    prefix: String::new(),
                    one: true,
                },
            });
            argv
        };
        let look = |line| {
            crate::commands::evaluate_command("find", &argv(line))
                .verdict
                .name()
        };
        assert_eq!(look("find . -name"), "readonly");
        assert_eq!(look("find . -name x"), "unknown");
        assert_eq!(look("find"), "unknown");
    }
}
