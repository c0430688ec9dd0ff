//! What WebFetch adds to a page: `cargo bench -p haft-cli --bench web`.
//!
//! A server on this machine sends a page of 1 MB; what a plain client takes for it is taken off.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop there"
)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use haft_testkit::measure;
use serde_json::{Value, json};

const ROUNDS: usize = 21;
const BOUND: f64 = 60.0;

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    let page = page(1 << 20);
    let length = page.len();
    let address = serve(page);
    let plain = median((0..ROUNDS).map(|_| plainly(address)).collect());
    let (whole, text) = fetched(address);
    let whole = median(whole);
    let beyond = (whole.saturating_sub(plain)).as_secs_f64() * 1_000.0;
    let verdict = if beyond <= BOUND { "ok" } else { "MISSED" };
    println!("| what | measured | bound | |\n|---|---|---|---|");
    println!(
        "| WebFetch of a page of {length} bytes, beyond the server (median of {ROUNDS}, {text} characters come out) | {beyond:.1} ms | {BOUND} ms | {verdict} |"
    );
}

/// Sections with paragraphs, links, lists, code and a table, between a menu and a footer.
fn page(length: usize) -> String {
    let mut page = String::from(
        "<!doctype html><html><head><title>A long page</title><style>p{margin:0}</style></head><body><nav><ul>",
    );
    for number in 0..50 {
        page += &format!("<li class=\"item\"><a href=\"/menu/{number}\">Menu {number}</a></li>");
    }
    page += "</ul></nav><main><article class=\"content\"><h1>A long page</h1>";
    let mut number = 0;
    while page.len() < length {
        number += 1;
        page += &format!(
            "<section id=\"s{number}\"><h2>Section {number}</h2><p class=\"text\">Words that say something, more or less, about \
             number {number}, with a <a href=\"/page/{number}?a=1&amp;b=2\">link</a>, with <em>emphasis</em>, and with \
             <code>code_{number}</code>; they go on for a while, as words do in a text, until they end.</p>\
             <ul><li>one of {number}</li><li>two of {number}<ul><li>deeper</li></ul></li></ul>\
             <pre><code class=\"language-rust\">fn f{number}(x: u32) -&gt; u32 {{\n    x + {number}\n}}</code></pre>\
             <table><tr><th>Name</th><th>Value</th></tr><tr><td>a{number}</td><td>{number}</td></tr></table></section>\n"
        );
    }
    page + "</article></main><footer>The end</footer><script>var x = 1;</script></body></html>"
}

fn serve(page: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(page.as_bytes());
        }
    });
    address
}

fn plainly(address: SocketAddr) -> Duration {
    let start = Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    start.elapsed()
}

/// How long each call took, seen from outside, and how long its text was; the first, which sets the client up, is not
/// counted.
fn fetched(address: SocketAddr) -> (Vec<Duration>, usize) {
    let home = std::env::temp_dir();
    let mut child = Command::new(binary())
        .args(["--allowedTools", "WebFetch(domain:127.0.0.1)", "exec"])
        .env("HOME", &home)
        .current_dir(&home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut times = Vec::new();
    let mut length = 0;
    for round in 0..=ROUNDS {
        let url = format!("http://{address}/?{round}");
        let call = json!({"id": round.to_string(), "name": "WebFetch", "input": {"url": url, "prompt": "x"}});
        let start = Instant::now();
        writeln!(stdin, "{call}").unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        if round > 0 {
            times.push(start.elapsed());
        }
        let text = answer.to_string();
        let total = text
            .split(" of ")
            .filter_map(|rest| rest.split(';').next()?.parse().ok());
        length = total.max().unwrap_or(0);
    }
    drop(stdin);
    child.wait().unwrap();
    (times, length)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
