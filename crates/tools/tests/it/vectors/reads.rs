//! Vectors 83–91 of file-tools.md §8: what Read shows. 87 needs a process of its own: it is tested
//! with the binary. 88 and 89 are pictures: `media`. 91 is a second Read: `again`.

use serde_json::json;

use super::read;
use crate::session::Session;

#[tokio::test]
async fn v083_an_empty_file_is_said_to_be_empty() {
    let session = Session::new([("f", "")]);
    let text = read(&session, "f").await;
    assert!(text.contains("f exists, but it is empty"), "{text}");
}

#[tokio::test]
async fn v084_an_offset_past_the_end_names_the_number_of_lines() {
    let session = Session::new([("f", "1\n2\n3\n")]);
    let input = json!({"file_path": "f", "offset": 9});
    let error = session.say("Read", input).await.failed();
    assert!(error.contains("the file has 3 lines"), "{error}");
}

#[tokio::test]
async fn v085_a_line_has_its_number_its_tabs_and_no_cr() {
    let session = Session::new([("f", "\tx\r\n")]);
    let text = read(&session, "f").await;
    assert_eq!(text.lines().next(), Some("     1\t\tx"));
    assert!(!text.contains('\r'), "{text:?}");
}

#[tokio::test]
async fn v086_a_line_of_five_megabytes_is_cut_and_its_length_told() {
    let line = "x".repeat(5_000_000);
    let session = Session::new([("f", line.as_str())]);
    let text = read(&session, "f").await;
    let shown = text.strip_prefix("     1\t").unwrap();
    assert!(shown.starts_with(&line[..2_000]) && !shown.contains(&line[..2_001]));
    let told = "[cut: the line has 5000000 characters; read on with offset 1, char_offset 2000]";
    assert!(text.contains(told), "{}", &text[2_000..]);
}

#[tokio::test]
async fn v090_a_missing_file_names_its_neighbour() {
    let session = Session::new([("conf.toml", "")]);
    let input = json!({"file_path": "config.toml"});
    let error = session.say("Read", input).await.refused();
    assert!(error.contains("does not exist"), "{error}");
    assert!(error.contains("Did you mean conf.toml?"), "{error}");
}
