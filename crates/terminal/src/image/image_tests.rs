use super::*;

fn pixels(width: usize, height: usize) -> RgbaPixels {
    let bytes = (0..width * height).flat_map(|at| {
        let shade = u8::try_from(at * 255 / (width * height)).unwrap();
        [shade, 255 - shade, 40, 255]
    });
    RgbaPixels::new(width, height, bytes.collect()).unwrap()
}

fn written(protocol: ImageProtocol, pixels: &RgbaPixels) -> String {
    let mut out = Vec::new();
    TerminalImage::new(protocol, pixels, 0x0001_0203, "a.png")
        .write(ColorLevel::TrueColor, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn sizes_keep_the_proportions_and_the_limits() {
    let cases = [
        ((400, 240), (40, 12)),
        ((800, 480), (40, 12)),
        ((10, 20), (1, 1)),
        ((100, 100), (10, 5)),
        ((1, 4000), (1, 12)),
        ((4000, 1), (40, 1)),
        ((1000, 2000), (12, 12)),
    ];
    for ((width, height), expected) in cases {
        let pixels = RgbaPixels::new(width, height, vec![0; width * height * 4]).unwrap();
        assert_eq!(cells(&pixels), expected, "{width}x{height}");
    }
}

#[test]
fn pixels_must_be_as_many_as_the_size_says() {
    assert!(RgbaPixels::new(2, 2, vec![0; 15]).is_none());
    assert!(RgbaPixels::new(0, 5, vec![]).is_none());
    assert!(RgbaPixels::new(usize::MAX, 2, vec![]).is_none());
}

#[test]
fn kitty_gets_the_pixels_once_and_placeholders_as_rows() {
    // Whatever colours are shown: the colour of a placeholder is the number of its picture.
    let shown = written(ImageProtocol::Kitty, &pixels(100, 80));
    assert!(shown.starts_with("\x1b_Ga=T,U=1,q=2,f=32,i=66051,s=100,v=80,c=10,r=4,m=1;"));
    assert!(shown.contains("\x1b_Gm=0;"));
    let rows: Vec<&str> = shown.rsplit("\x1b\\").next().unwrap().lines().collect();
    assert_eq!(rows.len(), 4);
    assert!(
        rows[1].starts_with("\x1b[38;2;1;2;3m\u{10eeee}\u{30d}\u{305}\u{10eeee}\u{30d}\u{30d}")
    );
    for part in shown.split("\x1b_G").skip(1) {
        assert!(
            part.split('\x1b').next().unwrap().len() < 4200,
            "a part is too long"
        );
    }
}

#[test]
fn iterm_gets_a_picture_that_others_can_read() {
    let shown = written(ImageProtocol::Iterm, &pixels(100, 80));
    let (head, data) = shown.split_once(':').unwrap();
    assert!(head.starts_with("\x1b]1337;File=inline=1;size="));
    assert!(head.contains(";width=10;height=4;"));
    assert!(data.starts_with("iVBORw0KGgo"), "it is a PNG");
    assert!(shown.ends_with("\x07\r\n"));
}

#[test]
fn sixels_draw_every_pixel_once() {
    let shown = written(ImageProtocol::Sixel, &pixels(20, 13));
    assert!(shown.starts_with("\x1bP0;1q\"1;1;20;13#0;2;"));
    let bands = shown.trim_end().trim_end_matches("\x1b\\");
    assert_eq!(bands.matches('-').count(), 3, "13 rows are three bands");
    let mut drawn = 0;
    for color in bands.split(['$', '-']) {
        let Some((_, color)) = color.rsplit_once('#') else {
            continue;
        };
        let mut letters = color
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .chars()
            .peekable();
        while let Some(letter) = letters.next() {
            let mut count = String::new();
            let letter = if letter == '!' {
                while letters.peek().is_some_and(char::is_ascii_digit) {
                    count.extend(letters.next());
                }
                letters.next().unwrap()
            } else {
                letter
            };
            let pixels = (u32::from(letter) - 0x3f).count_ones();
            drawn += pixels * count.parse::<u32>().unwrap_or(1);
        }
    }
    assert_eq!(drawn, 20 * 13);
}

#[test]
fn half_blocks_are_text_and_transparent_pixels_are_blank() {
    let mut bytes = vec![255, 0, 0, 255, 0, 0, 0, 0];
    bytes.extend([0, 0, 255, 255, 0, 0, 0, 0]);
    let pixels = RgbaPixels::new(2, 2, bytes).unwrap();
    let rows = half_blocks::rows(&pixels, 2, 1);
    assert_eq!(rows[0].text(), "▀ ");
    let name = TerminalImage::new(ImageProtocol::Name, &pixels, 1, "a\x1b.png");
    assert_eq!(name.rows()[0].text(), "[a␛.png 2x2]");
}
