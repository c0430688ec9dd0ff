//! `haft mcp serve`: serves haft's tools to MCP clients.

use std::{
    fs,
    io::IsTerminal,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use haft::CancellationToken;
use haft_host::{
    StopKind, ToolServer,
    mcp_server::{HttpAccess, HttpServer, HttpServerOptions, serve_lines},
};
use tokio::{
    io::{BufReader, stdin, stdout},
    signal::unix::{SignalKind, signal},
};

use crate::{
    args::{McpServeFlags, SessionArgs},
    exit::Exit,
    session, show,
    stdio::pipes,
};

/// The maximum length of a message in bytes.
const MAX_LENGTH: usize = 32 * 1024 * 1024;
const READ_AT_ONCE: usize = 64 * 1024;

pub(crate) async fn run(args: SessionArgs, flags: McpServeFlags) -> anyhow::Result<Exit> {
    let server = ToolServer::new(session::config(&args)?, session::warn);
    let telemetry = server.telemetry();
    let stop = CancellationToken::new();
    let ended = stops(stop.clone())?;
    match &flags.http {
        None => {
            anyhow::ensure!(
                !std::io::stdout().is_terminal(),
                "stdout is a terminal: an MCP client starts this and talks to it (`haft help mcp-serve` has a block \
                 to copy); `haft mcp serve --http 127.0.0.1:8080` serves without being started"
            );
            // Pipes are read without a dedicated thread, which is faster; anything else goes
            // through tokio's stdin and stdout.
            match pipes() {
                Some((input, output)) => {
                    let input = BufReader::with_capacity(READ_AT_ONCE, input);
                    serve_lines(&server, input, output, MAX_LENGTH, stop).await?;
                }
                None => {
                    let input = BufReader::with_capacity(READ_AT_ONCE, stdin());
                    serve_lines(&server, input, stdout(), MAX_LENGTH, stop).await?;
                }
            }
        }
        Some(address) => {
            let address = read_address(address)?;
            let (access, token) = access(&flags, address)?;
            let mut options = HttpServerOptions::new(access);
            options.disconnect_timeout = Duration::from_secs(flags.gone_after);
            let path = options.path.clone();
            let server = HttpServer::bind(address, options, Arc::new(server)).await;
            let server = server.with_context(|| format!("--http {address}"))?;
            show::warn(&format!("haft: serving http://{}{path}", server.address()));
            if let Some(token) = token {
                show::warn(&format!("haft: token {token}"));
            }
            server.run(stop).await;
        }
    }
    let is_ended = ended
        .lock()
        .is_ok_and(|ended| matches!(*ended, Some(Exit::Terminated)));
    telemetry
        .close(is_ended.then_some(StopKind::Terminate))
        .await;
    Ok(ended
        .lock()
        .map_or(Exit::Success, |ended| ended.unwrap_or(Exit::Success)))
}

/// Parses an address. A port alone means loopback.
fn read_address(text: &str) -> anyhow::Result<SocketAddr> {
    if let Ok(port) = text.trim_start_matches(':').parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let text = text.replace("localhost", "127.0.0.1");
    text.parse().with_context(|| {
        format!("--http {text}: expected a port or an address such as 127.0.0.1:8123")
    })
}

/// Returns the access control of the HTTP server, and the token if it was generated here and so
/// must be shown to the user.
fn access(
    flags: &McpServeFlags,
    address: SocketAddr,
) -> anyhow::Result<(HttpAccess, Option<String>)> {
    let mut made = None;
    let mut access = match (flags.no_token, &flags.token_file) {
        (true, _) => {
            anyhow::ensure!(
                address.ip().is_loopback(),
                "--no-token: {} is not a loopback address, so other machines could run commands here",
                address.ip()
            );
            HttpAccess::open()
        }
        (false, Some(file)) => {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| format!("--token-file {}", file.display()))?;
            let tokens = text
                .split_whitespace()
                .map(|token| Ok(checked(token)?.to_owned()));
            let tokens = tokens.collect::<anyhow::Result<Vec<String>>>()?;
            anyhow::ensure!(
                !tokens.is_empty(),
                "--token-file {}: the file contains no token",
                file.display()
            );
            HttpAccess::tokens(tokens)
        }
        (false, None) => match haft::contract::secrets::variable("HAFT_MCP_TOKEN") {
            Some(token) => HttpAccess::token(checked(token.trim())?),
            None => {
                let (access, token) = HttpAccess::new_token();
                made = Some(token);
                access
            }
        },
    };
    for host in &flags.allow_host {
        access = access.with_host(host.as_str());
    }
    Ok((access, made))
}

fn checked(token: &str) -> anyhow::Result<&str> {
    anyhow::ensure!(
        token.len() >= 16 && token.is_ascii() && !token.contains(char::is_whitespace),
        "the token must have at least 16 characters, only ASCII and no whitespace"
    );
    Ok(token)
}

/// Makes SIGINT and SIGTERM stop the server. The first signal determines the exit code.
fn stops(stop: CancellationToken) -> anyhow::Result<Arc<std::sync::Mutex<Option<Exit>>>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let ended = Arc::new(std::sync::Mutex::new(None));
    let by = Arc::clone(&ended);
    haft::spawn_boxed(async move {
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        };
        if let Ok(mut by) = by.lock() {
            *by = Some(exit);
        }
        stop.cancel();
    });
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |text: &str| read_address(text).map(|address| address.to_string()).ok();
        assert_eq!(read("8123").as_deref(), Some("127.0.0.1:8123"));
        assert_eq!(read(":8123").as_deref(), Some("127.0.0.1:8123"));
        assert_eq!(read("localhost:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(read("[::1]:80").as_deref(), Some("[::1]:80"));
        assert_eq!(read("0.0.0.0:80").as_deref(), Some("0.0.0.0:80"));
        assert_eq!(read("example.com:80"), None);
        assert_eq!(read("99999"), None);
    }
}
