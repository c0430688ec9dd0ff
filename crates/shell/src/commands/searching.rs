//! Text search in files: grep and its variants.

use super::{
    find::{here, names_below},
    options::{ParsedArguments, content, tree},
    spec::{CommandSpec, KnownCommand, OperandKind, runs},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&GREP),
    KnownCommand::Spec(&ZGREP),
    KnownCommand::Spec(&RG),
    KnownCommand::Spec(&AG),
    KnownCommand::Spec(&ACK),
];

/// The options of grep, which are all safe.
const GREP_OPTIONS: &str = "-EFGPiywxzsvVbnHhoqaIrRUuLlcTZ0123456789 -e: -f< -m: -d: -D: -A: -B: -C: -X: \
     --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp= --file< --ignore-case \
     --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match --version \
     --help --max-count= --byte-offset --line-number --line-buffered --with-filename --no-filename \
     --label= --only-matching --quiet --silent --binary-files= --text --directories= --devices= \
     --recursive --dereference-recursive --include= --exclude= --exclude-from< --exclude-dir= \
     --files-without-match --files-with-matches --count --initial-tab --null --before-context= \
     --after-context= --context= --group-separator= --no-group-separator --color=? --colour=? --binary \
     --unix-byte-offsets";

static GREP: CommandSpec =
    CommandSpec::reads("grep egrep fgrep", GREP_OPTIONS).with_evaluator(grep);

static ZGREP: CommandSpec = CommandSpec::reads(
    "zgrep zegrep zfgrep bzgrep bzegrep bzfgrep xzgrep xzegrep xzfgrep",
    GREP_OPTIONS,
)
.with_evaluator(grep);

static RG: CommandSpec = CommandSpec::reads(
    "rg",
    "-sbcFLhivnNx.U0oPpqSaIuVHwl -A: -B: -C: -E: -f< -g: -M: -m: -d: -e: -r: -j: -t: -T: \
     --after-context= --auto-hybrid-regex --no-auto-hybrid-regex --before-context= --binary \
     --no-binary --block-buffered --no-block-buffered --byte-offset --no-byte-offset --case-sensitive \
     --color= --colors= --column --no-column --context= --context-separator= --no-context-separator \
     --count --count-matches --crlf --no-crlf --debug --dfa-size-limit= --encoding= --no-encoding \
     --engine= --field-context-separator= --field-match-separator= --file< --files \
     --files-with-matches --files-without-match --fixed-strings --no-fixed-strings --follow \
     --no-follow --generate= --glob= --glob-case-insensitive --no-glob-case-insensitive --heading \
     --no-heading --help --hidden --no-hidden --hyperlink-format= --iglob= --ignore-case --ignore-file< \
     --ignore-file-case-insensitive --no-ignore-file-case-insensitive --include-zero \
     --no-include-zero --invert-match --no-invert-match --json --no-json --line-buffered \
     --no-line-buffered --line-number --no-line-number --line-regexp --max-columns= \
     --max-columns-preview --no-max-columns-preview --max-count= --max-depth= --maxdepth= \
     --max-filesize= --mmap --no-mmap --multiline --no-multiline --multiline-dotall \
     --no-multiline-dotall --no-config --no-ignore --ignore --no-ignore-dot --ignore-dot \
     --no-ignore-exclude --ignore-exclude --no-ignore-files --ignore-files --no-ignore-global \
     --ignore-global --no-ignore-messages --ignore-messages --no-ignore-parent --ignore-parent \
     --no-ignore-vcs --ignore-vcs --no-messages --messages --no-pcre2-unicode --pcre2-unicode \
     --no-require-git --require-git --no-unicode --unicode --null --null-data --one-file-system \
     --no-one-file-system --only-matching --path-separator= --passthru --passthrough --pcre2 \
     --no-pcre2 --pcre2-version --no-pre --pre-glob= --pretty --quiet --regex-size-limit= --regexp= \
     --replace= --no-search-zip --smart-case --sort= --sortr= --sort-files \
     --no-sort-files --stats --no-stats --stop-on-nonmatch --text --no-text --threads= --trace --trim \
     --no-trim --type= --type-not= --type-add= --type-clear= --type-list --unrestricted --version \
     --vimgrep --with-filename --no-filename --word-regexp",
)
.refusing(&[
    runs("--pre= --hostname-bin=", "starts a program"),
    runs("-z --search-zip", "starts programs that unpack the files it finds"),
])
.strict()
.with_evaluator(ripgrep);

static AG: CommandSpec = CommandSpec::reads(
    "ag",
    "-cHlLo0aDfFiQsStuUvwhV -A? -B? -C? -G: -g: -m: -p< -W: --ackmate --after=? --before=? --context=? \
     --break --nobreak --count --color --nocolor --color-line-number= --color-match= --color-path= --column \
     --nocolumn --filename --nofilename --heading --noheading --group --nogroup --filename-pattern= \
     --files-with-matches --files-without-matches --print-all-files --numbers --nonumbers \
     --only-matching --print-long-lines --passthrough --passthru --silent --stats --stats-only \
     --vimgrep --null --print0 --all-types --debug --depth= --follow --nofollow --fixed-strings \
     --file-search-regex= --hidden --ignore-case --ignore= --ignore-dir= --max-count= --one-device \
     --path-to-ignore< --literal --case-sensitive --smart-case --search-binary --search-files --all-text \
     --unrestricted --skip-vcs-ignores --invert-match --word-regexp --width= --list-file-types \
     --nopager --no-pager --workers= --help --version --cc --cpp --csharp --css --go --html --java --js \
     --json --markdown --perl --php --python --ruby --rust --shell --sql --ts --xml --yaml",
)
.refusing(&[
    runs("--pager=", "starts a program"),
    runs("-z --search-zip", "starts programs that unpack the files it finds"),
])
.strict()
.with_evaluator(ag_or_ack);

/// A project's `.ackrc` cannot set an option that starts a program: ack refuses it.
static ACK: CommandSpec = CommandSpec::reads(
    "ack ack-grep",
    "-fglLciSIvwQoHhs1PrRnk -m: -A: -B: -C? -p? -t: -T: --files-with-matches --files-without-matches --count \
     --ignore-case --smart-case --nosmart-case --no-smart-case --no-ignore-case --invert-match \
     --word-regexp --literal --range-start= --range-end= --match= --passthru --max-count= --with-filename \
     --no-filename --column --nocolumn --no-column --after-context= --before-context= --context=? --print0 \
     --nopager --heading --noheading --no-heading --break --nobreak --no-break --group --nogroup --no-group \
     --proximate=? --underline --nounderline --no-underline --color --nocolor --no-color --colour --nocolour \
     --no-colour --color-filename= --color-match= --color-colno= --color-lineno= --flush --sort-files \
     --show-types --ignore-dir= --noignore-dir= --ignore-directory= --noignore-directory= \
     --ignore-file= --recurse --no-recurse --follow --nofollow --no-follow --type= --known-types \
     --type-set= --type-add= --type-del= --env --noenv --ignore-ack-defaults --create-ackrc --dump --filter \
     --nofilter --no-filter --cc --cpp --csharp --css --go --html --java --js --json --markdown --perl --php \
     --python --ruby --rust --shell --sql --ts --xml --yaml --help --help-types --help-colors --help-rgb-colors --man --version",
)
.refusing(&[
    runs("--pager=", "starts a program"),
    runs("--output=", "evaluates an expression"),
    runs("--ackrc<", "takes options from a file"),
])
.strict()
.with_evaluator(ag_or_ack);

fn grep(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let walks = ["-r", "-R", "--recursive", "--dereference-recursive"];
    let recursive = walks.iter().any(|name| parsed.has(name))
        || ["-d", "--directories"].iter().any(|name| {
            parsed
                .value(name)
                .is_some_and(|value| value.text().is_none_or(|text| text.starts_with("rec")))
        });
    let places = places(
        parsed,
        &parsed.operands,
        &["-e", "-f", "--regexp", "--file"],
    );
    if recursive {
        return searched(parsed, &places, tree);
    }
    let mut finding = parsed.finding(OperandKind::None);
    let files = places.iter().filter(|file| !file.is("-"));
    finding.effects.extend(files.map(|file| content(file)));
    finding
}

/// Analyzes rg, which can also list files and print information about itself.
fn ripgrep(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let about = "-V --version -h --help --type-list --pcre2-version --generate";
    if about.split(' ').any(|name| parsed.has(name)) {
        return parsed.finding(OperandKind::None);
    }
    if parsed.has("--files") {
        return searched(parsed, &parsed.operands, names_below);
    }
    let places = places(
        parsed,
        &parsed.operands,
        &["-e", "-f", "--regexp", "--file"],
    );
    searched(parsed, &places, tree)
}

/// A number after a bare `-A`, `-B`, `-C` or `-p` is its value, although the value is optional.
fn ag_or_ack(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let bare = parsed
        .options
        .iter()
        .filter(|given| matches!(given.name, "-A" | "-B" | "-C" | "-p") && given.value.is_none())
        .count();
    let is_number = |arg: &&&Arg| {
        let text = arg.text().unwrap_or_default();
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let numbers = parsed
        .operands
        .iter()
        .take(bare)
        .take_while(is_number)
        .count();
    let operands = &parsed.operands[numbers..];
    let places = places(
        parsed,
        operands,
        &["-f", "-g", "--filename-pattern", "--match"],
    );
    searched(parsed, &places, tree)
}

/// Adds reads of everything below each path, or below the current directory without a path.
fn searched(
    parsed: &ParsedArguments<'_>,
    places: &[&Arg],
    effect: fn(&Arg) -> Effect,
) -> CommandFinding {
    let mut finding = parsed.finding(OperandKind::None);
    if places.is_empty() {
        finding.effects.push(effect(&here(parsed.argv)));
    }
    let places = places.iter().filter(|place| !place.is("-"));
    finding.effects.extend(places.map(|place| effect(place)));
    finding
}

/// Returns the operands after the pattern, or all operands if one of these options provides the
/// pattern. A pattern that may become several arguments may contain files as well.
pub(super) fn places<'a>(
    parsed: &ParsedArguments<'_>,
    operands: &[&'a Arg],
    no_pattern: &[&str],
) -> Vec<&'a Arg> {
    let one = match operands.first() {
        None => false,
        Some(_) if no_pattern.iter().any(|name| parsed.has(name)) => false,
        Some(first) => !matches!(
            first.value,
            ArgValue::Glob(_) | ArgValue::Unknown { one: false, .. }
        ),
    };
    operands[usize::from(one)..].to_vec()
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, effects, find};
    use crate::effect::RuleCoverage;

    #[test]
    fn searching_is_harmless() {
        assert_read_only(&[
            "grep foo f",
            "grep -rn foo src",
            "grep -rnw --include='*.rs' --exclude-dir=target foo .",
            "grep -E -i -A3 -B 2 -C1 'a|b' f g",
            "grep -5 foo f",
            "grep -2n foo f",
            "grep -oP '(?<=a)b' f",
            "grep -c '' *.txt",
            "grep foo *.txt",
            "grep $pattern $file",
            "grep -e foo -e bar f",
            "grep -f patterns f",
            "grep --color=auto -q foo f",
            "grep -e --pre f",
            "grep -- -v f",
            "grep --recur foo .",
            "grep -lZ foo -r .",
            "egrep -v '^#' f",
            "fgrep a.b f",
            "zgrep -i foo f.gz",
            "rg foo",
            "rg -n --hidden -g '!target' foo src",
            "rg --files",
            "rg --files -t rust src",
            "rg -e --pre f",
            "rg -uu -l -S foo -- src",
            "rg -A3 -B3 'fn \\w+' --type rust",
            "rg --json foo",
            "rg -. foo",
            "rg -F -- '--pre' f",
            "rg -r x foo f",
            "rg --type-list",
            "rg --no-heading --with-filename -c foo .",
            "rg --sort path -U foo -d 2",
            "ag -i foo src",
            "ag -A 3 foo src",
            "ag -g name",
            "ag --python -l foo",
            "ack -l foo",
            "ack --type=python foo src",
            "ack -f --rust",
        ]);
    }

    #[test]
    fn options_that_start_programs_are_not() {
        assert_not_read_only(&[
            "grep --odd foo f",
            "grep -k foo f",
            "rg --pre cat foo",
            "rg --pre=cat foo",
            "rg foo src --pre sh",
            "rg --hostname-bin=x foo",
            "rg --hostname x foo",
            "rg --odd foo",
            "rg $pattern",
            "rg foo *",
            "rg foo -g $x",
            "ag --pager less foo",
            "ag -z foo",
            "ag -A --pager=less foo",
            "ag --page=less foo",
            "ack --pager=less foo",
            "ack --output='$&' foo",
            "ack --ackrc=x foo",
            "ack -x foo",
            "ack $x",
        ]);
    }

    #[test]
    fn effects_name_what_is_searched() {
        let cases: [(&str, &[&str]); 19] = [
            ("grep foo", &[]),
            ("grep foo f -", &["read f"]),
            ("grep -e foo f", &["read f"]),
            ("grep -f p f", &["read p", "read f"]),
            ("grep -r foo", &["tree ."]),
            ("grep -r foo a b", &["tree a", "tree b"]),
            ("grep -drecurse foo a", &["tree a"]),
            ("grep foo $x", &["read $"]),
            ("grep $x f", &["read $", "read f"]),
            ("rg foo", &["tree ."]),
            ("rg foo a b", &["tree a", "tree b"]),
            ("rg -e foo a", &["tree a"]),
            ("rg --files", &["names below ."]),
            ("rg --files a", &["names below a"]),
            ("rg --version", &[]),
            ("ag foo a", &["tree a"]),
            ("ag -A 3 foo", &["tree ."]),
            ("ag -A 3 -C 2 foo a", &["tree a"]),
            ("ack foo", &["tree ."]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
        assert_eq!(find("rg --pre x y").coverage, RuleCoverage::Exact);
    }
}
