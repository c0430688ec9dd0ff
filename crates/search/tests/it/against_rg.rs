//! The same tree, the same question, ripgrep's answer. Skipped where there is no `rg` on the path.
//!
//! Only what ripgrep 13 and 15 agree on is asked: not a root that is a link, not `-t all`, not
//! ignore files below a `.jj`. The binary files come before the long line in path order, because
//! ripgrep's buffer grows with the latter.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use haft_search::{GrepMatches, GrepMode, GrepQuery};

use crate::tree::{CONTENT, Tree, grep};

const MODES: [GrepMode; 8] = [
    GrepMode::FilesWithMatches,
    GrepMode::Count,
    CONTENT,
    GrepMode::Content {
        before: 1,
        after: 1,
        only_matching: false,
    },
    GrepMode::Content {
        before: 0,
        after: 2,
        only_matching: false,
    },
    GrepMode::Content {
        before: 3,
        after: 0,
        only_matching: false,
    },
    GrepMode::Content {
        before: 0,
        after: 0,
        only_matching: true,
    },
    GrepMode::Content {
        before: 1,
        after: 1,
        only_matching: true,
    },
];

const PATTERNS: [&str; 19] = [
    "needle",
    "absent-everywhere",
    "",
    "^",
    "$",
    "^$",
    "e*",
    ".",
    ".+",
    r"\bneedle\b",
    r"(?i)NEEDLE",
    "n[a-z]+e",
    "ñ|ö|ß",
    r"\p{Greek}+",
    r"\s+$",
    r"[^a-z]",
    r"needle\s*$",
    r"(foo|bar)\d",
    r"\r",
];

const MULTILINE: [&str; 10] = [
    "needle",
    r"one\ntwo",
    "one.*three",
    r"needle\n",
    r"\n\n",
    r"(?s)one.two",
    "^",
    "e*",
    r"needle$",
    r"\w+\s+\w+",
];

/// A tree with one of everything that ripgrep treats in its own way.
fn tricky() -> Tree {
    let tree = Tree::new();
    let plain: &[(&str, &str)] = &[
        (".git/HEAD", "needle in git\n"),
        (".git/info/exclude", "excluded.txt\n"),
        (".hg/store", "needle in hg\n"),
        ("sub/.svn/entries", "needle in svn\n"),
        (".jj/x", "needle in jj\n"),
        ("sub/.bzr/x", "needle in bzr\n"),
        (
            ".gitignore",
            "*.log\n/target/\n!keep.log\n*.tmp\nsub/deep/**/gen\n",
        ),
        (".ignore", "by-ignore.txt\n!important.tmp\n"),
        (".rgignore", "by-rgignore.txt\n"),
        ("excluded.txt", "needle excluded\n"),
        ("by-ignore.txt", "needle\n"),
        ("by-rgignore.txt", "needle\n"),
        ("a.log", "needle log\n"),
        ("keep.log", "needle kept log\n"),
        ("x.tmp", "needle tmp\n"),
        ("important.tmp", "needle important\n"),
        ("target/out.txt", "needle target\n"),
        ("sub/target/out.txt", "needle sub target\n"),
        ("sub/.gitignore", "!x.tmp\nlocal.md\n"),
        ("sub/x.tmp", "needle revived\n"),
        ("sub/local.md", "needle local\n"),
        ("sub/readme.md", "# needle\n\nfoo1 bar2\nneedle needle\n"),
        ("sub/deep/er/gen/g.txt", "needle generated\n"),
        (
            "sub/deep/er/h.txt",
            "one\ntwo\nthree\nneedle\nfour\nfive\nneedle\n\n\nsix\n",
        ),
        ("sub/deep.txt", "needle beside deep\n"),
        ("sub-a/x.txt", "needle order\n"),
        ("sub.txt", "needle order\n"),
        ("nested/.git/HEAD", "needle\n"),
        ("nested/.gitignore", "*.md\n"),
        ("nested/n.md", "needle nested\n"),
        ("nested/n.txt", "needle nested\n"),
        (".env", "needle=1\n"),
        (".hidden/inner.txt", "needle inner\n"),
        (".hidden/.deeper/x.py", "needle = 1\n"),
        ("main.py", "def needle():\n    return 'needle'\n"),
        ("empty.txt", ""),
        ("only-newline.txt", "\n"),
        ("no-final.txt", "one\nneedle"),
        ("crlf.txt", "one\r\nneedle\r\n\r\nthree \r\nneedle  \r\n"),
        ("mixed-ends.txt", "needle\r\nneedle\n\rneedle\r"),
        (
            "unicode.txt",
            "ñandú needle öß\nΑθήνα NEEDLE\n\u{212a}elvin \u{17f}\n",
        ),
        ("with space.txt", "needle in space\n"),
        ("ünï-ñame.txt", "needle\n"),
        (
            "foo.txt",
            "foo1\nbar2\nbaz3\n\n\n\nfoo4\nx\nfoo5 foo6\ny\nz\nw\nbar7\n",
        ),
        ("-dash.txt", "needle dash\n"),
        ("[br].txt", "needle brackets\n"),
    ];
    for (path, text) in plain {
        tree.write(path, text);
    }
    tree.write("bin-early.bin", b"needle\0\nneedle\n");
    tree.write("bin-after-line.bin", b"needle\nsecond\n\0\nneedle\n");
    tree.write(
        "long-line.txt",
        format!("{}needle{}\nneedle\n", "x".repeat(70_000), "é".repeat(900)),
    );
    tree.write("invalid-text.txt", b"\xff\xfeneedle\n");
    tree.write(
        "invalid-text-2.txt",
        b"a\xffneedle \xc3\x28 needle\n\xe2\x82\nneedle\n",
    );
    let utf16 = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let little = utf16("\u{feff}one\nneedle ñ\nthree\n")
        .iter()
        .flat_map(|unit| unit.to_le_bytes())
        .collect::<Vec<_>>();
    let big = utf16("\u{feff}one\nneedle ñ\nthree\n")
        .iter()
        .flat_map(|unit| unit.to_be_bytes())
        .collect::<Vec<_>>();
    tree.write("utf16-little.txt", little);
    tree.write("utf16-big.txt", big);
    tree.write(
        "utf8-mark.txt",
        b"\xef\xbb\xbfneedle first\nsecond needle\n",
    );
    tree.write(
        Path::new(OsStr::from_bytes(b"bad-\xff-name.txt")),
        "needle in a bad name\n",
    );
    fs::create_dir(tree.root.join("empty-dir")).unwrap();
    symlink("sub.txt", tree.root.join("link-to-file.txt")).unwrap();
    symlink("sub", tree.root.join("link-to-dir")).unwrap();
    symlink("nowhere", tree.root.join("broken-link")).unwrap();
    tree
}

/// The same, with files that do not fit into the searcher's buffer.
fn tricky_and_large() -> Tree {
    let tree = tricky();
    let filler = "filler line of text\n".repeat(4_000);
    let filler = filler.as_bytes();
    tree.write(
        "bin-late.bin",
        [b"needle\n", filler, b"\0\nneedle\n"].concat(),
    );
    tree.write("bin-late-only.bin", [filler, b"\0\nneedle\n"].concat());
    tree.write(
        "big.txt",
        [filler, b"needle\n", filler, b"needle\n"].concat(),
    );
    tree
}

/// `None` when there is no ripgrep to compare with.
fn rg(tree: &Tree, query: &GrepQuery) -> Option<Vec<Vec<u8>>> {
    let mut command = haft_testkit::command("rg");
    command
        .current_dir(&query.current_dir)
        .stdin(Stdio::null())
        .env_clear();
    // Both must see the same user's global excludes, and nothing else of the environment.
    for name in ["PATH", "HOME", "XDG_CONFIG_HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.args([
        "--no-config",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--no-messages",
    ]);
    command.args(["--no-mmap", "--sort=path", "--hidden"]);
    command.args(query.globs.iter().map(|glob| format!("--glob={glob}")));
    // Last, because the last glob that fits wins: ours are never entered, whatever the query's
    // globs say.
    command.args([".git", ".svn", ".hg", ".bzr", ".jj"].map(|name| format!("--glob=!{name}")));
    command.args(query.file_type.iter().map(|name| format!("--type={name}")));
    if query.case_insensitive {
        command.arg("--ignore-case");
    }
    if query.multiline {
        command.args(["--multiline", "--multiline-dotall"]);
    }
    match query.mode {
        GrepMode::FilesWithMatches => command.arg("--files-with-matches"),
        GrepMode::Count => command.arg("--count"),
        GrepMode::Content {
            before,
            after,
            only_matching,
        } => {
            if only_matching {
                command.arg("--only-matching");
            }
            command
                .arg("--line-number")
                .args([format!("-B{before}"), format!("-A{after}")])
        }
    };
    command
        .arg("-e")
        .arg(&query.pattern)
        .arg("--")
        .arg(&query.path);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("rg did not run: {error}"),
    };
    let prefix: OsString = tree.root.join("").into();
    let mut lines: Vec<Vec<u8>> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .map(|line| {
            line.strip_prefix(prefix.as_bytes())
                .unwrap_or(line)
                .to_vec()
        })
        .collect();
    lines.pop(); // what follows the last line end
    Some(lines)
}

fn compare(tree: &Tree, query: &GrepQuery) -> bool {
    let Some(theirs) = rg(tree, query) else {
        return false;
    };
    let theirs: Vec<_> = theirs
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let report = grep(query);
    let mut ours = tree.lines(&report);
    if let GrepMatches::Files(files) = &report.found {
        // The order by time is our own; here it is the set that counts.
        let mut files = files.clone();
        files.sort();
        ours = files.iter().map(|path| tree.relative(path)).collect();
    }
    if let GrepMatches::Rows(rows) = &report.found {
        // The cut of long lines is our own as well: what is left must be their beginning, and the
        // length theirs.
        for ((line, full), row) in ours.iter_mut().zip(&theirs).zip(rows) {
            if let Some(length) = row.full_length {
                let hidden = length - row.text.chars().count();
                let is_beginning = full.starts_with(line.as_str());
                if is_beginning && line.chars().count() + hidden == full.chars().count() {
                    line.clone_from(full);
                }
            }
        }
    }
    similar_or_panic(&ours, &theirs, query);
    true
}

fn similar_or_panic(ours: &[String], theirs: &[String], query: &GrepQuery) {
    if ours == theirs {
        return;
    }
    let brief = |line: Option<&String>| line.map(|line| line.chars().take(120).collect::<String>());
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    panic!(
        "differs from rg at row {at} ({} rows, rg {})\nours: {:?}\nrg:   {:?}\n{query:#?}",
        ours.len(),
        theirs.len(),
        brief(ours.get(at)),
        brief(theirs.get(at)),
    );
}

fn compare_all(tree: &Tree, queries: impl IntoIterator<Item = GrepQuery>) -> bool {
    queries.into_iter().all(|query| compare(tree, &query))
}

const NO_RG: &str = "searches compared with ripgrep: no rg";

#[test]
fn every_pattern_in_every_mode() {
    let tree = tricky();
    let queries = PATTERNS
        .iter()
        .flat_map(|pattern| MODES.map(|mode| tree.query(pattern, mode)));
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn files_larger_than_the_buffer() {
    let tree = tricky_and_large();
    let mut queries = Vec::new();
    for mode in MODES {
        for pattern in ["needle", "^needle$", "", r"\w+ line"] {
            queries.push(tree.query(pattern, mode));
        }
        for pattern in ["needle", r"text\nneedle"] {
            queries.push(GrepQuery {
                multiline: true,
                ..tree.query(pattern, mode)
            });
        }
        for path in ["bin-late.bin", "bin-late-only.bin", "big.txt"] {
            let path = tree.root.join(path);
            queries.push(GrepQuery {
                path,
                ..tree.query("needle", mode)
            });
        }
    }
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn case_insensitive_patterns() {
    let tree = tricky();
    let queries = ["needle", "ÑANDÚ", "k", "s", "αθήνα"]
        .iter()
        .flat_map(|pattern| {
            MODES.map(|mode| GrepQuery {
                case_insensitive: true,
                ..tree.query(pattern, mode)
            })
        });
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn multiline_patterns() {
    let tree = tricky();
    let queries = MULTILINE.iter().flat_map(|pattern| {
        MODES.map(|mode| GrepQuery {
            multiline: true,
            ..tree.query(pattern, mode)
        })
    });
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn globs_and_types_choose_and_revive_files() {
    let tree = tricky();
    let globs: [&[&str]; 17] = [
        &["*.txt"],
        &["*.log"],
        &["!*.txt"],
        &["*.txt", "!sub*"],
        &["!*.md", "*.md"],
        &[".env*"],
        &[".hidden/**"],
        &["sub/**"],
        &["/sub/*.md"],
        &["sub/"],
        &["*.{py,md}"],
        &["target/**"],
        &["target"],
        &["**/gen/**"],
        &["*.tmp", "*.log"],
        &["[[]br].txt"],
        &["nothing-fits"],
    ];
    let mut queries = Vec::new();
    for mode in [MODES[0], MODES[1], CONTENT] {
        for globs in globs {
            let globs: Vec<_> = globs.iter().map(ToString::to_string).collect();
            queries.push(GrepQuery {
                globs,
                ..tree.query("needle", mode)
            });
        }
        for file_type in ["md", "py", "txt", "log"] {
            let file_type = Some(file_type.to_owned());
            queries.push(GrepQuery {
                file_type: file_type.clone(),
                ..tree.query("needle", mode)
            });
            for glob in ["sub/**", "*.log", "!*.md"] {
                let (globs, file_type) = (vec![glob.to_owned()], file_type.clone());
                queries.push(GrepQuery {
                    globs,
                    file_type,
                    ..tree.query("needle", mode)
                });
            }
        }
    }
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn a_file_or_directory_named_directly() {
    let tree = tricky();
    let paths = [
        "sub",
        "sub/deep",
        "sub/",
        "target",
        ".hidden",
        ".git",
        "nested",
        "empty-dir",
        "a.log",
        "target/out.txt",
        ".git/HEAD",
        "link-to-file.txt",
        "bin-early.bin",
        "bin-after-line.bin",
        "utf16-little.txt",
        "empty.txt",
        "crlf.txt",
        "by-ignore.txt",
        "main.py",
    ];
    let mut queries = Vec::new();
    for path in paths {
        for mode in MODES {
            let path = tree.root.join(path);
            let query = GrepQuery {
                path,
                ..tree.query("needle", mode)
            };
            // Neither globs nor types filter what is named; one mode is enough to see it.
            if mode == CONTENT {
                queries.push(GrepQuery {
                    multiline: true,
                    ..query.clone()
                });
                queries.push(GrepQuery {
                    globs: vec!["*.md".to_owned()],
                    ..query.clone()
                });
                queries.push(GrepQuery {
                    file_type: Some("py".to_owned()),
                    ..query.clone()
                });
            }
            queries.push(query);
        }
    }
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn git_rules_need_a_repository() {
    let tree = tricky();
    for name in [".git", ".jj"] {
        fs::remove_dir_all(tree.root.join(name)).unwrap();
    }
    let queries = [MODES[0], MODES[1], CONTENT].map(|mode| tree.query("needle", mode));
    if !compare_all(&tree, queries) {
        haft_testkit::skip(NO_RG);
    }
}

#[test]
fn globs_are_relative_to_the_current_directory() {
    let tree = tricky();
    let queries = ["deep/**", "sub/deep/**", "/*.md", "*.md", "/sub/*.md"]
        .iter()
        .flat_map(|glob| {
            ["", "sub", "sub/deep"].map(|current_dir| GrepQuery {
                globs: vec![(*glob).to_owned()],
                current_dir: tree.root.join(current_dir),
                path: tree.root.join("sub"),
                ..tree.query("needle", CONTENT)
            })
        });
    if !compare_all(&tree, queries.collect::<Vec<_>>()) {
        haft_testkit::skip(NO_RG);
    }
}
