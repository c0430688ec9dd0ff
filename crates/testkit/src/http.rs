//! A local HTTP server that sends prepared replies, one per connection, and records the requests.
//!
//! It runs in its own thread, so that tests with and without an async runtime can use it.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::strict;

/// A server that runs until it is dropped.
pub struct HttpFake {
    /// The base URL: `http://127.0.0.1:PORT`.
    pub url: String,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedHttpRequest>>>,
    is_over: Arc<AtomicBool>,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct RecordedHttpRequest {
    /// The request line and the headers.
    pub head: String,
    /// The body; `Null` if it is not JSON.
    pub body: Value,
}

impl RecordedHttpRequest {
    /// Returns the method and the path without its query.
    pub fn target(&self) -> (&str, &str) {
        let mut words = self.head.split_whitespace();
        let (method, path) = (words.next(), words.next());
        let path = path.and_then(|path| path.split('?').next());
        (method.unwrap_or_default(), path.unwrap_or_default())
    }
}

/// A prepared reply.
#[derive(Debug, Clone)]
pub struct HttpReply {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    end: ReplyEnd,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ReplyEnd {
    /// As HTTP requires.
    Proper,
    /// The connection is closed in the middle of the reply.
    Cut,
    /// The connection stays open without further data until the client disconnects.
    Silence,
    /// The last chunk is repeated until the client disconnects.
    Endless,
}

impl HttpReply {
    /// Creates a reply that is sent in one chunk.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            chunks: vec![body.into()],
            end: ReplyEnd::Proper,
        }
    }

    /// Creates a stream of server-sent events.
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// Creates an error response in Anthropic's format.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = json!({"type": kind, "message": message});
        let body = json!({"type": "error", "error": error, "request_id": "req_1"});
        Self::new(status, "application/json", body.to_string())
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Splits the body into chunks of this length.
    #[must_use]
    pub fn in_chunks_of(mut self, length: usize) -> Self {
        let all = self.chunks.concat();
        self.chunks = all.chunks(length).map(<[u8]>::to_vec).collect();
        self
    }

    /// Splits the body into two chunks.
    #[must_use]
    pub fn split_at(mut self, at: usize) -> Self {
        let all = self.chunks.concat();
        let (a, b) = all.split_at(at);
        let halves = [a, b].into_iter().filter(|half| !half.is_empty());
        self.chunks = halves.map(<[u8]>::to_vec).collect();
        self
    }

    /// Truncates the body before this text and keeps the connection open until the client
    /// disconnects.
    ///
    /// # Panics
    /// If the body does not contain the text.
    #[must_use]
    pub fn silent_before(mut self, text: &str) -> Self {
        let all = self.chunks.concat();
        let at = all
            .windows(text.len())
            .position(|window| window == text.as_bytes());
        #[expect(clippy::expect_used, reason = "the test is wrong then")]
        let at = at.expect("the body does not contain the text to stop at");
        self.chunks = vec![all[..at].to_vec()];
        self.then_silence()
    }

    /// Closes the connection in the middle of the reply, after the body.
    #[must_use]
    pub fn then_cut(mut self) -> Self {
        self.end = ReplyEnd::Cut;
        self
    }

    /// Keeps the connection open after the body, without the end of the reply.
    #[must_use]
    pub fn then_silence(mut self) -> Self {
        self.end = ReplyEnd::Silence;
        self
    }

    /// Repeats the last chunk indefinitely.
    #[must_use]
    pub fn endless(mut self) -> Self {
        self.end = ReplyEnd::Endless;
        self
    }
}

impl HttpFake {
    /// Starts a server that sends these replies in this order, and then repeats the last one.
    pub fn start(replies: impl IntoIterator<Item = HttpReply>) -> Self {
        let replies: Vec<HttpReply> = replies.into_iter().collect();
        let mut number = 0;
        Self::start_with(move |_| {
            let reply = replies[number.min(replies.len() - 1)].clone();
            number += 1;
            reply
        })
    }

    /// Starts a server that sends these replies in this order, and then errors. A request that a
    /// real provider would reject is rejected and consumes no reply.
    pub fn start_strict(replies: impl IntoIterator<Item = HttpReply>) -> Self {
        let mut replies = replies.into_iter().collect::<Vec<_>>().into_iter();
        Self::start_with(move |asked| {
            let no_more_replies = || HttpReply::error(500, "api_error", "no more replies");
            strict::refusal(asked).unwrap_or_else(|| replies.next().unwrap_or_else(no_more_replies))
        })
    }

    /// Starts a server that calls this function for each request, one after the other.
    ///
    /// # Panics
    /// If no port is available.
    #[expect(clippy::expect_used, reason = "without it no test can run")]
    pub fn start_with(
        mut reply: impl FnMut(&RecordedHttpRequest) -> HttpReply + Send + 'static,
    ) -> Self {
        crate::wait::bound_this_process();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let address = listener.local_addr().expect("the port that was bound");
        let requests = Arc::<Mutex<Vec<RecordedHttpRequest>>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (log, over) = (Arc::clone(&requests), Arc::clone(&is_over));
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let Some(request) = read_request(&stream) else {
                    continue;
                };
                let reply = reply(&request);
                log.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(request);
                // The client may disconnect at any time.
                let _ = give(stream, &reply);
            }
        });
        Self {
            url: format!("http://{address}"),
            address,
            requests,
            is_over,
        }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<RecordedHttpRequest> {
        let asked = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }

    /// Returns the bodies of the requests so far.
    pub fn bodies(&self) -> Vec<Value> {
        self.requests()
            .into_iter()
            .map(|asked| asked.body)
            .collect()
    }
}

impl Drop for HttpFake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes up the thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// Returns the value of a header.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

fn read_request(stream: &TcpStream) -> Option<RecordedHttpRequest> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let before = head.len();
        reader
            .read_line(&mut head)
            .ok()
            .filter(|length| *length > 0)?;
        if head[before..].trim_end().is_empty() {
            break;
        }
    }
    let head = head.trim_end().to_owned();
    let length = header(&head, "content-length").and_then(|value| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(RecordedHttpRequest { head, body })
}

fn give(mut stream: TcpStream, reply: &HttpReply) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    for chunk in reply.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        write_chunk(&mut stream, chunk)?;
    }
    match reply.end {
        ReplyEnd::Proper => {
            stream.write_all(b"0\r\n\r\n")?;
            stream.shutdown(Shutdown::Write)
        }
        ReplyEnd::Cut => stream.shutdown(Shutdown::Write),
        ReplyEnd::Silence => stream.read_to_end(&mut Vec::new()).map(drop),
        ReplyEnd::Endless => {
            let chunk = reply.chunks.last().cloned().unwrap_or_default();
            loop {
                write_chunk(&mut stream, &chunk)?;
            }
        }
    }
}

fn write_chunk(stream: &mut TcpStream, chunk: &[u8]) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
    stream.write_all(chunk)?;
    stream.write_all(b"\r\n")
}
