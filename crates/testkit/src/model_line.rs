//! A fake model server whose reply is sent step by step, for benchmarks that measure when data is
//! sent and when requests arrive.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The timeout of waiting for a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A model server that a benchmark steers. It accepts any number of connections and ends with the
/// process.
pub struct StepwiseModelServer {
    url: String,
    requests: Receiver<StepRequest>,
    writer: Option<TcpStream>,
    connections: Arc<AtomicUsize>,
}

/// The body of a request, the time when it was complete, and the connection for the reply.
type StepRequest = (Vec<u8>, Instant, TcpStream);

impl StepwiseModelServer {
    /// Starts a server that waits for requests.
    ///
    /// # Panics
    /// If no port is available.
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (sender, requests) = mpsc::channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                let sender = sender.clone();
                thread::spawn(move || serve(&stream, &sender));
            }
        });
        Self {
            url: format!("http://{address}"),
            requests,
            writer: None,
            connections,
        }
    }

    /// Returns the base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Waits for the next request. Returns its body and the time when it was complete.
    ///
    /// # Panics
    /// If no request arrives in time.
    pub fn request(&mut self) -> (Vec<u8>, Instant) {
        let next = self.requests.recv_timeout(TIMEOUT);
        let (body, at, writer) = next.expect("a request");
        self.writer = Some(writer);
        (body, at)
    }

    /// Starts a reply.
    pub fn begin(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.write(head.as_bytes())?;
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 12, "output_tokens": 1},
        });
        self.send_events(&[json!({"type": "message_start", "message": message})])
    }

    /// Sends events of the reply in one write.
    pub fn send_events(&mut self, events: &[Value]) -> io::Result<()> {
        let texts = events.iter().map(|event| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        });
        let text: String = texts.collect();
        self.write(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// Ends the reply. Returns the time when everything was sent.
    pub fn end(&mut self, stop: &str) -> io::Result<Instant> {
        let delta = json!({"stop_reason": stop, "stop_sequence": null});
        self.send_events(&[
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}),
            json!({"type": "message_stop"}),
        ])?;
        self.write(b"0\r\n\r\n")?;
        Ok(Instant::now())
    }

    /// Sends a complete reply with the text "done".
    pub fn reply(&mut self) -> io::Result<()> {
        self.begin()?;
        self.send_events(&text_block(0, "done"))?;
        self.end("end_turn").map(drop)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let unasked = || io::Error::other("nothing was asked");
        self.writer.as_mut().ok_or_else(unasked)?.write_all(bytes)
    }
}

/// Returns the events of a block with a call.
pub fn call_block(index: usize, id: &str, name: &str, input: &Value) -> [Value; 3] {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    block_events(index, &block, &delta)
}

/// Returns the events of a block with text.
pub fn text_block(index: usize, text: &str) -> [Value; 3] {
    let block = json!({"type": "text", "text": ""});
    block_events(index, &block, &json!({"type": "text_delta", "text": text}))
}

fn block_events(index: usize, block: &Value, delta: &Value) -> [Value; 3] {
    [
        json!({"type": "content_block_start", "index": index, "content_block": block}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

/// Reads requests until the connection ends.
fn serve(stream: &TcpStream, requests: &Sender<StepRequest>) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let at = Instant::now();
        let Ok(writer) = stream.try_clone() else {
            return;
        };
        if requests.send((body, at, writer)).is_err() {
            return;
        }
    }
}
