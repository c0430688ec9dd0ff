//! PDFs: text with page marks, pictures of scans, an outline of what is long. The child that reads
//! them is this very test binary.

use std::{env, fs, os::unix::fs::PermissionsExt, sync::Arc};

use haft_contract::{Content, ToolOutput};
use haft_pdf::child;
use haft_tools::PdfReader;
use serde_json::{Value, json};

use crate::session::Session;

/// Not a test: what the binary does when it is called as a child.
#[test]
fn __pdf() {
    if env::args()
        .nth(1)
        .is_some_and(|argument| argument == child::ARGUMENT)
    {
        child::main();
    }
}

/// A PDF with a page for each text, and an outline that names the second page.
fn pdf(pages: &[String]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len())
        .map(|index| format!("{} 0 R", 6 + 2 * index))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            kids.join(" "),
            pages.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Type /Outlines /First 5 0 R /Last 5 0 R /Count 1 >>".to_owned(),
        "<< /Title (Second) /Parent 4 0 R /Dest [8 0 R /Fit] >>".to_owned(),
    ];
    for (index, text) in pages.iter().enumerate() {
        let content = match text.as_str() {
            "" => String::new(),
            text => format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET"),
        };
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> \
             /Contents {} 0 R >>",
            7 + 2 * index
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    let mut text = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", text.len());
        text += &format!("{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let size = objects.len() + 1;
    let start = text.len();
    text += &table;
    text += &format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    text.into_bytes()
}

/// The smallest picture.
fn dot_png() -> Vec<u8> {
    data_encoding::BASE64
        .decode(b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
        .unwrap()
}

fn pages(count: usize) -> Vec<String> {
    (1..=count)
        .map(|page| format!("This is page {page}."))
        .collect()
}

fn session() -> Session {
    let mut session = Session::new([]);
    let reader = PdfReader {
        program: env::current_exe().unwrap(),
        drawer: None,
    };
    session.services = session.services.with(Arc::new(reader));
    session
}

#[tokio::test]
async fn what_the_model_reads_of_pdfs() {
    let session = session();
    session.project.write("short.pdf", pdf(&pages(2)));
    session.project.write("long.pdf", pdf(&pages(12)));
    session
        .project
        .write("scan.pdf", pdf(&["".to_owned(), "text".to_owned()]));
    let whole = pdf(&pages(2));
    let at = |text: &str| {
        whole
            .windows(text.len())
            .position(|part| part == text.as_bytes())
    };
    session
        .project
        .write("damaged.pdf", b"%PDF-1.4\nnothing else");
    session
        .project
        .write("first.pdf", &whole[..at("This is page 2").unwrap()]);
    session
        .project
        .write("none.pdf", &whole[..at("This is page 1").unwrap()]);
    let text = String::from_utf8_lossy(&whole).replace("\n9 0 obj", "\n99 0 xxx");
    session.project.write("hole.pdf", text.as_bytes());
    session.project.write("text.txt", "text\n");
    let read = |name: &str, pages: Option<&str>| {
        let mut input = json!({"file_path": name});
        if let Some(pages) = pages {
            input["pages"] = json!(pages);
        }
        ("Read", input)
    };
    let mut text = String::new();
    for (tool, input) in [
        read("short.pdf", None),
        read("short.pdf", Some("2")),
        read("short.pdf", Some("2-5")),
        read("short.pdf", Some("3")),
        read("short.pdf", Some("all")),
        read("short.pdf", Some("1-21")),
        read("short.pdf", Some(" ")),
        read("long.pdf", None),
        read("long.pdf", Some("2-3,12")),
        read("scan.pdf", None),
        read("damaged.pdf", None),
        read("first.pdf", None),
        read("first.pdf", Some("2")),
        read("none.pdf", None),
        read("hole.pdf", None),
        read("hole.pdf", Some("2")),
        read("text.txt", Some("1")),
    ] {
        let said = match session.output(tool, input.clone()).await {
            Ok(output) => crate::session::text_of(&output),
            Err(error) => format!("ERROR {error}"),
        };
        text += &format!("> {tool} {input}\n{said}\n\n");
    }
    insta::assert_snapshot!(session.masked(&text));
}

#[tokio::test]
async fn a_page_without_text_is_drawn() {
    let mut session = session();
    session
        .project
        .write("scan.pdf", pdf(&["".to_owned(), "text".to_owned()]));
    session.project.write("dot.png", dot_png());
    session.project.write(
        "draw",
        format!(
            "#!/bin/sh\ncat {}\n",
            session.project.path("dot.png").display()
        ),
    );
    let drawer = session.project.path("draw");
    fs::set_permissions(&drawer, fs::Permissions::from_mode(0o755)).unwrap();
    session.services = session.services.with(Arc::new(PdfReader {
        program: env::current_exe().unwrap(),
        drawer: Some(drawer),
    }));
    let output = session
        .output("Read", json!({"file_path": "scan.pdf"}))
        .await
        .unwrap();
    let [
        Content::Text { text: before },
        Content::Image { .. },
        Content::Text { text: after },
    ] = output.content.as_slice()
    else {
        panic!("{output:?}");
    };
    assert!(
        before.ends_with("--- page 1 of 2 ---\n[no text layer, so the page follows as an image]")
    );
    assert_eq!(after, "--- page 2 of 2 ---\ntext");
    let value = output.structured.unwrap();
    assert_eq!(value["type"], "parts");
    assert_eq!(value["file"]["count"], 2);
}

#[tokio::test]
async fn the_real_pdftoppm_draws_a_scan_but_not_what_is_lost() {
    let mut session = session();
    let reader = PdfReader::new(env::current_exe().unwrap());
    if reader.drawer.is_none() {
        haft_testkit::skip("pages drawn by pdftoppm: no poppler-utils");
        return;
    }
    session.services = session.services.with(Arc::new(reader));
    let bare = pdf(&["".to_owned(), "".to_owned()]);
    session.project.write("scan.pdf", &bare);
    let input = json!({"file_path": "scan.pdf", "pages": "2"});
    let output = session.output("Read", input).await.unwrap();
    let [Content::Text { text }, Content::Image { .. }] = output.content.as_slice() else {
        panic!("{output:?}");
    };
    assert!(
        text.ends_with("--- page 2 of 2 ---\n[no text layer, so the page follows as an image]"),
        "{text}"
    );
    session.project.write("scan.pdf", &bare[..bare.len() / 2]);
    let error = session
        .say("Read", json!({"file_path": "scan.pdf"}))
        .await
        .failed();
    assert!(error.contains("its end is missing"), "{error}");
}

#[tokio::test]
async fn pages_are_drawn_while_they_fit_and_while_drawing_works() {
    let mut session = session();
    let dot = session.project.path("dot.png");
    fs::write(&dot, dot_png()).unwrap();
    let mut said = Vec::new();
    // A file each: what was read before would only be pointed to.
    let scripts = [
        ("drawn.pdf", format!("cat {}", dot.display())),
        ("failed.pdf", "exit 5".to_owned()),
    ];
    for (name, script) in scripts {
        session.project.write(name, pdf(&vec![String::new(); 20]));
        session
            .project
            .write("draw", format!("#!/bin/sh\n{script}\n"));
        let drawer = session.project.path("draw");
        fs::set_permissions(&drawer, fs::Permissions::from_mode(0o755)).unwrap();
        session.services = session.services.with(Arc::new(PdfReader {
            program: env::current_exe().unwrap(),
            drawer: Some(drawer),
        }));
        let input = json!({"file_path": name, "pages": "1-20"});
        said.push(session.output("Read", input).await.unwrap());
    }
    let pictures = |output: &ToolOutput| {
        let pictures = output.content.iter();
        pictures
            .filter(|part| matches!(part, Content::Image { .. }))
            .count()
    };
    assert_eq!((pictures(&said[0]), pictures(&said[1])), (15, 0));
    let rest = "--- page 20 of 20 ---\n[no text layer, and the limit of drawn pages in one result is reached: \
                request it with pages \"20\"]";
    for output in &said {
        let Some(Content::Text { text }) = output.content.last() else {
            panic!("{output:?}");
        };
        assert!(text.ends_with(rest), "{text}");
    }
    let text = crate::session::text_of(&said[1]);
    assert!(
        text.contains("could not be drawn: it made its reader fail (exit code 5)"),
        "{text}"
    );
}

#[tokio::test]
async fn without_a_reader_it_is_said_what_to_do() {
    let session = Session::new([]);
    session.project.write("a.pdf", pdf(&pages(1)));
    let error = session
        .say("Read", json!({"file_path": "a.pdf"}))
        .await
        .failed();
    assert!(
        error.contains("binary file") && error.contains("pdftotext"),
        "{error}"
    );
    let error: Value = json!(
        session
            .say("Read", json!({"file_path": "a.pdf", "pages": "x"}))
            .await
            .refused()
    );
    assert!(
        error.as_str().unwrap().contains("names no pages"),
        "{error}"
    );
}
