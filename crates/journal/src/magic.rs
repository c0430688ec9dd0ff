//! File types by the first bytes. The extension is ignored.

/// Offset, signature and name of each file type.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF87a", "GIF image"),
    (0, b"GIF89a", "GIF image"),
    (8, b"WEBPVP8", "WebP image"),
    (0, b"%PDF-", "PDF document"),
    (0, b"\x7fELF", "ELF executable"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"PK\x05\x06", "ZIP archive"),
    (0, b"\x1f\x8b\x08", "gzip data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O file"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O executable"),
    (0, b"MZ", "Windows executable"),
    (0, b"OggS", "Ogg media"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"ID3", "MP3 audio"),
    (4, b"ftyp", "MP4 or related media"),
    (0, b"RIFF", "RIFF media"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"\x00\x01\x00\x00", "TrueType font"),
    (0, b"BM", "BMP image"),
    (0, b"II*\x00", "TIFF image"),
    (0, b"MM\x00*", "TIFF image"),
];

/// Formats that may have no NUL bytes but are never read as text.
const NEVER_TEXT: &[&[u8]] = &[
    b"%PDF-",
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"\x1f\x8b\x08",
];

/// Returns the name of the file type, by the first bytes of the file.
///
/// Must be used only for content that is known not to be text: some signatures are short.
pub(crate) fn guess_type(head: &[u8]) -> Option<&'static str> {
    SIGNATURES
        .iter()
        .find(|(offset, signature, _)| {
            head.get(*offset..)
                .is_some_and(|rest| rest.starts_with(signature))
        })
        .map(|(_, _, name)| *name)
}

pub(crate) fn is_never_text(head: &[u8]) -> bool {
    NEVER_TEXT
        .iter()
        .any(|signature| head.starts_with(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_first_bytes() {
        let mut tar = vec![0; 300];
        tar[257..262].copy_from_slice(b"ustar");
        let cases: [(&[u8], Option<&str>); 5] = [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("PNG image")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("WebP image")),
            (b"RIFF\x10\0\0\0WAVEfmt ", Some("RIFF media")),
            (&tar, Some("tar archive")),
            (b"a\0b", None),
        ];
        for (head, name) in cases {
            assert_eq!(guess_type(head), name);
        }
    }
}
