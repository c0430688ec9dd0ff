//! A server that gives prepared answers, one a connection, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// What is sent back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// As HTTP wants it.
    Proper,
    /// The connection breaks.
    Cut,
    /// Nothing more comes, until the client goes away.
    Silence,
    /// The last chunk again and again, until the client goes away.
    Endless,
}

impl Answer {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            chunks: vec![body.into()],
            end: End::Proper,
        }
    }

    /// A stream of events.
    pub(crate) fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// A refusal in JSON.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = serde_json::json!({"type": kind, "message": message});
        let body = serde_json::json!({"type": "error", "error": error, "request_id": "req_1"});
        Self::new(status, "application/json", body.to_string())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same bytes in chunks of this length.
    pub(crate) fn in_chunks_of(mut self, length: usize) -> Self {
        self.chunks = self
            .chunks
            .concat()
            .chunks(length)
            .map(<[u8]>::to_vec)
            .collect();
        self
    }

    /// The same bytes in two chunks.
    pub(crate) fn split_at(mut self, at: usize) -> Self {
        let all = self.chunks.concat();
        let (a, b) = all.split_at(at);
        let halves = [a, b].into_iter().filter(|half| !half.is_empty());
        self.chunks = halves.map(<[u8]>::to_vec).collect();
        self
    }

    pub(crate) fn then_cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    pub(crate) fn then_silence(mut self) -> Self {
        self.end = End::Silence;
        self
    }

    pub(crate) fn endless(mut self) -> Self {
        self.end = End::Endless;
        self
    }
}

impl Server {
    /// Gives these answers, in this order; the last one again if more is asked.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else {
                    return;
                };
                let Some(request) = read_request(&mut stream).await else {
                    continue;
                };
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(request);
                    log.len() - 1
                };
                let answer = &answers[number.min(answers.len() - 1)];
                // The client may go away at any time.
                let _ = give(&mut stream, answer).await;
            }
        });
        Self { url, seen, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = header(&head, "content-length").and_then(|value| value.parse().ok());
            let length: usize = length.unwrap_or(0);
            while bytes.len() < end + 4 + length {
                let read = stream
                    .read(&mut buffer)
                    .await
                    .ok()
                    .filter(|read| *read > 0)?;
                bytes.extend_from_slice(&buffer[..read]);
            }
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
            return Some(Seen { head, body });
        }
        let read = stream
            .read(&mut buffer)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
}

async fn give(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", answer.status);
    head.push_str("transfer-encoding: chunked\r\n");
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for chunk in answer.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        write_chunk(stream, chunk).await?;
    }
    match answer.end {
        End::Proper => {
            stream.write_all(b"0\r\n\r\n").await?;
            stream.shutdown().await
        }
        End::Cut => stream.shutdown().await,
        End::Silence => {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.map(|_| ())
        }
        End::Endless => {
            let chunk = answer.chunks.last().cloned().unwrap_or_default();
            loop {
                write_chunk(stream, &chunk).await?;
            }
        }
    }
}

async fn write_chunk(stream: &mut TcpStream, chunk: &[u8]) -> std::io::Result<()> {
    stream
        .write_all(format!("{:x}\r\n", chunk.len()).as_bytes())
        .await?;
    stream.write_all(chunk).await?;
    stream.write_all(b"\r\n").await
}

/// The value of a header in a head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}
