//! Damaged files, and children that misbehave: an error or an answer, in time, and nothing left over.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process,
    time::{Duration, Instant},
};

use haft_pdf::child::{self, PdfLimits, PdfReadError};

use crate::{
    ask_within, request,
    written::{file_of, pdf_with},
};

fn short() -> PdfLimits {
    PdfLimits {
        time: Duration::from_secs(20),
        ..PdfLimits::default()
    }
}

#[test]
fn damaged_files_end_in_an_error_or_an_answer() {
    let whole = pdf_with(&["one (1)", "two"], &[("A", 1), ("B", 2)]);
    let mut files: Vec<Vec<u8>> = (0..whole.len())
        .step_by(50)
        .map(|length| whole[..length].to_vec())
        .collect();
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for _ in 0..30 {
        let mut file = whole.clone();
        for _ in 0..1 + random(12) {
            let place = random(file.len());
            file[place] = random(256) as u8;
        }
        files.push(file);
    }
    let mut answered = 0;
    for file in files {
        match ask_within(&file, None, &short()) {
            Ok(_) => answered += 1,
            Err(
                PdfReadError::Refused(_) | PdfReadError::Crashed(_) | PdfReadError::TimedOut(_),
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(answered > 0, "some damage is survivable");
}

#[test]
fn claims_do_not_become_memory() {
    let file = String::from_utf8(pdf_with(&["x"], &[])).unwrap();
    let cases = [
        ("/Count 1", "/Count 999999999"),
        ("/Kids [5 0 R]", "/Kids [2 0 R]"),
        ("/Length ", "/Length 99999999999"),
        ("/Size 7", "/Size 2147483647"),
        ("/Parent 2 0 R", "/Parent 5 0 R"),
    ];
    for (old, new) in cases {
        assert!(file.contains(old), "{old}");
        let file = file.replacen(old, new, 1);
        let began = Instant::now();
        if let Ok(document) = ask_within(file.as_bytes(), None, &short()) {
            assert!(document.pages.len() <= 10, "{new}");
        }
        assert!(began.elapsed() < Duration::from_secs(25), "{new}");
    }
}

/// A program that behaves in some way, gone when dropped.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Self {
        let path = env::temp_dir().join(format!("haft-pdf-{name}-{}", process::id()));
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_child_that_hangs_floods_or_dies_is_an_error() {
    let limits = PdfLimits {
        time: Duration::from_millis(500),
        output: 10_000,
        ..PdfLimits::default()
    };
    let file = vec![b'x'; 1 << 20];
    let ask = |script: &Script| {
        let began = Instant::now();
        let error =
            child::read_in_child(&script.0, &file, &request(None), &limits, &|| false).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(5));
        error.to_string()
    };
    let pid = env::temp_dir().join(format!("haft-pdf-pid-{}", process::id()));
    let hangs = format!("sleep 60 & echo $! > {}; wait", pid.display());
    let cases = [
        (
            "hangs",
            hangs.as_str(),
            "took longer than 0 s, so it was stopped",
        ),
        (
            "floods",
            "while :; do echo flood; done",
            "more than 10000 bytes",
        ),
        ("dies", "kill -SEGV $$", "memory fault"),
        ("fails", "exit 3", "exit code 3"),
        (
            "lies",
            "echo '%haft-pdf 2'; echo nonsense",
            "made its reader fail",
        ),
    ];
    for (name, text, part) in cases {
        let script = Script::new(name, text);
        let error = ask(&script);
        assert!(error.contains(part), "{name}: {error}");
    }
    let sleeper = fs::read_to_string(&pid).unwrap();
    let _ = fs::remove_file(&pid);
    let status = fs::read_to_string(format!("/proc/{}/stat", sleeper.trim()));
    let is_alive = status.is_ok_and(|status| !status.contains(") Z "));
    assert!(!is_alive, "the whole group was ended");
}

#[test]
fn computing_beyond_the_limit_ends_the_child_only() {
    let script = Script::new("computes", "while :; do :; done");
    let limits = PdfLimits {
        cpu_seconds: 1,
        ..PdfLimits::default()
    };
    let program = env::current_exe().unwrap();
    let error =
        child::draw_in_child(&program, &script.0, b"x", 1, 1, &limits, &|| false).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("too much computing time"), "{error}");
}

#[test]
fn lists_that_contain_themselves_are_not_followed() {
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>".to_owned();
    let outline = "<< /First 5 0 R /Last 5 0 R >>".to_owned();
    let heading = "<< /Title (x) /First 5 0 R /Next 5 0 R /Parent 4 0 R >>".to_owned();
    let catalog = "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>".to_owned();
    let file = |pages: &str| {
        let pages = format!("<< /Type /Pages /Kids [{pages}] /Count 12 >>");
        let objects = [&catalog, &pages, &page, &outline, &heading];
        file_of(&objects.map(String::clone))
    };
    let document = ask_within(&file(&"3 0 R ".repeat(12)), None, &short()).unwrap();
    assert_eq!((document.page_count, document.outline.len()), (12, 0));
    let error = ask_within(&file("3 0 R 2 0 R 2 0 R"), None, &short()).unwrap_err();
    assert!(error.to_string().contains("contains itself"), "{error}");
}

#[test]
fn a_child_can_be_cancelled() {
    let script = Script::new("waits", "sleep 60");
    let limits = PdfLimits::default();
    let began = Instant::now();
    let cancelled = || began.elapsed() > Duration::from_millis(100);
    let error =
        child::read_in_child(&script.0, b"x", &request(None), &limits, &cancelled).unwrap_err();
    assert!(matches!(error, PdfReadError::Cancelled), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn memory_beyond_the_limit_ends_the_child_only() {
    let script = Script::new(
        "eats",
        "head -c 300000000 /dev/zero | tail -c 200000000 > /dev/null || exit 9",
    );
    let limits = PdfLimits {
        memory: 64 << 20,
        ..PdfLimits::default()
    };
    let program = env::current_exe().unwrap();
    let error =
        child::draw_in_child(&program, &script.0, b"x", 1, 1, &limits, &|| false).unwrap_err();
    assert!(error.to_string().contains("exit code 9"), "{error}");
}

/// A few bytes that unpack to hundreds of megabytes.
#[test]
fn a_bomb_goes_off_in_the_child() {
    let run: Vec<u8> = [129, 129].repeat(1 << 14); // unpacks to 128 times 129 each, which is again
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    let stream = format!(
        "<< /Length {} /Filter [/RunLengthDecode /RunLengthDecode /RunLengthDecode] >>\nstream\n",
        run.len()
    );
    let objects: [&[u8]; 4] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font << /F 5 0 R >> >> /Contents 4 0 R >>",
        &[stream.as_bytes(), &run, b"\nendstream"].concat(),
    ];
    for (index, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let start = file.len();
    file.extend_from_slice(b"xref\n0 5\n0000000000 65535 f \n");
    for offset in offsets {
        file.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    file.extend_from_slice(
        format!("trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").as_bytes(),
    );
    match ask_within(&file, None, &short()) {
        Ok(document) => assert_eq!(document.pages[0].text, ""),
        Err(PdfReadError::Refused(_) | PdfReadError::Crashed(_) | PdfReadError::TimedOut(_)) => {}
        Err(error) => panic!("{error}"),
    }
}
