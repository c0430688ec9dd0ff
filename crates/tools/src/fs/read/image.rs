//! Images, in a form that models accept: PNG, JPEG, GIF or WebP with at most 1,568 pixels on the
//! longer side.
//!
//! A small image is sent unchanged after it was decoded successfully. Images may be malicious, so
//! their size is checked by the header before pixels are decoded, and the memory for decoding is
//! limited.

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
    output::{ImagePixels, MediaSource},
};
use haft_journal::{FileTarget, Journal, ShownExtent};
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage,
    codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPDecoder},
    imageops::FilterType,
    metadata::Orientation,
};
use serde_json::json;

use super::{output, picture};
use crate::{blocking::blocking, fs::explain, paths::shown};

/// The maximum file size, in bytes.
const FILE_LIMIT: u64 = 64 << 20;
/// The maximum length of the longer side; models scale larger images down.
const LONG_SIDE: u32 = 1_568;
/// The file size above which an image is sent as JPEG, in bytes.
const SENT_BYTES: usize = 500 << 10;
/// The maximum size in base64: providers accept less than 5 MB.
const ENCODED_LIMIT: usize = 5_000_000;
const PIXELS: u64 = 100_000_000;
/// The memory limit of decoding: enough for [`PIXELS`] with 8 bits and four channels, and for the
/// decoder itself.
const MEMORY: u64 = 512 << 20;
/// Images with more pixels are decoded one at a time, even if several calls run.
const LARGE_PIXELS: u64 = 8_000_000;

static LARGE: Mutex<()> = Mutex::new(());

/// An image ready to be sent.
#[derive(Debug)]
pub(super) struct EncodedImage {
    pub(super) media_type: &'static str,
    pub(super) base64: String,
    original: (u32, u32),
    sent: (u32, u32),
    original_bytes: usize,
    sent_bytes: usize,
    name: &'static str,
    is_animated: bool,
}

/// Returns whether a file of this type, as the journal names it, is shown as an image.
pub(super) fn is_shown(kind: Option<&str>) -> bool {
    matches!(
        kind,
        Some("PNG image" | "JPEG image" | "GIF image" | "WebP image")
    )
}

/// Reads an image; also returns the file with all links resolved.
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
        journal.record_shown(raw, ShownExtent::Whole);
        Ok((picture, real))
    })
    .await?
    .map_err(|error: String| ToolError::Failed(format!("{name}: {error}")))?;
    let text = format!("{name}: {}", shown.describe());
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

impl EncodedImage {
    /// Describes the image and how it was converted.
    fn describe(&self) -> String {
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

/// Prepares an image for a message: decodes, checks and, if needed, shrinks it. The error is the
/// reason why it cannot be shown.
pub fn image_content(bytes: &[u8]) -> Result<Content, String> {
    let ready = prepare(bytes)?;
    Ok(picture(ready.media_type, ready.base64))
}

/// Returns a small copy of an image in a message or result, within the given width and height;
/// `None` if it is not an image, or damaged.
pub fn image_pixels(content: &Content, most: (u32, u32)) -> Option<ImagePixels> {
    let Content::Image {
        source: MediaSource::Base64 { data, .. },
    } = content
    else {
        return None;
    };
    let bytes = BASE64.decode(data.as_bytes()).ok()?;
    let format = image::guess_format(&bytes).ok()?;
    // The same reader type as below, because each type would compile a copy of every decoder.
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
    Some(ImagePixels {
        original,
        size: image.dimensions(),
        rgba: image.into_raw(),
    })
}

/// Decodes, checks and, if needed, shrinks an image.
pub(super) fn prepare(bytes: &[u8]) -> Result<EncodedImage, String> {
    let (format, name, media_type) = match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => (ImageFormat::Png, "PNG", "image/png"),
        Ok(ImageFormat::Jpeg) => (ImageFormat::Jpeg, "JPEG", "image/jpeg"),
        Ok(ImageFormat::Gif) => (ImageFormat::Gif, "GIF", "image/gif"),
        Ok(ImageFormat::WebP) => (ImageFormat::WebP, "WebP", "image/webp"),
        _ => {
            return Err(
                "this is not an image that can be shown (PNG, JPEG, GIF, WebP).".to_owned(),
            );
        }
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
    // An image with broken metadata can still be shown.
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
    let done = |image: &DynamicImage, media_type, sent: &[u8], original| EncodedImage {
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

const AGAIN: &str = "Get the file again, or inspect it with a shell command.";

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
    limits.max_image_width = None; // the pixel limit below is more exact
    limits.max_image_height = None;
    limits.max_alloc = Some(MEMORY);
    limits
}

/// Shrinks an image to at most [`LONG_SIDE`]: very large ones first roughly, then with high
/// quality.
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
    // Sixteen bits per channel are more than a model sees, and twice the work.
    let image = match image.color().has_alpha() {
        true => DynamicImage::from(image.into_rgba8()),
        false => DynamicImage::from(image.into_rgb8()),
    };
    image.resize_exact(width, height, FilterType::CatmullRom)
}

/// Encodes an image as PNG if the result is small enough, otherwise as JPEG. An image that was JPEG
/// stays JPEG, because it was already lossy.
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

/// Replaces transparency by white, because JPEG does not support it.
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

/// Returns whether the image has more than one frame.
fn is_animated(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::Gif => gif_frames(bytes).nth(1).is_some(),
        ImageFormat::WebP => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        _ => false,
    }
}

/// Returns the offsets of the frames, without decoding them: that would need as much memory again
/// as the image.
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

/// Returns whether every chunk fits into the file. Otherwise the decoder would allocate up to 4 GB
/// for metadata before it notices that the file ends.
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

/// Returns whether the image is complete. The decoder fills missing parts with grey; only the end
/// marker shows that they are missing.
fn jpeg_ends(bytes: &[u8]) -> bool {
    // Skip the segments before the image data: a preview inside them has its own end marker.
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
