//! A provider on this machine that speaks as Anthropic does.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread::JoinHandle,
};

use serde_json::{Value, json};

/// What one request is answered.
pub(crate) struct Reply {
    status: u16,
    body: String,
    /// It never ends: whoever asked must hang up.
    stalls: bool,
}

impl Reply {
    pub(crate) fn whole(status: u16, body: String) -> Self {
        Self {
            status,
            body,
            stalls: false,
        }
    }

    /// The beginning of this, and then nothing more.
    pub(crate) fn stalling(self) -> Self {
        let half = self.body.find("event: content_block_stop");
        Self {
            body: self.body[..half.unwrap()].to_owned(),
            stalls: true,
            ..self
        }
    }
}

/// Gives these answers, one a request, and then what it was asked.
pub(crate) struct Server {
    pub(crate) url: String,
    address: SocketAddr,
    thread: JoinHandle<Vec<Value>>,
}

impl Server {
    pub(crate) fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut replies = replies.into_iter();
            let mut asked = Vec::new();
            while let Some(next) = serve(&listener, &mut replies) {
                asked.push(next);
            }
            asked
        });
        Self {
            url: format!("http://{address}"),
            address,
            thread,
        }
    }

    /// Ends it: what it was asked.
    pub(crate) fn asked(self) -> Vec<Value> {
        // A connection without a request.
        drop(TcpStream::connect(self.address).unwrap());
        self.thread.join().unwrap()
    }
}

/// Serves one request; `None` if the connection has none.
fn serve(listener: &TcpListener, replies: &mut impl Iterator<Item = Reply>) -> Option<Value> {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    let mut is_empty = true;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        is_empty = false;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    if is_empty {
        return None;
    }
    let mut asked = vec![0; length];
    reader.read_exact(&mut asked).unwrap();
    let out_of_words = || Reply::whole(500, json!({"error": "no more replies"}).to_string());
    let reply = replies.next().unwrap_or_else(out_of_words);
    let kind = if reply.status == 200 {
        "text/event-stream"
    } else {
        "application/json"
    };
    let length = match reply.stalls {
        true => reply.body.len() + 1,
        false => reply.body.len(),
    };
    let head = format!(
        "HTTP/1.1 {} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
        reply.status
    );
    // Whoever asked may have hung up.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(reply.body.as_bytes());
    if reply.stalls {
        let _ = reader.read(&mut [0]);
    }
    Some(serde_json::from_slice(&asked).unwrap())
}

/// A reply of these blocks, as a stream.
pub(crate) fn reply(blocks: &[Value], stop: &str) -> Reply {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1-2026", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 1},
    });
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block["type"].as_str().unwrap() {
            "text" => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": block["text"]}),
            ),
            _ => (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}));
    events.push(json!({"type": "message_stop"}));
    let body = events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect();
    Reply::whole(200, body)
}

pub(crate) fn said(text: &str) -> Reply {
    reply(&[json!({"type": "text", "text": text})], "end_turn")
}

pub(crate) fn called(name: &str, input: Value) -> Reply {
    called_as("toolu_1", name, input)
}

/// A call with this id.
pub(crate) fn called_as(id: &str, name: &str, input: Value) -> Reply {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
    reply(&[block], "tool_use")
}
