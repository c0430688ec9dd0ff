//! The pieces from which programs are generated.

/// Sed commands that print.
#[rustfmt::skip]
pub(super) const SED_HARMLESS: &[&str] = &[
    "p", "d", "1!G", "h;x", "$=", "s/a/b/g", "s,w,e,3p", "s/[/w]/e/", "s/[]/]/x/I", "y/we/ab/",
    "/w/,/e/p", "2q", "l 5", "1,+2n", "0~2p", "\\,w,d", "/a\\/w/!p", "t", "ba", "s/a\\\n/w/",
    "#w out", "/[[:alpha:]/]/p",
];

/// Like [`SED_HARMLESS`], but each piece must be followed by a line break.
#[rustfmt::skip]
pub(super) const SED_TEXT: &[&str] = &[
    "a w out", "i\\\nw out", "c\\w out\\\nw out", "r w", ":a",
];

/// Sed commands that write files or start programs.
#[rustfmt::skip]
pub(super) const SED_REFUSED: &[&str] = &[
    "w out", "1w out", "W out", "/w/!w out", "s/a/b/w out", "s/a/b/gpw out", "s/a/b/e", "s/a/b/pe",
    "s,a,b,Ie", "e", "1e touch out", "$!e touch out", "y/a/b/;w out",
];

/// Pieces that only sometimes form a valid script, to find texts that the parser and sed read
/// differently.
#[rustfmt::skip]
pub(super) const SED_PIECES: &[&str] = &[
    "p", "d", "n", "g", "G", "x", "=", "l", "q", "s/a/b/", "s,a,b,", "s/[/]/x/", "s/[^]/]*/", "s/[",
    "]/x/", "y/ab/cd/", "y/", "s/", "/", "a foo", "a\\", "i\\", "c", "c\\ x", "\\", "\n", ";", " ",
    "}", "{", "!", "$", "1", "2,", "/a/", "/b/I", "\\,x,", "#", "w out", "\nw out\n", ";w out",
    "/w out", "e touch out", "w", "r b.txt", "ba", "b", "t", "I", "M", "0~2", "+1", "~2", ",",
    "[[:alpha:]]", "[:", ":]", "[", "]", "^", "\\n", "\\/", "\\c", "&", "\\]", "\\\n", "v", "z",
    "F", "-", "}w out",
];

/// The names of all awk variants.
pub(super) const AWKS: &[&str] = &["awk", "gawk", "mawk", "original-awk"];

/// Awk statements that print.
#[rustfmt::skip]
pub(super) const AWK_HARMLESS: &[&str] = &[
    "print", "print $1, $2/2", "x = $1 > 3", "print (a > b)", "if ($1 > 2) n++", "y = /w\"|>/",
    "z = \"| > system(\"", "print \"a\" > \"/dev/stderr\"", "getline",
    "while ((getline l < \"b.txt\") > 0) n++", "a[$1 > 2]++", "n = NF / 2 / 3", "print # > out\n",
    "gsub(/[[:space:]]+/, \">\")", "printf \"%s\\n\", $1", "print a,\n b", "delete a",
    "x = 1e5 / 2",
];

/// Awk statements that write, start programs, or read files that only the program names.
#[rustfmt::skip]
pub(super) const AWK_REFUSED: &[&str] = &[
    "system(\"touch out\")", "print > \"out\"", "print $1, $2 >> \"out\"",
    "printf \"%s\", $1 > \"out\"", "print | \"cat\"", "\"date\" | getline", "print(1)(2) > \"out\"",
    "print a,\n b > \"out\"", "print /x/ > \"out\"", "print |& \"cat\"",
    "x = 1 system(\"touch out\")", "getline l < f", "print > f",
    "f = \"system\"; @f(\"touch out\")", "ARGV[1] = \"x\"", "for (print 1 > \"out\"; 0; ) ;",
    "print a ? b : c > \"out\"", "print \"/\" > \"out\" # \"/\"",
];

/// Pieces that may precede a slash.
#[rustfmt::skip]
pub(super) const AWK_BEFORE: &[&str] = &[
    "x", "1", "2.5", "\"s\"", "(x)", "a[1]", "x++", "--x", "++", "if (1)", "while (0)", "for (;0;)",
    "if (1) ; else", "do", "print", "print x,", "getline", "length", "length()", "x =", "x ~", "!",
    "&&", "x &&", "$", "$1", "{", "}", ";", "\n", "/a/", "return", "exit", "x in", "(", ",", "?",
    "x ? y :", "-", "1e5", "f(x)", "NF", "case", "next", "in", "x = y /", "x in a", "(1 in a)",
    "x ~ y", "!x", "x y", "$x", "$NF", "a[1] b", "x = y", "$1++", "x ? y : z", "print x",
    "print x, y", "print \"a\" x", "x * y", "x = a[1]", "x = (y)", "$(1)", "x == 1", "length x",
    "getline x", "getline $1", "getline a[1]", "(getline x)", "getline < \"b.txt\"", "getline < x",
    "x > y", "x < y", "x || y", "x && y", "- x", "x ^ y", "x % y", "delete a[1]", "delete a",
    "printf \"x\"", "return x", "exit x", "print x > \"/dev/null\"", "print > \"/dev/null\"",
    "x = y++", "x++ y", "x--", "substr(x, 1)", "length(x)", "x in a y", "(x) in a", "(x, y) in a",
    "x !~ y", "split(x, a)", "sub(/x/, y)", "NR==1", "rand", "rand()", "srand", "fflush", "toupper",
    "print (x)", "print (x)(y)", "printf(\"x\")", "do x; while (x)", "x ,", "\"a\" \"b\"", "1 2",
    "x 1", "$$1", "$x++", "++x", "++$1", "!x++", "-1", "+x", "x = -1", "x = !1", "a[1,2]",
    "a[1][2]", "(x, y)", "f(x) f", "x ~ 1", "x = \"s\"", "[x]", "func f(x)", "function f(x)",
    "BEGIN", "END", "x;y", "nextfile", "x == (y)", "(x) (y)", "(x) y", "int", "if (x) y",
    "if (x) (y)", "while (0) (y)", "for (;0;) (y)", "for (k in a)", "for (k in a) k", "else x",
    "do x", "print $1", "print $NF", "x y z", "{ x", "} x",
];

/// … between two of them, …
#[rustfmt::skip]
pub(super) const AWK_BETWEEN: &[&str] = &[
    "\"", "a\"b", "[\"", "[/\"]", "[", "]", "[]/\"]", "[^]\"/]", "[[:alpha:]\"]", "[[:]/\"]",
    "\\\"", "\\/\"", "#", "a", "=\"", " ", "\"#", "(\"", "[a]\"[", "[\\]\"/]", "\\[\"",
];

/// Pieces that may follow a slash.
#[rustfmt::skip]
pub(super) const AWK_BEHIND: &[&str] = &[
    "; system(\"touch out\"); x = /\"/", "; print > \"out\"; x = /\"/",
    "; system(\"touch out\") #\"", " } { system(\"touch out\") } /\"/ {",
    "\n system(\"touch out\")\n x = \"/\"", "; system(\"touch out\")",
    "]/; system(\"touch out\") ; y = /[\"]/", " \"; system(\"touch out\"); \"",
    " > \"out\" ; x = /\"/", "; x = 1",
];

/// Pieces of awk that fit together by chance only.
#[rustfmt::skip]
pub(super) const AWK_PIECES: &[&str] = &[
    "print", "printf", " ", "$1", "x", "y++", "++", "a[1]", "(", ")", "[", "]", "{", "}", ";", "\n",
    ">", ">>", "\"out\"", "\"/\"", "/", "/x/", "/[/]/", "/\"/", "\"", "1", "2.5", "1e5",
    "system(\"touch out\")", "if (1) ", "else ", "while (0) ", "for (;0;) ", "in", "!", "~", "&&",
    "||", "?", ":", ",", "length", "exit", "next", "\\\n", "#", "=", "==", "/=", "-", "getline",
    "<", "\\", "NF", "print > \"out\"", "; system(\"touch out\") ;", "print x > \"out\"", "BEGIN ",
    "END ",
];
