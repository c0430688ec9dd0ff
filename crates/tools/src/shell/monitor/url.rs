//! The URL of a WebSocket, parsed strictly so that it has only one meaning.

use haft_sandbox::network::Host;

/// The maximum length of a URL.
const MAX_LENGTH: usize = 2_000;

/// The parsed URL of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SocketUrl {
    pub(crate) is_secure: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The path with the query, without the fragment.
    pub(crate) path: String,
}

impl SocketUrl {
    /// Parses a URL. The error is a text for the model.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| format!("`ws.url` {why}.");
        if text.len() > MAX_LENGTH {
            return Err(refused("is too long"));
        }
        // Programs may interpret any other character differently.
        let odd = |byte: u8| !byte.is_ascii_graphic() || b"\\<>\"^`{|}".contains(&byte);
        if text.bytes().any(odd) {
            return Err(refused(
                "has characters that no address has: write them as %XX, and other scripts in a host as xn--",
            ));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(refused("must begin with ws:// or wss://"));
        };
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "ws" => false,
            "wss" => true,
            _ => return Err(refused("must begin with ws:// or wss://")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(refused("must not hold a user name or password"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            // The colon is inside the brackets of an IPv6 address.
            Some((_, after)) if after.contains(']') => (authority, None),
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let host = Host::parse(host.as_bytes())
            .map_err(|why| refused(&format!("names no valid host: {why}")))?;
        let port = match port {
            None if is_secure => 443,
            None => 80,
            Some(port) => {
                let digits = port.bytes().all(|byte| byte.is_ascii_digit());
                let number = port.parse().ok().filter(|port| digits && *port > 0_u16);
                number.ok_or_else(|| refused("names no valid port"))?
            }
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        Ok(Self {
            is_secure,
            host,
            port,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_one_way_only() {
        let read = |text: &str| {
            let url = SocketUrl::parse(text)?;
            Ok::<_, String>(format!(
                "{} {} {} {}",
                url.is_secure, url.host, url.port, url.path
            ))
        };
        for (text, expected) in [
            ("ws://a.example", "false a.example 80 /"),
            ("WSS://A.Example./x?y=1#z", "true a.example 443 /x?y=1"),
            ("wss://a.example:8443?q", "true a.example 8443 /?q"),
            ("ws://[2606:4700::1]:81/", "false [2606:4700::1] 81 /"),
            ("ws://[2606:4700::1]", "false [2606:4700::1] 80 /"),
            ("ws://[::ffff:127.0.0.1]/", "false 127.0.0.1 80 /"),
            ("ws://127.0.0.1:9/", "false 127.0.0.1 9 /"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "a.example",
            "http://a.example",
            "https://a.example",
            "file:///etc/passwd",
            "ws:///x",
            "ws://user@a.example",
            "ws://user:word@a.example/",
            "ws://a.example@127.0.0.1/",
            "ws://a.example\\@127.0.0.1/",
            "ws://a.example /",
            "ws://a.example/\r\nHost: b",
            "ws://ä.example/",
            "ws://a.example:0/",
            "ws://a.example:99999/",
            "ws://a.example:+80/",
            "ws://a.example:/",
            "ws://0x7f.1/",
            "ws://2130706433/",
            "ws://127.1/",
            "ws://[::1/",
            "ws://[fe80::1%25eth0]/",
            "ws://a..example/",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
