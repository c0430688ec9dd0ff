//! A web server for real browsers. Browsers open connections without sending a request, so each
//! connection has its own thread.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// A server of pages by path. It runs until it is dropped.
pub struct PageServer {
    /// The base URL: `http://127.0.0.1:PORT`.
    pub url: String,
    address: SocketAddr,
    requested_paths: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

/// The status line with the headers, and the body.
type PageReply = (String, Vec<u8>);

impl PageServer {
    /// Serves HTML pages by path. A body that begins with `HTTP ` consists of `STATUS`, headers, an
    /// empty line and the body.
    ///
    /// # Panics
    /// If no port is available.
    #[expect(clippy::expect_used, reason = "without it no test can run")]
    pub fn start<P: Into<String>, B: Into<String>>(
        pages: impl IntoIterator<Item = (P, B)>,
    ) -> Self {
        crate::wait::bound_this_process();
        let pages: HashMap<String, PageReply> = pages
            .into_iter()
            .map(|(path, body)| (path.into(), reply(body.into())))
            .collect();
        let pages = Arc::new(pages);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let address = listener.local_addr().expect("the port that was bound");
        let requested_paths = Arc::<Mutex<Vec<String>>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (log, over) = (Arc::clone(&requested_paths), Arc::clone(&is_over));
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let (pages, log) = (Arc::clone(&pages), Arc::clone(&log));
                thread::spawn(move || serve(&stream, &pages, &log));
            }
        });
        Self {
            url: format!("http://{address}"),
            address,
            requested_paths,
            is_over,
        }
    }

    /// Returns the requested paths with their queries.
    pub fn requested_paths(&self) -> Vec<String> {
        let asked = self
            .requested_paths
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes up the thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn reply(body: String) -> PageReply {
    match body
        .strip_prefix("HTTP ")
        .and_then(|text| text.split_once("\n\n"))
    {
        Some((head, body)) => (head.replace('\n', "\r\n"), body.as_bytes().to_vec()),
        None => (
            "200 OK\r\nContent-Type: text/html; charset=utf-8".to_owned(),
            body.into_bytes(),
        ),
    }
}

fn serve(stream: &TcpStream, pages: &HashMap<String, PageReply>, log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(first)) = lines.next() else {
        return;
    };
    for line in lines {
        match line {
            Ok(line) if !line.is_empty() => {}
            _ => break,
        }
    }
    let target = first.split_whitespace().nth(1).unwrap_or("/").to_owned();
    let path = target.split('?').next().unwrap_or("/").to_owned();
    log.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(target);
    let missing = (
        "404 Not Found\r\nContent-Type: text/plain".to_owned(),
        b"no such page".to_vec(),
    );
    let (head, body) = pages.get(&path).unwrap_or(&missing);
    let mut stream = stream;
    // The client may disconnect at any time.
    let _ = write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(body);
}
