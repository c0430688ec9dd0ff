//! The proxy's HTTP: tunnels, and plain requests, one for a connection.

use std::time::Duration;

use tokio::{
    io::{AsyncBufRead, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    time::timeout,
};

use super::{
    Request,
    body::{Body, CopyError},
    dial::{Dialer, Failure},
    end::{End, discard},
    head::{
        Fields, Framing, RequestHead, ResponseHead, Target, Version, read_request, read_response,
    },
    line::ReadError,
    tunnel,
};

/// Answers before the answer; more are a fault of the server.
const MOST_INTERIM: usize = 16;

type FromClient<'a> = BufReader<ReadHalf<'a>>;

/// Serves one connection.
pub(super) async fn serve(mut reader: FromClient<'_>, writer: &mut WriteHalf<'_>, dialer: &Dialer) {
    let limits = &dialer.limits;
    let head = timeout(limits.handshake, read_request(&mut reader, limits.head)).await;
    let answered = match head {
        Err(_) => Err(Answer::new(408, "The request did not come in time.\n")),
        Ok(Err(ReadError::Io(_) | ReadError::Closed)) => return,
        Ok(Err(ReadError::TooLong)) => Err(Answer::new(431, "The request's head is too long.\n")),
        Ok(Err(error)) => Err(malformed(&error)),
        Ok(Ok(head)) => {
            let bodiless = head.method == "HEAD";
            let answered = pass_on(head, &mut reader, writer, dialer).await;
            answered.map_err(|answer| Answer { bodiless, ..answer })
        }
    };
    let end = match answered {
        Ok(end) => end,
        Err(answer) => match writer.write_all(&answer.bytes()).await {
            Ok(()) => End::Whole,
            Err(_) => End::Broken,
        },
    };
    end.close(&mut reader, writer).await;
}

/// Passes a request on, or says with what to answer instead.
async fn pass_on(
    head: RequestHead,
    reader: &mut FromClient<'_>,
    writer: &mut WriteHalf<'_>,
    dialer: &Dialer,
) -> Result<End, Answer> {
    let framing = head.fields.framing(head.version);
    let framing = framing.map_err(|error| malformed(&error))?;
    match &head.target {
        Target::Tunnel { host, port } => {
            if !matches!(framing, Framing::Unsaid | Framing::Length(0)) {
                return Err(malformed(&ReadError::Malformed("CONNECT has no body")));
            }
            let request = Request {
                host: dialer.host(host, *port, None)?,
                port: *port,
                method: None,
                url: None,
            };
            let mut server = dialer.open(request).await?;
            let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
            if writer.write_all(established).await.is_err() {
                return Ok(End::Broken);
            }
            let silence = dialer.limits.silence;
            Ok(tunnel::join(reader, writer, &mut server, silence).await)
        }
        Target::Plain { host, port, path } => {
            let host = dialer.host(host, *port, Some(&head.method))?;
            let site = match port {
                80 => host.to_string(),
                port => format!("{host}:{port}"),
            };
            let request = Request {
                host,
                port: *port,
                method: Some(head.method.clone()),
                url: Some(format!("http://{site}{path}")),
            };
            let mut server = dialer.open(request).await?;
            let first = format!(
                "{} {path} {}\r\nhost: {site}\r\n",
                head.method,
                head.version.text()
            );
            let start = with_fields(first, &head.fields, framing, true);
            let body = match framing {
                Framing::Unsaid => Body::Empty,
                Framing::Length(length) => Body::Length(length),
                Framing::Chunked => Body::Chunked,
            };
            let exchange = Exchange {
                start,
                body,
                version: head.version,
                is_head: head.method == "HEAD",
                longest_head: dialer.limits.head,
                silence: dialer.limits.silence,
            };
            exchange.run(reader, writer, &mut server).await
        }
    }
}

/// One plain request and its answer.
struct Exchange {
    start: Vec<u8>,
    body: Body,
    version: Version,
    is_head: bool,
    longest_head: usize,
    silence: Duration,
}

impl Exchange {
    async fn run(
        self,
        from_client: &mut FromClient<'_>,
        to_client: &mut WriteHalf<'_>,
        server: &mut TcpStream,
    ) -> Result<End, Answer> {
        let (from_server, mut to_server) = server.split();
        let mut from_server = BufReader::new(from_server);
        let sending = async {
            // A server that takes no more may still answer; a client that breaks off may not
            // have half a request taken for a whole one.
            let sent = match to_server.write_all(&self.start).await {
                Ok(()) => {
                    let body = self.body;
                    body.copy(from_client, &mut to_server, self.longest_head)
                        .await
                }
                Err(_) => Err(CopyError::Write),
            };
            if let Err(CopyError::Read(error)) = sent {
                return error;
            }
            // What follows is never served: the answer says that the connection ends.
            discard(from_client).await;
            tokio::time::sleep(self.silence).await;
            ReadError::Closed
        };
        tokio::select! {
            biased;
            answered = self.receive(&mut from_server, to_client) => answered,
            error = sending => {
                tracing::debug!(%error, "the client broke off");
                Ok(End::Broken)
            }
        }
    }

    async fn receive(
        &self,
        from_server: &mut (impl AsyncBufRead + Unpin),
        to_client: &mut WriteHalf<'_>,
    ) -> Result<End, Answer> {
        let mut interim = 0;
        let (head, framing) = loop {
            let head = read_response(from_server, self.longest_head).await;
            let head = head.map_err(|error| bad_answer(&error))?;
            let framing = head.fields.framing(head.version);
            let framing = framing.map_err(|error| bad_answer(&error))?;
            match head.status {
                // Nobody asked for another protocol: that field is not passed on.
                101 => {
                    let error = ReadError::Malformed("it changes the protocol");
                    return Err(bad_answer(&error));
                }
                100..=199 => {
                    interim += 1;
                    if interim > MOST_INTERIM {
                        return Err(bad_answer(&ReadError::TooLong));
                    }
                    if self.version == Version::Http11 {
                        let bytes = with_fields(first(&head), &head.fields, Framing::Unsaid, false);
                        if to_client.write_all(&bytes).await.is_err() {
                            return Ok(End::Broken);
                        }
                    }
                }
                _ => break (head, framing),
            }
        };
        let body = match framing {
            _ if self.is_head || matches!(head.status, 204 | 304) => Body::Empty,
            Framing::Unsaid => Body::UntilClose,
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked,
        };
        let bytes = with_fields(first(&head), &head.fields, framing, true);
        if to_client.write_all(&bytes).await.is_err() {
            return Ok(End::Broken);
        }
        match body.copy(from_server, to_client, self.longest_head).await {
            Ok(()) => Ok(End::Whole),
            Err(CopyError::Read(error)) => {
                tracing::debug!(%error, "the server broke off");
                Ok(End::Broken)
            }
            Err(CopyError::Write) => Ok(End::Broken),
        }
    }
}

fn first(head: &ResponseHead) -> String {
    format!(
        "{} {} {}\r\n",
        head.version.text(),
        head.status,
        head.reason
    )
}

/// A head: its first lines, the fields that may be passed on, and ours.
fn with_fields(first: String, fields: &Fields, framing: Framing, closes: bool) -> Vec<u8> {
    let mut head = first.into_bytes();
    for (name, value) in fields.iter() {
        if name == "host" || fields.is_of_connection(name) {
            continue;
        }
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Unsaid => {}
        Framing::Length(length) => {
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        Framing::Chunked => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    if closes {
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// An answer of our own.
struct Answer {
    status: u16,
    text: String,
    /// The answer to HEAD ends with its head.
    bodiless: bool,
}

impl Answer {
    fn new(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            bodiless: false,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let reason = match self.status {
            400 => "Bad Request",
            403 => "Forbidden",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            504 => "Gateway Timeout",
            _ => "Bad Gateway",
        };
        let body = if self.bodiless { "" } else { &self.text };
        format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.status,
            self.text.len(),
        )
        .into_bytes()
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(text) => Self::new(403, text),
            Failure::Unreachable(text, std::io::ErrorKind::TimedOut) => Self::new(504, text),
            Failure::Unresolved(text) | Failure::Unreachable(text, _) => Self::new(502, text),
        }
    }
}

fn malformed(error: &ReadError) -> Answer {
    Answer::new(
        400,
        format!("The sandbox's proxy cannot take this request: {error}.\n"),
    )
}

fn bad_answer(error: &ReadError) -> Answer {
    Answer::new(
        502,
        format!("The sandbox's proxy cannot take the server's answer: {error}.\n"),
    )
}
