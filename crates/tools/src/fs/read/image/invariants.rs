//! Invariants of every file that claims to be an image: for the seed tests and the fuzz target
//! `image`.

use data_encoding::BASE64;
use image::ImageReader;

use super::{ENCODED_LIMIT, LONG_SIDE, PIXELS, SENT_BYTES, prepare};

/// Prepares an image; panics if an invariant is violated.
#[cfg_attr(
    not(feature = "fuzzing"),
    expect(unreachable_pub, reason = "only the fuzz targets reach it")
)]
pub fn check(bytes: &[u8]) {
    let picture = match prepare(bytes) {
        Ok(picture) => picture,
        Err(error) => {
            let is_short = (10..600).contains(&error.len());
            assert!(is_short && error.ends_with('.'), "{error}");
            return;
        }
    };
    assert!(picture.base64.len() < ENCODED_LIMIT);
    let sent = BASE64.decode(picture.base64.as_bytes());
    let sent = sent.expect("base 64");
    assert_eq!(sent.len(), picture.sent_bytes);
    assert_eq!(bytes.len(), picture.original_bytes);
    let (width, height) = picture.original;
    assert!(u64::from(width) * u64::from(height) <= PIXELS);
    let (width, height) = picture.sent;
    assert!((1..=LONG_SIDE).contains(&width) && (1..=LONG_SIDE).contains(&height));
    let format = image::guess_format(&sent).expect("a format");
    assert_eq!(format.to_mime_type(), picture.media_type);
    let reader = ImageReader::with_format(std::io::Cursor::new(&sent), format);
    let found = reader.into_dimensions().expect("a header");
    assert_eq!(found, picture.sent);
    if sent != bytes {
        // What we made ourselves can be decoded.
        let decoded = image::load_from_memory(&sent).expect("a picture");
        assert_eq!((decoded.width(), decoded.height()), picture.sent);
    } else {
        assert!(bytes.len() <= SENT_BYTES && picture.sent == picture.original);
    }
    assert!(picture.describe().contains(picture.name));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/image");

    #[test]
    fn the_seeds_of_the_fuzz_target_keep_every_promise() {
        let mut count = 0;
        for entry in std::fs::read_dir(SEEDS).unwrap() {
            check(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count >= 20, "only {count} seeds");
    }

    #[test]
    fn frames_are_counted_without_their_pixels() {
        for (name, frames) in [
            ("gif", 1),
            ("gif_wide", 1),
            ("gif_moving", 3),
            ("gif_cut", 2),
            ("empty", 0),
        ] {
            let bytes = std::fs::read(format!("{SEEDS}/{name}")).unwrap();
            let found: Vec<usize> = super::super::gif_frames(&bytes).collect();
            assert_eq!(found.len(), frames, "{name}: {found:?}");
        }
    }

    #[test]
    fn no_room_is_made_for_what_is_not_there() {
        for (name, fits) in [
            ("webp_extended", true),
            ("webp_moving", true),
            ("webp_cut", false),
            ("webp_exif_too_long", false),
        ] {
            let bytes = std::fs::read(format!("{SEEDS}/{name}")).unwrap();
            assert_eq!(super::super::webp_chunks_fit(&bytes), fits, "{name}");
        }
    }
}

#[test]
fn a_small_copy_fits_and_keeps_its_proportions() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let image = image::RgbImage::from_pixel(1_000, 250, image::Rgb([9, 8, 7]));
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let content = super::image_content(bytes.get_ref()).unwrap();
    let pixels = super::image_pixels(&content, (400, 240)).unwrap();
    assert_eq!((pixels.original, pixels.size), ((1_000, 250), (400, 100)));
    assert_eq!(pixels.rgba.len(), 400 * 100 * 4);
    assert_eq!(pixels.rgba[..4], [9, 8, 7, 255]);
    // A small one is not enlarged, and a text is no picture.
    let same = super::image_pixels(&content, (2_000, 2_000)).unwrap();
    assert_eq!(same.size, (1_000, 250));
    let text = haft_contract::Content::text("no picture");
    assert_eq!(super::image_pixels(&text, (400, 240)), None);
}
