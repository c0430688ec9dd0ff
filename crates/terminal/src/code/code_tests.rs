use proptest::prelude::*;

use super::*;

/// Each piece that is not plain, with a letter for what it is.
fn shown(language: &str, lines: &[&str]) -> Vec<String> {
    let mut lexer = CodeLexer::new(language);
    let mut shown = Vec::new();
    for line in lines {
        for (range, token) in lexer.line(line) {
            let letter = match token {
                CodeToken::Plain => continue,
                CodeToken::Comment => 'c',
                CodeToken::String => 's',
                CodeToken::Number => 'n',
                CodeToken::Keyword => 'k',
                CodeToken::Type => 't',
                CodeToken::Call => 'f',
                CodeToken::Added => '+',
                CodeToken::Removed => '-',
            };
            shown.push(format!("{letter}:{}", &line[range]));
        }
    }
    shown
}

#[test]
fn pieces_by_language() {
    let cases: [(&str, &[&str], &[&str]); 16] = [
        (
            "rust",
            &[
                "fn main(x: &'a u32) -> Vec<T> { println!(\"a\\\"b\", 'c', 0x1F_u8, 1.5e-3, 1..2) } // end",
            ],
            &[
                "k:fn",
                "f:main",
                "t:u32",
                "t:Vec",
                "t:T",
                "f:println",
                "s:\"a\\\"b\"",
                "s:'c'",
                "n:0x1F_u8",
                "n:1.5e-3",
                "n:1",
                "n:2",
                "c:// end",
            ],
        ),
        (
            "rust",
            &["let s = \"one", "two\"; x"],
            &["k:let", "s:\"one", "s:two\""],
        ),
        (
            "rust",
            &["r#\"a\"b\"#", "/* a /* b */ c", "d */ e"],
            &["s:r#\"a\"b\"#", "c:/* a /* b */ c", "c:d */"],
        ),
        (
            "py",
            &[
                "def f(x):  # say",
                "    \"\"\"doc",
                "    more\"\"\"",
                "    return None",
            ],
            &[
                "k:def",
                "f:f",
                "c:# say",
                "s:\"\"\"doc",
                "s:    more\"\"\"",
                "k:return",
                "n:None",
            ],
        ),
        (
            "ts",
            &["const x: number = `a", "b`;"],
            &["k:const", "t:number", "s:`a", "s:b`"],
        ),
        (
            "c",
            &["#include <a.h>", "int x = 'a'; /* b", "*/"],
            &["k:#include", "t:int", "s:'a'", "c:/* b", "c:*/"],
        ),
        (
            "go",
            &["func main() { x := `a", "b` }"],
            &["k:func", "f:main", "s:`a", "s:b`"],
        ),
        (
            "sh",
            &["if [ \"$x\" ]; then echo a#b # c"],
            &["k:if", "s:\"$x\"", "k:then", "c:# c"],
        ),
        (
            "sql",
            &["SELECT name FROM t -- all"],
            &["k:SELECT", "k:FROM", "c:-- all"],
        ),
        (
            "json",
            &["{\"a\": [1, true]}"],
            &["s:\"a\"", "n:1", "n:true"],
        ),
        (
            "yaml",
            &["key: value # c", "  - other: 'x'"],
            &["k:key", "c:# c", "k:other", "s:'x'"],
        ),
        ("toml", &["name = \"x\""], &["k:name", "s:\"x\""]),
        (
            "html",
            &["<a href=\"x\">text</a><!-- c", "-->"],
            &["k:a", "s:\"x\"", "k:a", "c:<!-- c", "c:-->"],
        ),
        (
            "diff",
            &["+new", "-old", "@@ -1 +1 @@", " same"],
            &["+:+new", "-:-old", "t:@@ -1 +1 @@"],
        ),
        ("no-such-language", &["fn main() {}"], &[]),
        (
            "c",
            &["char *s = \"not closed", "int y;"],
            &["t:char", "s:\"not closed", "t:int"],
        ),
    ];
    for (language, lines, expected) in cases {
        assert_eq!(shown(language, lines), expected, "{language}: {lines:?}");
    }
}

#[test]
fn languages_are_found_by_fence_and_by_file() {
    for name in ["Rust", "rust,ignore", "rs", "rust {x}"] {
        assert!(CodeLexer::new(name).is_known(), "{name}");
    }
    for path in ["src/a.rs", "Makefile", "a/Dockerfile", "x.test.tsx"] {
        assert!(CodeLexer::for_path(path).is_known(), "{path}");
    }
    assert!(!CodeLexer::for_path("README").is_known() && !CodeLexer::new("").is_known());
}

#[test]
fn long_lines_stay_plain() {
    let long = format!("fn {}", "x".repeat(3000));
    assert_eq!(
        CodeLexer::new("rust").line(&long),
        [(0..long.len(), CodeToken::Plain)]
    );
}

proptest! {
    #[test]
    fn pieces_are_the_whole_line(
        lines in prop::collection::vec("[a-zA-Z0-9\"'`/*#<>!\\\\ \\-{}\\[\\]().é漢]{0,40}", 0..6),
        language in prop::sample::select(vec!["rust", "py", "js", "c", "cpp", "rb", "sh", "sql", "html", "css", "yaml", "lua", "hs", "ps1", "diff"]),
    ) {
        let mut lexer = CodeLexer::new(language);
        for line in lines {
            let pieces = lexer.line(&line);
            let mut end = 0;
            for (range, _) in &pieces {
                prop_assert_eq!(range.start, end);
                prop_assert!(range.end > range.start && line.is_char_boundary(range.end));
                end = range.end;
            }
            prop_assert_eq!(end, line.len());
        }
    }
}
