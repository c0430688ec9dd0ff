//! The invariants, with bytes that proptest draws.

use proptest::prelude::*;

use crate::invariants::{check_input, check_markdown, check_wrap};

/// Bytes in which much of a terminal and of Markdown is.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        prop::sample::select(vec![
            "\x1b[200~",
            "\x1b[201~",
            "\x1b]11;",
            "\x1b\\",
            "\x1b_G",
            "\x1bP>|",
            "\x07",
            "word ",
            "漢字",
            "👩\u{200d}👧",
            "**",
            "`",
            "```\n",
            "\n",
            "- ",
            "1. ",
            "> ",
            "| a | b |\n",
            "|-|-|\n",
            "[a](b)",
            "    ",
            "\u{301}",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn input_wrapping_and_markdown_keep_their_promises(bytes in bytes()) {
        check_input(&bytes);
        check_wrap(&bytes);
        check_markdown(&bytes);
    }
}
