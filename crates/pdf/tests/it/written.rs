//! The smallest PDFs that say something, and the parts to build worse ones from.

use std::fmt::Write;

/// A document with a page of Helvetica for each text; an empty text makes a page without any.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    pdf_with(pages, &[])
}

/// The same with an outline: title and page, from 1.
pub(crate) fn pdf_with(pages: &[&str], outline: &[(&str, usize)]) -> Vec<u8> {
    // 1 catalog, 2 pages, 3 font, 4 outline, then two for each page, then one for each heading.
    let page = |index: usize| 5 + 2 * index;
    let heading = |index: usize| 5 + 2 * pages.len() + index;
    let kids: Vec<String> = (0..pages.len())
        .map(|index| format!("{} 0 R", page(index)))
        .collect();
    let outlines = match outline {
        [] => String::new(),
        _ => " /Outlines 4 0 R".to_owned(),
    };
    let mut objects = vec![
        format!("<< /Type /Catalog /Pages 2 0 R{outlines} >>"),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            kids.join(" "),
            pages.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
        format!(
            "<< /Type /Outlines /First {} 0 R /Last {} 0 R /Count {} >>",
            heading(0),
            heading(outline.len().saturating_sub(1)),
            outline.len()
        ),
    ];
    for (index, text) in pages.iter().enumerate() {
        let mut content = String::new();
        for (line, text) in text.lines().enumerate() {
            let text = text
                .replace('\\', "\\\\")
                .replace('(', "\\(")
                .replace(')', "\\)");
            writeln!(
                content,
                "BT /F1 12 Tf 72 {} Td ({text}) Tj ET",
                700 - 20 * line
            )
            .unwrap();
        }
        let fonts = match text.is_empty() {
            true => "<< >>",
            false => "<< /Font << /F1 3 0 R >> >>",
        };
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {fonts} /Contents {} 0 R >>",
            page(index) + 1
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    for (index, (title, number)) in outline.iter().enumerate() {
        let next = match index + 1 < outline.len() {
            true => format!(" /Next {} 0 R", heading(index + 1)),
            false => String::new(),
        };
        objects.push(format!(
            "<< /Title ({title}) /Parent 4 0 R /Dest [{} 0 R /Fit]{next} >>",
            page(number - 1)
        ));
    }
    file_of(&objects)
}

/// Pages that hold nothing but a picture, as a scanner makes them: black above, white below.
pub(crate) fn scan(pages: usize) -> Vec<u8> {
    const SIDE: usize = 64;
    let picture = "00".repeat(SIDE * SIDE / 2) + &"ff".repeat(SIDE * SIDE / 2) + ">";
    let kids: Vec<String> = (0..pages)
        .map(|index| format!("{} 0 R", 3 + 3 * index))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {pages} >>",
            kids.join(" ")
        ),
    ];
    for index in 0..pages {
        let (content, image) = (4 + 3 * index, 5 + 3 * index);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {SIDE} {SIDE}] /Contents {content} 0 R \
             /Resources << /XObject << /Im0 {image} 0 R >> >> >>"
        ));
        objects.push(stream("", &format!("q {SIDE} 0 0 {SIDE} 0 0 cm /Im0 Do Q")));
        objects.push(stream(
            &format!(
                "/Type /XObject /Subtype /Image /Width {SIDE} /Height {SIDE} \
                 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /ASCIIHexDecode"
            ),
            &picture,
        ));
    }
    file_of(&objects)
}

/// A stream with its length.
pub(crate) fn stream(entries: &str, data: &str) -> String {
    format!(
        "<< /Length {} {entries} >>\nstream\n{data}\nendstream",
        data.len()
    )
}

/// A whole file of these objects, the first of which is the catalog.
pub(crate) fn file_of(objects: &[String]) -> Vec<u8> {
    let mut text = "%PDF-1.4\n".to_owned();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(text.len());
        write!(text, "{} 0 obj\n{object}\nendobj\n", index + 1).unwrap();
    }
    let start = text.len();
    write!(text, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for offset in offsets {
        writeln!(text, "{offset:010} 00000 n ").unwrap();
    }
    write!(
        text,
        "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    )
    .unwrap();
    text.into_bytes()
}
