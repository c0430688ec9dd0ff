//! A kept tree against starting ripgrep: the sixteen kinds of pattern, on three trees.
//!
//! `cargo bench -p haft-search --bench against_rg`. `HAFT_BENCH_RG` names another `rg`. Each number is
//! the ratio of times on the clock, rg's divided by ours, both the best of some rounds of the same run:
//! other work on the machine then counts for both. `HAFT_BENCH_TREES` names trees (`small`, `many`,
//! `registry`), `HAFT_BENCH_KINDS` a part of a kind's name: only such are measured.
//!
//! *page* is what the tool gives unless it is asked for more: the first 250 rows. *whole* is every row.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use haft_search::{
    GrepMatches, GrepMode, GrepQuery, IndexSettings, RowKind, SearchEngine, StopCondition,
};

const CONTENT: GrepMode = GrepMode::Content {
    before: 0,
    after: 0,
    only_matching: false,
};

/// What the tool gives unless it is asked for more.
const PAGE: usize = 250;

struct Kind {
    name: &'static str,
    query: GrepQuery,
}

fn kinds(root: &Path, rare: &str, sub: &Path) -> Vec<Kind> {
    let kind = |name, pattern: &str, mode| Kind {
        name,
        query: GrepQuery {
            mode,
            ..GrepQuery::new(pattern, root)
        },
    };
    let with = |mut kind: Kind, change: fn(&mut GrepQuery)| {
        change(&mut kind.query);
        kind
    };
    let files = GrepMode::FilesWithMatches;
    let mut kinds = vec![
        kind("literal, absent", "zzqx_not_there_at_all", CONTENT),
        kind("literal, one hit", rare, CONTENT),
        kind("literal, some", "from_str_radix", CONTENT),
        kind("literal, common", r"unwrap\(\)", CONTENT),
        kind("the same, files only", r"unwrap\(\)", files),
        with(kind("case-insensitive", "parseerror", CONTENT), |query| {
            query.case_insensitive = true
        }),
        kind("alternation", "TcpListener|UdpSocket|UnixStream", CONTENT),
        kind("declaration regex", r"fn\s+new_with_\w+", CONTENT),
        kind("nearly no literal", r"\b[a-z]{2}\d{3}\b", CONTENT),
        kind(r"\w+_\w+\(, files", r"\w+_\w+\(", files),
        with(kind("word + glob", r"\bmatch\b", CONTENT), |query| {
            query.globs = vec!["lib.rs".into()]
        }),
        with(
            kind("multi-line", r"#\[inline\]\n\s*pub fn with_", CONTENT),
            |query| query.multiline = true,
        ),
        with(kind("glob *.rs", "Option<", CONTENT), |query| {
            query.globs = vec!["*.rs".into()]
        }),
        with(
            kind("type, count", "unsafe impl", GrepMode::Count),
            |query| {
                query.file_type = Some("rust".into());
            },
        ),
        with(kind("type toml", r#"edition = "2021""#, CONTENT), |query| {
            query.file_type = Some("toml".into());
        }),
    ];
    let mut below = kind("one subdirectory", "pub struct", CONTENT);
    below.query.path = sub.to_path_buf();
    kinds.push(below);
    kinds
}

fn rg(query: &GrepQuery) -> Command {
    let program = std::env::var("HAFT_BENCH_RG").unwrap_or_else(|_| "rg".into());
    let mut command = Command::new(program);
    command
        .current_dir(&query.current_dir)
        .stdin(Stdio::null())
        .args([
            "--no-config",
            "--color=never",
            "--no-heading",
            "--with-filename",
            "--no-messages",
            "--hidden",
        ])
        .args(query.globs.iter().map(|glob| format!("--glob={glob}")))
        .args([".git", ".svn", ".hg", ".bzr", ".jj"].map(|name| format!("--glob=!{name}")))
        .args(query.file_type.iter().map(|name| format!("--type={name}")));
    if query.case_insensitive {
        command.arg("--ignore-case");
    }
    if query.multiline {
        command.args(["--multiline", "--multiline-dotall"]);
    }
    match query.mode {
        GrepMode::FilesWithMatches => command.arg("--files-with-matches"),
        GrepMode::Count => command.arg("--count"),
        GrepMode::Content { .. } => command.arg("--line-number"),
    };
    command
        .arg("-e")
        .arg(&query.pattern)
        .arg("--")
        .arg(&query.path);
    command
}

fn rg_time(query: &GrepQuery) -> (Duration, Vec<u8>) {
    let started = Instant::now();
    let output = rg(query).output().expect("rg runs");
    (started.elapsed(), output.stdout)
}

/// Paths with line numbers or counts, as both say them.
fn ours(engine: &SearchEngine, query: &GrepQuery) -> BTreeSet<String> {
    let report = engine
        .grep(query, &StopCondition::never())
        .expect("a sound query");
    match report.found {
        GrepMatches::Rows(rows) => rows
            .iter()
            .filter(|row| row.kind == RowKind::Match)
            .map(|row| format!("{}:{}", row.path.display(), row.line.unwrap_or(0)))
            .collect(),
        GrepMatches::Files(files) => files
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        GrepMatches::Counts(counts) => counts
            .iter()
            .map(|it| format!("{}:{}", it.path.display(), it.count))
            .collect(),
    }
}

fn theirs(output: &[u8], mode: GrepMode) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| line.starts_with('/'));
    match mode {
        GrepMode::Content { .. } => lines
            // A remark about a binary file has no line number.
            .filter_map(|line| {
                let mut parts = line.splitn(3, ':');
                let (path, number) = (parts.next()?, parts.next()?);
                number
                    .parse::<u64>()
                    .ok()
                    .map(|number| format!("{path}:{number}"))
            })
            .collect(),
        _ => lines.map(str::to_owned).collect(),
    }
}

fn timed(engine: &SearchEngine, query: &GrepQuery) -> Duration {
    let started = Instant::now();
    engine
        .grep(query, &StopCondition::never())
        .expect("a sound query");
    started.elapsed()
}

/// Until the index is on disk, or a small tree is indexed.
fn wait_for_index(engine: &SearchEngine, settings: &IndexSettings, root: &Path) -> Duration {
    let started = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let status = engine.index_status();
        let small = status
            .iter()
            .any(|it| it.files < 600 && it.indexed * 10 > it.files * 9);
        if settings.file_of(root).is_some() || small {
            return started.elapsed();
        }
        assert!(started.elapsed().as_secs() < 900, "no index: {status:?}");
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn percentile(ratios: &mut [f64], part: f64) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[((ratios.len() - 1) as f64 * part) as usize]
}

#[expect(clippy::print_stdout, reason = "it is a report")]
fn measure(name: &str, root: &Path, rare: &str, sub: &Path) {
    let cache = tempfile::tempdir().expect("a temporary directory");
    let settings = || IndexSettings {
        cache_folder: Some(cache.path().join("index")),
        ..IndexSettings::default()
    };
    let first = GrepQuery {
        mode: CONTENT,
        head_limit: Some(PAGE),
        ..GrepQuery::new("zzqx_not_there_at_all", root)
    };
    rg_time(&first); // warms the kernel's cache
    let rg_first = (0..5).map(|_| rg_time(&first).0).min().unwrap_or_default();
    // Alone: a new engine each time, which has no time to build anything.
    let cold = (0..4)
        .map(|_| timed(&SearchEngine::with(settings()), &first))
        .min();
    let engine = SearchEngine::with(settings());
    let ours_first = timed(&engine, &first);
    let built = wait_for_index(&engine, &settings(), root);
    let status = engine.index_status().remove(0);
    let later = (0..3)
        .map(|_| timed(&SearchEngine::with(settings()), &first))
        .min()
        .unwrap_or_default();
    println!(
        "\n### {name}: {} files, {} indexed, index {:.1} MB of memory, contents {:.0} MB, built in {:.1} s\n",
        status.files,
        status.indexed,
        status.index_bytes as f64 / 1e6,
        status.held_bytes as f64 / 1e6,
        built.as_secs_f64(),
    );
    let ours_first = ours_first.min(cold.unwrap_or(ours_first));
    println!(
        "first query of a first session {} ms, rg {} ms: {:.2} of rg's time; of a later session {} ms: {:.2}\n",
        milliseconds(ours_first),
        milliseconds(rg_first),
        ratio(ours_first, rg_first),
        milliseconds(later),
        ratio(later, rg_first),
    );
    println!("| pattern | results | rg ms | page ms | whole ms | rg/page | rg/whole |");
    println!("|---|---|---|---|---|---|---|");
    let (mut pages, mut wholes) = (Vec::new(), Vec::new());
    let wanted = std::env::var("HAFT_BENCH_KINDS").unwrap_or_default();
    let kinds = kinds(root, rare, sub);
    for kind in kinds.into_iter().filter(|kind| kind.name.contains(&wanted)) {
        let mut best = [Duration::MAX; 3];
        let page = GrepQuery {
            head_limit: Some(PAGE),
            ..kind.query.clone()
        };
        let mut output = Vec::new();
        for round in 0..5 {
            let (time, printed) = rg_time(&kind.query);
            best[0] = best[0].min(time);
            output = printed;
            for _ in 0..3 {
                best[1] = best[1].min(timed(&engine, &page));
                best[2] = best[2].min(timed(&engine, &kind.query));
            }
            let _ = round;
        }
        let (found, expected) = (ours(&engine, &kind.query), theirs(&output, kind.query.mode));
        let differ: Vec<_> = found.symmetric_difference(&expected).take(3).collect();
        assert!(differ.is_empty(), "{name}, {}: {differ:?}", kind.name);
        let [rg, page, whole] = best;
        println!(
            "| {} | {} | {} | {} | {} | {:.1} | {:.1} |",
            kind.name.replace('|', "\\|"),
            found.len(),
            milliseconds(rg),
            milliseconds(page),
            milliseconds(whole),
            ratio(rg, page),
            ratio(rg, whole),
        );
        pages.push(ratio(rg, page));
        wholes.push(ratio(rg, whole));
    }
    for (what, ratios) in [("page", &mut pages), ("whole", &mut wholes)] {
        if ratios.is_empty() {
            continue;
        }
        println!(
            "\n{what}: median {:.1}, 10th percentile {:.1}, least {:.1}",
            percentile(ratios, 0.5),
            percentile(ratios, 0.1),
            percentile(ratios, 0.0)
        );
    }
}

/// Many files, made of the text of few.
fn made(root: &Path, files: usize, from: &Path) -> (String, PathBuf) {
    let mut text = String::new();
    let mut folders = vec![from.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|it| it == "rs" || it == "toml")
                && let Ok(more) = fs::read_to_string(&path)
            {
                text += &more;
            }
        }
        if text.len() > 60 << 20 {
            break;
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let per_file = 90;
    for number in 0..files {
        let folder = root.join(format!("part{}/mod{}", number / 2000, number / 50 % 40));
        fs::create_dir_all(&folder).expect("room");
        let start = number * 61 % lines.len().saturating_sub(per_file).max(1);
        let name = match number % 9 {
            0 => format!("file{number}.toml"),
            1 => format!("mod{number}/lib.rs"),
            _ => format!("file{number}.rs"),
        };
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("room");
        let end = (start + per_file).min(lines.len());
        let mut body = lines[start..end].concat();
        if number == files / 2 {
            body += "let planted_only_here_once = 1;\n";
        }
        fs::write(path, body).expect("room");
    }
    ("planted_only_here_once".to_owned(), root.join("part0/mod3"))
}

fn main() {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let registry = fs::read_dir(home.join(".cargo/registry/src"));
    let registry = registry
        .into_iter()
        .flatten()
        .flatten()
        .next()
        .map(|entry| entry.path());
    let Some(registry) = registry else {
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().canonicalize().expect("it is there");
    let wanted = std::env::var("HAFT_BENCH_TREES").unwrap_or_else(|_| "small,many,registry".into());
    if wanted.contains("small") {
        let small = root.join("small");
        let (rare, sub) = made(&small, 500, &registry);
        measure("500 files, made", &small, &rare, &sub);
    }
    if wanted.contains("many") {
        let many = root.join("many");
        let (rare, sub) = made(&many, 60_000, &registry);
        measure("60,000 files, made", &many, &rare, &sub);
    }
    if wanted.contains("registry") {
        let sub = fs::read_dir(&registry).into_iter().flatten().flatten();
        let mut sub: Vec<_> = sub.map(|entry| entry.path()).collect();
        sub.sort();
        let sub = sub
            .iter()
            .find(|path| path.to_string_lossy().contains("/regex-automata"));
        let sub = sub.cloned().unwrap_or_else(|| registry.clone());
        measure(
            "cargo's registry folder",
            &registry,
            "DeterminizerImpossiblyRare|Too many capture groups for",
            &sub,
        );
    }
}
