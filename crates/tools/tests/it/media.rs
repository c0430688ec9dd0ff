//! Pictures and notebooks: what the model is shown, and one cell changed.

use std::io::Cursor;

use haft_contract::{Content, output::MediaSource};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, codecs::gif::GifEncoder};
use serde_json::{Value, json};

use crate::session::{Session, text_of};

/// A picture that does not compress to nothing.
fn drawn(width: u32, height: u32) -> DynamicImage {
    let image = RgbImage::from_fn(width, height, |x, y| {
        let noise = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 7;
        Rgb([(x % 256) as u8, (y % 256) as u8, (noise % 16) as u8])
    });
    DynamicImage::from(image)
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// The text beside a picture, the picture's type and its bytes.
async fn look(session: &Session, name: &str) -> (String, String, Vec<u8>) {
    let output = session
        .output("Read", json!({"file_path": name}))
        .await
        .expect("a picture");
    let [
        Content::Text { text },
        Content::Image {
            source: MediaSource::Base64 { media_type, data },
        },
    ] = output.content.as_slice()
    else {
        panic!("a text and a picture: {output:?}");
    };
    let bytes = data_encoding::BASE64.decode(data.as_bytes()).unwrap();
    (text.clone(), media_type.clone(), bytes)
}

#[tokio::test]
async fn v088_a_small_picture_goes_byte_for_byte_whatever_its_name() {
    let session = Session::new([("text.png", "not a picture\n")]);
    let formats = [
        ("a.txt", ImageFormat::Png, "image/png", "PNG"),
        ("b", ImageFormat::Jpeg, "image/jpeg", "JPEG"),
        ("c.png", ImageFormat::Gif, "image/gif", "GIF"),
        ("d.jpg", ImageFormat::WebP, "image/webp", "WebP"),
    ];
    for (name, format, media_type, title) in formats {
        let bytes = encoded(&drawn(40, 30), format);
        session.project.write(name, &bytes);
        let (text, sent_type, sent) = look(&session, name).await;
        assert_eq!((sent_type.as_str(), &sent), (media_type, &bytes), "{name}");
        let size = bytes.len();
        assert_eq!(
            text,
            format!("{name}: {title} image, 40×30 pixels, {size} bytes")
        );
    }
    let text = session.say("Read", json!({"file_path": "text.png"})).await;
    assert_eq!(text.ok(), "     1\tnot a picture", "the content decides");
}

#[tokio::test]
async fn v089_a_large_picture_is_scaled_down_and_both_sizes_are_told() {
    let session = Session::new([]);
    let bytes = encoded(&drawn(6000, 4000), ImageFormat::Jpeg);
    session.project.write("photo.jpg", &bytes);
    let (text, media_type, sent) = look(&session, "photo.jpg").await;
    let image = image::load_from_memory(&sent).unwrap();
    assert_eq!((image.width(), image.height()), (1568, 1045));
    assert_eq!(media_type, "image/jpeg");
    assert!(sent.len() <= 500 << 10, "{}", sent.len());
    assert_eq!(
        text,
        format!(
            "photo.jpg: JPEG image, 6000×4000 pixels, {} bytes; sent as JPEG, 1568×1045 pixels, \
             {} bytes (multiply coordinates by 3.83 for the original)",
            bytes.len(),
            sent.len()
        )
    );
    let value = session
        .structured("Read", json!({"file_path": "photo.jpg"}))
        .await;
    assert_eq!(
        value["file"]["dimensions"],
        json!({"originalWidth": 6000, "originalHeight": 4000, "displayWidth": 1568, "displayHeight": 1045})
    );
}

#[tokio::test]
async fn a_heavy_picture_becomes_a_jpeg_of_the_same_pixels() {
    let session = Session::new([]);
    let noise = RgbImage::from_fn(900, 900, |x, y| {
        let noise = (x * 7919 + y * 104_729).wrapping_mul(2_654_435_761);
        Rgb(noise.to_le_bytes()[1..].try_into().unwrap())
    });
    let bytes = encoded(&DynamicImage::from(noise), ImageFormat::Png);
    assert!(bytes.len() > 1 << 20);
    session.project.write("noise.png", &bytes);
    let (text, media_type, sent) = look(&session, "noise.png").await;
    let image = image::load_from_memory(&sent).unwrap();
    assert_eq!((image.width(), image.height()), (900, 900));
    assert_eq!(media_type, "image/jpeg");
    assert!(text.contains("sent as JPEG, same pixels"), "{text}");
}

#[tokio::test]
async fn a_picture_taken_sideways_is_shown_upright() {
    let session = Session::new([]);
    let jpeg = encoded(&drawn(60, 30), ImageFormat::Jpeg);
    // An EXIF segment that says: turn right.
    let tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut exif = b"Exif\0\0".to_vec();
    exif.extend_from_slice(tiff);
    let mut turned = jpeg[..2].to_vec();
    turned.extend_from_slice(&[0xff, 0xe1]);
    turned.extend_from_slice(&(exif.len() as u16 + 2).to_be_bytes());
    turned.extend_from_slice(&exif);
    turned.extend_from_slice(&jpeg[2..]);
    session.project.write("turned.jpg", &turned);
    let (text, _, sent) = look(&session, "turned.jpg").await;
    let image = image::load_from_memory(&sent).unwrap();
    assert_eq!((image.width(), image.height()), (30, 60));
    assert!(text.contains("30×60 pixels"), "{text}");
}

#[tokio::test]
async fn of_an_animation_the_first_frame_is_shown() {
    let session = Session::new([]);
    let mut gif = Vec::new();
    let mut encoder = GifEncoder::new(&mut gif);
    for shade in [0, 255] {
        let frame = image::RgbaImage::from_pixel(20, 10, [shade, 0, 0, 255].into());
        encoder.encode_frame(image::Frame::new(frame)).unwrap();
    }
    drop(encoder);
    session.project.write("moving.gif", &gif);
    let (text, media_type, sent) = look(&session, "moving.gif").await;
    assert_eq!(media_type, "image/png");
    assert!(text.contains("animated, only the first frame"), "{text}");
    let pixel = image::load_from_memory(&sent)
        .unwrap()
        .to_rgb8()
        .get_pixel(0, 0)
        .0;
    assert_eq!(pixel, [0, 0, 0]);
}

#[tokio::test]
async fn a_damaged_picture_is_an_error_that_says_so() {
    let session = Session::new([]);
    for (format, name) in [
        (ImageFormat::Png, "PNG"),
        (ImageFormat::Jpeg, "JPEG"),
        (ImageFormat::WebP, "WebP"),
        (ImageFormat::Gif, "GIF"),
    ] {
        let bytes = encoded(&drawn(64, 64), format);
        session.project.write("cut", &bytes[..bytes.len() / 2]);
        let error = session
            .say("Read", json!({"file_path": "cut"}))
            .await
            .failed();
        assert!(
            error.starts_with(&format!("cut: the {name} image is ")) && error.contains("cut off"),
            "{error}"
        );
    }
    // A header that promises more pixels than there are atoms to draw them with.
    let mut huge = encoded(&drawn(4, 4), ImageFormat::Png);
    huge[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    session.project.write("huge.png", &huge);
    let error = session.say("Read", json!({"file_path": "huge.png"})).await;
    let error = error.failed();
    assert!(error.contains("PNG image"), "{error}");
}

/// Truncated anywhere, or with bytes changed: an error or a picture, in good time.
#[tokio::test]
async fn damaged_pictures_never_panic() {
    let session = Session::new([]);
    let formats = [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Gif,
        ImageFormat::WebP,
    ];
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for format in formats {
        let whole = encoded(&drawn(48, 40), format);
        for round in 0..60 {
            let mut bytes = whole.clone();
            if round % 2 == 0 {
                bytes.truncate(12 + random(whole.len() - 12));
            }
            for _ in 0..random(4) {
                let place = 12 + random(bytes.len().max(13) - 12);
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = random(256) as u8;
                }
            }
            session.project.write("odd", &bytes);
            let _ = session.output("Read", json!({"file_path": "odd"})).await;
        }
    }
}

const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn notebook() -> String {
    r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Títle\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "plot",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "drawing\n"
     ]
    },
    {
     "data": {
      "image/png": "DOT",
      "text/plain": [
       "<Figure>"
      ]
     },
     "output_type": "display_data"
    },
    {
     "ename": "ValueError",
     "evalue": "bad",
     "output_type": "error",
     "traceback": [
      "\u001b[0;31mTraceback\u001b[0m",
      "\u001b[0;31mValueError\u001b[0m: bad"
     ]
    }
   ],
   "source": [
    "plot()"
   ]
  }
 ],
 "metadata": {
  "language_info": {
   "name": "python"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##
    .replace("DOT", DOT)
}

fn cell(id: Option<&str>, source: &str) -> Value {
    let mut input = json!({"notebook_path": "n.ipynb", "new_source": source});
    if let Some(id) = id {
        input["cell_id"] = json!(id);
    }
    input
}

#[tokio::test]
async fn a_notebook_is_read_cell_by_cell() {
    let session = Session::new([("n.ipynb", notebook().as_str())]);
    let output = session
        .output("Read", json!({"file_path": "n.ipynb"}))
        .await
        .unwrap();
    let [
        Content::Text { text: first },
        Content::Image { source },
        Content::Text { text: last },
    ] = output.content.as_slice()
    else {
        panic!("{output:?}");
    };
    assert_eq!(
        first,
        "<cell id=\"intro\"><cell_type>markdown</cell_type># Títle\ntext</cell id=\"intro\">\n\
         <cell id=\"plot\"><cell_type>code</cell_type>plot()</cell id=\"plot\">\ndrawing"
    );
    let MediaSource::Base64 { media_type, data } = source;
    assert_eq!((media_type.as_str(), data.as_str()), ("image/png", DOT));
    assert_eq!(last, "Traceback\nValueError: bad");
    insta::assert_json_snapshot!(
        serde_json::from_str::<Value>(&session.masked(&output.structured.unwrap().to_string()))
            .unwrap()
    );
}

#[tokio::test]
async fn a_long_notebook_is_paged_by_cells() {
    let session = Session::new([]);
    let source = "x = 1\\n".repeat(1_000);
    let cells: Vec<String> = (0..40)
        .map(|_| {
            format!(
                r#"{{"cell_type": "code", "metadata": {{}}, "outputs": [], "source": "{source}"}}"#
            )
        })
        .collect();
    let text = format!(
        r#"{{"cells": [{}], "nbformat": 4, "nbformat_minor": 4}}"#,
        cells.join(",")
    );
    session.project.write("n.ipynb", text);
    let read = |input: Value| session.say("Read", input);
    let end = |text: String| text.lines().last().unwrap().to_owned();
    let text = read(json!({"file_path": "n.ipynb"})).await.ok();
    assert_eq!(
        end(text),
        "[PARTIAL view: cells 1–14 of 40; continue with offset 15]"
    );
    let text = read(json!({"file_path": "n.ipynb", "offset": 39}))
        .await
        .ok();
    assert_eq!(
        end(text.clone()),
        "[cells 39–40 of 40; the end of the notebook]"
    );
    assert!(text.starts_with("<cell id=\"cell-38\">"));
    let text = read(json!({"file_path": "n.ipynb", "offset": 2, "limit": 1}))
        .await
        .ok();
    assert_eq!(end(text), "[cell 2 of 40; continue with offset 3]");
    let error = read(json!({"file_path": "n.ipynb", "offset": 41}))
        .await
        .failed();
    assert!(error.contains("counts cells, and there are 40"), "{error}");
}

#[tokio::test]
async fn what_is_no_notebook_is_shown_as_text() {
    let session = Session::new([
        ("bad.ipynb", "{\"cells\": [}\n"),
        ("none.ipynb", "{\"cells\": []}"),
        ("other.ipynb", "[]\n"),
        ("empty.ipynb", ""),
    ]);
    let mut text = String::new();
    for name in ["bad.ipynb", "none.ipynb", "other.ipynb", "empty.ipynb"] {
        let said = session.say("Read", json!({"file_path": name})).await;
        text += &format!("> {name}\n{}\n\n", said.ok());
    }
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn cells_are_changed_one_at_a_time() {
    let session = Session::new([
        ("n.ipynb", notebook().as_str()),
        ("bad.ipynb", "{\n \"cells\": [}"),
    ]);
    let mut text = String::new();
    let insert = |id: Option<&str>, kind: Option<&str>| {
        let mut input = cell(id, "a\n\"b\"");
        input["edit_mode"] = json!("insert");
        if let Some(kind) = kind {
            input["cell_type"] = json!(kind);
        }
        ("NotebookEdit", input)
    };
    let delete = json!({"notebook_path": "n.ipynb", "new_source": "", "cell_id": "intro", "edit_mode": "delete"});
    let calls = [
        ("NotebookEdit", cell(Some("plot"), "x = 1\n")),
        ("Read", json!({"file_path": "n.ipynb", "limit": 1})),
        ("NotebookEdit", cell(Some("plot"), "x = 1\nprint(x)")),
        ("NotebookEdit", cell(Some("nope"), "x")),
        ("NotebookEdit", cell(None, "x")),
        ("NotebookEdit", cell(Some("intro"), "# Títle\ntext")),
        insert(Some("intro"), Some("markdown")),
        insert(None, Some("code")),
        insert(None, None),
        ("NotebookEdit", delete),
        (
            "NotebookEdit",
            json!({"notebook_path": "n.txt", "new_source": ""}),
        ),
        (
            "NotebookEdit",
            json!({"notebook_path": "m.ipynb", "cell_id": "a", "new_source": ""}),
        ),
        ("Read", json!({"file_path": "bad.ipynb"})),
        (
            "NotebookEdit",
            json!({"notebook_path": "bad.ipynb", "cell_id": "a", "new_source": ""}),
        ),
        (
            "Edit",
            json!({"file_path": "n.ipynb", "old_string": "a", "new_string": "b"}),
        ),
    ];
    for (tool, input) in calls {
        text += &format!("> {tool} {input}\n");
        text += &match session.output(tool, input).await {
            Ok(output) => text_of(&output),
            Err(error) => format!("ERROR {error}"),
        };
        text += "\n\n";
    }
    insta::with_settings!({filters => vec![(r"etag [0-9a-f]+", "etag [hash]"), (r"undo [0-9a-f-]{36}", "undo [id]")]}, {
        insta::assert_snapshot!(session.masked(&text));
    });
}

#[tokio::test]
async fn v092_a_replaced_cell_is_the_only_difference() {
    let before = notebook();
    let session = Session::new([("n.ipynb", before.as_str())]);
    let read = session.output("Read", json!({"file_path": "n.ipynb"}));
    read.await.unwrap();
    let value = session
        .structured("NotebookEdit", cell(Some("cell-1"), "y"))
        .await;
    let after = session.project.read("n.ipynb");
    let start = before.find("   \"execution_count\"").unwrap();
    let end = before.find("  }\n ],\n \"metadata\"").unwrap();
    assert!(after.starts_with(&before[..start]) && after.ends_with(&before[end..]));
    assert!(after.contains("\"outputs\": [],") && after.contains("\"execution_count\": null,"));
    assert_eq!(value["old_source"], "plot()");
    assert_eq!(value["cell_id"], "plot");
    assert_eq!(value["cell_type"], "code");
    assert_eq!(value["language"], "python");
    assert_eq!(value["edit_mode"], "replace");
    assert_eq!(value["original_file"], before);
    assert_eq!(value["updated_file"], after);
}
