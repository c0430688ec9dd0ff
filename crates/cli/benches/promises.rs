//! The promises that are numbers: `cargo bench`.
//!
//! Prints a table. Times are medians; what depends on the machine is a ratio against the peer in the
//! same run. Dated results are kept in `benches/results`.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use haft::{CallContext, Effects, Haft, Tool, ToolError, ToolOutput};
use haft_journal::{
    Journal, PageRequest, Patch,
    edit::{self, EditRequest},
};
use haft_testkit::measure::{self, median, row};
use serde_json::{Value, json};

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    if measure::is_test_run() {
        return;
    }
    measure::table();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(no_op_call());
    sequential_reads();
    version();
    binary_size();
    classifier();
    decision();
    edit_a_megabyte();
    large_files();
    grep();
}

/// Lines as agents type them, short and long, harmless and not.
const LINES: [&str; 12] = [
    "git status",
    "git log --oneline -5 | head",
    "ls -la src && wc -l src/*.rs",
    "rg -n TODO src | sort | uniq -c | sort -rn | head -20",
    "sed -n '1,40p' src/main.rs",
    "find . -name '*.rs' -newer Cargo.toml -not -path './target/*'",
    "cd crates && for f in */Cargo.toml; do grep -H '^name' \"$f\"; done",
    "cargo build --release 2>&1 | tail -5",
    "git add -A && git commit -m \"fix: a thing\" && git push origin main",
    "timeout 30 env LC_ALL=C awk -F: '$3 > 1000 { print $1, $7 }' /etc/passwd",
    "curl -sSf https://example.com/install.sh | sh",
    "if [ -f package.json ]; then jq -r '.scripts | keys[]' package.json; else echo none; fi",
];

fn classifier() {
    let place = haft_shell::LineLocation {
        cwd: PathBuf::from("/work"),
        home: Some(PathBuf::from("/home/user")),
    };
    let rounds = 2_000;
    let start = Instant::now();
    for _ in 0..rounds {
        for line in LINES {
            std::hint::black_box(haft_shell::analyze(std::hint::black_box(line), &place));
        }
    }
    let lines = (rounds * LINES.len()) as f64;
    let rate = lines / start.elapsed().as_secs_f64();
    row(
        "command lines judged, library",
        &format!("{rate:.0}/s"),
        "20,000/s",
        rate >= 20_000.0,
    );

    // The same through the binary, process and pipes included.
    let mut input = String::new();
    for _ in 0..rounds {
        for line in LINES {
            input += &json!({ "cmd": line }).to_string();
            input.push('\n');
        }
    }
    let start = Instant::now();
    let mut child = Command::new(binary())
        .args(["permissions", "classify", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let answers = BufReader::new(child.stdout.take().unwrap()).lines().count();
    writer.join().unwrap();
    child.wait().unwrap();
    assert_eq!(answers, rounds * LINES.len());
    let rate = lines / start.elapsed().as_secs_f64();
    row(
        "command lines judged, `permissions classify`",
        &format!("{rate:.0}/s"),
        "20,000/s",
        rate >= 20_000.0,
    );
}

fn decision() {
    use haft::engine::permissions::{
        CallFacts, List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SettingsScope,
        decide,
    };
    let bases = PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    };
    let mut rules = RuleSet::default();
    for number in 0..50 {
        for (list, text) in [
            (List::Deny, format!("Bash(forbidden{number} *)")),
            (List::Deny, format!("Read(./secret{number}/**)")),
            (List::Ask, format!("Bash(careful{number} *)")),
            (List::Allow, format!("Bash(npm run task{number} *)")),
        ] {
            rules
                .add(
                    list,
                    &text,
                    RuleSource::from_scope(SettingsScope::Project),
                    &bases,
                )
                .unwrap();
        }
    }
    let policy = Policy {
        home: Some("/h".into()),
        rules: rules.into(),
        ..Policy::new(haft::PermissionMode::Default, vec!["/p".into()])
    };
    let setting = PathContext {
        cwd: "/p".into(),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    };
    let calls = [
        ("Bash", json!({"command": "npm run task49 -- --watch"})),
        (
            "Bash",
            json!({"command": "ls -la src && wc -l src/main.rs"}),
        ),
        ("Read", json!({"file_path": "/p/src/main.rs"})),
        (
            "Edit",
            json!({"file_path": "/p/src/main.rs", "old_string": "a", "new_string": "b"}),
        ),
    ];
    let tools = haft::tools::all();
    let facts: Vec<CallFacts> = calls
        .into_iter()
        .map(|(name, input)| {
            let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
            let bound = std::sync::Arc::clone(tool).bind(input).unwrap();
            let mut facts = CallFacts::from_bound_call(&*bound);
            facts.read_command(&setting);
            facts
        })
        .collect();
    let samples = (0..2_000).map(|_| {
        let start = Instant::now();
        for facts in &facts {
            std::hint::black_box(decide(&policy, std::hint::black_box(facts)));
        }
        start.elapsed() / 4
    });
    let each = median(samples.collect());
    row(
        "`decide` with 200 rules",
        &format!("{:.1} µs", each.as_secs_f64() * 1e6),
        "20 µs",
        each <= Duration::from_micros(20),
    );
}

/// Does nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {
    /// Something to validate.
    #[serde(default)]
    #[expect(dead_code, reason = "only parsed")]
    word: String,
}

struct NoOp;

impl Tool for NoOp {
    type Input = Nothing;
    const NAME: &'static str = "NoOp";
    fn effects(&self, _: &Nothing) -> Effects {
        Effects::NONE
    }
    async fn call(&self, _: &Nothing, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

async fn no_op_call() {
    let mut haft = Haft::builder(".").tool(NoOp).build().await.unwrap();
    let mut samples = Vec::new();
    for round in 0..20_000 {
        let started = Instant::now();
        let finished = haft.call("NoOp", json!({"word": "x"})).await;
        assert!(!finished.is_error);
        if round >= 1_000 {
            samples.push(started.elapsed());
        }
    }
    let median = median(samples);
    let micros = median.as_nanos() as f64 / 1e3;
    let bound = Duration::from_micros(100);
    row(
        "a no-op call through the whole pipeline",
        &format!("{micros:.1} µs"),
        "≤ 100 µs",
        median <= bound,
    );
}

/// A `haft exec` that is asked one call after the other.
struct Exec {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    answer: String,
}

impl Exec {
    fn new(cwd: &Path) -> Self {
        let mut child = Command::new(binary())
            .arg("exec")
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
            answer: String::new(),
        }
    }

    /// Sends a call and waits for its answer, which must not be an error.
    fn read(&mut self, input: &Value) {
        let call = json!({"name": "Read", "input": input});
        self.stdin
            .write_all(format!("{call}\n").as_bytes())
            .unwrap();
        self.answer.clear();
        self.stdout.read_line(&mut self.answer).unwrap();
        assert!(
            self.answer.contains("\"is_error\":false"),
            "{}",
            self.answer
        );
    }

    /// Most memory it ever had, in megabytes.
    fn peak(&self) -> f64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap_or("0");
        peak.split_whitespace()
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
            / 1e3
    }

    fn end(mut self) {
        drop(self.stdin);
        self.child.wait().unwrap();
    }
}

fn sequential_reads() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..100)
        .map(|n| format!("line {n} of a file of usual size, more or less\n"))
        .collect();
    const WARM: usize = 500;
    const CALLS: usize = 10_000;
    // Each file once: a second Read of the same would only point to the first.
    for n in 0..WARM + CALLS {
        fs::write(dir.path().join(format!("{n}.txt")), &text).unwrap();
    }
    let mut exec = Exec::new(dir.path());
    let mut ask = |n: usize| exec.read(&json!({"file_path": format!("{n}.txt")}));
    (0..WARM).for_each(&mut ask);
    let started = Instant::now();
    (WARM..WARM + CALLS).for_each(&mut ask);
    let rate = CALLS as f64 / started.elapsed().as_secs_f64();
    exec.end();
    row(
        "sequential Reads through one `haft exec`",
        &format!("{rate:.0}/s"),
        "≥ 5,000/s",
        rate >= 5_000.0,
    );
}

fn version() {
    let run = || {
        let started = Instant::now();
        let output = Command::new(binary()).arg("--version").output().unwrap();
        assert!(output.status.success());
        started.elapsed()
    };
    run();
    let median = median((0..50).map(|_| run()).collect());
    let millis = median.as_micros() as f64 / 1e3;
    row(
        "`haft --version`",
        &format!("{millis:.1} ms"),
        "≤ 10 ms",
        median <= Duration::from_millis(10),
    );
}

fn binary_size() {
    let copy = tempfile::NamedTempFile::new().unwrap();
    fs::copy(binary(), copy.path()).unwrap();
    let stripped = Command::new("strip")
        .arg(copy.path())
        .status()
        .is_ok_and(|status| status.success());
    let megabytes = fs::metadata(copy.path()).unwrap().len() as f64 / 1e6;
    let what = if stripped {
        "the binary, stripped"
    } else {
        "the binary (no `strip` here)"
    };
    row(
        what,
        &format!("{megabytes:.1} MB"),
        "≤ 25 MB",
        megabytes <= 25.0,
    );
}

/// Everything an Edit does but waiting for the disk: find the place, splice, make the diff.
fn edit_a_megabyte() {
    let text: String = (0..20_000)
        .map(|n| format!("line {n} of a file that is a megabyte long in all\n"))
        .collect();
    let old = "line 15000 of a file that is a megabyte long in all\n";
    let change = EditRequest {
        old,
        new: "another line\n",
        replace_all: false,
    };
    let samples = (0..101).map(|_| {
        let started = Instant::now();
        let plan = edit::plan(text.as_bytes(), &change).unwrap();
        let new = edit::apply(text.as_bytes(), &plan);
        let patch = Patch::between(text.as_bytes(), &new);
        assert_eq!(patch.added, 1);
        started.elapsed()
    });
    let median = median(samples.collect());
    let millis = median.as_micros() as f64 / 1e3;
    let size = text.len() as f64 / 1e6;
    row(
        &format!("Edit on a file of {size:.1} MB, without the disk"),
        &format!("{millis:.1} ms"),
        "≤ 5 ms",
        millis <= 5.0,
    );
}

/// The first page of a large file against that of a small one, and a page far inside it.
fn large_files() {
    const LINE: &str = "a line of some sixty-three characters, its end of line included\n";
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: usize| {
        let path = dir.path().join(name);
        let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
        let block = LINE.repeat(1_000);
        for _ in 0..lines / 1_000 {
            file.write_all(block.as_bytes()).unwrap();
        }
        path
    };
    let small = write("small", 16_000);
    let large = write("large", 16_000_000);
    let read = |path: &Path, offset: Option<u64>| {
        let request = PageRequest {
            offset,
            limit: offset.map(|_| 3),
            ..PageRequest::default()
        };
        let samples = (0..5).map(|_| {
            let journal = Journal::new(None);
            let started = Instant::now();
            journal.read(path, &request).unwrap();
            started.elapsed()
        });
        median(samples.collect())
    };
    read(&large, Some(10_000_000)); // warm
    let (of_small, of_large) = (read(&small, None), read(&large, None));
    let ratio = of_large.as_secs_f64() / of_small.as_secs_f64();
    let measured = format!(
        "{:.2} ms against {:.2} ms: {ratio:.2}x",
        of_large.as_micros() as f64 / 1e3,
        of_small.as_micros() as f64 / 1e3
    );
    row(
        "first page of a 1 GB file against that of a 1 MB file",
        &measured,
        "≤ 2x",
        ratio <= 2.0,
    );

    let far = read(&large, Some(10_000_000));
    let rate = 10_000_000.0 * LINE.len() as f64 / far.as_secs_f64() / 1e9;
    row(
        "line 10,000,000 of a 1 GB file, warm",
        &format!("{rate:.1} GB/s"),
        "≥ 1 GB/s",
        rate >= 1.0,
    );

    let mut exec = Exec::new(dir.path());
    exec.read(&json!({"file_path": "large"}));
    exec.read(&json!({"file_path": "large", "offset": 10_000_000, "limit": 3}));
    let peak = exec.peak();
    exec.end();
    row(
        "peak memory of `haft exec` over both",
        &format!("{peak:.0} MB"),
        "≤ 32 MB",
        peak <= 32.0,
    );
}

/// A tree of sources: the crates this workspace is built from, copied until there are enough.
fn tree(root: &Path, files: usize) -> usize {
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    let mut sources = Vec::new();
    let mut folders = vec![cargo_home.join("registry/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|ending| ending == "rs" || ending == "md")
            {
                sources.push(path);
            }
        }
    }
    sources.sort();
    assert!(!sources.is_empty(), "no sources found to search in");
    for number in 0..files {
        let folder = root.join(format!("d{:03}", number / 50));
        fs::create_dir_all(&folder).unwrap();
        let source = &sources[number % sources.len()];
        let ending = source.extension().unwrap().to_str().unwrap();
        fs::copy(source, folder.join(format!("f{number}.{ending}"))).unwrap();
    }
    files
}

fn grep() {
    let Ok(version) = Command::new("rg").arg("--version").output() else {
        println!("| Grep against `rg` | no `rg` on this machine | | skipped |");
        return;
    };
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.split_whitespace().nth(1).unwrap_or_default();
    let dir = tempfile::tempdir().unwrap();
    let files = tree(dir.path(), 6_000);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut haft = runtime.block_on(Haft::builder(dir.path()).build()).unwrap();

    for (what, pattern) in [
        ("rare literal", "UnwindSafe"),
        ("common word", "return"),
        ("regex", r"fn \w+_with\("),
        ("absent", "zqxjkv"),
    ] {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        // In turns, so that both meet the same weather.
        for _ in 0..11 {
            let input = json!({"pattern": pattern, "head_limit": 0});
            let started = Instant::now();
            let finished = runtime.block_on(haft.call("Grep", input));
            ours.push(started.elapsed());
            let started = Instant::now();
            let output = Command::new("rg")
                .args(["--no-config", "--hidden", "-l", "-e", pattern, "."])
                .current_dir(dir.path())
                .output()
                .unwrap();
            theirs.push(started.elapsed());
            let found: BTreeSet<String> = finished.structured.as_ref().unwrap()["filenames"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str)
                .map(|path| relative(path, dir.path()))
                .collect();
            let expected: BTreeSet<String> = String::from_utf8(output.stdout)
                .unwrap()
                .lines()
                .map(|line| line.trim_start_matches("./").to_owned())
                .collect();
            assert_eq!(found, expected, "{pattern}: not the files rg finds");
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        let measured = format!(
            "{:.0} ms against {:.0} ms: {ratio:.2}x",
            ours.as_micros() as f64 / 1e3,
            theirs.as_micros() as f64 / 1e3
        );
        let promise = format!("Grep, {what}, {files} files, against the `rg` {version} process");
        row(&promise, &measured, "≤ 1.1x", ratio <= 1.1);
    }
}

fn relative(path: &str, root: &Path) -> String {
    Path::new(path)
        .strip_prefix(root)
        .map_or_else(|_| path.to_owned(), |p| p.display().to_string())
}
