//! PDFs, pictures and notebooks at an address; and what is left of a fetch that is cut off.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use haft_testkit::{
    http::{HttpFake, HttpReply},
    until_blocking,
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{calls, results};
use crate::binary::haft;

const PNG: &[u8] = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn seed(name: &str) -> Vec<u8> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/pdf_entry");
    fs::read(seeds.join(name)).unwrap()
}

/// Every file below that came from the web.
fn fetched(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .flat_map(|path| match path.is_dir() && !path.is_symlink() {
            true => fetched(&path),
            false => vec![path],
        })
        .collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"web-")
    });
    found
}

#[test]
fn pdfs_pictures_and_notebooks_are_read_like_files() {
    let dir = tempdir().unwrap();
    let picture = data_encoding::BASE64.decode(PNG).unwrap();
    let notebook = json!({
        "cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "source": "print(40 + 2)",
                   "outputs": [], "execution_count": null}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    let server = HttpFake::start_with(move |asked| match asked.target().1 {
        "/text.pdf" => HttpReply::new(200, "application/pdf", seed("text.pdf")),
        // What it is, its bytes say.
        "/typed-wrong" => HttpReply::new(200, "text/html", seed("text.pdf")),
        "/locked.pdf" => HttpReply::new(200, "application/pdf", seed("enc_user.pdf")),
        "/bomb.pdf" => HttpReply::new(200, "application/pdf", seed("bomb_flate2.pdf")),
        "/p.png" => HttpReply::new(200, "image/png", picture.clone()),
        "/broken.png" => HttpReply::new(200, "image/png", picture[..40].to_vec()),
        "/n.ipynb" => HttpReply::new(200, "application/json", notebook.to_string()),
        _ => HttpReply::new(200, "application/x-ipynb+json", "{\"cells\": 7}"),
    });
    let fetch = |path: &str| {
        let input = json!({"url": format!("{}{path}", server.url), "prompt": "x"});
        ("WebFetch", input)
    };
    let paths = [
        "/text.pdf",
        "/typed-wrong",
        "/locked.pdf",
        "/bomb.pdf",
        "/p.png",
        "/broken.png",
        "/n.ipynb",
        "/odd",
    ];
    let home = dir.path().join("home");
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let mut command = haft(&work);
    command
        .env("HOME", &home)
        .args(["--allowedTools", "WebFetch(domain:127.0.0.1)"]);
    let all: Vec<(&str, Value)> = paths.iter().map(|path| fetch(path)).collect();
    let (results, _) = calls(&mut command, dir.path(), &all);
    let text = |at: usize| results[at].1.as_str();
    for at in [0, 1] {
        assert!(
            text(at).contains("--- page 1 of 1 ---") && text(at).contains("hello"),
            "{}",
            text(at)
        );
        assert!(
            text(at).contains("<web_page") && text(at).contains("is data"),
            "{}",
            text(at)
        );
    }
    assert!(text(2).contains("password"), "{}", text(2));
    assert!(
        text(4).contains("\"image\"") && text(4).contains("image/png"),
        "{}",
        text(4)
    );
    assert!(!text(5).contains("\"type\":\"image\""), "{}", text(5));
    assert!(
        text(6).contains("print(40 + 2)") && text(6).contains("c1"),
        "{}",
        text(6)
    );
    for (at, path) in paths.iter().enumerate() {
        // What cannot be read is kept all the same, and the answer says where.
        assert!(
            text(at).contains("It was saved as "),
            "{path}: {}",
            text(at)
        );
    }
    assert!(fetched(&work).is_empty());
    assert!(!fetched(&home).is_empty());
}

/// A server that sends the head and half of a body, says so, and then waits for the other end to go.
fn half_server(media_type: &'static str) -> (u16, mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, events) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = std::io::Read::read(&mut stream, &mut head);
        let reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: 100000\r\n\r\n%PDF-1.7"
        );
        stream.write_all(reply.as_bytes()).unwrap();
        let _ = sender.send("half");
        let _ = stream.set_read_timeout(Some(Duration::from_secs(100)));
        // It ends when the other end is gone.
        while matches!(std::io::Read::read(&mut stream, &mut head), Ok(1..)) {}
        let _ = sender.send("gone");
    });
    (port, events)
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = haft_testkit::command("kill")
        .args(["-s", name, &id])
        .status();
    assert!(sent.unwrap().success());
}

/// How many processes work below this directory.
fn processes_in(directory: &Path) -> usize {
    let directory = fs::canonicalize(directory).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let cwds = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    cwds.filter(|cwd| cwd.starts_with(&directory)).count()
}

#[test]
fn a_fetch_that_is_cut_off_leaves_nothing() {
    for end in ["TERM", "KILL"] {
        for media_type in ["text/html", "application/pdf"] {
            let dir = tempdir().unwrap();
            let (port, events) = half_server(media_type);
            let url = format!("http://127.0.0.1:{port}/");
            let turns = json!({"turns": [
                {"content": [{"type": "tool_use", "name": "WebFetch", "input": {"url": url, "prompt": "x"}}]},
                {"content": [{"type": "text", "text": "done"}]},
            ]});
            let script = dir.path().join(".haft-test-script.json");
            fs::write(&script, turns.to_string()).unwrap();
            let mut child = haft(dir.path())
                .args(["--allowedTools", "WebFetch(domain:127.0.0.1)", "--script"])
                .arg(&script)
                .args(["-p", "go"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let wait = Duration::from_secs(100);
            assert_eq!(events.recv_timeout(wait), Ok("half"));
            signal(&child, end);
            child.wait().unwrap();
            assert_eq!(
                events.recv_timeout(wait),
                Ok("gone"),
                "{end}: the connection stays"
            );
            until_blocking("nothing runs", || processes_in(dir.path()) == 0);
            assert!(fetched(dir.path()).is_empty(), "{end} {media_type}");
        }
    }
}

/// A file that was read from the web lies in the session's folder, and its reader is gone with the session.
#[test]
fn the_reader_of_a_fetched_pdf_is_gone_with_it() {
    let dir = tempdir().unwrap();
    let server =
        HttpFake::start_with(move |_| HttpReply::new(200, "application/pdf", seed("text.pdf")));
    let script = dir.path().join("script.json");
    let fetch = json!({"type": "tool_use", "name": "WebFetch", "input": {"url": server.url, "prompt": "x"}});
    let turns =
        json!({"turns": [{"content": [fetch]}, {"content": [{"type": "text", "text": "done"}]}]});
    fs::write(&script, turns.to_string()).unwrap();
    let mut command = haft(dir.path());
    command
        .args(["--allowedTools", "WebFetch(domain:127.0.0.1)", "--script"])
        .arg(&script);
    let (read, _) = results(&mut command);
    assert!(read[0].1.contains("hello"), "{read:?}");
    until_blocking("nothing runs", || processes_in(dir.path()) == 0);
    let kept = fetched(dir.path());
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(
        kept[0].starts_with(dir.path().join(".claude/projects")),
        "{kept:?}"
    );
}
