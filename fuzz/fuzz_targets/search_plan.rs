//! Any pattern in any text: the index never rules out a text in which the pattern matches.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8], bool, bool)| {
    let (pattern, text, case_insensitive, multiline) = input;
    haft_search::fuzzing::check_plan(pattern, text, case_insensitive, multiline);
});
