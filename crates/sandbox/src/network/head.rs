//! The heads of HTTP/1 messages, parsed strictly: a message that two servers could read differently
//! is refused.

use tokio::io::AsyncBufRead;

use super::{
    line::{ReadError, read_line},
    pattern::parse_port,
};

/// The maximum length of a method; every known one is shorter.
const MAX_METHOD: usize = 40;

/// The maximum number of header fields.
const MAX_FIELDS: usize = 256;

/// A request to the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: RequestTarget,
    pub(super) version: HttpVersion,
    pub(super) fields: HeaderFields,
}

/// The target of a request. The host is unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestTarget {
    /// `CONNECT host:port`.
    Tunnel { host: Vec<u8>, port: u16 },
    /// `GET http://host/path`. The path starts with a slash.
    Plain {
        host: Vec<u8>,
        port: u16,
        path: String,
    },
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) version: HttpVersion,
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) fields: HeaderFields,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    Http10,
    Http11,
}

impl HttpVersion {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        match bytes {
            b"HTTP/1.0" => Ok(Self::Http10),
            b"HTTP/1.1" => Ok(Self::Http11),
            _ => Err(ReadError::Malformed(
                "the version is neither HTTP/1.0 nor HTTP/1.1",
            )),
        }
    }
}

/// Header fields in order: names in lower case, values as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HeaderFields(Vec<(String, Vec<u8>)>);

/// The framing of a message body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredFraming {
    /// The message does not specify it.
    Unsaid,
    Length(u64),
    Chunked,
}

impl HeaderFields {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(it, _)| *it == name)
            .map(|(_, value)| value)
    }

    /// Returns whether a field applies only to one connection and must not be forwarded. The fields
    /// for the length of the body are among them: the proxy writes its own.
    pub(super) fn is_of_connection(&self, name: &str) -> bool {
        const ALWAYS: [&str; 11] = [
            "connection",
            "content-length",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "proxy-authentication-info",
        ];
        ALWAYS.contains(&name)
            || self
                .all("connection")
                .flat_map(|value| value.split(|byte| *byte == b','))
                .any(|listed| listed.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Returns the framing of the body. Every ambiguity is an error, because it would allow hiding
    /// one request in another (request smuggling).
    pub(super) fn framing(&self, version: HttpVersion) -> Result<DeclaredFraming, ReadError> {
        let mut lengths = self.all("content-length");
        let mut encodings = self.all("transfer-encoding");
        let (length, encoding) = (lengths.next(), encodings.next());
        if lengths.next().is_some() || encodings.next().is_some() {
            return Err(ReadError::Malformed(
                "the length of the body is given twice",
            ));
        }
        match (length, encoding) {
            (None, None) => Ok(DeclaredFraming::Unsaid),
            (Some(_), Some(_)) => Err(ReadError::Malformed(
                "it has both Content-Length and Transfer-Encoding",
            )),
            (Some(length), None) => {
                let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
                let length = str::from_utf8(length).ok().filter(|_| digits);
                let length = length.and_then(|length| length.parse().ok());
                let length =
                    length.ok_or(ReadError::Malformed("Content-Length is not a number"))?;
                Ok(DeclaredFraming::Length(length))
            }
            (None, Some(encoding)) => {
                if version == HttpVersion::Http11 && encoding.eq_ignore_ascii_case(b"chunked") {
                    return Ok(DeclaredFraming::Chunked);
                }
                Err(ReadError::Malformed(
                    "its Transfer-Encoding is not the plain `chunked` of HTTP/1.1",
                ))
            }
        }
    }
}

/// Reads the head of a request, and nothing after it.
pub(super) async fn read_request(
    reader: &mut (impl AsyncBufRead + Unpin),
    mut budget: usize,
) -> Result<RequestHead, ReadError> {
    let line = read_line(reader, &mut budget).await?;
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(ReadError::Malformed(
            "the first line is not METHOD TARGET VERSION",
        ));
    };
    let version = HttpVersion::parse(version)?;
    let method = token(method).filter(|method| method.len() <= MAX_METHOD);
    let method = method.ok_or(ReadError::Malformed("the method is not a token"))?;
    let target = parse_target(&method, target)?;
    let fields = read_fields(reader, &mut budget).await?;
    if fields.all("host").nth(1).is_some() {
        return Err(ReadError::Malformed("it has two Host fields"));
    }
    Ok(RequestHead {
        method,
        target,
        version,
        fields,
    })
}

/// Reads the head of a response, and nothing after it.
pub(super) async fn read_response(
    reader: &mut (impl AsyncBufRead + Unpin),
    mut budget: usize,
) -> Result<ResponseHead, ReadError> {
    const BAD: ReadError = ReadError::Malformed("the first line is not VERSION STATUS REASON");
    let line = read_line(reader, &mut budget).await?;
    let (version, rest) = line.split_at_checked(8).ok_or(BAD)?;
    let version = HttpVersion::parse(version)?;
    let (status, reason) = rest.split_at_checked(4).ok_or(BAD)?;
    let &[b' ', class @ b'1'..=b'5', tens, ones] = status else {
        return Err(BAD);
    };
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
        return Err(BAD);
    }
    let digits = [class, tens, ones].map(|digit| u16::from(digit - b'0'));
    let reason = match reason {
        [] => "",
        [b' ', reason @ ..] if reason.iter().all(|byte| matches!(byte, b' '..=b'~')) => {
            str::from_utf8(reason).map_err(|_| BAD)?
        }
        _ => return Err(BAD),
    };
    Ok(ResponseHead {
        version,
        status: digits[0] * 100 + digits[1] * 10 + digits[2],
        reason: reason.to_owned(),
        fields: read_fields(reader, &mut budget).await?,
    })
}

/// Reads header or trailer fields, and the empty line after them.
pub(super) async fn read_fields(
    reader: &mut (impl AsyncBufRead + Unpin),
    budget: &mut usize,
) -> Result<HeaderFields, ReadError> {
    let mut fields = Vec::new();
    loop {
        let line = read_line(reader, budget).await?;
        if line.is_empty() {
            return Ok(HeaderFields(fields));
        }
        if fields.len() == MAX_FIELDS {
            return Err(ReadError::TooLong);
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return Err(ReadError::Malformed(
                "a header field continues on a new line",
            ));
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or(ReadError::Malformed("a header field has no colon"))?;
        let name = token(&line[..colon]).ok_or(ReadError::Malformed(
            "the name of a header field is not a token",
        ))?;
        let value = &line[colon + 1..];
        if value.iter().any(|byte| is_control(*byte)) {
            return Err(ReadError::Malformed(
                "a header field has a control character",
            ));
        }
        fields.push((name.to_ascii_lowercase(), value.trim_ascii().to_vec()));
    }
}

pub(super) fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// Returns a `token` as HTTP defines it: a method, or the name of a field.
fn token(bytes: &[u8]) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if bytes.is_empty() || !bytes.iter().all(plain) {
        return None;
    }
    String::from_utf8(bytes.to_vec()).ok()
}

fn parse_target(method: &str, target: &[u8]) -> Result<RequestTarget, ReadError> {
    let target = str::from_utf8(target)
        .ok()
        .filter(|target| target.bytes().all(|byte| byte.is_ascii_graphic()))
        .ok_or(ReadError::Malformed(
            "the target has bytes that no URL has: encode them with %",
        ))?;
    if method == "CONNECT" {
        let (host, port) = parse_authority(target.as_bytes())?;
        let port = port.ok_or(ReadError::Malformed("CONNECT needs a port"))?;
        return Ok(RequestTarget::Tunnel { host, port });
    }
    if target.contains('#') {
        return Err(ReadError::Malformed("the URL has a fragment"));
    }
    let Some((_, rest)) = target
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http"))
    else {
        return Err(ReadError::Malformed(
            "this is a proxy: send `METHOD http://host/path`, or CONNECT for everything else",
        ));
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = parse_authority(authority.as_bytes())?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(RequestTarget::Plain {
        host,
        port: port.unwrap_or(80),
        path: format!("{slash}{path}"),
    })
}

fn parse_authority(authority: &[u8]) -> Result<(Vec<u8>, Option<u16>), ReadError> {
    if authority.contains(&b'@') {
        return Err(ReadError::Malformed("the address carries user information"));
    }
    // The colons of an IPv6 address are in brackets.
    let after = authority.iter().position(|byte| *byte == b']').unwrap_or(0);
    let colon = authority[after..].iter().position(|byte| *byte == b':');
    let Some(colon) = colon.map(|colon| after + colon) else {
        return Ok((authority.to_vec(), None));
    };
    let port = parse_port(&authority[colon + 1..]);
    let port = port.ok_or(ReadError::Malformed(
        "the port is not a number from 1 to 65535",
    ))?;
    Ok((authority[..colon].to_vec(), Some(port)))
}
