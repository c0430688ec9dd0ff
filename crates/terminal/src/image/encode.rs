//! Base64, and PNG without compression.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as Base64.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let three = [
            group[0],
            group.get(1).copied().unwrap_or(0),
            group.get(2).copied().unwrap_or(0),
        ];
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            match place <= group.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

/// Encodes RGBA pixels as a PNG, without compression, because the image is small.
pub(super) fn png(width: usize, height: usize, rgba: &[u8]) -> Vec<u8> {
    let dimension = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
    let mut header = [dimension(width), dimension(height)].concat();
    header.extend_from_slice(&[8, 6, 0, 0, 0]);
    let mut lines = Vec::with_capacity(rgba.len() + height);
    for line in rgba.chunks(width * 4) {
        lines.push(0);
        lines.extend_from_slice(line);
    }
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(b"IHDR", &header, &mut file);
    chunk(b"IDAT", &stored(&lines), &mut file);
    chunk(b"IEND", &[], &mut file);
    file
}

fn chunk(kind: &[u8; 4], body: &[u8], file: &mut Vec<u8>) {
    file.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    let from = file.len();
    file.extend_from_slice(kind);
    file.extend_from_slice(body);
    let sum = crc32(&file[from..]);
    file.extend_from_slice(&sum.to_be_bytes());
}

/// Creates a zlib stream of stored (uncompressed) blocks.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        stream.push(u8::from(blocks.peek().is_none()));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    stream.extend_from_slice(&adler32(bytes).to_be_bytes());
    stream
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut one, mut two) = (1u32, 0u32);
    for byte in bytes {
        one = (one + u32::from(*byte)) % 65_521;
        two = (two + one) % 65_521;
    }
    two << 16 | one
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            let carry = sum & 1;
            (sum >> 1) ^ (0xedb8_8320 * carry)
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_letters_are_the_usual_ones() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
