//! Pictures of pages.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use haft_pdf::child::{self, PdfLimits, PdfReadError};

use crate::written::{pdf, scan};

#[test]
fn a_page_is_drawn_by_another_program_under_the_same_limits() {
    let dir = env::temp_dir().join(format!("haft-pdf-draw-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let drawer = dir.join("pdftoppm");
    // It is given the arguments and the whole file, and may not write any.
    let script = "#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n'\necho \"$@\"\nhead -c 8\n\
                  (echo x > \"$0.out\")\nulimit -t\n";
    fs::write(&drawer, script).unwrap();
    fs::set_permissions(&drawer, fs::Permissions::from_mode(0o755)).unwrap();
    let program = env::current_exe().unwrap();
    let limits = PdfLimits {
        cpu_seconds: 7,
        ..PdfLimits::default()
    };
    let png = child::draw_in_child(&program, &drawer, &pdf(&["x"]), 3, 100, &limits, &|| false);
    let written = fs::read(dir.join("pdftoppm.out")).unwrap_or_default();
    fs::remove_dir_all(&dir).unwrap();
    let png = String::from_utf8_lossy(&png.unwrap()).into_owned();
    assert!(
        png.contains("-png -f 3 -l 3 -scale-to 100 -\n%PDF-1.4"),
        "{png}"
    );
    assert!(png.ends_with("7\n"), "{png}");
    assert_eq!(written, b"", "no file can be written");
}

/// The real one, if it is installed.
fn pdftoppm() -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths)
        .map(|directory| directory.join("pdftoppm"))
        .find(|path| path.is_file())
}

const NO_PDFTOPPM: &str = "pages drawn by pdftoppm: no poppler-utils";

fn draw(drawer: &Path, pdf: &[u8], page: u32) -> Result<Vec<u8>, PdfReadError> {
    let program = env::current_exe().unwrap();
    let limits = PdfLimits::default();
    child::draw_in_child(&program, drawer, pdf, page, 300, &limits, &|| false)
}

#[test]
fn the_real_pdftoppm_draws_under_the_limits() {
    let Some(drawer) = pdftoppm() else {
        haft_testkit::skip(NO_PDFTOPPM);
        return;
    };
    for (file, width, height) in [
        (scan(2), 300_u32, 300_u32),
        (pdf(&["one", "two"]), 232, 300),
    ] {
        let png = draw(&drawer, &file, 2).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        let (wide, high) = (&png[16..20], &png[20..24]);
        assert_eq!(
            (wide, high),
            (&width.to_be_bytes()[..], &height.to_be_bytes()[..])
        );
    }
}

#[test]
fn what_pdftoppm_cannot_draw_is_an_error() {
    let Some(drawer) = pdftoppm() else {
        haft_testkit::skip(NO_PDFTOPPM);
        return;
    };
    for file in [&b"%PDF-1.4\nnothing else"[..], &scan(1)] {
        let error = draw(&drawer, file, 2).unwrap_err();
        assert!(matches!(error, PdfReadError::Crashed(_)), "{error}");
    }
}
