//! A picture, in a form a model takes: PNG, JPEG, GIF or WebP, at most 1,568 pixels long.
//!
//! A small one goes as it is, byte for byte, once it was found whole. Pictures come from anywhere,
//! so size is judged by the header before a pixel is decoded, and memory is bounded while it is.

#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod invariants;

use std::{
    io::Cursor,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use data_encoding::BASE64;
use haft_contract::{
    CallContext, Content, ToolError, ToolOutput,
    output::{MediaSource, PicturePixels},
};
use haft_journal::{Extent, FileTarget, Journal};
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage,
    codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPDecoder},
    imageops::FilterType,
    metadata::Orientation,
};
use serde_json::json;

use super::{output, picture};
use crate::{blocking::blocking, fs::explain, paths::shown};

/// Larger files are not read at all.
const FILE_LIMIT: u64 = 64 << 20;
/// Models see no more than this of the longer side.
const LONG_SIDE: u32 = 1_568;
/// Above this a picture is sent as JPEG.
const SENT_BYTES: usize = 500 << 10;
/// Providers take less than 5 MB of base 64.
const ENCODED_LIMIT: usize = 5_000_000;
const PIXELS: u64 = 100_000_000;
/// Enough for as many pixels of 8 bits and four channels, and for the decoder's own needs.
const MEMORY: u64 = 512 << 20;
/// Pictures above this are decoded one at a time, however many calls run.
const LARGE_PIXELS: u64 = 8_000_000;

static LARGE: Mutex<()> = Mutex::new(());

/// A picture ready to be sent.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) media_type: &'static str,
    pub(super) base64: String,
    original: (u32, u32),
    sent: (u32, u32),
    original_bytes: usize,
    sent_bytes: usize,
    name: &'static str,
    is_animated: bool,
}

/// Is this type, as the journal names it, shown as a picture?
pub(super) fn is_shown(kind: Option<&str>) -> bool {
    matches!(
        kind,
        Some("PNG image" | "JPEG image" | "GIF image" | "WebP image")
    )
}

/// The picture, and the file it is in, after all links.
pub(super) async fn read(
    target: &FileTarget,
    cx: &CallContext,
) -> Result<(ToolOutput, PathBuf), ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let (target, cwd) = (target.clone(), cx.cwd.clone());
    let name = shown(target.path(), &cwd);
    let (shown, real) = blocking(move || {
        let raw = journal
            .read_bytes(target, FILE_LIMIT)
            .map_err(|error| explain(error, &cwd))?;
        let picture = prepare(&raw.bytes)?;
        let real = raw.real.clone();
        journal.saw(raw, Extent::Whole);
        Ok((picture, real))
    })
    .await?
    .map_err(|error: String| ToolError::Failed(format!("{name}: {error}")))?;
    let text = format!("{name}: {}", shown.words());
    let structured = json!({"type": "image", "file": {
        "base64": shown.base64,
        "type": shown.media_type,
        "originalSize": shown.original_bytes,
        "dimensions": {
            "originalWidth": shown.original.0,
            "originalHeight": shown.original.1,
            "displayWidth": shown.sent.0,
            "displayHeight": shown.sent.1,
        },
    }});
    let content = vec![Content::text(text), picture(shown.media_type, shown.base64)];
    Ok((output(content, structured), real))
}

impl Picture {
    /// What it is, and what was made of it.
    fn words(&self) -> String {
        let (width, height) = self.original;
        let mut text = format!(
            "{} image, {width}×{height} pixels, {} bytes",
            self.name, self.original_bytes
        );
        if self.is_animated {
            text.push_str("; animated, only the first frame is shown");
        }
        let kind = self.media_type.trim_start_matches("image/").to_uppercase();
        if self.sent != self.original {
            let (sent_width, sent_height) = self.sent;
            let factor = f64::from(width.max(height)) / f64::from(sent_width.max(sent_height));
            text.push_str(&format!(
                "; sent as {kind}, {sent_width}×{sent_height} pixels, {} bytes \
                 (multiply coordinates by {factor:.2} for the original)",
                self.sent_bytes
            ));
        } else if self.sent_bytes != self.original_bytes {
            text.push_str(&format!(
                "; sent as {kind}, same pixels, {} bytes",
                self.sent_bytes
            ));
        }
        text
    }
}

/// A picture that goes with a message: decoded, checked and, where needed, shrunk. The error says why it
/// cannot be shown.
pub fn image_content(bytes: &[u8]) -> Result<Content, String> {
    let ready = prepare(bytes)?;
    Ok(picture(ready.media_type, ready.base64))
}

/// A small copy of a picture in a message or a result, at most so wide and high; `None` if it is none, or
/// damaged.
pub fn image_pixels(content: &Content, most: (u32, u32)) -> Option<PicturePixels> {
    let Content::Image {
        source: MediaSource::Base64 { data, .. },
    } = content
    else {
        return None;
    };
    let bytes = BASE64.decode(data.as_bytes()).ok()?;
    let format = image::guess_format(&bytes).ok()?;
    // The same type of reader as below: each one would be a copy of every decoder.
    let mut reader = ImageReader::with_format(Cursor::new(bytes.as_slice()), format);
    reader.limits(limits());
    let decoder = reader.into_decoder().ok()?;
    let original = decoder.dimensions();
    if u64::from(original.0) * u64::from(original.1) > PIXELS || decoder.total_bytes() > MEMORY {
        return None;
    }
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    if original.0 > most.0 || original.1 > most.1 {
        image = image.thumbnail(most.0, most.1);
    }
    let image = image.into_rgba8();
    Some(PicturePixels {
        original,
        size: image.dimensions(),
        rgba: image.into_raw(),
    })
}

/// Decodes, checks and, where needed, shrinks a picture.
pub(super) fn prepare(bytes: &[u8]) -> Result<Picture, String> {
    let (format, name, media_type) = match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => (ImageFormat::Png, "PNG", "image/png"),
        Ok(ImageFormat::Jpeg) => (ImageFormat::Jpeg, "JPEG", "image/jpeg"),
        Ok(ImageFormat::Gif) => (ImageFormat::Gif, "GIF", "image/gif"),
        Ok(ImageFormat::WebP) => (ImageFormat::WebP, "WebP", "image/webp"),
        _ => return Err("this is no image that can be shown (PNG, JPEG, GIF, WebP).".to_owned()),
    };
    let damaged = |error: ImageError| explain_damage(name, &error);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits());
    let mut decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PIXELS {
        return Err(format!(
            "the {name} image has {width}×{height} pixels, over the limit of {} million. Make a \
             smaller copy with a shell command and read that.",
            PIXELS / 1_000_000
        ));
    }
    if pixels == 0 {
        return Err(format!("the {name} image has no pixels."));
    }
    if decoder.total_bytes() > MEMORY {
        return Err(needs_memory(name));
    }
    let _alone =
        (pixels > LARGE_PIXELS).then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner));
    // Broken metadata is no reason not to show the picture.
    let orientation = match format == ImageFormat::WebP && !webp_chunks_fit(bytes) {
        true => Orientation::NoTransforms,
        false => decoder.orientation().unwrap_or(Orientation::NoTransforms),
    };
    let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    if format == ImageFormat::Jpeg && !jpeg_ends(bytes) {
        return Err(format!(
            "the {name} image is cut off: its end is missing. {AGAIN}"
        ));
    }
    let is_animated = is_animated(bytes, format);
    let done = |image: &DynamicImage, media_type, sent: &[u8], original| Picture {
        media_type,
        base64: BASE64.encode(sent),
        original,
        sent: (image.width(), image.height()),
        original_bytes: bytes.len(),
        sent_bytes: sent.len(),
        name,
        is_animated,
    };
    let as_it_is = width.max(height) <= LONG_SIDE
        && bytes.len() <= SENT_BYTES
        && orientation == Orientation::NoTransforms
        && !is_animated;
    if as_it_is {
        return Ok(done(&image, media_type, bytes, (width, height)));
    }
    image = shrink(image);
    image.apply_orientation(orientation);
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    let original = match orientation {
        Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH => (height, width),
        _ => (width, height),
    };
    let (media_type, sent) = encode(&image, format).map_err(damaged)?;
    if BASE64.encode_len(sent.len()) >= ENCODED_LIMIT {
        return Err(format!(
            "the {name} image stays too large to be sent ({} bytes). Make a smaller copy with a \
             shell command and read that.",
            sent.len()
        ));
    }
    Ok(done(&image, media_type, &sent, original))
}

const AGAIN: &str = "Get the file again, or look at it with a shell command.";

fn explain_damage(name: &str, error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => needs_memory(name),
        error => format!("the {name} image is damaged or cut off ({error}). {AGAIN}"),
    }
}

fn needs_memory(name: &str) -> String {
    format!(
        "the {name} image needs more memory than is allowed for decoding. Make a smaller copy \
         with a shell command and read that."
    )
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = None; // the pixel limit below says it better
    limits.max_image_height = None;
    limits.max_alloc = Some(MEMORY);
    limits
}

/// At most [`LONG_SIDE`]. Roughly first, where there is much to lose, then well.
fn shrink(image: DynamicImage) -> DynamicImage {
    let long = image.width().max(image.height());
    if long <= LONG_SIDE {
        return image;
    }
    let side = |pixels: u32| {
        let scaled = f64::from(pixels) * f64::from(LONG_SIDE) / f64::from(long);
        (scaled.round() as u32).max(1)
    };
    let (width, height) = (side(image.width()), side(image.height()));
    let image = match long > 2 * LONG_SIDE {
        true => image.thumbnail_exact(2 * width, 2 * height),
        false => image,
    };
    // Sixteen bits a channel are more than a model sees, and twice the work.
    let image = match image.color().has_alpha() {
        true => DynamicImage::from(image.into_rgba8()),
        false => DynamicImage::from(image.into_rgb8()),
    };
    image.resize_exact(width, height, FilterType::CatmullRom)
}

/// Lossless as far as that stays small; photographs were not lossless before.
fn encode(
    image: &DynamicImage,
    format: ImageFormat,
) -> Result<(&'static str, Vec<u8>), ImageError> {
    if format != ImageFormat::Jpeg {
        let mut png = Vec::new();
        image.write_with_encoder(PngEncoder::new(&mut png))?;
        if png.len() <= SENT_BYTES {
            return Ok(("image/png", png));
        }
    }
    let opaque = on_white(image);
    let mut jpeg = Vec::new();
    for quality in [85, 70, 55, 40] {
        jpeg.clear();
        JpegEncoder::new_with_quality(&mut jpeg, quality).encode_image(&opaque)?;
        if jpeg.len() <= SENT_BYTES {
            break;
        }
    }
    Ok(("image/jpeg", jpeg))
}

/// JPEG knows no transparency: what shines through is white, as on a page.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0.map(u16::from);
        let mix = |channel: u16| ((channel * alpha + 255 * (255 - alpha)) / 255) as u8;
        [mix(red), mix(green), mix(blue)].into()
    })
}

/// More than one frame? Only looks as far as it must.
fn is_animated(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::Gif => gif_frames(bytes).nth(1).is_some(),
        ImageFormat::WebP => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        _ => false,
    }
}

/// Where the frames begin. Their pixels are of no interest: decoding would take as much memory again
/// as the picture.
fn gif_frames(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let byte = |at: usize| bytes.get(at).copied();
    let colours = |flags: u8| match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    };
    // Blocks of at most 255 bytes, each after its length; an empty one is the last.
    let after_blocks = move |mut at: usize| loop {
        let length = byte(at)?;
        at += 1 + usize::from(length);
        if length == 0 {
            return Some(at);
        }
    };
    let mut next = byte(10).map(|flags| 13 + colours(flags));
    std::iter::from_fn(move || {
        loop {
            let at = next?;
            match byte(at)? {
                0x21 => next = after_blocks(at + 2), // an extension
                0x2c => {
                    let flags = byte(at + 9)?;
                    next = after_blocks(at + 10 + colours(flags) + 1);
                    return Some(at);
                }
                _ => return None,
            }
        }
    })
}

/// Is each chunk as long as it says? The decoder makes room for the metadata, up to 4 GB of it,
/// before it notices that the file ends.
fn webp_chunks_fit(bytes: &[u8]) -> bool {
    let mut at = 12_usize;
    while let Some([_, _, _, _, size @ ..]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let size = u32::from_le_bytes(*size) as usize;
        if size > bytes.len() - at - 8 {
            return false;
        }
        at += 8 + size + size % 2;
    }
    true
}

/// The decoder fills a picture that is cut off with grey; its end mark tells the difference.
fn jpeg_ends(bytes: &[u8]) -> bool {
    // Skip the segments before the picture: a preview inside them has an end mark of its own.
    let mut at = 2;
    while let Some([0xff, marker, high, low]) = bytes.get(at..at + 4) {
        if *marker == 0xda {
            break;
        }
        at += 2 + usize::from(u16::from_be_bytes([*high, *low]));
    }
    let rest = bytes.get(at..).unwrap_or_default();
    rest.windows(2).any(|pair| pair == [0xff, 0xd9])
}
