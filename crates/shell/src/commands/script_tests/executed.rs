//! Lines that the tests execute.

use super::{find, is_installed, literal_words, pieces::AWKS, project, run, tree};
use crate::effect::EffectVerdict;

/// Runs a line in a fresh project and returns whether it changed a file. `None` if the program is
/// missing.
fn changes(line: &[&str]) -> Option<bool> {
    if !is_installed(line[0]) {
        return None;
    }
    let dir = project();
    let before = tree(dir.path());
    run(dir.path(), line);
    Some(tree(dir.path()) != before)
}

fn assert_changes_nothing(line: &str) {
    let words = literal_words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let finding = find(&words);
    assert_eq!(
        finding.verdict,
        EffectVerdict::ReadOnly,
        "{line}: {}",
        finding.reason
    );
    assert_ne!(changes(&words), Some(true), "{line} changed something");
}

/// Asserts that the analysis does not call the line read-only, and that the line changes a file.
fn assert_changes_something(line: &str) {
    let words = literal_words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_ne!(find(&words).verdict, EffectVerdict::ReadOnly, "{line}");
    assert_ne!(changes(&words), Some(false), "{line} changed nothing");
}

#[test]
fn harmless_lines_change_nothing() {
    for line in [
        "sed -n 1,2p a.txt",
        "sed '/beta/d;s/a/b/gp' a.txt",
        "sed -n '/alpha/,/gamma/{=;l;p}' a.txt",
        "sed ':a;$!{N;ba};s/\\n/,/g' a.txt",
        "sed 's/[/]/w out/;s,x,e,' a.txt",
        "sed '1i\\  w out' a.txt",
        "sed 'a foo w out' a.txt",
        "sed 'a\\\nw out' a.txt",
        "sed -e 'i\\' -e 'w out' a.txt",
        "sed '# w out' a.txt",
        "sed 'y/abc/wxy/;1r b.txt' a.txt",
        "sed -sn '$=;F' a.txt b.txt",
        "sed 's/a/b/ # w out' a.txt",
        "find . -name '*.txt' -newer b.txt",
        "find . ( -type f -o -empty ) -printf '%p %s\\n' -ls",
        "find . -path ./sub -prune -o -print0",
        "find . -name -delete",
        "find . -regex '.*/.\\.txt' -size -10k -mtime -1",
        "jq . data.json",
        "jq -r '.a[] | @sh' data.json",
        "jq -n --slurpfile x data.json '$x'",
        "jq -n --args '$ARGS' a b",
        "rg alpha",
        "rg -n -e --pre a.txt",
        "rg --files -g '*.txt'",
        "grep -rn alpha .",
        "grep -c -e w -f b.txt a.txt",
        "fdfind -e txt",
        "fdfind -l .",
        "ag alpha",
        "ack alpha",
        "xmllint --xpath //b f.xml",
        "xmllint --format f.xml",
    ] {
        assert_changes_nothing(line);
    }
}

#[test]
fn harmless_programs_of_every_awk_change_nothing() {
    for awk in AWKS {
        for rest in [
            "'{print $1}' a.txt",
            "-F/ '$2 > 1 {print $1/2}' a.txt",
            "'{print ($2 > 1) ? \"big\" : \"small\"}' a.txt",
            "'{print > \"/dev/stderr\"}' a.txt",
            "'BEGIN {while ((getline l < \"b.txt\") > 0) print l}'",
            "'/alpha/,/beta/ {n++} END {print n > \"/dev/null\"}' a.txt",
            "'!seen[$1]++ # > out' a.txt",
            "'{print \"x > out | system\"}' a.txt x=1 b.txt",
            "'FNR==NR {a[$1]; next} $1 in a' a.txt b.txt",
            "'{print $1\n n++}\n$2 > 1 {print n}' a.txt",
            "'{x = $2 > 1; print x}' a.txt",
        ] {
            assert_changes_nothing(&format!("{awk} {rest}"));
        }
    }
}

#[test]
fn what_is_refused_would_really_change_something() {
    for line in [
        "sed -i s/a/b/ a.txt",
        "sed -n -i.bak p a.txt",
        "sed s/a/b/ a.txt --in-pl",
        "sed 'w out' a.txt",
        "sed -n '/x/!w out' a.txt",
        "sed '1{p;w out\n}' a.txt",
        "sed 'N;W out' a.txt",
        "sed 's/a/b/w out' a.txt",
        "sed 's/a/b/3gw out' a.txt",
        "sed 's/.*/touch out/e' a.txt",
        "sed '1e touch out' a.txt",
        "sed '1s/.*/touch out/;1e' a.txt",
        "sed 's/[/]/x/;w out' a.txt",
        "sed 'a foo\nw out' a.txt",
        "sed '1ba;w out\n:a' a.txt",
        "sed -e p -e 'w out' a.txt",
        "sed -f write.sed a.txt",
        "find . -name a.txt -delete",
        "find . -fprint out",
        "find . -fprint0 out",
        "find . -fls out",
        "find . -fprintf out %p",
        "find sub -execdir touch out ;",
        "rg --pre ./pre.sh alpha",
        "ag --pager 'touch out' alpha a.txt",
        "gawk -i inplace '{print 1}' a.txt",
        "gawk -oout '{print}' a.txt",
        "gawk -d 'BEGIN {x = 1}'",
        "gawk --profile=out 'BEGIN {x = 1}'",
        "gawk -E write.awk a.txt",
        "gawk 'BEGIN {f = \"system\"; @f(\"touch out\")}'",
        "gawk '@include \"write.awk\"' a.txt",
        "gawk 'BEGIN {if (1) /\"/; system(\"touch out\"); x = /\"/}'",
        "gawk 'BEGIN {print 1 |& \"touch out\"; close(\"touch out\")}'",
        "xmllint --output out f.xml",
    ] {
        assert_changes_something(line);
    }
    for awk in AWKS {
        for rest in [
            "'BEGIN {system(\"touch out\")}'",
            "'BEGIN {\"touch out\" | getline}'",
            "'{print | \"cat > out\"}' a.txt",
            "'{print > \"out\"}' a.txt",
            "'{print $1, $2 >> \"out\"}' a.txt",
            "'{printf(\"%s\", $1) > \"out\"}' a.txt",
            "'{print($1)($2) > \"out\"}' a.txt",
            "'{print > ($1\".out\")}' a.txt",
            "'{print $1,\n $2 > \"out\"}' a.txt",
            "-f write.awk a.txt",
        ] {
            assert_changes_something(&format!("{awk} {rest}"));
        }
    }
}

/// The programs that a command starts are analyzed separately.
#[test]
fn what_is_started_is_handed_on() {
    for line in [
        "find sub -exec touch out ;",
        "find sub -exec touch out {} +",
        "fdfind c.txt -x touch out",
        "fdfind c.txt -X touch out",
    ] {
        let words = literal_words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(find(&words).starts.len(), 1, "{line}");
        assert_ne!(changes(&words), Some(false), "{line} changed nothing");
    }
}
