//! Converts tool results for clients.

use haft_contract::{Content, output::MediaSource};
use haft_engine::CallResult;
use serde_json::{Map, Value, json};

use super::StoredResults;
use crate::Revision;

/// Converts the result of a call.
pub(super) fn result(finished: CallResult, revision: Revision, kept: &StoredResults) -> Value {
    let has_links = revision >= Revision::V2025_06_18;
    let link = has_links.then(|| link(&finished, kept)).flatten();
    let mut content: Vec<Value> = finished.content.into_iter().map(block).collect();
    content.extend(link);
    let mut result = Map::with_capacity(3);
    result.insert("content".to_owned(), Value::Array(content));
    // Structured content must be an object.
    if has_links && let Some(structured @ Value::Object(_)) = finished.structured {
        result.insert("structuredContent".to_owned(), structured);
    }
    result.insert("isError".to_owned(), json!(finished.is_error));
    Value::Object(result)
}

/// Returns a link to a result that was too long to send, whether the engine stored it or the tool
/// itself.
fn link(finished: &CallResult, kept: &StoredResults) -> Option<Value> {
    let mut texts = finished.content.iter().filter_map(Content::as_text);
    let stored = finished.metadata.stored.clone();
    let path = stored.or_else(|| kept.named_in(texts.next()?))?;
    kept.link(&path)
}

fn block(content: Content) -> Value {
    match content {
        Content::Text { text } => json!({"type": "text", "text": text}),
        Content::Image {
            source: MediaSource::Base64 { media_type, data },
        } => json!({"type": "image", "data": data, "mimeType": media_type}),
        Content::Document {
            source: MediaSource::Base64 { media_type, data },
        } => json!({
            "type": "resource",
            "resource": {"uri": "haft://document", "mimeType": media_type, "blob": data},
        }),
    }
}

#[cfg(test)]
mod tests {
    use haft_contract::{CallId, Card};
    use haft_engine::Metadata;

    use super::*;

    fn finished() -> CallResult {
        let media = |kind: &str| MediaSource::Base64 {
            media_type: kind.to_owned(),
            data: "AA==".to_owned(),
        };
        CallResult {
            call: CallId::new(),
            id: "1".to_owned(),
            name: "Read".to_owned(),
            is_error: false,
            content: vec![
                Content::text("long"),
                Content::Image {
                    source: media("image/png"),
                },
                Content::Document {
                    source: media("application/pdf"),
                },
            ],
            structured: Some(json!({"lines": 2})),
            messages: Vec::new(),
            patches: Vec::new(),
            metadata: Metadata {
                stored: Some("/s/tool-results/abc.txt".into()),
                ..Metadata::default()
            },
            card: Card::new("Read", ""),
        }
    }

    #[test]
    fn blocks_links_and_structured_content() {
        let kept = StoredResults::new("/s/tool-results".into());
        let newest = result(finished(), Revision::V2025_11_25, &kept);
        assert_eq!(
            newest,
            json!({
                "content": [
                    {"type": "text", "text": "long"},
                    {"type": "image", "data": "AA==", "mimeType": "image/png"},
                    {"type": "resource", "resource":
                        {"uri": "haft://document", "mimeType": "application/pdf", "blob": "AA=="}},
                    {"type": "resource_link", "uri": "haft://results/abc.txt", "name": "abc.txt",
                        "description": "The whole result", "mimeType": "text/plain"},
                ],
                "structuredContent": {"lines": 2},
                "isError": false,
            })
        );
        // Older clients know neither links nor structured content.
        let oldest = result(finished(), Revision::V2024_11_05, &kept);
        assert_eq!(oldest["content"].as_array().unwrap().len(), 3);
        assert_eq!(oldest.get("structuredContent"), None);
    }

    #[test]
    fn structured_content_is_an_object_or_absent() {
        let kept = StoredResults::new("/s".into());
        let mut list = finished();
        list.structured = Some(json!([1]));
        let result = result(list, Revision::V2025_11_25, &kept);
        assert_eq!(result.get("structuredContent"), None);
    }
}
