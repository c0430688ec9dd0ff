//! Converts the bytes of a response to text for the model.

use std::path::PathBuf;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use haft_contract::{CallContext, Content, ToolError};

use super::{WebSession, download::DownloadedPage, html};
use crate::{blocking::blocking, fs::read_kept};

/// A fetched page.
#[derive(Debug, Clone)]
pub(super) struct FetchedPage {
    /// The address after all redirects.
    pub(super) url: String,
    pub(super) code: u16,
    /// The number of received bytes.
    pub(super) bytes: usize,
    pub(super) body: PageBody,
}

#[derive(Debug, Clone)]
pub(super) enum PageBody {
    Text {
        text: String,
        /// Whether it was served as Markdown.
        is_markdown: bool,
    },
    /// Not text: stored as a file, and read like one.
    File {
        path: PathBuf,
        /// The media type.
        kind: String,
        content: Vec<Content>,
    },
}

impl FetchedPage {
    #[cfg(test)]
    pub(super) fn from_text(url: &str, text: String) -> Self {
        Self {
            url: url.to_owned(),
            code: 200,
            bytes: text.len(),
            body: PageBody::Text {
                text,
                is_markdown: false,
            },
        }
    }

    /// The size in the cache, in bytes.
    pub(super) fn weight(&self) -> usize {
        match &self.body {
            PageBody::Text { text, .. } => text.len(),
            PageBody::File { content, .. } => {
                let weights = content.iter().map(|block| match block {
                    Content::Text { text } => text.len(),
                    // The maximum size of an image.
                    Content::Image { .. } | Content::Document { .. } => 5 << 20,
                });
                weights.sum()
            }
        }
    }
}

/// The kind of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseKind {
    Html,
    Markdown,
    Text,
    /// Contains the extension of the stored file.
    File(&'static str),
}

/// Reads a response, depending on its kind.
pub(super) async fn read(
    download: DownloadedPage,
    web: &WebSession,
    cx: &CallContext,
) -> Result<FetchedPage, ToolError> {
    let DownloadedPage {
        address,
        status,
        media_type,
        bytes,
    } = download;
    let url = address.url.to_string();
    let kind = kind(&media_type, address.url.path(), &bytes);
    let length = bytes.len();
    let body = match kind {
        ResponseKind::File(extension) => file(&bytes, extension, &media_type, web, cx).await?,
        ResponseKind::Html | ResponseKind::Markdown | ResponseKind::Text => {
            let url = url.clone();
            // Converting is too slow for an async thread.
            blocking(move || text(kind, &media_type, &bytes, &url)).await?
        }
    };
    Ok(FetchedPage {
        url,
        code: status,
        bytes: length,
        body,
    })
}

fn text(kind: ResponseKind, media_type: &str, bytes: &[u8], url: &str) -> PageBody {
    let decoded = decode(media_type, bytes, kind == ResponseKind::Html);
    let text = match kind {
        ResponseKind::Html => {
            let page = html::to_markdown(&decoded, url);
            let has_heading = page.text.starts_with("# ");
            match page.title.as_str() {
                "" => page.text,
                _ if has_heading && !page.is_main => page.text,
                title => format!("Title: {title}\n\n{}", page.text),
            }
        }
        _ => decoded,
    };
    PageBody::Text {
        text,
        is_markdown: kind == ResponseKind::Markdown,
    }
}

async fn file(
    bytes: &[u8],
    extension: &str,
    media_type: &str,
    web: &WebSession,
    cx: &CallContext,
) -> Result<PageBody, ToolError> {
    let kept = web.store_file(bytes, extension);
    let path = kept.map_err(|error| {
        ToolError::Failed(format!("the fetched file could not be saved: {error}"))
    })?;
    let content = match extension {
        "bin" => Vec::new(),
        _ => match read_kept(&path, cx).await {
            Ok(output) => output.content,
            // The file was saved nevertheless.
            Err(error) => vec![Content::text(error.to_string())],
        },
    };
    // The type is shown outside of the marks, so it must not contain any other text.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.+-".contains(&byte);
    let kind = essence(media_type);
    let kind = match kind.bytes().all(plain) && (1..=100).contains(&kind.len()) {
        true => kind,
        false => "of no known type".to_owned(),
    };
    Ok(PageBody::File {
        path,
        kind,
        content,
    })
}

/// Returns the kind of a response: from its first bytes if they are known, then from its media
/// type, then from its address.
fn kind(media_type: &str, path: &str, bytes: &[u8]) -> ResponseKind {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if starts(b"%PDF-") {
        return ResponseKind::File("pdf");
    }
    if starts(b"\x89PNG\r\n\x1a\n") {
        return ResponseKind::File("png");
    }
    if starts(b"\xff\xd8\xff") {
        return ResponseKind::File("jpg");
    }
    if starts(b"GIF87a") || starts(b"GIF89a") {
        return ResponseKind::File("gif");
    }
    if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return ResponseKind::File("webp");
    }
    let essence = essence(media_type);
    let lower = path.to_ascii_lowercase();
    if lower.ends_with(".ipynb") || essence == "application/x-ipynb+json" {
        return ResponseKind::File("ipynb");
    }
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => return ResponseKind::Html,
        "text/markdown" | "text/x-markdown" => return ResponseKind::Markdown,
        _ => {}
    }
    let looks_binary = || {
        let head = &bytes[..bytes.len().min(8_192)];
        let has_mark = Encoding::for_bom(head).is_some();
        !has_mark && head.contains(&0)
    };
    let is_text = essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || [
            "application/json",
            "application/xml",
            "application/javascript",
            "application/ecmascript",
            "application/x-javascript",
            "application/yaml",
            "application/x-yaml",
            "application/toml",
            "application/x-sh",
            "application/sql",
            "application/x-ndjson",
        ]
        .contains(&essence.as_str());
    let is_unknown = essence.is_empty() || essence == "application/octet-stream";
    if looks_binary() || !(is_text || is_unknown) {
        return ResponseKind::File("bin");
    }
    if is_unknown {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).to_ascii_lowercase();
        let head = head.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
        if head.starts_with("<!doctype html") || head.starts_with("<html") {
            return ResponseKind::Html;
        }
        if !essence.is_empty() && str::from_utf8(bytes).is_err() {
            return ResponseKind::File("bin");
        }
    }
    match lower.ends_with(".md") || lower.ends_with(".markdown") {
        true if essence == "text/plain" => ResponseKind::Markdown,
        _ => ResponseKind::Text,
    }
}

/// Returns a media type without its parameters, in lowercase.
fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Decodes the text: the encoding comes from the byte order mark, the server, or the page itself,
/// or is UTF-8 if valid, or is guessed.
fn decode(media_type: &str, bytes: &[u8], is_html: bool) -> String {
    let encoding = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| Encoding::for_label(parameter(media_type, "charset")?.as_bytes()))
        .or_else(|| is_html.then(|| declared_encoding(bytes)).flatten());
    let encoding = match encoding {
        Some(encoding) => encoding,
        None if str::from_utf8(bytes).is_ok() => UTF_8,
        None => {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(&bytes[..bytes.len().min(256 << 10)], true);
            detector.guess(None, Utf8Detection::Allow)
        }
    };
    encoding.decode(bytes).0.into_owned()
}

fn parameter<'a>(media_type: &'a str, name: &str) -> Option<&'a str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (own, value) = parameter.split_once('=')?;
        own.trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Reads `<meta charset="…">`, also within a media type in `content`.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_ascii_lowercase();
    let (_, rest) = head.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
    let found = Encoding::for_label(&rest.as_bytes()[..end.unwrap_or(rest.len())])?;
    // A page that declares an encoding such as UTF-16 in ASCII text does not use it.
    Some(match found.is_ascii_compatible() {
        true => found,
        false => UTF_8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_is_its_bytes_say_first() {
        let cases: [(&str, &str, &[u8], ResponseKind); 17] = [
            ("text/html", "/x", b"<p>", ResponseKind::Html),
            ("TEXT/HTML; charset=x", "/x", b"<p>", ResponseKind::Html),
            ("text/html", "/x", b"%PDF-1.7", ResponseKind::File("pdf")),
            (
                "image/png",
                "/x",
                b"\x89PNG\r\n\x1a\n",
                ResponseKind::File("png"),
            ),
            (
                "text/plain",
                "/x",
                b"\xff\xd8\xff\xe0",
                ResponseKind::File("jpg"),
            ),
            ("", "/x", b"GIF89a", ResponseKind::File("gif")),
            (
                "image/webp",
                "/x",
                b"RIFF1234WEBP",
                ResponseKind::File("webp"),
            ),
            ("image/svg+xml", "/x", b"<svg>", ResponseKind::Text),
            (
                "application/json",
                "/x.ipynb",
                b"{}",
                ResponseKind::File("ipynb"),
            ),
            ("application/json", "/x", b"{}", ResponseKind::Text),
            ("text/markdown", "/x", b"# a", ResponseKind::Markdown),
            (
                "text/plain; charset=utf-8",
                "/README.md",
                b"# a",
                ResponseKind::Markdown,
            ),
            ("text/plain", "/x", b"a\0b", ResponseKind::File("bin")),
            ("application/zip", "/x", b"PK", ResponseKind::File("bin")),
            (
                "application/octet-stream",
                "/x",
                b"plain",
                ResponseKind::Text,
            ),
            (
                "application/octet-stream",
                "/x",
                b"\xc3\x28",
                ResponseKind::File("bin"),
            ),
            ("", "/x", b" \n<!DOCTYPE html>", ResponseKind::Html),
        ];
        for (media_type, path, bytes, expected) in cases {
            assert_eq!(
                kind(media_type, path, bytes),
                expected,
                "{media_type} {path}"
            );
        }
    }

    #[test]
    fn text_is_decoded_as_it_was_written() {
        let russian = "Привет, мир. Это довольно длинный текст на русском языке.";
        let (cyrillic, _, _) = encoding_rs::WINDOWS_1251.encode(russian);
        let cases: [(&str, &[u8], &str); 8] = [
            ("text/html", "é".as_bytes(), "é"),
            ("text/html; charset=ISO-8859-1", b"\xe9", "é"),
            ("text/html; charset=\"utf-8\"", "é".as_bytes(), "é"),
            (
                "text/html",
                b"<meta charset='windows-1252'>\xe9",
                "<meta charset='windows-1252'>é",
            ),
            ("text/html; charset=utf-8", b"\xff\xfee\0", "e"),
            ("text/html; charset=nonsense", "é".as_bytes(), "é"),
            ("text/html; charset=shift_jis", b"\x93\xfa\x96\x7b", "日本"),
            ("text/html", &cyrillic, russian),
        ];
        for (media_type, bytes, expected) in cases {
            assert_eq!(decode(media_type, bytes, true), expected, "{media_type}");
        }
    }
}
