//! 100,000 calls through one connection: `cargo bench -p haft-mcp --bench soak`.
//!
//! Nothing may grow with the number of calls, neither memory nor open files. The first calls are not counted:
//! buffers take their size there.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{fs, path::PathBuf, sync::Arc, time::Instant};

use haft_contract::{BoxFuture, CallContext, DynTool};
use haft_mcp::client::{
    ClientHost, ClientOptions, Connection, ElicitationAnswer, ServerElicitation, ServerScope,
    Servers, entries,
};
use serde_json::json;

const CALLS: usize = 100_000;
const WARM: usize = 5_000;
/// So many KB more at the end than after the first calls are noise.
const NOISE: u64 = 2_048;

/// No one.
struct Alone;

impl ClientHost for Alone {
    fn warn(&self, text: &str) {
        println!("{text}");
    }

    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn can_elicit(&self) -> bool {
        false
    }

    fn elicit(&self, _: ServerElicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Cancel })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // `cargo test` builds benches too and passes this; there is nothing to test here.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let named = json!({"s": {"command": "python3", "args": [script]}});
    let servers = Arc::new(Servers::default());
    servers.add(entries(named.as_object().unwrap(), ServerScope::Given));
    servers.start(ClientOptions::default(), Arc::new(Alone), None);
    let connection = servers.server("s").unwrap().connected().await.unwrap();
    println!("| calls | way | calls a second | memory, KB | open files | |");
    println!("|---|---|---|---|---|---|");
    let by_hand = soak("connection", |n| call(&connection, n)).await;
    let (tools, _) = servers.tools();
    let echo = tools
        .into_iter()
        .find(|tool| tool.spec().name == "mcp__s__echo");
    let echo = echo.unwrap();
    let as_tool = soak("tool", |n| call_tool(&echo, n)).await;
    servers.close().await;
    assert!(
        by_hand && as_tool,
        "something grows with the number of calls"
    );
}

async fn call(connection: &Connection, n: usize) {
    let input = json!({"text": n.to_string()});
    let answer = connection.call_tool("echo", &input, Default::default(), |_| {});
    assert_eq!(answer.await.unwrap()["content"][0]["text"], n.to_string());
}

async fn call_tool(tool: &Arc<dyn DynTool>, n: usize) {
    let (cx, _updates) = CallContext::for_test(std::path::Path::new("/"));
    let call = Arc::clone(tool)
        .bind(json!({"text": n.to_string()}))
        .unwrap();
    assert!(!call.call(&cx).await.unwrap().failed);
}

/// Did nothing grow?
async fn soak<F: Future<Output = ()>>(way: &str, call: impl Fn(usize) -> F) -> bool {
    for n in 0..WARM {
        call(n).await;
    }
    let (memory, files) = (memory(), files());
    let began = Instant::now();
    for n in 0..CALLS {
        call(n).await;
    }
    let rate = CALLS as f64 / began.elapsed().as_secs_f64();
    let (memory_after, files_after) = (self::memory(), self::files());
    let is_steady = memory_after <= memory + NOISE && files_after == files;
    let verdict = if is_steady { "ok" } else { "grows" };
    println!(
        "| {CALLS} | {way} | {rate:.0} | {memory} → {memory_after} | {files} → {files_after} | {verdict} |"
    );
    is_steady
}

/// In KB, as the kernel counts it.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let words = line.unwrap().split_whitespace();
    words.into_iter().nth(1).unwrap().parse().unwrap()
}

fn files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}
