//! What each construct becomes, as outlines.

use super::{outline, parse};

/// Each line with its outline, or why it is refused.
fn outlines(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let read = match parse(line) {
            Ok(script) => outline(&script),
            Err(error) => format!("ERROR {error}"),
        };
        text.push_str(&format!("{}\n    {read}\n", line.replace('\n', "\n| ")));
    }
    text
}

macro_rules! outlines {
    ($($name:ident: [$($line:literal),* $(,)?])*) => {
        $(#[test]
        fn $name() {
            let outlines = outlines(&[$($line),*]);
            insta::assert_snapshot!(outlines);
        })*
    };
}

outlines! {
    simple_commands: [
        "", " \t\n\n", "ls", "ls -la 'a b' \"c d\"", "a=1", "a=1 b= cmd c=3", "a+=x", "a[i]=x b[$(c)]+=y", "a[1 + 1]=x cmd",
        "a=(1 \"2 3\" $(c) [4]=x [y]+=z\n # comment\n *.c {5,6})", "a+=() b=( )", "declare -a a=(1 2) b=c", "export PATH=~/bin:~x:$PATH",
        "echo a=(1)", "a=(1)b", "a[1]=(2)", "a[1] x", "a[b c] x", "a[1", "a=(1", "time=1", "echo if then", "if=1 if", ">f a=1 cmd",
        "echo a#b # comment", "#only a comment", "echo \\\n  a \\\n b", "ec\\\nho a\\\nb", "echo a\\", "\\ls", "'ls' -l", "$cmd a", "a=1\rb",
        "echo a\u{a0}b", "echo é 世界", "echo \u{1}", "1a=2", "a-b=2", "a.b=2", "a =2",
    ]
    quotes: [
        "echo ''", "echo \"\"", "echo a'b c'd\"e f\"g\\ h", "echo 'a\\' \"a\\b\\$\\`\\\"\\\\\"", "echo \"a\\\nb\" 'a\\\nb'", "echo $'a\\n\\t\\x41\\101\\u00e9\\'\\q\\cB\\e' $'\\cA'",
        "echo $'\\0'", "echo $'a\\x00b'", "echo $'\\xff'", "echo $'\\xc3\\xa9'", "echo $'\\ud800'", "echo $'\\x{41}'", "echo $'\\c@'", "echo $\"a $b\"", "echo \"$'a'\"",
        "echo 'a", "echo \"a", "echo $'a", "echo \"$(echo \"a b\")\"", "echo \"a$\" \"$ b\" $ a$", "echo \\é",
    ]
    parameters: [
        "echo $a $1 $12 $@ $* $# $? $- $$ $! $_ $a_b-c", "echo ${a} ${12} ${@} ${#} ${!} ${?}", "echo ${#a} ${#a[@]} ${##} ${#@}", "echo ${a-b} ${a:-b c} ${a+b} ${a:+b} ${a?b} ${a:?b}",
        "echo ${a=b} ${a:=$(c)}", "echo ${a#*/} ${a##x} ${a%.*} ${a%%'}'}", "echo ${a/b/c} ${a//\\//_} ${a/#b} ${a/%b/$c}", "echo ${a^} ${a^^[a-z]} ${a,} ${a,,} ${a~~}",
        "echo ${a:1} ${a:1:2} ${a: -1} ${a:$i:$((j+1))} ${a:(-1)}", "echo ${a[0]} ${a[@]} ${a[*]:1:2} ${a[$i]} ${a[\"k\"]} ${a['k']} ${a[b[0]]}", "echo ${!a} ${!a*} ${!a@} ${!a[@]} ${!a-b} ${!a-$b}",
        "echo ${a@Q} ${a@P} ${a[@]@A} ${a@X}", "echo \"${a:-b c}\" \"${a:-\"b c\"}\" \"${a:-'b'}\" \"${a:-'$b'}\" ", "echo \"${a#'b'}\" \"${a//$'\\n'/ }\" \"${a:-$'b'}\"", "echo \"${a:-$(b)}\" ${a:-`b`} ${a:-<(b)}",
        "echo \"${a:-<(b)}\"", "echo ${a:-'$(b)'} ${a:-\"$(b)\"} ${a:-\\$(b)}", "echo ${}", "echo ${a b}", "echo ${ cmd; }", "echo ${|cmd; }", "echo ${a", "echo ${a:}", "echo ${a}}", "echo ${a-{b}}", "echo ${-} ${--x}", "echo ${1:-~/x}",
        "echo \"${a:-\\}}\" ${a:-\\}}",
    ]
    substitutions: [
        "echo $(ls) `ls` \"$(ls)\" \"`ls`\"", "echo $()", "echo $(a; b)", "echo $(a # comment )\n)", "echo $(case x in a) b;; (c) d;; esac)", "echo $(echo ')' \")\" \\))", "echo $(<file)",
        "echo `echo \\`b\\``", "echo `echo \\$a \\\\\\$b`", "echo \"`echo \\\"a\\\"`\"", "echo `echo 'a\\\\b'`", "diff <(a) >(b) c<(d)", "echo $((1 + 2)) $((a[$(b)])) $(( \"$a\" ))", "echo $[1 + $a] $[b[1]]", "echo $((a);(b))", "echo $( (a) )",
        "echo $((a) )", "echo $((1", "echo $(a", "echo `a", "echo $((1 # 2))", "echo $(( 'a' ))", "echo $((1<(2)))", "echo $(echo $(echo $(echo)))", "echo \"$(cat <<E\na $(b)\nE\n)\"", "2<(a)", "echo $(a))", "echo \"$(( ${a:-0} + `b` ))\"",
        "echo $$(a)", "echo \"$$(a)\"", "$\\\n(a)", "echo `# comment`", "echo `a; b`c",
    ]
    braces_tildes_patterns: [
        "echo {a,b} x{a,b}y {a,b}{c,d}", "echo {a,{b,c}d,} {,a}", "echo {1..5} {5..1..2} {a..e} {01..03} {1..1000000} {a..Z}", "echo {a} {a {} {a,b a,b} {a..b", "echo {a\\,b} {'a,b'} {a,'b c'} \\{a,b}", "echo {a,$b} {$(a),b} {a,*}", "echo $a{b,c}", "echo {$,a}b", "echo {$a,b}c", "echo {$a,b}.c",
        "echo {1..$n}", "echo ~{a,b} {~,a}", "echo ~ ~/a ~b/c a~ ~\"a\" ~$a \\~ '~' a=~ a=b:~/c -a=~", "echo * a? [a-z]* [ [a a] \"*\" \\* [!]a] [[:alpha:]]x [$a] [\"a\"] a[", "[ a = b ]", "echo HEAD@{1} a{b}c {a,b}}", "echo {a,b", "echo \"`echo \"{a,b}\"`\"", "echo {a}b,c}",
        "find . -exec rm {} \\;", "echo {}{a,b} {},a}", "echo @(a|b)", "echo !(a)", "echo {a,b}\\\n{c,\\\nd}",
    ]
    redirections: [
        "a >b 2>c >>d <e <>f >|g &>h &>>i >&j 2>&1 1>&2 >&- <&- 2>&1- <&3 {fd}>k {fd}>&-", "a <<<b <<< \"c $d\"", ">f", "> $f 2> >(a)", "a>b<c", "a 2 >b", "a 2>b2>c", "a >", "a > #b", "a >& $b", "a 99999999999>b", "a {b[1]}>c", "a >&-b", "a >{b,c}", "{ a; } >b 2>&1 | c", "(a) <b", "if a; then b; fi >c", "while a; do b; done < <(c)", "a &>b &", "a&", "a >&2-",
        "a <(b) >c", "a > b > c", "a >\\\n> b",
    ]
    here_documents: [
        "cat <<E\na $b\nE\n", "cat <<'E'\na $b\nE", "cat <<E\"F\"\na `b`\nEF", "cat <<\\E\n$a\nE", "cat <<-E\n\ta\n\t\tb\n\tE\nls", "cat <<A <<B; ls\na\nA\nb\nB\nc", "cat <<E\na\\\nb \\$c \\\\ \\d \"'\nE", "cat <<E\n`echo $a` $(b 'c') ${d:-e} $((1+1))\nE", "cat <<E\n${a:-'b'}\nE",
        "cat <<E", "cat <<E\na", "cat <<E\na\nE b", "cat <<E | grep a && b\nx\nE", "while a <<E; do\nx\nE\nb; done", "cat <<$a\nx\n$a", "cat <<E; echo \"a\nE\nb\"\nx\nE", "$(cat <<E\na\nE)", "$(cat <<E\na\nE\n)", "cat <<''\na\n\nb", "cat <<E $(a\nb)\nx\nE", "cat 3<<E\nE", "{ cat <<E; }\nx\nE", "f() { cat; } <<E\nx\nE", "a=(1 <<E\n)\nE",
        "cat <<E\n$(cat <<F\n$(a)\nF\n)\nE",
    ]
    lists: [
        "a; b & c && d || e | f |& g\nh", "a;", "a &", "a\n\nb", "a &&\n\n b", "a |\n# comment\nb", "! a", "! a | b", "time a", "time -p a | b", "time", "! ", "! ! a", "time ! a", "a | time b", "a | ! b", "time -- a", "!a", "!(a)", "; a", "a ;; b", "a & ; b", "a &&", "| a", "a | | b", "a ||| b", "&", "a && && b", ")", "}", "then", "in", "]]", "a) b",
    ]
    compound_commands: [
        "{ a; }", "{ a; b & }", "{ a }", "{a; }", "{ }", "{(a)}", "{ (a) }", "(a)", "(a;b)&", "( )", "( (a) )", "((a))", "((a) )", "((a);(b))", "((a = 1, b <(2)))", "((a=$(b)))", "if a; then b; fi", "if a; b; then c; elif d; then e; else f; fi", "if a; then (b) fi", "if a; then [[ b ]] fi", "if a then b; fi", "if a; then fi",
        "while a; do b; done", "until a\ndo b\ndone", "for a in b c $d *.e {1..2}; do f; done", "for a; do b; done", "for a do b; done", "for a\nin b\ndo c\ndone", "for a in; do b; done", "for a in b; { c; }", "for ((a=0; a<$b; a++)); do c; done", "for ((;;)) { a; }", "for ((a;b)); do c; done", "for $a in b; do c; done", "select a in b c; do d; done",
        "case $a in b) c;; d|e) f;& (g*) h;;& \"i\"[j]) ;; esac", "case a in esac", "case a in b) c; esac", "case a in b) c esac", "case a\nin\n# comment\nb)\nc\n;;\nesac", "case a in b c) d;; esac", "case a in if) b;; esac", "case a in (esac) b;; esac", "f() { a; }", "f ( ) (a)", "function f { a; }", "function f() ((a))", "function f (a)", "f() a", "f() { a; } >b",
        "a b() { c; }", "$f() { a; }", "f()\n\n[[ a ]]", "coproc a b", "coproc { a; }", "coproc N { a; } >b", "coproc a if", "coproc N (a)", "{ a; } b", "(a) b", "{ a; } }", "( a", "{ a;", "if a; then b", "while a; do b", "case a in b) c;;", "function", "if a; then { b; } fi | c",
    ]
    conditionals: [
        "[[ a ]]", "[[ -f a ]]", "[[ -f $a && ! -d \"b c\" || ( a == b ) ]]", "[[ a == b* ]]", "[[ a = @(b|c)d ]]", "[[ a != !(b)$c ]]", "[[ a == +(b|$c) ]]", "[[ a =~ ^[a-z]+(b c|d)$ ]]", "[[ $a =~ $b ]]", "[[ a =~ 'b c' ]]", "[[ a =~ (b$(c)) ]]", "[[ a =~ b$(c)d ]]", "[[ a -eq b ]]", "[[ a < b || c > d ]]", "[[ a\n&& b ]]", "[[ a ]] && b", "[[ a b ]]", "[[ -f ]]", "[[ ]]", "[[ a", "[[ a == ]]", "[[ a && ]]", "[[ (a ]]", "[[ a) ]]", "[[ 2>1 ]]",
        "[[ a ]]b", "[[ -x a -a b ]]", "[[ {a,b} == * ]]", "[[ ~ == ~/a ]]", "[[ $(a) ]]", "[[ a == #b ]]", "[[ ((a)) ]]", "[[ ! ! a ]]", "[[ \"-f\" == a ]]", "[[ a =~ (b<(c)) ]]",
    ]
}

/// Openings that nest, with what stands inside and closings.
const NESTED: [(&str, &str, &str); 15] = [
    ("$(", "a", ")"),
    ("(", "a", ")"),
    ("( ", "a", " )"),
    ("{ ", "a;", " }"),
    ("if a; then ", "b", "; fi"),
    ("echo \"${a:-", "b", "}\""),
    ("${a:-", "b", "}"),
    ("echo <(", "a", ")"),
    ("echo $((", "1", "))"),
    ("a=(\"$(", "b", ")\")"),
    ("f() { ", "a;", " }"),
    ("case a in b) ", "c", ";; esac"),
    ("${a[", "0", "]}"),
    ("echo \"$(echo ", "a", ")\""),
    ("[[ -n $(", "a", ") ]]"),
];

#[test]
fn deep_nesting_is_refused_without_harm() {
    for (open, inner, close) in NESTED {
        for depth in [5, 49, 98, 1_000, 100_000] {
            let line = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            let read = parse(&line);
            // Parentheses without blanks are one arithmetic expression.
            assert!(
                depth < 1_000 || open == "(" || read.is_err(),
                "{open} {depth}"
            );
            let unclosed = open.repeat(depth);
            assert!(parse(&unclosed).is_err(), "{open} {depth}");
        }
    }
}
