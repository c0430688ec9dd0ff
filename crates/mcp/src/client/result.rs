//! Converts the result of a call for the model.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use haft_contract::{CallId, Content, ToolOutput, output::MediaSource};
use serde_json::Value;

/// The maximum size of an image for providers, as Base64 text.
const MAX_IMAGE_LENGTH: usize = 5 * 1024 * 1024;

/// Converts a result. Content that is neither text nor an image is stored in `folder`.
pub(super) fn output(answer: &Value, folder: &Path) -> ToolOutput {
    let empty = Vec::new();
    let blocks = answer["content"].as_array().unwrap_or(&empty);
    let mut content: Vec<Content> = Vec::new();
    for block in blocks {
        match self::content(block, folder) {
            Content::Text { text } => match content.last_mut() {
                Some(Content::Text { text: before }) => {
                    before.push('\n');
                    before.push_str(&text);
                }
                _ => content.push(Content::Text { text }),
            },
            other => content.push(other),
        }
    }
    if let (true, Some(structured)) = (content.is_empty(), answer.get("structuredContent")) {
        content.push(Content::text(structured.to_string()));
    }
    let failed = answer["isError"] == true;
    ToolOutput {
        content,
        structured: answer.get("content").filter(|_| !failed).cloned(),
        failed,
        ..ToolOutput::default()
    }
}

/// Returns the text of a result.
pub fn text_of(answer: &Value) -> String {
    let blocks = answer["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Converts a block of content.
pub(super) fn content(block: &Value, folder: &Path) -> Content {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    match text("type") {
        "text" => Content::text(text("text")),
        "image" | "audio" => bytes(text("data"), text("mimeType"), folder),
        "resource" => resource(&block["resource"], folder),
        "resource_link" => {
            let about = match text("description") {
                "" => String::new(),
                about => format!(": {about}"),
            };
            Content::text(format!(
                "[resource {} at {}{about}]",
                text("name"),
                text("uri")
            ))
        }
        _ => Content::text(block.to_string()),
    }
}

fn resource(resource: &Value, folder: &Path) -> Content {
    let uri = resource["uri"].as_str().unwrap_or_default();
    if let Some(text) = resource["text"].as_str() {
        return Content::text(format!("[resource {uri}]\n{text}"));
    }
    let kind = resource["mimeType"].as_str().unwrap_or_default();
    match bytes(resource["blob"].as_str().unwrap_or_default(), kind, folder) {
        Content::Text { text } => Content::text(format!("[resource {uri}] {text}")),
        other => other,
    }
}

fn bytes(data: &str, kind: &str, folder: &Path) -> Content {
    let bytes = match BASE64.decode(data.as_bytes()) {
        Ok(bytes) => bytes,
        Err(error) => return Content::text(format!("[{kind}: not valid base 64: {error}]")),
    };
    // The media type is derived from the bytes, because a provider rejects the whole conversation
    // if an image is invalid.
    let is = picture(&bytes);
    if let Some(media_type) = is.filter(|_| data.len() <= MAX_IMAGE_LENGTH) {
        return Content::Image {
            source: MediaSource::Base64 {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            },
        };
    }
    let remark = match (is, kind) {
        (Some(_), _) => ", too large to show: Read shows it scaled down",
        (None, kind) if kind.starts_with("image/") => ", not an image that can be shown",
        _ => "",
    };
    let size = bytes.len();
    Content::text(match store_bytes(&bytes, is.unwrap_or(kind), folder) {
        Ok(path) => format!(
            "[{kind}, {size} bytes{remark}, saved in {}]",
            path.display()
        ),
        Err(error) => format!("[{kind}, {size} bytes{remark}, could not be saved: {error}]"),
    })
}

/// Returns the media type of an image format that models support, detected from its first bytes.
fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Returns a unique part for a file name.
fn unique() -> String {
    let random = CallId::new().to_string();
    random.replace('-', "")
}

/// Stores Base64 data in a file and returns its path.
pub(super) fn store_base64(data: &str, kind: &str, folder: &Path) -> Result<PathBuf, String> {
    let bytes = BASE64.decode(data.as_bytes());
    let bytes = bytes.map_err(|error| format!("not valid base 64: {error}"))?;
    store_bytes(&bytes, kind, folder).map_err(|error| error.to_string())
}

fn store_bytes(bytes: &[u8], kind: &str, folder: &Path) -> io::Result<PathBuf> {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let ending = kind.rsplit(['/', '+', '.']).next().unwrap_or_default();
    let mut ending: String = ending.chars().filter(plain).take(8).collect();
    if ending.is_empty() {
        "bin".clone_into(&mut ending);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let path = folder.join(format!("mcp-{}.{ending}", unique()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(bytes)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

    #[test]
    fn a_picture_is_what_its_bytes_say_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let shown = |data: &str, kind: &str| {
            let block = json!({"type": "image", "data": data, "mimeType": kind});
            match content(&block, dir.path()) {
                Content::Image {
                    source: MediaSource::Base64 { media_type, .. },
                } => media_type,
                Content::Text { text } => text,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(shown(PIXEL, "image/jpeg"), "image/png");
        assert_eq!(shown(PIXEL, "IMAGE/PNG"), "image/png");
        assert_eq!(shown(PIXEL, ""), "image/png");
        for (bytes, kind) in [
            (&b"<html>an error page</html>"[..], "image/png"),
            (b"", "image/gif"),
            (b"<svg/>", "image/svg+xml"),
        ] {
            let said = shown(&BASE64.encode(bytes), kind);
            assert!(said.contains("not an image that can be shown"), "{said}");
            let path = said.rsplit_once("saved in ").unwrap().1;
            assert_eq!(fs::read(path.trim_end_matches(']')).unwrap(), bytes);
        }
        let said = shown("iVBORw0KGgo?", "image/png");
        assert!(said.contains("not valid base 64"), "{said}");
        let mut large = BASE64.decode(PIXEL.as_bytes()).unwrap();
        large.resize(MAX_IMAGE_LENGTH, 0);
        let said = shown(&BASE64.encode(&large), "image/png");
        assert!(said.contains("too large"), "{said}");
        assert!(said.ends_with(".png]"), "{said}");
    }

    #[test]
    fn texts_are_joined_pictures_shown_and_the_rest_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tool-results");
        let sound = BASE64.encode(b"la la");
        let answer = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "text", "text": "two"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "audio", "data": sound, "mimeType": "audio/wav"},
            {"type": "resource_link", "name": "r", "uri": "file:///r", "description": "More."},
            {"type": "resource", "resource": {"uri": "x:/y", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "x:/z", "mimeType": "image/png", "blob": PIXEL}},
            {"type": "audio", "data": "?", "mimeType": "audio/wav"},
            {"type": "odd"},
        ]});
        let output = output(&answer, &folder);
        assert!(!output.failed);
        let kept: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
        assert_eq!(kept.len(), 1);
        assert_eq!(fs::read(kept[0].path()).unwrap(), b"la la");
        let name = kept[0].path().display().to_string();
        let told = serde_json::to_string_pretty(&output.content).unwrap();
        insta::assert_snapshot!(told.replace(&name, "[kept].wav"));
    }

    #[test]
    fn an_error_is_a_failure_and_structure_stands_in_for_missing_text() {
        let folder = Path::new("/nowhere");
        let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert!(output(&failed, folder).failed);
        let structured = json!({"content": [], "structuredContent": {"n": 1}});
        assert_eq!(
            output(&structured, folder).content,
            [Content::text("{\"n\":1}")]
        );
    }
}
