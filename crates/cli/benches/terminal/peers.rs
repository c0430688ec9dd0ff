//! Other agents at a terminal, side by side in one run: how long until they can be typed at, what they write for the
//! same reply, what that costs. They are looked for in the path of this process, and left out where they are not there.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    front_end::{BenchFrontEnd, binary, find},
    millis, percentile,
    server::{Voice, serve},
};

const STARTS: usize = 7;
/// A key that no provider has given.
const KEY: &str = "sk-key-of-a-benchmark";
/// Behind everything that is said; one word, since some move the cursor between two.
const LAST: &str = "ENDOFREPLY";

/// A program, and what is on its screen when it can be typed at.
struct Peer {
    name: &'static str,
    program: OsString,
    ready: &'static str,
    arguments: &'static [&'static str],
}

pub(crate) fn peers(dir: &Path) {
    let home = dir.join("peers");
    let project = home.join("p");
    fs::create_dir_all(&project).unwrap();
    let url = serve(Arc::new(|_, voice| says(voice)));
    configure(&home, &project, &url);
    println!();
    println!(
        "| program | start until it can be typed at | CPU of that | bytes for one reply | CPU for it | memory |"
    );
    println!("|---|---|---|---|---|---|");
    let arguments = &["--model", "m"][..];
    let ours = Peer {
        name: "haft",
        program: binary().into(),
        ready: "›",
        arguments,
    };
    measure(&ours, &project, &home, &url);
    for (name, ready) in [("codex", "›"), ("claude", "❯")] {
        match in_path(name) {
            Some(program) => {
                let peer = Peer {
                    name,
                    program: program.into(),
                    ready,
                    arguments: &[],
                };
                measure(&peer, &project, &home, &url);
            }
            None => println!("| {name} | not here: skipped | | | | |"),
        }
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

/// What a person would have answered before: the directory is trusted, the key is meant.
fn configure(home: &Path, project: &Path, url: &str) {
    fs::create_dir_all(home.join(".codex")).unwrap();
    let codex = format!(
        "model = \"m\"\nmodel_provider = \"local\"\ncheck_for_update_on_startup = false\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
         env_key = \"OPENAI_API_KEY\"\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        project.display()
    );
    fs::write(home.join(".codex/config.toml"), codex).unwrap();
    let accepted = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let end = &KEY[KEY.len() - 20..];
    let claude = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": [end], "rejected": []},
        "projects": {project.to_str().unwrap(): accepted},
    });
    fs::write(home.join(".claude.json"), claude.to_string()).unwrap();
}

/// A reply as models write it, in pieces of a few words, 100 a second.
fn says(voice: &mut Voice<'_>) -> std::io::Result<()> {
    let sentence = "The discount begins above the limit, and the test wants it at the limit. ";
    let paragraph = format!("{}\n\n", sentence.repeat(4));
    let code = "```rust\nfn discount(total: u32) -> u32 {\n    if total >= 5000 { total / 10 } else { 0 }\n}\n```\n\n";
    let list = "- first, the **comparison** is changed\n- then the `test` runs again\n\n";
    let text = format!("{}{LAST}", [&paragraph, code, list].concat().repeat(3));
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(12));
        voice.says(piece)?;
        rest = behind;
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn measure(peer: &Peer, project: &Path, home: &Path, url: &str) {
    let variables = [
        ("HOME", home.to_str().unwrap()),
        ("OPENAI_API_KEY", KEY),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", url),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    let arguments: Vec<&OsStr> = peer.arguments.iter().map(OsStr::new).collect();
    let start = || BenchFrontEnd::answering(project, &peer.program, &arguments, &variables);
    let (mut starts, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let began = Instant::now();
        let front_end = start();
        let (_, at) = front_end.until(0, peer.ready.as_bytes());
        starts.push(at - began);
        cpu.push(front_end.work_of_all());
    }
    let front_end = start();
    let (from, _) = front_end.until(0, peer.ready.as_bytes());
    // What is done behind the first frame is not counted for the reply.
    thread::sleep(Duration::from_secs(3));
    front_end.types("go");
    thread::sleep(Duration::from_millis(1500));
    let (before, work) = (front_end.length(), front_end.work_of_all());
    // Some take an Enter that comes soon behind letters for a part of a paste.
    let is_answered = (0..3).any(|_| {
        front_end.types("\r");
        let wait = Duration::from_secs(20);
        front_end
            .until_within(from.max(before), LAST.as_bytes(), wait)
            .is_some()
    });
    if !is_answered {
        let start = millis(percentile(&mut starts, 50));
        let cpu = millis(percentile(&mut cpu, 50));
        println!(
            "| {} | {start:.0} ms | {cpu:.0} ms | no answer within a minute | | |",
            peer.name
        );
        return;
    }
    thread::sleep(Duration::from_millis(500));
    let (bytes, work) = (
        front_end.length() - before,
        front_end.work_of_all().saturating_sub(work),
    );
    let cleared = {
        let seen = front_end.seen.bytes.lock().unwrap();
        [&b"\x1b[2J"[..], b"\x1b[3J"]
            .iter()
            .any(|wanted| find(&seen, wanted).is_some())
    };
    println!(
        "| {}{} | {:.0} ms (most: {:.0} ms) | {:.0} ms | {:.1} KB | {:.0} ms | {:.0} MB |",
        peer.name,
        if cleared { ", clears the screen" } else { "" },
        millis(percentile(&mut starts, 50)),
        millis(percentile(&mut starts, 100)),
        millis(percentile(&mut cpu, 50)),
        bytes as f64 / 1e3,
        millis(work),
        front_end.memory_of_all() as f64 / 1e3,
    );
}
