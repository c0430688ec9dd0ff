//! A model on the loopback interface, as two kinds of providers speak: what it says is a function of the request.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

/// Each call has another id.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// Says something to one who asked this.
pub(crate) type Answers = dyn Fn(&Value, &mut Voice<'_>) -> io::Result<()> + Send + Sync;

/// Its address. It ends with this process.
pub(crate) fn serve(answers: Arc<Answers>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            // A program that goes away in the middle ends only its own connection.
            thread::spawn(move || drop(connection(stream, &*answers)));
        }
    });
    url
}

fn connection(stream: TcpStream, answers: &Answers) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        let wire = match path.split('?').next().unwrap_or_default() {
            "/v1/messages" => Wire::Messages,
            path if path.ends_with("/responses") => Wire::Responses,
            _ => {
                // Whatever else is asked for: nothing is known of it.
                let nothing =
                    b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
                writer.write_all(nothing)?;
                continue;
            }
        };
        writer.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        let mut voice = Voice {
            wire,
            writer: &mut writer,
            blocks: 0,
            text: String::new(),
            calls: false,
            // About what a tokenizer would count.
            input_tokens: length / 4,
        };
        voice.begin()?;
        answers(&body, &mut voice)?;
        voice.end()?;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Messages,
    Responses,
}

/// The way to one who asked.
pub(crate) struct Voice<'a> {
    wire: Wire,
    writer: &'a mut TcpStream,
    blocks: usize,
    /// What the open block has said; empty: none is open.
    text: String,
    calls: bool,
    input_tokens: usize,
}

impl Voice<'_> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        let name = event["type"].as_str().unwrap_or_default();
        let text = format!("event: {name}\ndata: {event}\n\n");
        self.writer
            .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    fn begin(&mut self) -> io::Result<()> {
        match self.wire {
            Wire::Messages => {
                let message = json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": self.input_tokens, "output_tokens": 1},
                });
                self.event(&json!({"type": "message_start", "message": message}))
            }
            Wire::Responses => {
                self.event(&json!({"type": "response.created", "response": {"id": "resp_1"}}))
            }
        }
    }

    /// A piece of what it says.
    pub(crate) fn says(&mut self, piece: &str) -> io::Result<()> {
        let index = self.blocks;
        let is_first = self.text.is_empty();
        self.text.push_str(piece);
        match self.wire {
            Wire::Messages => {
                if is_first {
                    let block = json!({"type": "text", "text": ""});
                    self.event(&json!({"type": "content_block_start", "index": index, "content_block": block}))?;
                }
                let delta = json!({"type": "text_delta", "text": piece});
                self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
            }
            Wire::Responses => {
                if is_first {
                    let item = json!({"type": "message", "id": "item_1", "role": "assistant", "content": []});
                    self.event(&json!({"type": "response.output_item.added", "output_index": index, "item": item}))?;
                }
                let delta = json!({"type": "response.output_text.delta", "item_id": "item_1",
                    "output_index": index, "content_index": 0, "delta": piece});
                self.event(&delta)
            }
        }
    }

    /// A call of a tool; only as Anthropic writes it.
    pub(crate) fn calls(&mut self, name: &str, input: &Value) -> io::Result<()> {
        self.end_block()?;
        let index = self.blocks;
        self.blocks += 1;
        self.calls = true;
        let id = format!("toolu_{}", CALLS.fetch_add(1, Ordering::Relaxed));
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        self.event(
            &json!({"type": "content_block_start", "index": index, "content_block": block}),
        )?;
        self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))?;
        self.event(&json!({"type": "content_block_stop", "index": index}))
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let index = self.blocks;
        let text = std::mem::take(&mut self.text);
        self.blocks += 1;
        match self.wire {
            Wire::Messages => self.event(&json!({"type": "content_block_stop", "index": index})),
            Wire::Responses => {
                let content = json!([{"type": "output_text", "text": text}]);
                let item = json!({"type": "message", "id": "item_1", "role": "assistant", "content": content});
                self.event(&json!({"type": "response.output_item.done", "output_index": index, "item": item}))
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_block()?;
        match self.wire {
            Wire::Messages => {
                let reason = if self.calls { "tool_use" } else { "end_turn" };
                let delta = json!({"stop_reason": reason, "stop_sequence": null});
                let usage = json!({"output_tokens": 120});
                self.event(&json!({"type": "message_delta", "delta": delta, "usage": usage}))?;
                self.event(&json!({"type": "message_stop"}))?;
            }
            Wire::Responses => {
                let usage = json!({
                    "input_tokens": self.input_tokens, "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens": 120, "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": self.input_tokens + 120,
                });
                let response = json!({"id": "resp_1", "usage": usage});
                self.event(&json!({"type": "response.completed", "response": response}))?;
            }
        }
        self.writer.write_all(b"0\r\n\r\n")
    }
}
