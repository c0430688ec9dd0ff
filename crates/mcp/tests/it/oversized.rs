//! Servers whose lists and schemas are too large: they fail or lose a tool, and everything else works.

use serde_json::{Value, json};

use crate::setting::{Setting, text};

/// A server in the language of every shell. `$n` counts the pages of its list of tools.
fn shell_server(page: &str) -> Value {
    let script = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *tools/list*) n=$((n + 1)); PAGE ;;
    *tools/call*) answer '{"content":[{"type":"text","text":"called"}]}' ;;
  esac
done"#;
    let script = script.replace("PAGE", page);
    json!({"command": "/bin/sh", "args": ["-c", script]})
}

#[tokio::test]
async fn a_list_that_is_too_long_is_not_gathered_page_after_page() {
    haft_testkit::bound_this_process();
    // Four pages, none of them too long, with 48 MB together.
    let page = r#"
      next='"nextCursor":"'$n'",'; test "$n" -lt 4 || next=
      printf '{"jsonrpc":"2.0","id":%s,"result":{%s"tools":[{"name":"t%s","inputSchema":{"type":"object"},"description":"' "$id" "$next" "$n"
      head -c 12000000 /dev/zero | tr '\0' d
      printf '"}]}}\n'"#;
    let named = json!({"s": shell_server(page), "other": shell_server(r#"answer '{"tools":[{"name":"t"}]}'"#)});
    let setting = Setting::new(&named).settled().await;
    let (status, error) = setting.status("s");
    assert_eq!(status, "failed", "{error:?}");
    let error = error.unwrap_or_default();
    assert!(error.contains("is longer than"), "{error}");
    let called = setting.call("mcp__other__t", json!({})).await.unwrap();
    assert_eq!(text(&called), "called");
    setting.servers.close().await;
}

#[tokio::test]
async fn schemas_of_long_chains_of_references_end_nothing() {
    haft_testkit::bound_this_process();
    // The schema of the input, and that of the output, lead through 20,000 references.
    let page = r##"
      defs=$(awk 'BEGIN { for (i = 0; i < 20000; i++) printf "\"d%d\":{\"$ref\":\"#/$defs/d%d\"},", i, i + 1; print "\"d20000\":{}" }')
      chain='{"type":"object","$defs":{'$defs'},"properties":{"a":{"$ref":"#/$defs/d0"}}}'
      answer '{"tools":[{"name":"t","inputSchema":'"$chain"',"outputSchema":'"$chain"'},{"name":"u"}]}'"##;
    let setting = Setting::new(&json!({"s": shell_server(page)}))
        .settled()
        .await;
    assert_eq!(setting.status("s"), ("connected".to_owned(), None));
    let called = setting.call("mcp__s__u", json!({})).await.unwrap();
    assert_eq!(text(&called), "called");
    // The schema is too deep to check a value: the call is not made.
    let tool = setting.tool("mcp__s__t");
    let refused = tool.bind(json!({"a": 1})).map(drop).unwrap_err();
    assert!(refused.to_string().contains("too many steps"), "{refused}");
    setting.servers.close().await;
}
