//! Opens the transport to a server according to its entry.

use std::{
    ffi::OsString,
    sync::{Arc, Mutex},
};

use super::{
    RemoteServer, ServerHandle, ServerKind,
    confined_transport::{self, ConfinedStart},
    handler::ClientHandler,
    http,
    remote::RemoteAccess,
    server::ClientShared,
    sse, stdio,
    transport::{self, OpenTransport},
};

impl ServerHandle {
    pub(super) async fn open(
        &self,
        shared: &ClientShared,
        handler: &Arc<ClientHandler>,
    ) -> Result<OpenTransport, String> {
        let options = &shared.options;
        let (kind, unset) = self.entry().expanded(&*options.variable);
        if let [first, ..] = unset.as_slice() {
            shared.host.warn(&format!(
                "MCP server {}: the variable {first} is not set and has no default; ${{{first}}} is not expanded",
                self.name()
            ));
        }
        match kind {
            ServerKind::Sdk => match &shared.link {
                Some(link) => Ok(transport::open_link(
                    self.name(),
                    link,
                    Arc::clone(handler) as _,
                )),
                None => Err(
                    "a server of type sdk runs in the program that started haft, but no program controls this session"
                        .to_owned(),
                ),
            },
            ServerKind::Stdio { command, args, env } => {
                let mut environment = (options.environment)(self.entry().scope);
                let own = [
                    (
                        "CLAUDE_PROJECT_DIR".into(),
                        options.launch.cwd.clone().into_os_string(),
                    ),
                    ("CLAUDECODE".into(), OsString::from("1")),
                ];
                environment.extend(own);
                environment.extend(
                    env.into_iter()
                        .map(|(name, value)| (name.into(), value.into())),
                );
                let handler = Arc::clone(handler) as _;
                let launch = &options.launch;
                let Some(sandbox) = self.entry().sandbox else {
                    return stdio::open(&command, &args, &environment, launch, handler);
                };
                let (Some(keeper), Some(profile)) = (&launch.guard, &launch.sandbox) else {
                    return Err("`sandbox` is set, but no sandbox is available".to_owned());
                };
                let start = ConfinedStart {
                    keeper,
                    profile: profile(sandbox),
                    program: &stdio::find(&command, &environment, &launch.cwd)?,
                    args: &args,
                    environment,
                    cwd: &launch.cwd,
                };
                let (opened, weakness) = confined_transport::open(start, handler).await?;
                if let Some(weakness) = weakness {
                    let name = self.name();
                    shared.host.warn(&format!("MCP server {name}: {weakness}"));
                }
                Ok(opened)
            }
            ServerKind::Http(server) => Ok(http::open(
                self.access(shared, server)?,
                Arc::clone(handler) as _,
            )),
            ServerKind::Sse(server) => Ok(sse::open(
                self.access(shared, server)?,
                Arc::clone(handler) as _,
            )),
            ServerKind::WebSocket(_) => {
                Err("servers of type ws (WebSocket) are not supported; http and sse are".to_owned())
            }
        }
    }

    fn access(&self, shared: &ClientShared, server: RemoteServer) -> Result<RemoteAccess, String> {
        let streams = shared.options.http.clone();
        Ok(RemoteAccess {
            name: self.name().to_owned(),
            server,
            streams: streams.ok_or("HTTP is not available")?,
            tokens: shared.options.tokens.clone(),
            environment: (shared.options.environment)(self.entry().scope),
            printed: Mutex::default(),
        })
    }
}
