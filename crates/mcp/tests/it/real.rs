//! Official servers, installed from npm and PyPI.

use std::{fs, time::Duration};

use haft_contract::{CallContext, ProgressUpdate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    installed::{entry, node, python},
    setting::{Setting, text},
};

/// What server-everything does the same way however it is reached.
async fn calls_and_reports(setting: &Setting) {
    let sum = setting
        .call("mcp__s__get-sum", json!({"a": 2, "b": 40}))
        .await
        .unwrap();
    assert_eq!(text(&sum), "The sum of 2 and 40 is 42.");
    let steps = json!({"duration": 1, "steps": 2});
    let (done, mut updates) = setting
        .call_in("mcp__s__trigger-long-running-operation", steps)
        .await;
    assert!(text(&done.unwrap()).contains("completed"));
    let first = updates.recv().await.map(|(_, update)| update);
    assert!(
        matches!(first, Some(ProgressUpdate::Step { total: Some(2), .. })),
        "{first:?}"
    );
}

#[tokio::test]
async fn server_everything_lists_calls_reports_and_is_interrupted() {
    let Some(bin) = node() else { return };
    let named = json!({"s": entry(&bin, "mcp-server-everything", &["stdio"])});
    let setting = Setting::new(&named).settled().await;
    assert_eq!(setting.status("s"), ("connected".to_owned(), None));
    calls_and_reports(&setting).await;
    let image = setting
        .call("mcp__s__get-tiny-image", json!({}))
        .await
        .unwrap();
    assert!(image.content.len() > 1);
    let prompts = setting.servers.prompts();
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.command.starts_with("mcp__s__"))
    );

    let (cx, _updates) = CallContext::for_test(setting.dir.path());
    let slow = json!({"duration": 60, "steps": 60});
    let call = setting
        .tool("mcp__s__trigger-long-running-operation")
        .bind(slow)
        .unwrap();
    let cancel = cx.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    assert_eq!(call.call(&cx).await.unwrap_err().to_string(), "cancelled");
    let echo = setting
        .call("mcp__s__echo", json!({"message": "on"}))
        .await
        .unwrap();
    assert_eq!(text(&echo), "Echo: on");
    setting.servers.close().await;
}

#[tokio::test]
async fn server_filesystem_reads_and_is_started_again_when_it_is_killed() {
    let Some(bin) = node() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    fs::write(folder.join("a.txt"), "inside\n").unwrap();
    let place = folder.to_str().unwrap();
    let named = json!({"s": entry(&bin, "mcp-server-filesystem", &[place])});
    let setting = Setting::new(&named).settled().await;
    let read = json!({"path": folder.join("a.txt")});
    let before = setting
        .call("mcp__s__read_text_file", read.clone())
        .await
        .unwrap();
    assert_eq!(text(&before), "inside\n");
    for pid in started_with(place) {
        kill_process(pid, Signal::KILL).unwrap();
    }
    haft_testkit::until("it is reported", || {
        !setting.person.notices.lock().unwrap().is_empty()
    })
    .await;
    let after = setting.call("mcp__s__read_text_file", read).await.unwrap();
    assert_eq!(text(&after), "inside\n");
    setting.servers.close().await;
    haft_testkit::until("it is gone", || started_with(place).is_empty()).await;
}

fn started_with(argument: &str) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|one| {
        let pid: i32 = one.file_name().to_str()?.parse().ok()?;
        let line = fs::read(one.path().join("cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0);
        words
            .any(|word| word == argument.as_bytes())
            .then(|| Pid::from_raw(pid))?
    });
    found.collect()
}

#[tokio::test]
async fn server_memory_keeps_what_it_is_given() {
    let Some(bin) = node() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut memory = entry(&bin, "mcp-server-memory", &[]);
    memory["env"]["MEMORY_FILE_PATH"] = json!(dir.path().join("memory.json"));
    let setting = Setting::new(&json!({"s": memory})).settled().await;
    let entities =
        json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]});
    setting
        .call("mcp__s__create_entities", entities)
        .await
        .unwrap();
    let graph = setting.call("mcp__s__read_graph", json!({})).await.unwrap();
    assert!(text(&graph).contains("Ada"));
    setting.servers.close().await;
}

#[tokio::test]
async fn servers_in_python_speak_the_stateless_revision() {
    let Some(bin) = python() else { return };
    let named = json!({
        "time": entry(&bin, "mcp-server-time", &["--local-timezone", "UTC"]),
        "git": entry(&bin, "mcp-server-git", &[]),
    });
    let setting = Setting::new(&named).settled().await;
    for server in &setting.servers.list().servers {
        assert_eq!(
            (server.status, server.revision),
            ("connected", Some("2026-07-28")),
            "{server:?}"
        );
    }
    let now = setting
        .call("mcp__time__get_current_time", json!({"timezone": "UTC"}))
        .await
        .unwrap();
    assert!(text(&now).contains("UTC"));
    let status = json!({"repo_path": setting.dir.path()});
    let status = setting.call("mcp__git__git_status", status).await;
    assert!(
        status.is_err() || status.is_ok_and(|output| output.failed),
        "it is no repository"
    );
    setting.servers.close().await;
}

#[tokio::test]
async fn server_everything_over_http_and_over_events() {
    let Some(bin) = node() else { return };
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    for (mode, kind, place) in [("streamableHttp", "http", "mcp"), ("sse", "sse", "sse")] {
        haft_testkit::bound_this_process();
        let port = free_port();
        let _server = tokio::process::Command::new(bin.join("mcp-server-everything"))
            .arg(mode)
            .env("PATH", &path)
            .env("PORT", port.to_string())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let is_up = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        haft_testkit::until("it listens", is_up).await;
        let url = format!("http://127.0.0.1:{port}/{place}");
        let named = json!({"s": {"type": kind, "url": url}});
        let setting = Setting::with(&named, |options| {
            let plain = haft_models::HttpOptions {
                proxies: false,
                ..haft_models::HttpOptions::default()
            };
            options.http = Some(std::sync::Arc::new(haft_models::Http::new(plain)));
        });
        let setting = setting.settled().await;
        assert_eq!(
            setting.status("s"),
            ("connected".to_owned(), None),
            "{mode}"
        );
        calls_and_reports(&setting).await;
        setting.servers.close().await;
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}
