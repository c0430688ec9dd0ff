//! The SOCKS5 side of the proxy: connections without authentication, to names and addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::{
    io::{AsyncBufRead, AsyncReadExt, AsyncWriteExt, BufReader},
    net::tcp::{ReadHalf, WriteHalf},
    time::timeout,
};

use super::{
    GateRequest,
    connection_end::{ConnectionEnd, wait_client_gone},
    dialer::{DialFailure, Dialer},
    line::ReadError,
    tunnel,
};

/// The protocol version, which is the first byte of every message.
pub(super) const VERSION: u8 = 5;

const NO_PASSWORD: u8 = 0;
const NO_METHOD: u8 = 0xff;

/// The reply codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocksReply {
    Succeeded = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandUnknown = 7,
    AddressUnknown = 8,
}

/// The requested target. The host has the form of a URL and is unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SocksTarget {
    host: Vec<u8>,
    port: u16,
}

/// Serves one connection.
pub(super) async fn serve(
    mut reader: BufReader<ReadHalf<'_>>,
    writer: &mut WriteHalf<'_>,
    dialer: &Dialer,
) {
    let wanted = timeout(dialer.limits.handshake, handshake(&mut reader, writer)).await;
    let Ok(Ok(wanted)) = wanted else { return };
    let opened = match wanted {
        Ok(wanted) => open(wanted, dialer, wait_client_gone(&mut reader)).await,
        Err(reply) => Err(reply),
    };
    let reply = opened
        .as_ref()
        .map_or_else(|reply| *reply, |_| SocksReply::Succeeded);
    // The reply does not reveal our outside address.
    let bytes = [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0];
    let end = match (writer.write_all(&bytes).await, opened) {
        (Err(_), _) => ConnectionEnd::Broken,
        (Ok(()), Err(_)) => ConnectionEnd::Whole,
        (Ok(()), Ok(server)) => {
            tunnel::join(&mut reader, writer, server, dialer.limits.silence).await
        }
    };
    end.close(&mut reader, writer).await;
}

/// Performs the handshake and reads the request. The inner error is the reply to send.
async fn handshake(
    reader: &mut BufReader<ReadHalf<'_>>,
    writer: &mut WriteHalf<'_>,
) -> Result<Result<SocksTarget, SocksReply>, ReadError> {
    let method = match read_greeting(reader).await? {
        true => NO_PASSWORD,
        false => NO_METHOD,
    };
    writer.write_all(&[VERSION, method]).await?;
    if method == NO_METHOD {
        return Err(ReadError::Malformed("the client requires authentication"));
    }
    read_wanted(reader).await
}

async fn open(
    wanted: SocksTarget,
    dialer: &Dialer,
    gone: impl Future<Output = ()>,
) -> Result<tokio::net::TcpStream, SocksReply> {
    let SocksTarget { host, port } = wanted;
    let opened = match dialer.host(&host, port, None) {
        Ok(host) => {
            let request = GateRequest {
                host,
                port,
                method: None,
                url: None,
            };
            dialer.open(request, gone).await
        }
        Err(failure) => Err(failure),
    };
    opened.map_err(|failure| match failure {
        DialFailure::Refused(_) => SocksReply::NotAllowed,
        DialFailure::Unreachable(_, std::io::ErrorKind::ConnectionRefused) => {
            SocksReply::ConnectionRefused
        }
        DialFailure::Unresolved(_) | DialFailure::Unreachable(..) => SocksReply::HostUnreachable,
    })
}

/// Reads the greeting. Returns whether the client supports no authentication.
async fn read_greeting(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<bool, ReadError> {
    let [version, count] = read(reader).await?;
    if version != VERSION {
        return Err(ReadError::Malformed("this is not SOCKS5"));
    }
    Ok(read_bytes(reader, count).await?.contains(&NO_PASSWORD))
}

async fn read_wanted(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> Result<Result<SocksTarget, SocksReply>, ReadError> {
    let [version, command, reserved, kind] = read(reader).await?;
    if version != VERSION || reserved != 0 {
        return Ok(Err(SocksReply::Failed));
    }
    if command != 1 {
        return Ok(Err(SocksReply::CommandUnknown));
    }
    let host = match kind {
        1 => Ipv4Addr::from(read(reader).await?).to_string().into_bytes(),
        3 => {
            let [length] = read(reader).await?;
            named(read_bytes(reader, length).await?)
        }
        4 => format!("[{}]", Ipv6Addr::from(read(reader).await?)).into_bytes(),
        _ => return Ok(Err(SocksReply::AddressUnknown)),
    };
    match u16::from_be_bytes(read(reader).await?) {
        0 => Ok(Err(SocksReply::Failed)),
        port => Ok(Ok(SocksTarget { host, port })),
    }
}

/// Returns the host of a request in the form of a URL. An IPv6 address may be sent as a name:
/// Chromium does that. It gets brackets.
fn named(host: Vec<u8>) -> Vec<u8> {
    let address = str::from_utf8(&host).ok();
    match address.and_then(|address| address.parse::<Ipv6Addr>().ok()) {
        Some(address) => format!("[{address}]").into_bytes(),
        None => host,
    }
}

async fn read<const N: usize>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> Result<[u8; N], ReadError> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_bytes(
    reader: &mut (impl AsyncBufRead + Unpin),
    count: u8,
) -> Result<Vec<u8>, ReadError> {
    let mut bytes = vec![0; count.into()];
    reader.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt;

    use super::*;

    type Outcome = Option<Result<SocksTarget, SocksReply>>;

    async fn wanted(bytes: &[u8]) -> Outcome {
        let mut reader = bytes;
        read_wanted(&mut reader).await.ok()
    }

    #[tokio::test]
    async fn names_and_addresses_are_read() {
        let to = |host: &str, port| {
            Some(Ok(SocksTarget {
                host: host.as_bytes().to_vec(),
                port,
            }))
        };
        let v6: Vec<u8> = [&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat();
        let cases: [(&[u8], Outcome); 13] = [
            (b"\x05\x01\x00\x03\x05a.com\x01\xbb", to("a.com", 443)),
            (b"\x05\x01\x00\x03\x04e\0.a\x01\xbb", to("e\0.a", 443)),
            (b"\x05\x01\x00\x01\x7f\0\0\x01\x00\x50", to("127.0.0.1", 80)),
            (&v6, to("[::1]", 80)),
            (b"\x05\x01\x00\x03\x03::1\x00\x50", to("[::1]", 80)),
            (b"\x05\x01\x00\x03\x05::1%1\x00\x50", to("::1%1", 80)),
            // Listening and datagrams.
            (
                b"\x05\x02\x00\x01\x7f\0\0\x01\x00\x50",
                Some(Err(SocksReply::CommandUnknown)),
            ),
            (
                b"\x05\x03\x00\x01\x7f\0\0\x01\x00\x50",
                Some(Err(SocksReply::CommandUnknown)),
            ),
            (
                b"\x05\x01\x00\x02\x7f\0\0\x01\x00\x50",
                Some(Err(SocksReply::AddressUnknown)),
            ),
            (
                b"\x05\x01\x07\x01\x7f\0\0\x01\x00\x50",
                Some(Err(SocksReply::Failed)),
            ),
            (
                b"\x04\x01\x00\x01\x7f\0\0\x01\x00\x50",
                Some(Err(SocksReply::Failed)),
            ),
            (
                b"\x05\x01\x00\x01\x7f\0\0\x01\x00\x00",
                Some(Err(SocksReply::Failed)),
            ),
            (b"\x05\x01\x00\x03\x05a.com\x01", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(wanted(bytes).await, expected, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        /// Wherever the bytes are split, they mean the same; and nothing after them is taken.
        #[test]
        fn any_bytes_are_read_the_same_in_pieces(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                prop::collection::vec(any::<u8>(), 0..30).prop_map(|rest| {
                    [&[5, 1, 0][..], &rest].concat()
                }),
                (prop::collection::vec(any::<u8>(), 0..20), any::<[u8; 3]>()).prop_map(|(host, rest)| {
                    [&[5, 1, 0, 3, host.len() as u8], host.as_slice(), &rest].concat()
                }),
            ],
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut whole = bytes.as_slice();
                let expected = read_wanted(&mut whole).await.ok();
                let greeted = read_greeting(&mut bytes.as_slice()).await.ok();
                for at in 0..=bytes.len() {
                    let (head, tail) = bytes.split_at(at);
                    let mut pieces = head.chain(tail);
                    prop_assert_eq!(&read_wanted(&mut pieces).await.ok(), &expected);
                    let mut rest = Vec::new();
                    pieces.read_to_end(&mut rest).await.unwrap();
                    if expected.is_some() {
                        prop_assert_eq!(rest.as_slice(), whole);
                    }
                    let mut pieces = head.chain(tail);
                    prop_assert_eq!(read_greeting(&mut pieces).await.ok(), greeted);
                }
                Ok(())
            })?;
        }
    }
}
