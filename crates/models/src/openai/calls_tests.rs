//! The vectors of the wire, and what else servers do.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// `id name arguments` of each call; ids that were made up are `*`.
fn calls(chunks: &[Value], cut_off: bool) -> Vec<String> {
    let mut calls = CallAssembler::default();
    let mut finished = Vec::new();
    for chunk in chunks {
        let entries = chunk
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![chunk.clone()]);
        calls.push(&entries);
        finished.extend(std::iter::from_fn(|| calls.ready()));
    }
    finished.extend(calls.finish(cut_off));
    let line = |call: &AssembledCall| {
        let made_up = call.id.len() == 29 && call.id.starts_with("call_");
        let id = if made_up { "*" } else { call.id.as_str() };
        format!("{id} {} {}", call.name, call.arguments)
    };
    finished.iter().map(line).collect()
}

fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Value) -> Value {
    let mut function = json!({"arguments": arguments});
    if let Some(name) = name {
        function["name"] = json!(name);
    }
    let mut piece = json!({"function": function});
    if let Some(index) = index {
        piece["index"] = json!(index);
    }
    if let Some(id) = id {
        piece["id"] = json!(id);
    }
    piece
}

#[test]
fn vectors() {
    let p = |index, id, name, arguments: &str| piece(index, id, name, json!(arguments));
    let (zero, one) = (Some(0), Some(1));
    let (a, b) = (Some("a"), Some("b"));
    let (r, g) = (Some("R"), Some("G"));
    let cases: Vec<(&str, Vec<Value>, Vec<&str>)> = vec![
        (
            "1",
            vec![
                p(zero, a, r, ""),
                p(zero, None, None, r#"{"x":"#),
                p(zero, None, None, "1}"),
            ],
            vec![r#"a R {"x":1}"#],
        ),
        (
            "2",
            vec![p(zero, a, r, "{}"), p(one, b, g, "{}")],
            vec!["a R {}", "b G {}"],
        ),
        (
            "3",
            vec![p(None, a, r, r#"{"p":1}"#), p(None, b, r, r#"{"p":2}"#)],
            vec![r#"a R {"p":1}"#, r#"b R {"p":2}"#],
        ),
        (
            "4",
            vec![p(zero, a, r, r#"{"p":1}"#), p(zero, b, r, r#"{"p":2}"#)],
            vec![r#"a R {"p":1}"#, r#"b R {"p":2}"#],
        ),
        ("5", vec![p(zero, None, r, "{}")], vec!["* R {}"]),
        ("6", vec![p(zero, Some(""), r, "")], vec!["* R {}"]),
        (
            "7",
            vec![p(zero, a, r, r#"{"x""#), p(zero, a, r, ":1}")],
            vec![r#"a R {"x":1}"#],
        ),
        (
            "8",
            vec![json!([p(None, a, r, "{}"), p(None, b, g, "{}")])],
            vec!["a R {}", "b G {}"],
        ),
        (
            "9",
            vec![piece(zero, a, r, json!({"x": 1}))],
            vec![r#"a R {"x":1}"#],
        ),
        (
            "10",
            vec![p(zero, a, r, r#""{\"x\":1}""#)],
            vec![r#"a R {"x":1}"#],
        ),
        (
            "16",
            vec![
                p(zero, a, r, r#"{"x""#),
                p(one, b, g, r#"{"y""#),
                p(zero, None, None, ":1}"),
                p(one, None, None, ":2}"),
            ],
            vec![r#"a R {"x":1}"#, r#"b G {"y":2}"#],
        ),
        (
            "17",
            vec![
                p(None, None, r, r#"{"p":1}"#),
                p(None, None, g, r#"{"p":2}"#),
            ],
            vec![r#"* R {"p":1}"#, r#"* G {"p":2}"#],
        ),
        (
            "18",
            vec![p(None, a, r, r#"{"x""#), p(None, None, None, ":1}")],
            vec![r#"a R {"x":1}"#],
        ),
        (
            "19",
            vec![
                p(zero, None, r, r#"{"p":1}"#),
                p(zero, None, g, r#"{"p":2}"#),
            ],
            vec![r#"* R {"p":1}"#, r#"* G {"p":2}"#],
        ),
        (
            "20",
            vec![p(zero, a, r, r#"{"x":1}"#), p(zero, a, r, r#"{"x":1}"#)],
            vec![r#"a R {"x":1}"#],
        ),
        (
            "21",
            vec![p(zero, a, r, r#"{"x":1}"#), p(zero, b, r, r#"{"x":1}"#)],
            vec![r#"a R {"x":1}"#, r#"b R {"x":1}"#],
        ),
        (
            "a name in pieces",
            vec![
                p(zero, a, Some("Re"), ""),
                p(zero, None, Some("ad"), ""),
                p(zero, None, None, "{}"),
            ],
            vec!["a Read {}"],
        ),
        ("no name", vec![p(zero, a, None, "{}")], vec![]),
        (
            "null everywhere",
            vec![json!({"index": 0, "id": null, "function": {"name": "R", "arguments": null}})],
            vec!["* R {}"],
        ),
        (
            "the whole again, without ids",
            vec![
                p(zero, None, r, r#"{"x":1}"#),
                p(zero, None, r, r#"{"x":1}"#),
            ],
            vec![r#"* R {"x":1}"#],
        ),
        (
            "pieces by position",
            vec![
                json!([p(None, a, r, r#"{"x""#), p(None, b, g, r#"{"y""#)]),
                json!([p(None, None, None, ":1}"), p(None, None, None, ":2}")]),
            ],
            vec![r#"a R {"x":1}"#, r#"b G {"y":2}"#],
        ),
    ];
    for (what, chunks, expected) in cases {
        assert_eq!(calls(&chunks, false), expected, "vector {what}");
    }
}

#[test]
fn vector_12_what_was_cut_off_is_not_completed() {
    let chunk = piece(Some(0), Some("a"), Some("R"), json!(r#"{"x":"#));
    assert_eq!(calls(&[chunk], true), [r#"a R {"x":"#]);
}

#[test]
fn a_call_is_handed_out_early_only_when_it_is_complete_and_another_has_begun() {
    let p = |index, id, arguments: &str| piece(Some(index), Some(id), Some("R"), json!(arguments));
    let ready = |chunks: &[Value]| {
        let mut calls = CallAssembler::default();
        chunks
            .iter()
            .for_each(|chunk| calls.push(std::slice::from_ref(chunk)));
        std::iter::from_fn(|| calls.ready())
            .map(|call| call.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ready(&[p(0, "a", "{}")]),
        [""; 0],
        "nothing has begun after it"
    );
    assert_eq!(ready(&[p(0, "a", "{}"), p(1, "b", "")]), ["a"]);
    assert_eq!(
        ready(&[p(0, "a", "{}"), p(1, "b", "{}"), p(2, "c", "")]),
        ["a", "b"]
    );
    assert_eq!(
        ready(&[p(0, "a", r#"{"x""#), p(1, "b", "{}"), p(2, "c", "")]),
        [""; 0],
        "in order"
    );
    assert_eq!(
        ready(&[p(0, "a", ""), p(1, "b", "{}")]),
        [""; 0],
        "its arguments may yet come"
    );
    assert_eq!(
        ready(&[p(0, "", "{}"), p(1, "b", "{}")]),
        [""; 0],
        "its id may yet come"
    );
    // Sent again as a whole after it was handed out.
    let again = [
        p(0, "a", r#"{"x":1}"#),
        p(1, "b", "{}"),
        p(0, "a", r#"{"x":1}"#),
    ];
    assert_eq!(calls(&again, false), [r#"a R {"x":1}"#, "b R {}"]);
}

#[test]
fn fields_that_nobody_knows_are_kept() {
    let mut calls = CallAssembler::default();
    let mut entry = piece(Some(0), Some("a"), Some("R"), json!("{}"));
    entry["extra_content"] = json!({"google": {"thought_signature": "s"}});
    entry["type"] = json!("function");
    calls.push(&[entry]);
    let finished = calls.finish(false);
    assert_eq!(
        Value::Object(finished[0].extra.clone()),
        json!({"extra_content": {"google": {"thought_signature": "s"}}})
    );
}

proptest! {
    /// Conforming streams: each call by its index, cut anywhere, interleaved anyhow.
    #[test]
    fn pieces_by_index_make_the_calls_again(
        texts in prop::collection::vec("[a-z\"\\\\{}é]{0,8}", 1..4),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..120),
    ) {
        let arguments: Vec<String> = texts.iter().map(|text| json!({"x": text}).to_string()).collect();
        let mut rest: Vec<Vec<char>> = arguments.iter().map(|text| text.chars().rev().collect()).collect();
        let mut chunks: Vec<Value> = (0u64..).zip(&arguments)
            .map(|(index, _)| piece(Some(index), Some(&format!("id{index}")), Some("R"), json!("")))
            .collect();
        let order = picks.iter().map(|pick| pick.index(rest.len())).chain((0..arguments.len()).flat_map(|i| [i; 60]));
        let order: Vec<usize> = order.collect();
        for index in order {
            if let Some(next) = rest[index].pop() {
                chunks.push(piece(Some(index as u64), None, None, json!(next.to_string())));
            }
        }
        let expected: Vec<String> = arguments.iter().enumerate()
            .map(|(index, text)| format!("id{index} R {text}")).collect();
        prop_assert_eq!(calls(&chunks, false), expected);
    }
}
