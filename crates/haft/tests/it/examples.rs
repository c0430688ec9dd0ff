use std::path::Path;

#[expect(dead_code, reason = "an example's `main` is not called here")]
#[path = "../../examples/embed.rs"]
mod embed;
#[expect(dead_code, reason = "an example's `main` is not called here")]
#[path = "../../examples/word_count.rs"]
mod word_count;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn word_count_counts() {
    let shown = word_count::run(env!("CARGO_MANIFEST_DIR")).await.unwrap();
    let words = std::fs::read_to_string(here().join("Cargo.toml")).unwrap();
    let words = words.split_whitespace().count();
    assert_eq!(
        shown,
        format!(
            "Word count · {}\n{words} words\n",
            here().join("Cargo.toml").display()
        )
    );
}

#[tokio::test]
async fn embed_answers_both_calls_in_order() {
    let answer = embed::run(here()).await.unwrap();
    assert_eq!(answer["role"], "user");
    let ids: Vec<&str> = answer["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| r["tool_use_id"].as_str())
        .collect();
    assert_eq!(ids, ["toolu_1", "toolu_2"]);
    let read = answer["content"][0]["content"].as_str().unwrap();
    assert!(
        read.starts_with("     1\t[package]\n     2\tname = \"haft\"\n"),
        "{read}"
    );
    assert_eq!(answer["content"][1]["content"], "src/lib.rs");
}
