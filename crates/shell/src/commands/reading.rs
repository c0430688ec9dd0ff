//! Commands that read files as text or bytes and print the result.

use super::{
    options::{ParsedArguments, content, evaluate, is_no_file, written},
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, doubts, runs, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&CommandSpec::reads(
        "cat",
        "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank \
         --show-tabs --show-nonprinting --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "head",
        "-c: -n: -qvz --bytes= --lines= --quiet --silent --verbose --zero-terminated --help \
         --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "tail",
        "-c: -n: -s: -fFqrvz --bytes= --lines= --follow=? --max-unchanged-stats= --pid= --quiet \
         --silent --retry --sleep-interval= --verbose --zero-terminated --debug --help --version \
         -#",
    )),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "wc",
            "-cmlLw --bytes --chars --lines --max-line-length --words --files0-from< --total= \
             --debug --help --version",
        )
        .with_evaluator(listed),
    ),
    KnownCommand::Spec(&CommandSpec::reads(
        "nl",
        "-b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w: --body-numbering= --section-delimiter= \
         --footer-numbering= --header-numbering= --line-increment= --join-blank-lines= \
         --number-format= --no-renumber --number-separator= --starting-line-number= \
         --number-width= --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads("rev", "-hV0 --help --version --zero")),
    KnownCommand::Spec(&CommandSpec::reads(
        "tac",
        "-br -s: --before --regex --separator= --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "cut",
        "-b: -c: -d: -f: -nsz -F: -O: --bytes= --characters= --delimiter= --fields= --complement \
         --only-delimited --output-delimiter= --zero-terminated --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "tr",
        "-cCdst --complement --delete --squeeze-repeats --truncate-set1 --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "column",
        "-t -n: -O: -N: -C: -l: -E: -d -e -H: -R: -T: -W: -L -J -r: -i: -p: -c: -o: -s: -S: \
         -xhVmK --table --table-name= --table-order= --table-columns= --table-column= \
         --table-columns-limit= --table-noextreme= --table-noheadings --table-header-repeat \
         --table-hide= --table-right= --table-truncate= --table-wrap= --table-maxout \
         --table-colorscheme= --table-header-as-columns --keep-empty-lines --json --tree= \
         --tree-id= --tree-parent= --output-width= --output-separator= --separator= \
         --input-separator= --fillrows --use-spaces= --color=? --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "paste",
        "-d: -sz --delimiters= --serial --zero-terminated --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "join",
        "-a: -e: -i -j: -o: -t: -v: -1: -2: -z --ignore-case --check-order --nocheck-order \
         --header --zero-terminated --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "comm",
        "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated --help \
         --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "fold",
        "-bsc -w: --bytes --characters --spaces --width= --help --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "fmt",
        "-cstu -p: -w: -g: --crown-margin --prefix= --split-only --tagged-paragraph \
         --uniform-spacing --width= --goal= --help --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "expand",
        "-i -t: --initial --tabs= --help --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "unexpand",
        "-a -t: --all --first-only --tabs= --help --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "pr",
        "-acdFfJmrtTv -D: -e? -h: -i? -l: -n? -N: -o: -s? -S? -w: -W: --pages= --columns= \
         --across --show-control-chars --double-space --date-format= --expand-tabs=? --form-feed \
         --header= --output-tabs=? --join-lines --length= --merge --number-lines=? \
         --first-line-number= --indent= --no-file-warnings --separator=? --sep-string=? \
         --omit-header --omit-pagination --show-nonprinting --width= --page-width= --help \
         --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads("tsort", "-w --help --version")),
    KnownCommand::Spec(&CommandSpec::reads(
        "od",
        "-A: -j: -N: -S: -t: -v -w? -abcdfilosxBDeFhHILOX --address-radix= --endian= \
         --skip-bytes= --read-bytes= --strings=? --format= --output-duplicates --width=? \
         --traditional --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "hexdump hd",
        "-bcCdoxvhVX -L? -e: -f< -n: -s: --one-byte-octal --one-byte-hex --one-byte-char \
         --canonical --two-bytes-decimal --two-bytes-octal --two-bytes-hex --color=? --format= \
         --format-file< --length= --skip= --no-squeezing --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "sha1sum sha224sum sha256sum sha384sum sha512sum md5sum b2sum b3sum",
        "-bctzw -l: --binary --check --tag --text --zero --ignore-missing --quiet --status \
         --strict --warn --length= --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "cksum",
        "-a: -ctbzw -l: --algorithm= --check --length= --tag --untagged --zero --ignore-missing \
         --quiet --status --strict --warn --debug --raw --base64 --binary --text --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads("sum", "-rs --sysv --help --version")),
    KnownCommand::Spec(&CommandSpec::reads(
        "base64 base32 basenc",
        "-diD -w: --decode --ignore-garbage --wrap= --base64 --base64url --base58 --base32 \
         --base32hex --base16 --base2msbf --base2lsbf --z85 --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "col",
            "-bfphxvH -l: --no-backspaces --fine --pass --tabs --spaces --lines= --help --version",
        )
        .operands(OperandKind::None),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads("colrm", "-hV --help --version").operands(OperandKind::Text),
    ),
    KnownCommand::Spec(&CommandSpec::reads(
        "ul",
        "-t: -T: -ihV --terminal= --indicated --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "look",
            "-adfhV -t: --alternative --alphanum --ignore-case --terminate= --help --version",
        )
        .operands(OperandKind::TextThenFiles),
    ),
    KnownCommand::Spec(&SORT),
    KnownCommand::Spec(&UNIQ),
    KnownCommand::Spec(&SHUF),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "ptx",
            "-AfGRr -b: -F: -g: -i: -M: -o: -O -S: -T -W: -w: --auto-reference --traditional \
             --ignore-case --references --width= --gap-size= --macro-name= --sentence-regexp= \
             --word-regexp= --help --version",
        )
        .strict()
        .with_evaluator(ptx),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "iconv",
            "-f: -t: -lcs --from-code= --to-code= --list --silent --verbose -V --help --usage \
             --version",
        )
        .refusing(&[writes(
            "-o> --output>",
            "writes what it converts into a file",
        )])
        .strict(),
    ),
    KnownCommand::Own("xxd", xxd),
    KnownCommand::Spec(&CommandSpec::reads(
        "bc",
        "-hilqswv --help --interactive --mathlib --quiet --standard --warn --version",
    )),
    KnownCommand::Spec(&CommandSpec::unsure(
        "dc",
        "a ! in what it calculates starts a shell",
    )),
    KnownCommand::Spec(&CommandSpec::unsure(
        "less more most zless zmore bzmore xzless xzmore pg",
        "a pager runs what its keys and options say",
    )),
];

static SORT: CommandSpec = CommandSpec::reads(
    "sort",
    "-bdfgiMhnRrVcCmsuz -k: -S: -t: --ignore-leading-blanks --dictionary-order --ignore-case \
     --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort \
     --random-sort --random-source< --reverse --sort= --version-sort --batch-size= --check=? \
     --debug --files0-from< --key= --merge --stable --buffer-size= --field-separator= --parallel= \
     --unique --zero-terminated --help --version",
)
.refusing(&[
    writes("-o> --output>", "writes the result into a file"),
    runs("--compress-program=", "starts a program"),
    doubts(
        "-T: --temporary-directory=",
        "says where temporary files go",
    ),
])
.strict()
.with_evaluator(listed);

static UNIQ: CommandSpec = CommandSpec::reads(
    "uniq",
    "-cdDiuz -f: -s: -w: --count --repeated --all-repeated=? --skip-fields= --group=? \
     --ignore-case --skip-chars= --unique --zero-terminated --check-chars= --help --version -#",
)
.strict()
.with_evaluator(|parsed| second_is_written(parsed, "its second operand is written"));

static SHUF: CommandSpec = CommandSpec::reads(
    "shuf",
    "-erz -i: -n: --echo --input-range= --head-count= --random-source< --repeat --zero-terminated \
     --help --version",
)
.refusing(&[writes("-o> --output>", "writes the result into a file")])
.strict()
.with_evaluator(|parsed| {
    let echoes = parsed.has("-e") || parsed.has("--echo");
    parsed.finding(if echoes {
        OperandKind::Text
    } else {
        OperandKind::Files
    })
});

/// Analyzes a command that may read the names of its files from a file.
pub(super) fn listed(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Files);
    match parsed.value("--files0-from") {
        Some(list) => finding.with(content(&unseen(list))),
        None => finding,
    }
}

/// Returns an unknown value for the names in a list file, which the line does not show.
pub(super) fn unseen(list: &Arg) -> Arg {
    Arg {
        span: list.span,
        value: ArgValue::Unknown {
            prefix: String::new(),
            one: false,
        },
    }
}

/// Analyzes a command that reads its first operand and writes its second.
fn second_is_written(parsed: &ParsedArguments<'_>, why: &'static str) -> CommandFinding {
    let mut finding = parsed.finding(OperandKind::None);
    let mut operands = parsed.operands.iter();
    if let Some(input) = operands.next().filter(|arg| !arg.is("-")) {
        finding.effects.push(content(input));
    }
    if let Some(output) = operands
        .next()
        .filter(|arg| !arg.is("-") && !is_no_file(arg))
    {
        if parsed.verdict().is_none() {
            finding = CommandFinding {
                effects: finding.effects,
                ..CommandFinding::mutating(why).with_span(output.span)
            };
        }
        finding
            .effects
            .push(written(output, WriteKind::OptionWrite));
    }
    finding
}

/// Analyzes `ptx`. Only its traditional mode has an output file.
fn ptx(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if parsed.has("-G") || parsed.has("--traditional") {
        second_is_written(parsed, "its second operand is written")
    } else {
        parsed.finding(OperandKind::Files)
    }
}

/// Analyzes `xxd`. It identifies an option by its first letter, accepts none after its first
/// operand, and writes its second operand.
fn xxd(argv: &[Arg]) -> CommandFinding {
    static OPERANDS: CommandSpec = CommandSpec::reads("xxd", "")
        .strict()
        .with_evaluator(|parsed| second_is_written(parsed, "its second operand is written"));
    const NEXT: &[&str] = &[
        "c", "cols", "g", "l", "len", "n", "name", "o", "offset", "R", "s", "seek", "skip",
    ];
    let mut rest = argv.iter();
    let mut words: Vec<Arg> = rest.next().cloned().into_iter().collect();
    let mut doubt = None;
    while let Some(arg) = rest.as_slice().first() {
        let Some(option) = arg
            .text()
            .filter(|text| text.len() > 1 && text.starts_with('-'))
        else {
            break;
        };
        rest.next();
        if option == "--" {
            break;
        }
        let option = option.strip_prefix("--").unwrap_or(&option[1..]);
        let (letter, behind) = option.split_at_checked(1).unwrap_or(("?", ""));
        let number =
            behind.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first));
        let known = if NEXT.contains(&option) {
            rest.next().is_some_and(|value| value.text().is_some())
        } else {
            "abCdeEhiprtuv".contains(letter) || (number && "cglos".contains(letter))
        };
        if !known {
            doubt = doubt.or(Some(arg.span));
        }
    }
    // After the first operand there are only operands.
    words.extend(
        rest.as_slice()
            .first()
            .map(|arg| Arg::literal("--", arg.span)),
    );
    words.extend(rest.cloned());
    let finding = evaluate(&OPERANDS, &words);
    match doubt {
        Some(span) => worse(finding, "its options are not known to be safe").with_span(span),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, each, effects, verdict,
    };

    #[test]
    fn readers_only_read() {
        assert_read_only(&each(
            "cat a b; cat -n $x; cat *; head -20 a; head -n$n a; head -n -2 a; tail -f a; tail -n \
             +10 a; tail -5 a; wc -l a; wc --files0-from=-; nl -ba a; rev a; tac -s x a; cut -d, \
             -f1 a; cut -f$n a; tr a-z A-Z; tr -d x; column -t -s, a; paste -sd, a; join -t, -1 1 \
             -2 1 a b; comm -12 a b; fold -w 80 a; fmt -w 72 a; fmt -72 a; expand -t 4 a; \
             unexpand -a a; pr -2 -t a; pr -h title -l 20 a; tsort a; od -c a; od -A x -t x1z -v \
             a; hexdump -C a; sha256sum -c a; md5sum *; cksum -a sha256 a; base64 -w0 a; base64 \
             -d; bc -l",
        ));
        assert_not_read_only(&each(
            "cat --odd a; head --lines; wc -$x; tr --odd; dc -e 1; less a; vi a",
        ));
    }

    #[test]
    fn a_pager_is_a_pager_with_any_option() {
        let why = "unknown: a pager runs what its keys and options say";
        assert_eq!(verdict("less -R a"), why);
        assert_eq!(
            effects("less -R a"),
            ["read a", "opaque it can hand a line to a shell"]
        );
    }

    #[test]
    fn sort_uniq_shuf_and_their_like_may_write() {
        assert_read_only(&each(
            "sort; sort -rn a; sort -k2,2 -t: a; sort --rev a; sort -u a b; sort -t \"$x\" a; \
             sort -k1\"$x\" a; sort -- -o; sort -o /dev/null a; sort -h -r; uniq -c; uniq a; uniq \
             -f 1 a; uniq a -; uniq a /dev/null; shuf -n 2 a; shuf -i 1-10 -n 1; shuf -e a b; \
             iconv -f latin1 -t utf-8 a; iconv -l; ptx a b",
        ));
        assert_not_read_only(&each(
            "sort -o x a; sort -uox a; sort --outp=x a; sort --compress-prog=sh a; sort $x; sort \
             *; sort -k$x a; sort -t $x a; sort -T d a; uniq a out; uniq -c a out; uniq - out; \
             uniq -f 1 -- a out; uniq *; uniq a $x; shuf -o x a; shuf *; shuf -n 1 --outpu x a; \
             iconv -o x a; ptx -G a out",
        ));
        assert_eq!(
            verdict("uniq a out"),
            "mutating: its second operand is written"
        );
        assert_eq!(effects("uniq a out"), ["read a", "OptionWrite out"]);
        assert_eq!(effects("sort -o out in"), ["OptionWrite out", "read in"]);
        assert_eq!(effects("sort --files0-from=list"), ["read list", "read $"]);
        assert_eq!(effects("shuf -e a b"), [""; 0]);
    }

    #[test]
    fn xxd_knows_options_by_their_first_letter() {
        assert_read_only(&each(
            "xxd a; xxd -l 16 a; xxd -l16 a; xxd -s 4 -l 8 a; xxd -p a; xxd -ps a; xxd -r -p; xxd \
             -r -p - -; xxd -cols 8 a; xxd -c8 -g1 a; xxd -plain a; xxd -i a; xxd -",
        ));
        assert_not_read_only(&each(
            "xxd a out; xxd -r hex out; xxd -p -l 16 a out; xxd - out; xxd *; xxd -l $x a; xxd \
             $x; xxd -Z a; xxd -l 16 -- a out; xxd a -p; xxd -group 2 out; xxd -capitalize a; xxd \
             -cols 8 a out; xxd -capitalize a out",
        ));
        assert_eq!(effects("xxd -l 16 a out"), ["read a", "OptionWrite out"]);
        assert_eq!(effects("xxd -Z a out"), ["read a", "OptionWrite out"]);
    }
}
