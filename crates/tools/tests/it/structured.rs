//! What programs read of each result.

use serde_json::{Map, Value, json};

use crate::session::Session;

#[tokio::test]
async fn of_each_tool() {
    let session = Session::new([("a.txt", "one\ntwo\nthree\n"), ("sub/b.txt", "two\ntwo\n")]);
    for (name, time) in [("a.txt", 2), ("sub/b.txt", 1), ("sub", 3)] {
        session.set_modified(name, time);
    }
    let grep = |mode: &str| json!({"pattern": "two", "output_mode": mode});
    let calls = [
        (
            "Read",
            json!({"file_path": "a.txt", "offset": 2, "limit": 1}),
        ),
        ("LS", json!({})),
        ("Glob", json!({"pattern": "*.txt"})),
        ("Grep", grep("files_with_matches")),
        (
            "Grep",
            json!({"pattern": "two", "output_mode": "content", "head_limit": 1, "offset": 1}),
        ),
        ("Grep", grep("content")),
        ("Grep", grep("count")),
        (
            "Edit",
            json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"}),
        ),
        ("Write", json!({"file_path": "a.txt", "content": "1\n"})),
        ("Write", json!({"file_path": "new.txt", "content": "1\n"})),
        (
            "Edit",
            json!({"file_path": "made.txt", "old_string": "", "new_string": "1\n"}),
        ),
    ];
    let mut all = Vec::new();
    for (name, input) in calls {
        let value = session.structured(name, input.clone()).await;
        let mut value: Value = serde_json::from_str(&session.masked(&value.to_string())).unwrap();
        if let Some(time) = value.get_mut("durationMs") {
            assert!(time.is_u64());
            *time = json!("[time]");
        }
        let call = format!("{name} {input}");
        all.push(Value::Object(Map::from_iter([(call, value)])));
    }
    insta::assert_json_snapshot!(all);
}
