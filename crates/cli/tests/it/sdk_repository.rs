//! What the SDKs' own repositories hold a program to, against a server that is as strict as a real one and a
//! model that does what prompts ask for: the examples of the Python SDK, unchanged, out of its source package;
//! its end-to-end tests and the examples of the TypeScript SDK as cases of ours.
//!
//! `.ci/run` brings the packages and demands them; elsewhere the cases say that they are skipped.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use haft_testkit::{http::HttpFake, obedient_model, skip};
use tempfile::{TempDir, tempdir};

const MODEL: &str = obedient_model::MODELS[1];

/// A project, a home, and a server; the program that an SDK looks for is ours.
struct Bench {
    dir: TempDir,
    server: HttpFake,
}

impl Bench {
    fn new() -> Self {
        let dir = tempdir().unwrap();
        for folder in ["work", "home", "bin"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_haft"), dir.path().join("bin/claude")).unwrap();
        Self {
            dir,
            server: obedient_model::start(),
        }
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn command(&self, program: &Path) -> Command {
        haft_testkit::bound_this_process();
        let mut command = Command::new(program);
        let bin = self.dir.path().join("bin");
        command
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ANTHROPIC_BASE_URL", &self.server.url)
            .env("ANTHROPIC_API_KEY", "key")
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .env("ANTHROPIC_DEFAULT_SONNET_MODEL", MODEL)
            .env("HAFT_CASE_BINARY", env!("CARGO_BIN_EXE_haft"))
            .env("HAFT_CASE_DIR", self.work())
            .env("HAFT_CASE_URL", &self.server.url)
            .env("HAFT_CASE_MODEL", MODEL);
        command
    }

    /// Runs it to its end. No request may have been one that a real server refuses, unless it is the model.
    fn run(&self, command: &mut Command) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let text = String::from_utf8_lossy(&stdout).into_owned();
        let told = String::from_utf8_lossy(&stderr);
        for asked in self.server.requests() {
            let refused = haft_testkit::strict::refusal(&asked);
            assert!(refused.is_none(), "{refused:?}: {}", asked.body);
        }
        assert!(status.success(), "{command:?}: {told}\n{text}");
        text
    }
}

fn sdk_folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("sdk")
}

/// Something that `.ci/run` has put below the target folder.
fn brought(what: &str, path: &str) -> Option<PathBuf> {
    let path = sdk_folder().join(path);
    if path.exists() {
        return Some(path);
    }
    skip(&format!(
        "{what}: {} is absent; `.ci/run` brings it",
        path.display()
    ));
    None
}

/// An example of the Python SDK, in a copy of its folder, as its source package has it.
fn example(arguments: &[&str], model: Option<&str>) -> Option<String> {
    let python = brought("the Python SDK", "venv/bin/python")?;
    let source = brought("the source of the Python SDK", "source")?;
    let bench = Bench::new();
    let mut command = bench.command(&python);
    // The package of the source, which brings no program along.
    command.env("PYTHONPATH", source.join("src"));
    if let Some(model) = model {
        command.env("ANTHROPIC_MODEL", model);
    }
    command.arg(source.join("examples").join(arguments[0]));
    command.args(&arguments[1..]);
    let text = bench.run(&mut command);
    assert!(!bench.server.requests().is_empty(), "nothing was asked");
    for bad in ["Traceback", "API Error"] {
        assert!(!text.contains(bad), "{text}");
    }
    Some(text)
}

/// The examples one by one: what is run, and what it must print.
macro_rules! examples {
    ($($name:ident: [$($argument:literal),+] => [$($printed:literal),+];)+) => {$(
        #[test]
        fn $name() {
            // With the model that the server is asked for, and with one that is named.
            let models: &[_] = if haft_testkit::is_thorough() { &[None, Some(MODEL)] } else { &[None] };
            for text in models.iter().filter_map(|model| example(&[$($argument),+], *model)) {
                for printed in [$($printed),+] {
                    assert!(text.contains(printed), "{printed:?} is missing: {text}");
                }
            }
        }
    )+};
}

examples! {
    example_agents: ["agents.py"] => ["Claude: Here is an answer"];
    example_filesystem_agents: ["filesystem_agents.py"] => ["SUCCESS: Received full response"];
    example_hooks: ["hooks.py", "all"] => ["Here is an answer"];
    example_partial_messages: ["include_partial_messages.py"] => ["thinking_delta"];
    example_calculator: ["mcp_calculator.py"] => ["mcp__calc__add", "mcp__calc__sqrt"];
    example_plugin: ["plugin_example.py"] => ["demo-plugin"];
    example_quick_start: ["quick_start.py"] => ["Claude: Here is an answer"];
    example_setting_sources: ["setting_sources.py", "all"] => ["Available slash commands"];
    example_stderr: ["stderr_callback_example.py"] => ["Captured 0 stderr lines"];
    example_streaming: ["streaming_mode.py", "basic_streaming"] => ["Claude: Here is an answer"];
    example_conversation: ["streaming_mode.py", "multi_turn_conversation"] => ["Claude: Here is an answer"];
    example_interrupt: ["streaming_mode.py", "with_interrupt"] => ["quick joke"];
    example_control: ["streaming_mode.py", "control_protocol"] => ["Just say 'Hello!'"];
    example_bash: ["streaming_mode.py", "bash_command"] => ["ResultMessage"];
    example_error_handling: ["streaming_mode.py", "error_handling"] => ["Result ended"];
    example_options: ["streaming_mode.py", "with_options"] => ["Result ended"];
    example_concurrent: ["streaming_mode.py", "concurrent_responses"] => ["Result ended"];
    example_iterable: ["streaming_mode.py", "async_iterable_prompt"] => ["Result ended"];
    example_trio: ["streaming_mode_trio.py"] => ["Here is an answer"];
    example_system_prompt: ["system_prompt.py"] => ["Claude: Here is an answer"];
    example_permission_callback: ["tool_permission_callback.py"] => ["Tool Usage Summary"];
    example_tools: ["tools_option.py"] => ["Tools from system message"];
}

/// The last of its queries goes over its budget, and the SDK makes an exception of that result.
#[test]
fn example_budget() {
    let Some(python) = brought("the Python SDK", "venv/bin/python") else {
        return;
    };
    let Some(source) = brought("the source of the Python SDK", "source") else {
        return;
    };
    let bench = Bench::new();
    let mut command = bench.command(&python);
    command.env("PYTHONPATH", source.join("src"));
    command.arg(source.join("examples/max_budget_usd.py"));
    let ran = command.output().unwrap();
    let (told, text) = (
        String::from_utf8_lossy(&ran.stderr),
        String::from_utf8_lossy(&ran.stdout),
    );
    assert!(text.contains("Budget limit exceeded!"), "{text}\n{told}");
    assert!(told.contains("Reached maximum budget ($0.0001)"), "{told}");
}

#[test]
fn conventions_of_the_python_sdk() {
    let Some(python) = brought("the Python SDK", "venv/bin/python") else {
        return;
    };
    let bench = Bench::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/conventions.py");
    let text = bench.run(bench.command(&python).arg(script));
    assert!(text.ends_with("done\n"), "{text}");
}

#[test]
fn the_typescript_sdk() {
    let path = "node/node_modules/@anthropic-ai/claude-agent-sdk";
    let Some(sdk) = brought("the TypeScript SDK", path) else {
        return;
    };
    if haft_testkit::lacks("node") {
        return;
    }
    let bench = Bench::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/typescript.mjs");
    let mut command = bench.command(Path::new("node"));
    let text = bench.run(command.env("HAFT_CASE_SDK", sdk).arg(script));
    assert!(text.ends_with("done\n"), "{text}");
}
