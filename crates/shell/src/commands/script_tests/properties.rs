//! Programs drawn at random.

use proptest::{collection::vec, prelude::*, sample::select, test_runner::Config};

use super::{
    find, is_installed,
    pieces::{
        AWK_BEFORE, AWK_BEHIND, AWK_BETWEEN, AWK_HARMLESS, AWK_PIECES, AWK_REFUSED, AWKS,
        SED_HARMLESS, SED_PIECES, SED_REFUSED, SED_TEXT,
    },
    project, run, tree,
};
use crate::effect::EffectVerdict;

/// Fewer cases where each of them starts processes.
fn with_processes() -> Config {
    let config = Config::default();
    Config {
        cases: config.cases / 4,
        ..config
    }
}

fn is_read_only(words: &[&str]) -> bool {
    find(words).verdict == EffectVerdict::ReadOnly
}

fn sed_command() -> impl Strategy<Value = String> {
    let short = (select(SED_HARMLESS), select(&["\n", " \n", "\n;\n"][..]));
    prop_oneof![
        4 => short.prop_map(|(command, end)| format!("{command}{end}")),
        1 => select(SED_TEXT).prop_map(|command| format!("{command}\n")),
    ]
}

fn sed_script() -> impl Strategy<Value = String> {
    (vec(sed_command(), 0..6), any::<bool>()).prop_map(|(commands, block)| {
        let script = commands.concat();
        match block {
            true => format!("/x/{{{script}}}\n"),
            false => script,
        }
    })
}

fn awk_program() -> impl Strategy<Value = String> {
    vec(
        (select(AWK_HARMLESS), select(&["; ", "\n", " ;\n"][..])),
        0..6,
    )
    .prop_map(|statements| {
        let each = statements.iter().map(|(text, end)| format!("{text}{end}"));
        each.collect()
    })
}

/// Runs a program that the analysis calls read-only, and returns a message if it changes anything.
fn spoils(interpreters: &[&str], program: &str) -> Option<String> {
    for interpreter in interpreters.iter().filter(|name| is_installed(name)) {
        if !is_read_only(&[interpreter, program, "a.txt"]) {
            continue;
        }
        let dir = project();
        let before = tree(dir.path());
        run(dir.path(), &[interpreter, program, "a.txt"]);
        if tree(dir.path()) != before {
            return Some(format!("{interpreter} {program:?}"));
        }
    }
    None
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in ".{0,80}", word in "[-a-z/{};!()0-9]{0,8}") {
        for name in ["sed", "awk", "jq", "yq", "find", "fd", "rg", "grep", "xmllint"] {
            find(&[name, &text, &word]);
            find(&[name, "-e", &text, &word]);
            find(&[name, &word, &text]);
        }
    }

    #[test]
    fn no_pieces_make_a_parser_panic(sed in vec(select(SED_PIECES), 0..20), awk in vec(select(AWK_PIECES), 0..20)) {
        find(&["sed", &sed.concat(), "f"]);
        find(&["awk", &awk.concat(), "f"]);
        find(&["sed", &format!("é{}é", awk.concat()), "f"]);
        find(&["awk", &format!("é{}é", sed.concat()), "f"]);
    }

    #[test]
    fn sed_scripts_that_print_are_read_only(script in sed_script()) {
        prop_assert!(is_read_only(&["sed", &script, "f"]), "{}", find(&["sed", &script, "f"]).reason);
    }

    #[test]
    fn sed_scripts_with_a_refused_piece_never_are(
        before in sed_script(),
        refused in select(SED_REFUSED),
        after in sed_script(),
        opened in any::<bool>(),
    ) {
        let refused = if opened { format!("{{{refused}\n}}") } else { refused.to_owned() };
        let script = format!("{before}{refused}\n{after}");
        prop_assert!(!is_read_only(&["sed", &script, "f"]), "{script:?}");
        prop_assert!(!is_read_only(&["sed", "-n", "-e", &before, "-e", &refused, "-e", &after, "f"]));
    }

    #[test]
    fn awk_programs_that_print_are_read_only(statements in awk_program()) {
        let program = format!("{{ {statements} }}");
        prop_assert!(is_read_only(&["awk", &program, "f"]), "{}", find(&["awk", &program, "f"]).reason);
    }

    #[test]
    fn awk_programs_with_a_refused_piece_never_are(
        before in awk_program(),
        refused in select(AWK_REFUSED),
        after in awk_program(),
        head in select(&["", "BEGIN ", "/x/ ", "$1 > 2 ", "function f(x) { print x > 1 }\n"][..]),
    ) {
        let program = format!("{head}{{ {before} {refused}\n {after} }}");
        prop_assert!(!is_read_only(&["awk", &program, "f"]), "{program:?}");
    }
}

proptest! {
    #![proptest_config(with_processes())]

    #[test]
    fn sed_agrees_that_a_script_is_harmless(pieces in vec(select(SED_PIECES), 1..12)) {
        prop_assert_eq!(spoils(&["sed"], &pieces.concat()), None);
    }

    #[test]
    fn every_awk_agrees_that_a_program_is_harmless(pieces in vec(select(AWK_PIECES), 1..12)) {
        let statements = pieces.concat();
        prop_assert_eq!(spoils(AWKS, &statements), None);
        prop_assert_eq!(spoils(AWKS, &format!("BEGIN {{ {statements} }}")), None);
    }

    #[test]
    fn every_awk_agrees_about_a_slash(
        before in select(AWK_BEFORE),
        between in select(AWK_BETWEEN),
        behind in select(AWK_BEHIND),
    ) {
        let program = format!("BEGIN {{ {before} /{between}/{behind} }}");
        prop_assert_eq!(spoils(AWKS, &program), None);
    }
}
