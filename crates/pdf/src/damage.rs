//! Evidence that part of a file is lost.
//!
//! The library mends what it can without a word: it looks for objects where the table of them is
//! wrong, takes what is missing for nothing, and unpacks what can be unpacked. So a page that is lost
//! looks like one without text, as in a scan. What it cannot hide is looked for here: how the file
//! ends, what its pages refer to, and what was said while streams were unpacked.

use std::{
    cell::Cell,
    collections::{HashSet, VecDeque},
    sync::Once,
};

use log::{Level, LevelFilter, Log, Metadata, Record};
use memchr::memmem;
use pdf_oxide::{
    Error, PdfDocument,
    object::{Object, ObjectRef},
};

/// No more nodes of a page tree are looked at.
const NODES: usize = 20_000;
/// Writers count the line break before `endstream`, or do not.
const LINE_BREAK: usize = 2;

/// Does the file end as PDFs end? Whatever comes after the last object, `startxref` and a number
/// close it; a file that was cut off lacks that, or has it only from an earlier state of the file.
pub(crate) fn of_end(bytes: &[u8]) -> Option<String> {
    let closed = memmem::rfind(bytes, b"startxref").filter(|start| {
        let number = bytes[start + b"startxref".len()..].trim_ascii_start();
        number.first().is_some_and(u8::is_ascii_digit)
    });
    let rest = &bytes[closed.unwrap_or(0)..];
    let is_open = closed.is_none() || memmem::find(rest, b"endobj").is_some() || has_object(rest);
    is_open.then(|| {
        format!(
            "its end is missing, it was cut off after {} bytes",
            bytes.len()
        )
    })
}

/// Is there a line like `12 0 obj`?
fn has_object(bytes: &[u8]) -> bool {
    bytes.windows(7).any(|window| {
        let [digit, before, generation, after, b'o', b'b', b'j'] = window else {
            return false;
        };
        digit.is_ascii_digit() && *before == b' ' && generation.is_ascii_digit() && *after == b' '
    })
}

/// Are there pages that the document lists and that are not in the file? An error is a list that
/// has no end, which must not be followed at all.
pub(crate) fn of_page_tree(document: &PdfDocument) -> Result<Option<String>, String> {
    let root = document.catalog().ok().and_then(|catalog| {
        let pages = catalog.as_dict()?.get("Pages")?;
        pages.as_reference()
    });
    let mut open: Vec<ObjectRef> = root.into_iter().collect();
    let mut branches = HashSet::new();
    let (mut found, mut lost) = (0_usize, 0_usize);
    while let Some(reference) = open.pop() {
        if branches.len() + found + lost > NODES {
            return Ok(None);
        }
        let Ok(Object::Dictionary(node)) = document.load_object(reference) else {
            lost += 1;
            continue;
        };
        let Some(kids) = node.get("Kids").and_then(Object::as_array) else {
            found += 1;
            continue;
        };
        if !branches.insert(reference) {
            return Err("its list of pages contains itself".to_owned());
        }
        open.extend(kids.iter().filter_map(Object::as_reference));
    }
    let listed = found + lost;
    Ok((lost > 0).then(|| format!("of the {listed} pages it lists, {lost} cannot be found")))
}

/// Is something missing of what a page is made of? Of a page that has text only what could hold
/// more: many files are a little wrong, and read well.
pub(crate) fn of_page(document: &PdfDocument, index: usize, has_text: bool) -> Option<String> {
    let page = document.get_page(index).ok();
    let Some(page) = page.as_ref().and_then(Object::as_dict) else {
        return Some("the page itself is missing".to_owned());
    };
    for stream in page
        .get("Contents")
        .into_iter()
        .flat_map(|contents| list(document, contents))
    {
        let why = match document.resolve_object(&stream) {
            Ok(Object::Null) | Err(_) => missing(&stream),
            Ok(_) if has_text => None,
            Ok(stream) => shortness(document, &stream),
        };
        if let Some(why) = why {
            return Some(format!("its content {why}"));
        }
    }
    let content = match document.get_page_content_data(index) {
        Err(Error::Unsupported(_) | Error::UnsupportedFilter(_)) => return None,
        Err(error) => {
            let why = error.to_string();
            let why = why.split(['.', ';']).next().unwrap_or_default();
            return Some(format!("its content cannot be unpacked ({why})"));
        }
        Ok(content) => content,
    };
    // Only what the content names: lists of resources are often shared, and longer than need be.
    let resources = document.resolve_object(page.get("Resources")?).ok()?;
    let of_kind = |kind| {
        document
            .resolve_object(resources.as_dict()?.get(kind)?)
            .ok()
    };
    let fonts = of_kind("Font");
    let font = |name| fonts.as_ref()?.as_dict()?.get(name);
    let lost = named(&content, b"Tf", 2)
        .filter_map(font)
        .find_map(|font| of_font(document, font));
    if let Some(why) = lost {
        return Some(format!("a font on it {why}"));
    }
    if has_text {
        return None;
    }
    let pictures = of_kind("XObject");
    let picture = |name| pictures.as_ref()?.as_dict()?.get(name);
    let why = named(&content, b"Do", 1)
        .filter_map(picture)
        .find_map(|picture| match document.resolve_object(picture) {
            Ok(Object::Null) | Err(_) => missing(picture),
            Ok(picture) => shortness(document, &picture),
        })?;
    Some(format!("a picture on it {why}"))
}

/// What an array holds; anything else is itself.
fn list(document: &PdfDocument, object: &Object) -> Vec<Object> {
    match document.resolve_object(object) {
        Ok(Object::Array(items)) => items,
        _ => vec![object.clone()],
    }
}

/// A reference that leads nowhere, in words. What is not there on purpose is not referred to.
fn missing(object: &Object) -> Option<String> {
    let reference = object.as_reference()?;
    Some(format!("(object {}) is missing", reference.id))
}

/// The same for a font and what its characters are known by.
fn of_font(document: &PdfDocument, font: &Object) -> Option<String> {
    let is_lost =
        |object: &Object| matches!(document.resolve_object(object), Ok(Object::Null) | Err(_));
    if is_lost(font) {
        return missing(font);
    }
    let font = document.resolve_object(font).ok()?;
    let font = font.as_dict()?;
    let parts = ["ToUnicode", "Encoding", "DescendantFonts"].into_iter();
    parts
        .filter_map(|part| font.get(part))
        .flat_map(|part| list(document, part))
        .find_map(|part| is_lost(&part).then(|| missing(&part)).flatten())
}

/// Is the stream shorter than it says?
fn shortness(document: &PdfDocument, stream: &Object) -> Option<String> {
    let Object::Stream { dict, data } = stream else {
        return None;
    };
    let length = document.resolve_object(dict.get("Length")?).ok()?;
    let length = usize::try_from(length.as_integer()?).ok()?;
    // What is encrypted is longer in the file.
    let is_short = !document.is_encrypted() && data.len() + LINE_BREAK < length;
    is_short.then(|| format!("ends after {} of {length} bytes", data.len()))
}

/// The names that an operator is given so many words before it: as in `/Name Do`, `/Name 12 Tf`.
fn named<'a>(
    content: &'a [u8],
    operator: &'a [u8],
    before: usize,
) -> impl Iterator<Item = &'a str> {
    let mut last = VecDeque::from([&b""[..]; 3]);
    let words = content
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    words.filter_map(move |word| {
        last.pop_back();
        last.push_front(word);
        let name = last.get(before).filter(|_| word == operator)?;
        str::from_utf8(name.rsplit(|byte| *byte == b'/').next()?).ok()
    })
}

/// Hears the library unpack streams. There it warns of one thing only: that it unpacked a part.
struct Listener;

thread_local! {
    static HEARD: Cell<bool> = const { Cell::new(false) };
}

impl Log for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn && metadata.target().starts_with("pdf_oxide::decoders")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            HEARD.set(true);
        }
    }

    fn flush(&self) {}
}

/// Runs `work` and says whether streams were unpacked only in part meanwhile.
pub(crate) fn listen<T>(work: impl FnOnce() -> T) -> (T, bool) {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        if log::set_logger(&Listener).is_ok() {
            log::set_max_level(LevelFilter::Warn);
        }
    });
    HEARD.set(false);
    let done = work();
    (done, HEARD.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_named_in_the_content() {
        let content = b"q 1 0 0 1 0 0 cm/Im0 Do Q\nBT 0 Tr/F1 12 Tf\n/A\n\nDo ET /F2\t.5\nTf";
        let named = |operator, before| named(content, operator, before).collect::<Vec<&str>>();
        assert_eq!(named(b"Do", 1), ["Im0", "A"]);
        assert_eq!(named(b"Tf", 2), ["F1", "F2"]);
    }

    #[test]
    fn a_file_is_closed_after_its_last_object() {
        let whole: [&[u8]; 5] = [
            b"1 0 obj\n<<>>\nendobj\nxref\nstartxref\n9\n%%EOF\n",
            b"1 0 obj\n<<>>\nendobj\nxref\nstartxref 9",
            b"1 0 obj endobj startxref\r\n9\r\n%%EOF\0\0\0\0\0\0",
            b"1 0 obj endobj startxref\n0\n%%EOF\n2 0 obj endobj startxref\n9\n%%EOF",
            b"1 0 obj endobj startxref\n9\n%%EOF\n<html>an obj</html>",
        ];
        for file in whole {
            let found = of_end(file);
            assert_eq!(found, None, "{}", String::from_utf8_lossy(file));
        }
        let cut: [&[u8]; 6] = [
            b"",
            b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n",
            b"1 0 obj\n<<>>\nendobj\nxref\nstartxref\n",
            b"1 0 obj\n<<>>\nendobj\nxref\nstartx",
            b"1 0 obj endobj startxref\n0\n%%EOF\n2 0 obj <<",
            b"1 0 obj endobj startxref\n0\n%%EOF\n ... endobj\n",
        ];
        for file in cut {
            let found = of_end(file);
            assert!(found.is_some(), "{}", String::from_utf8_lossy(file));
        }
    }
}
