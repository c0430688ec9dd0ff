//! What language servers cost an Edit: where none runs, where a real one is warm, and the memory of this process.
//!
//! `cargo bench -p haft-tools --bench language_servers`. Needs the servers of `.ci/run` for all but the first.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use haft_contract::{
    CallContext, CallFollowUpService, Confinement, ConfinementProfile, DynTool, Services,
};
use haft_testkit::measure::{self, median, millis, percentile, row};
use haft_tools::{LanguageServerSetup, LanguageServers, ShellProgram};
use serde_json::{Value, json};

/// Files that the session has read before.
const READ: usize = 50;
const EDITS: usize = 200;
const WARM_EDITS: usize = 40;

fn main() {
    if measure::is_test_run() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    println!(
        "load average: {}",
        fs::read_to_string("/proc/loadavg").unwrap().trim()
    );
    measure::table();
    runtime.block_on(none_runs());
    for warm in &WARM {
        runtime.block_on(one_is_warm(warm));
    }
}

/// Where `.ci/run` puts the servers.
fn servers() -> PathBuf {
    let child = Path::new(env!("CARGO_BIN_EXE_haft-tools-child"));
    let target = child.ancestors().nth(2).unwrap();
    target.join("lsp/node_modules/.bin")
}

struct Desk {
    project: tempfile::TempDir,
    _folder: tempfile::TempDir,
    services: Services,
    tools: Vec<Arc<dyn DynTool>>,
}

impl Desk {
    fn new(path: OsString, settings: Value) -> Self {
        let (project, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = project.path().canonicalize().unwrap();
        let setup = LanguageServerSetup {
            workspace: root.clone(),
            top: root.clone(),
            trusted: true,
            settings,
            plugins: Value::Null,
            cache: folder.path().join("cache"),
            confinement: Arc::new(|| Confinement {
                profile: ConfinementProfile::Workspace,
                ..Confinement::default()
            }),
            path: Some(path),
            answer_within: Duration::from_secs(60),
        };
        let program = ShellProgram::new(env!("CARGO_BIN_EXE_haft-tools-child").into());
        let services = Services::none()
            .with(Arc::new(program))
            .with(Arc::new(setup));
        let services = haft_tools::with_services(services, folder.path(), &root);
        let tools = haft_tools::usable(&services);
        Self {
            project,
            _folder: folder,
            services,
            tools,
        }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.project.path().join(name), text).unwrap();
    }

    async fn call(&self, name: &str, input: Value) -> String {
        let root = self.project.path().canonicalize().unwrap();
        let (mut cx, _updates) = CallContext::for_test(&root);
        cx.services = self.services.clone();
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        let bound = tool.unwrap().clone().bind(input).unwrap();
        bound.check(&cx).await.unwrap();
        let output = bound.call(&cx).await.unwrap();
        let texts = output.content.iter().filter_map(|part| part.as_text());
        texts.collect::<Vec<_>>().join("\n")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.project.path().canonicalize().unwrap().join(name)
    }

    async fn edit(&self, name: &str, old: &str, new: &str) {
        let input = json!({"file_path": self.path(name), "old_string": old, "new_string": new});
        self.call("Edit", input).await;
    }

    /// What follows the calls of a reply; nothing without the feature.
    async fn after(&self) -> Option<String> {
        let Ok(follower) = self.services.get::<CallFollowUpService>() else {
            return None;
        };
        follower.0.report_after_calls(&self.services).await
    }
}

/// An Edit with what follows it, where no server is installed, and where there is no such feature.
async fn none_runs() {
    let mut medians = Vec::new();
    for settings in [json!({}), json!(false)] {
        let desk = Desk::new("/usr/bin:/bin".into(), settings);
        for number in 0..READ {
            desk.write(&format!("f{number}.py"), "one = 1\n");
            let read = json!({"file_path": desk.path(&format!("f{number}.py"))});
            desk.call("Read", read).await;
        }
        desk.after().await;
        let mut samples = Vec::new();
        for number in 0..EDITS {
            let (old, new) = match number % 2 {
                0 => ("one = 1", "one = 2"),
                _ => ("one = 2", "one = 1"),
            };
            let began = Instant::now();
            desk.edit("f0.py", old, new).await;
            assert_eq!(desk.after().await, None);
            samples.push(began.elapsed());
        }
        medians.push(median(samples));
    }
    let more = medians[0].saturating_sub(medians[1]);
    row(
        "an Edit where no server runs costs this much more",
        &format!(
            "{:.2} ms ({:.2} with, {:.2} without)",
            millis(more),
            millis(medians[0]),
            millis(medians[1])
        ),
        "<= 2 ms",
        more <= Duration::from_millis(2),
    );
}

/// A server that is warm, with what breaks a caller in another file.
struct Warm {
    name: &'static str,
    program: &'static str,
    files: [(&'static str, &'static str); 3],
    /// The two forms of a file: the second breaks the other file.
    forms: [&'static str; 2],
}

const WARM: [Warm; 2] = [
    Warm {
        name: "pyright",
        program: "pyright-langserver",
        files: [
            ("a.py", "def greet(name: str) -> str:\n    return name\n"),
            ("b.py", "from a import greet\n\nprint(greet(\"x\"))\n"),
            ("pyrightconfig.json", "{}"),
        ],
        forms: ["name: str", "name: int"],
    },
    Warm {
        name: "typescript-language-server",
        program: "typescript-language-server",
        files: [
            (
                "a.ts",
                "export function greet(name: string): unknown { return name; }\n",
            ),
            (
                "b.ts",
                "import { greet } from \"./a\";\n\nconsole.log(greet(\"x\"));\n",
            ),
            ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}"),
        ],
        forms: ["name: string", "name: number"],
    },
];

/// An Edit with what follows it, with a warm server; and the memory of this process.
async fn one_is_warm(warm: &Warm) {
    let name = warm.name;
    if !servers().join(warm.program).exists() {
        println!("{name} is not installed (.ci/run does it): left out");
        return;
    }
    let mut path = OsString::from(servers());
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let desk = Desk::new(path, json!({}));
    for (file, text) in warm.files {
        desk.write(file, text);
    }
    // The one that the project would have installed.
    fs::create_dir(desk.path("node_modules")).unwrap();
    let typescript = servers().join("../typescript").canonicalize().unwrap();
    std::os::unix::fs::symlink(typescript, desk.path("node_modules/typescript")).unwrap();
    let [edited, other] = [warm.files[0].0, warm.files[1].0];
    // What any session has after its first calls.
    for file in [edited, other] {
        desk.call("Read", json!({"file_path": desk.path(file)}))
            .await;
    }
    desk.edit(edited, "return name", "return  name").await;
    let own = std::process::id();
    let before = measure::memory(own, "VmRSS");
    for file in [edited, other] {
        let input = json!({"operation": "diagnostics", "filePath": desk.path(file)});
        desk.call("LSP", input).await;
    }
    desk.after().await;
    let (mut samples, mut reported) = (Vec::new(), 0);
    for number in 0..WARM_EDITS {
        // Breaks the caller in the other file, and repairs it.
        let [old, new] = match number % 2 {
            0 => warm.forms,
            _ => [warm.forms[1], warm.forms[0]],
        };
        desk.edit(edited, old, new).await;
        let began = Instant::now();
        let report = desk.after().await;
        samples.push(began.elapsed());
        let expected = match number % 2 {
            0 => format!("{other}:3:"),
            _ => " gone.".to_owned(),
        };
        reported += usize::from(report.is_some_and(|report| report.contains(&expected)));
    }
    let after = measure::memory(own, "VmRSS");
    let typical = median(samples.clone());
    let longest = percentile(samples, 100);
    row(
        &format!("after an Edit, a warm {name} is waited for, typically"),
        &format!("{:.0} ms", millis(typical)),
        "<= 300 ms",
        typical <= Duration::from_millis(300),
    );
    row(
        "the same, at most",
        &format!("{:.0} ms", millis(longest)),
        "<= 2000 ms",
        // What follows the wait is ours, and takes a little.
        longest <= Duration::from_millis(2100),
    );
    row(
        "edits whose effect on the other file was reported at once",
        &format!("{reported} of {WARM_EDITS}"),
        "all",
        reported == WARM_EDITS,
    );
    let more = after.saturating_sub(before);
    row(
        "memory of this process with a server running",
        &format!(
            "{:.1} MB more ({:.1} MB)",
            more as f64 / 1e3,
            after as f64 / 1e3
        ),
        "<= 10 MB",
        more <= 10_000,
    );
    let servers = desk.services.get::<LanguageServers>().unwrap();
    servers.close().await;
}
