use std::path::Path;

#[expect(dead_code, reason = "an example's `main` is not called here")]
#[path = "../../examples/embed.rs"]
mod embed;
#[expect(dead_code, reason = "an example's `main` is not called here")]
#[path = "../../examples/sticker_request.rs"]
mod sticker_request;
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

#[tokio::test]
async fn stickers_are_ordered_by_a_person() {
    let project = haft_testkit::TempProject::new([]);
    let text = sticker_request::run(project.root()).await.unwrap();
    let root = project.root().display().to_string();
    insta::assert_snapshot!(text.replace(&root, "DIR"));
}

/// The example is to show every method that a tool may have: a new one in the trait belongs into it.
#[test]
fn the_sticker_example_has_every_method_of_the_contract() {
    let read = |path: &str| std::fs::read_to_string(here().join(path)).unwrap();
    let contract = read("../contract/src/tool.rs");
    let (_, methods) = contract.split_once("pub trait Tool: ").unwrap();
    let example = read("examples/sticker_request.rs");
    let mut count = 0;
    for line in methods.lines() {
        if let Some(rest) = line.strip_prefix("    fn ") {
            let name = rest.split(['(', '<']).next().unwrap();
            assert!(example.contains(&format!("fn {name}(")), "{name}");
            count += 1;
        }
    }
    assert!(count > 18, "{count}");
}
