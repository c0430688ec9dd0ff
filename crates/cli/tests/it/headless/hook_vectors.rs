//! Every vector of hooks.md §7, and the test that shows it.

use std::{fs, path::Path};

const CALLS: &str = "engine/tests/it/hooks/mod.rs";
const KINDS: &str = "engine/tests/it/hooks/kinds.rs";
const WHICH: &str = "engine/tests/it/hooks/which.rs";
const MOMENTS: &str = "engine/tests/it/hooks/moments.rs";
const LOOP: &str = "agent/tests/it/hooks.rs";
const BINARY: &str = "cli/tests/it/headless/hooks.rs";

/// Number, file and test.
const VECTORS: [(u8, &str, &str); 34] = [
    (1, CALLS, "v1_exit_code_2_denies_with_what_is_on_stderr"),
    (
        2,
        CALLS,
        "v2_v3_a_decision_in_json_counts_whatever_the_exit_code",
    ),
    (
        3,
        CALLS,
        "v2_v3_a_decision_in_json_counts_whatever_the_exit_code",
    ),
    (4, CALLS, "v4_exit_code_2_beats_an_allow"),
    (
        5,
        CALLS,
        "v5_v10_v11_what_is_no_decision_leaves_the_call_alone",
    ),
    (6, CALLS, "v6_the_old_form_of_a_denial_counts"),
    (
        7,
        CALLS,
        "v7_an_allowed_call_may_be_rewritten_and_nobody_is_asked",
    ),
    (8, CALLS, "v8_of_several_the_strictest_counts"),
    (
        9,
        CALLS,
        "v9_a_hook_never_beats_a_deny_rule_nor_an_ask_rule",
    ),
    (
        10,
        CALLS,
        "v5_v10_v11_what_is_no_decision_leaves_the_call_alone",
    ),
    (
        11,
        CALLS,
        "v5_v10_v11_what_is_no_decision_leaves_the_call_alone",
    ),
    (
        12,
        CALLS,
        "v12_a_hook_that_takes_too_long_says_nothing_unless_it_guards",
    ),
    (13, LOOP, "v13_and_21_what_they_say_goes_with_the_prompt"),
    (14, LOOP, "v14_a_prompt_is_held_up"),
    (
        15,
        CALLS,
        "v15_v16_v17_v18_after_a_call_hooks_may_add_replace_and_stop",
    ),
    (
        16,
        CALLS,
        "v15_v16_v17_v18_after_a_call_hooks_may_add_replace_and_stop",
    ),
    (
        17,
        CALLS,
        "v15_v16_v17_v18_after_a_call_hooks_may_add_replace_and_stop",
    ),
    (18, LOOP, "v18_a_hook_ends_the_run_after_a_call"),
    (19, LOOP, "v19_and_20_the_model_is_sent_on_but_not_for_ever"),
    (20, LOOP, "v19_and_20_the_model_is_sent_on_but_not_for_ever"),
    (21, BINARY, "v21_hooks_of_the_beginning_are_always_told_of"),
    (
        22,
        BINARY,
        "v22_variables_that_hooks_set_reach_later_commands",
    ),
    (23, BINARY, "v23_hooks_may_bring_the_first_words"),
    (
        24,
        CALLS,
        "v24_v25_v26_permission_requests_are_answered_by_hooks",
    ),
    (
        25,
        CALLS,
        "v24_v25_v26_permission_requests_are_answered_by_hooks",
    ),
    (
        26,
        CALLS,
        "v24_v25_v26_permission_requests_are_answered_by_hooks",
    ),
    (
        27,
        MOMENTS,
        "v27_a_tool_fires_events_of_its_own_and_hears_objections",
    ),
    (28, BINARY, "v28_v29_a_server_is_told_and_decides"),
    (
        29,
        KINDS,
        "v28_v29_a_server_decides_by_what_it_says_and_only_by_that",
    ),
    (30, WHICH, "v30_v31_v32_v33_which_hooks_run_and_how"),
    (31, WHICH, "v30_v31_v32_v33_which_hooks_run_and_how"),
    (32, WHICH, "v30_v31_v32_v33_which_hooks_run_and_how"),
    (33, WHICH, "v30_v31_v32_v33_which_hooks_run_and_how"),
    (34, BINARY, "v34_a_call_that_is_put_off_ends_the_run"),
];

#[test]
fn every_vector_has_a_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (at, (number, file, test)) in VECTORS.iter().enumerate() {
        assert_eq!(usize::from(*number), at + 1);
        let text = fs::read_to_string(crates.join(file)).unwrap();
        assert!(
            text.contains(&format!("fn {test}(")),
            "{number}: {file} {test}"
        );
    }
}
