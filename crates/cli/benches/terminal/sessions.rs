//! A long session that is taken up, and one in which much is waited for while nothing happens.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{front_end::BenchFrontEnd, millis, percentile, row, text};

const RESUMES: usize = 15;
const LONG: usize = 5_000;
const MONITORS: usize = 10;
const SCHEDULES: usize = 50;
const WAITING: Duration = Duration::from_secs(30);

/// Vector 35: a session of 5,000 turns is taken up by its end.
pub(crate) fn resume(dir: &Path) {
    // A directory of its own: what is newest there is this session.
    let dir = &dir.join("resume");
    fs::create_dir(dir).unwrap();
    let front_end = BenchFrontEnd::scripted(dir, &[text("Kept.")], &[]);
    front_end.says("go", "Kept.");
    drop(front_end);
    let kept = transcript_in(&dir.join(".claude/projects"));
    let folder = kept.parent().unwrap().to_path_buf();
    fs::remove_file(&kept).unwrap();
    let file = folder.join("00000000-0000-4000-8000-0000000000aa.jsonl");
    let long = long_transcript();
    let size = long.len();
    fs::write(&file, &long).unwrap();
    let script = dir.join("script.json");
    fs::write(&script, json!({"turns": [text("Next.")]}).to_string()).unwrap();
    let (mut first, mut last, mut rows) = (Vec::new(), Vec::new(), 0);
    for _ in 0..RESUMES {
        let started = Instant::now();
        let front_end =
            BenchFrontEnd::start(dir, &[], &["--script", script.to_str().unwrap(), "-c"]);
        let (_, at) = front_end.until(0, b"\x1b[?2026l");
        first.push(at - started);
        let (end, at) = front_end.until(0, format!("row 99 of {}", LONG - 1).as_bytes());
        last.push(at - started);
        let bytes = front_end.seen.bytes.lock().unwrap();
        let printed = bytes[..end].iter().filter(|byte| **byte == b'\n').count();
        rows = rows.max(printed);
    }
    let took = millis(percentile(&mut first, 50));
    let most = millis(percentile(&mut first, 95));
    let shown = millis(percentile(&mut last, 50));
    row(
        &format!(
            "{LONG} turns ({:.1} MB) taken up: first frame",
            size as f64 / 1e6
        ),
        &format!("{took:.1} ms, 95 %: {most:.1} ms; its end after {shown:.0} ms, {rows} rows"),
        "≤ 30 ms, ≤ 200 rows",
        took <= 30.0 && rows <= 200,
    );
}

/// The only transcript there.
fn transcript_in(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let files = entries.flat_map(|project| fs::read_dir(project.path()).unwrap().flatten());
    let mut files = files.map(|file| file.path());
    files
        .find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .unwrap()
}

fn long_transcript() -> String {
    let id = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
    let line = |role: &str, number: usize, content: &Value| {
        let line = json!({
            "type": role, "uuid": id(number), "parentUuid": (number > 1).then(|| id(number - 1)),
            "isSidechain": false, "sessionId": "00000000-0000-4000-8000-0000000000aa",
            "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": role, "content": content},
        });
        format!("{line}\n")
    };
    let mut lines = String::new();
    for turn in 0..LONG {
        lines += &line("user", turn * 2 + 1, &json!(format!("prompt {turn}")));
        let words: String = match turn + 10 < LONG {
            true => "Some words of an answer, as long as answers are. ".repeat(8),
            false => (0..100).map(|n| format!("row {n} of {turn}\n\n")).collect(),
        };
        let content = json!([{"type": "text", "text": words}]);
        lines += &line("assistant", turn * 2 + 2, &content);
    }
    lines
}

/// Programs are followed and messages are due, none of them now: that must cost nothing.
pub(crate) fn watches(dir: &Path) {
    let call = |name: &str, input: Value| json!({"type": "tool_use", "name": name, "input": input});
    let monitor = |number: usize| {
        let description = format!("follows {number}");
        let input = json!({"description": description, "command": "command sleep 1000", "persistent": true});
        call("Monitor", input)
    };
    let schedule = |number: usize| {
        // Of an hour that is not this one, whichever it is: those that are due would say something.
        let input =
            json!({"cron": "0 0 1 1 *", "prompt": format!("look {number}"), "durable": false});
        call("CronCreate", input)
    };
    let calls: Vec<Value> = (0..MONITORS)
        .map(monitor)
        .chain((0..SCHEDULES).map(schedule))
        .collect();
    let turns = [json!({"content": calls}), text("All are open.")];
    let allowed = ["--allowed-tools", "Monitor", "CronCreate", "Bash"];
    let front_end = BenchFrontEnd::scripted(dir, &turns, &allowed);
    front_end.says("go", "All are open.");
    thread::sleep(Duration::from_secs(3));
    let (bytes, work, wakes) = (
        front_end.length(),
        front_end.work_of_all(),
        front_end.wakes(),
    );
    thread::sleep(WAITING);
    let bytes = front_end.length() - bytes;
    let work = front_end.work_of_all().saturating_sub(work);
    let wakes = front_end.wakes().saturating_sub(wakes);
    row(
        &format!("{MONITORS} monitors and {SCHEDULES} schedules, idle for 30 s"),
        &format!(
            "{bytes} bytes, {:.0} ms of CPU with all processes, woken {wakes} times",
            millis(work)
        ),
        "0 bytes, ≤ 10 ms",
        bytes == 0 && work <= Duration::from_millis(10),
    );
}
