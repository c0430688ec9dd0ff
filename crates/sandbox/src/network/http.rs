//! The HTTP side of the proxy: tunnels and plain requests, one per connection.

use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::tcp::{ReadHalf, WriteHalf},
    time::timeout,
};

use super::{
    GateRequest,
    connection_end::{ConnectionEnd, wait_client_gone},
    dialer::Dialer,
    exchange::HttpExchange,
    head::{DeclaredFraming, RequestHead, RequestTarget, read_request},
    line::ReadError,
    proxy_reply::ProxyReply,
    tunnel,
};

type FromClient<'a> = BufReader<ReadHalf<'a>>;

/// Serves one connection.
pub(super) async fn serve(mut reader: FromClient<'_>, writer: &mut WriteHalf<'_>, dialer: &Dialer) {
    let limits = &dialer.limits;
    let head = timeout(limits.handshake, read_request(&mut reader, limits.head)).await;
    let answered = match head {
        Err(_) => Err(ProxyReply::new(408, "The request did not come in time.\n")),
        Ok(Err(ReadError::Io(_) | ReadError::Closed)) => return,
        Ok(Err(ReadError::TooLong)) => {
            Err(ProxyReply::new(431, "The request's head is too long.\n"))
        }
        Ok(Err(error)) => Err(ProxyReply::malformed(&error)),
        Ok(Ok(head)) => {
            let is_head = head.method == "HEAD";
            match pass_on(head, &mut reader, writer, dialer).await {
                Err(answer) if is_head => Err(answer.without_body()),
                answered => answered,
            }
        }
    };
    let end = match answered {
        Ok(end) => end,
        Err(answer) => match writer.write_all(&answer.bytes()).await {
            Ok(()) => ConnectionEnd::Whole,
            Err(_) => ConnectionEnd::Broken,
        },
    };
    end.close(&mut reader, writer).await;
}

/// Forwards a request. The error is the response to send instead.
async fn pass_on(
    head: RequestHead,
    reader: &mut FromClient<'_>,
    writer: &mut WriteHalf<'_>,
    dialer: &Dialer,
) -> Result<ConnectionEnd, ProxyReply> {
    let framing = head.fields.framing(head.version);
    let framing = framing.map_err(|error| ProxyReply::malformed(&error))?;
    match &head.target {
        RequestTarget::Tunnel { host, port } => {
            if !matches!(
                framing,
                DeclaredFraming::Unsaid | DeclaredFraming::Length(0)
            ) {
                return Err(ProxyReply::malformed(&ReadError::Malformed(
                    "CONNECT has no body",
                )));
            }
            let request = GateRequest {
                host: dialer.host(host, *port, None)?,
                port: *port,
                method: None,
                url: None,
            };
            let server = dialer.open(request, wait_client_gone(reader)).await?;
            let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
            if writer.write_all(established).await.is_err() {
                return Ok(ConnectionEnd::Broken);
            }
            let silence = dialer.limits.silence;
            Ok(tunnel::join(reader, writer, server, silence).await)
        }
        RequestTarget::Plain { host, port, path } => {
            let host = dialer.host(host, *port, Some(&head.method))?;
            let site = match port {
                80 => host.to_string(),
                port => format!("{host}:{port}"),
            };
            let request = GateRequest {
                host,
                port: *port,
                method: Some(head.method.clone()),
                url: Some(format!("http://{site}{path}")),
            };
            // A client may close its sending side and still wait for the response.
            let server = dialer.open(request, std::future::pending()).await?;
            let exchange = HttpExchange::new(&head, framing, &site, path, &dialer.limits);
            exchange.run(reader, writer, server).await
        }
    }
}
