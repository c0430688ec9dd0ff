//! Evidence that a part of a file is lost.
//!
//! The library repairs silently: it searches for objects if the cross-reference table is wrong,
//! treats missing objects as empty, and decodes as much of a stream as it can. So a lost page looks
//! like a page without text, as in a scan. This module checks evidence that such repairs cannot
//! hide: the end of the file, the references of its pages, and whether streams can be decoded
//! completely.

use std::{collections::VecDeque, io};

use flate2::read::ZlibDecoder;
use hayro_syntax::{
    Filter, Pdf,
    object::{Dict, MaybeRef, Object, Stream},
};
use memchr::memmem;

use crate::tree::ListedPage;

/// The tolerated difference of a stream's length in bytes. Some programs count the line break
/// before `endstream`, others do not, and encrypted streams are slightly longer in the file.
const SLACK: usize = 34;

/// Returns evidence that the end of the file is missing. After the last object there must be
/// `startxref` and a number. In a truncated file they are missing, or belong to an earlier revision
/// of the file.
pub(crate) fn find_truncation(bytes: &[u8]) -> Option<String> {
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

/// Returns whether there is a line like `12 0 obj`.
fn has_object(bytes: &[u8]) -> bool {
    bytes.windows(7).any(|window| {
        let [digit, before, generation, after, b'o', b'b', b'j'] = window else {
            return false;
        };
        digit.is_ascii_digit() && *before == b' ' && generation.is_ascii_digit() && *after == b' '
    })
}

/// Returns evidence that listed pages are missing in the file.
pub(crate) fn find_missing_pages(pages: &[ListedPage<'_>]) -> Option<String> {
    let lost = pages.iter().filter(|page| page.dict.is_none()).count();
    let listed = pages.len();
    (lost > 0).then(|| format!("of the {listed} pages it lists, {lost} cannot be found"))
}

/// Returns evidence that a part of a page is missing. For a page with text, only the parts that may
/// contain more text are checked: many files have small errors and can be read well.
pub(crate) fn find_page_damage(
    document: &Pdf,
    page: &ListedPage<'_>,
    content: &[u8],
    has_text: bool,
) -> Option<String> {
    let Some(dict) = &page.dict else {
        return Some("the page itself is missing".to_owned());
    };
    for part in page_parts(document, dict, "Contents") {
        let why = match part.resolve(document) {
            None | Some(Object::Null(_)) => part.describe_missing(),
            Some(Object::Stream(stream)) => find_stream_damage(&stream)
                .or_else(|| find_missing_bytes(&stream).filter(|_| !has_text)),
            Some(_) => None,
        };
        if let Some(why) = why {
            return Some(format!("its content {why}"));
        }
    }
    // Only resources that the content uses are checked: resource dictionaries are often shared and
    // contain more than a page needs.
    let of_kind = |kind: &str| page.resources.get::<Dict<'_>>(kind).unwrap_or_default();
    let fonts = of_kind("Font");
    let lost =
        operand_names(content, b"Tf", 2).find_map(|font| find_font_damage(document, &fonts, font));
    if let Some(why) = lost {
        return Some(format!("a font on it {why}"));
    }
    if has_text {
        return None;
    }
    let images = of_kind("XObject");
    let why = operand_names(content, b"Do", 1)
        .flat_map(|image| page_parts(document, &images, image))
        .find_map(|image| match image.resolve(document) {
            None | Some(Object::Null(_)) => image.describe_missing(),
            Some(Object::Stream(image)) => find_missing_bytes(&image),
            Some(_) => None,
        })?;
    Some(format!("an image on it {why}"))
}

/// An object of a page, direct or by reference.
struct PagePart<'a>(MaybeRef<Object<'a>>);

impl<'a> PagePart<'a> {
    fn resolve(&self, document: &'a Pdf) -> Option<Object<'a>> {
        match &self.0 {
            MaybeRef::Ref(reference) => document.xref().get::<Object<'_>>((*reference).into()),
            MaybeRef::NotRef(object) => Some(object.clone()),
        }
    }

    /// Describes the object if it is a reference to a missing object. An optional object that was
    /// left out is not referenced.
    fn describe_missing(&self) -> Option<String> {
        let reference = self.0.as_obj_ref()?;
        Some(format!("(object {}) is missing", reference.obj_number))
    }
}

/// Returns the objects under a key: the elements of an array, or a single object.
fn page_parts<'a>(document: &'a Pdf, dict: &Dict<'a>, key: &str) -> Vec<PagePart<'a>> {
    let Some(part) = dict.get_raw::<Object<'_>>(key).map(PagePart) else {
        return Vec::new();
    };
    match part.resolve(document) {
        Some(Object::Array(items)) => items.raw_iter().map(PagePart).collect(),
        _ => vec![part],
    }
}

/// Returns evidence that a font or its mapping to text is missing.
fn find_font_damage<'a>(document: &'a Pdf, fonts: &Dict<'a>, name: &str) -> Option<String> {
    let is_lost =
        |part: &PagePart<'a>| matches!(part.resolve(document), None | Some(Object::Null(_)));
    if let Some(font) = fonts.get_raw::<Object<'_>>(name).map(PagePart)
        && is_lost(&font)
    {
        return font.describe_missing();
    }
    let font = fonts.get::<Dict<'_>>(name)?;
    ["ToUnicode", "Encoding", "DescendantFonts"]
        .into_iter()
        .flat_map(|part| page_parts(document, &font, part))
        .find_map(|part| is_lost(&part).then(|| part.describe_missing()).flatten())
}

/// Returns evidence that the stream cannot be decoded to its end.
fn find_stream_damage(stream: &Stream<'_>) -> Option<String> {
    let is_image = |filter: &Filter| {
        use Filter::{CcittFaxDecode, DctDecode, Jbig2Decode, JpxDecode};
        matches!(filter, CcittFaxDecode | DctDecode | Jbig2Decode | JpxDecode)
    };
    let filters = stream.filters();
    match filters.as_slice() {
        [] => None,
        filters if filters.iter().any(is_image) => None,
        [Filter::FlateDecode] => {
            let mut decoder = ZlibDecoder::new(io::Cursor::new(stream.raw_data()));
            match io::copy(&mut decoder, &mut io::sink()) {
                Ok(_) => None,
                Err(_) if decoder.total_out() == 0 => Some("cannot be decompressed".to_owned()),
                Err(_) => Some("can be decompressed only in part".to_owned()),
            }
        }
        _ => match stream.decoded_data() {
            Ok(_) => None,
            Err(_) => Some("cannot be decompressed".to_owned()),
        },
    }
}

/// Returns evidence that the stream is shorter than its declared length.
fn find_missing_bytes(stream: &Stream<'_>) -> Option<String> {
    let length = usize::try_from(stream.dict().get::<i32>("Length")?).ok()?;
    let found = stream.raw_data().len();
    (found + SLACK < length).then(|| format!("ends after {found} of {length} bytes"))
}

/// Returns the names that are the operand `before` words before an operator, as in `/Name Do` and
/// `/Name 12 Tf`.
fn operand_names<'a>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_named_in_the_content() {
        let content = b"q 1 0 0 1 0 0 cm/Im0 Do Q\nBT 0 Tr/F1 12 Tf\n/A\n\nDo ET /F2\t.5\nTf";
        let named =
            |operator, before| operand_names(content, operator, before).collect::<Vec<&str>>();
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
            let found = find_truncation(file);
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
            let found = find_truncation(file);
            assert!(found.is_some(), "{}", String::from_utf8_lossy(file));
        }
    }
}
