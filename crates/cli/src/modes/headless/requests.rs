//! Serves the control requests of the SDK client that `input` does not serve itself.

use std::{path::Path, sync::Arc};

use haft_protocol::{
    CancelledMessage, ClientRequest, OutputStylesAnswer, PluginsAnswer, ReadFileRequest,
    ReloadPluginsRequest, RequestId, RewindAnswer, RewindRequest, ServerRequest, SessionAnswer,
    SkillsAnswer,
};

use super::{input::ControlReader, status};

impl ControlReader {
    /// Serves a request that `input` passes on.
    pub(super) async fn serve_more(
        &self,
        request: &ClientRequest,
    ) -> Result<SessionAnswer, String> {
        match request {
            ClientRequest::McpStatus(_) => {
                let servers = status::servers(self.session.servers());
                Ok(SessionAnswer::Servers(servers))
            }
            ClientRequest::McpSetServers(request) => {
                let set = self.session.set_servers(&request.servers).await;
                Ok(SessionAnswer::SetServers(status::server_changes(set)))
            }
            ClientRequest::McpMessage(request) => self.receive_mcp_message(&request.server_name),
            ClientRequest::McpToggle(request) => {
                let toggled = self
                    .session
                    .toggle_server(&request.server_name, request.enabled);
                done(toggled.await)
            }
            ClientRequest::GetContextUsage(_) => {
                let usage = status::usage(&self.session.context_usage());
                Ok(SessionAnswer::ContextUsage(Box::new(usage)))
            }
            ClientRequest::CancelAsyncMessage(request) => {
                let cancelled = self.session.withdraw(&request.message_uuid);
                Ok(SessionAnswer::Cancelled(CancelledMessage { cancelled }))
            }
            ClientRequest::StopTask(request) => done(self.session.stop_task(&request.task_id)),
            ClientRequest::BackgroundTasks(request) => {
                let call = request.tool_use_id.as_deref();
                done(self.session.move_to_background(call))
            }
            ClientRequest::RenameSession(request) => match request.title.trim() {
                "" => Err("rename_session needs a `title`".to_owned()),
                title => done(self.session.rename(title)),
            },
            ClientRequest::ApplyFlagSettings(request) => {
                let unused = self.session.apply_settings(&request.settings).await?;
                if !unused.is_empty() {
                    let what = format!(
                        "these settings change nothing in a running session: {}",
                        unused.join(", ")
                    );
                    self.channel.output.put_notice("notice", &what);
                }
                Ok(SessionAnswer::DONE)
            }
            ClientRequest::UpdateSettings(request) => {
                let (source, settings) = (&request.source, &request.settings);
                done(self.session.update_settings(source, settings))
            }
            ClientRequest::SeedReadState(request) => {
                let path = Path::new(&request.path);
                done(self.session.seed_read(path, request.mtime).map(drop))
            }
            ClientRequest::ReloadSkills(_) => {
                let found = self.session.reload_extensions();
                let skills = found.commands.iter().map(status::command).collect();
                Ok(SessionAnswer::Skills(SkillsAnswer { skills }))
            }
            ClientRequest::ReloadOutputStyles(_) => {
                Ok(SessionAnswer::OutputStyles(OutputStylesAnswer {
                    available_output_styles: self.session.reload_extensions().styles,
                }))
            }
            ClientRequest::ReloadPlugins(request) => self.reload_plugins(request).await,
            other => Err(format!(
                "no control request is called {:?} here",
                other.subtype()
            )),
        }
    }

    async fn reload_plugins(
        &self,
        request: &ReloadPluginsRequest,
    ) -> Result<SessionAnswer, String> {
        if !request.add_plugins.is_empty() {
            return Err(
                "plugins cannot be added to a running session: name them at its start \
                        (--plugin-dir)"
                    .to_owned(),
            );
        }
        if request.refuse_if_busy && self.session.is_running() {
            return Err(
                "reload_plugins_busy: a message is being answered; retry after that".to_owned(),
            );
        }
        let found = self.session.reload_plugins().await?;
        for problem in &found.problems {
            self.channel.output.put_notice("warning", problem);
        }
        let agents = found.agents.unwrap_or_default().into_iter();
        Ok(SessionAnswer::Plugins(Box::new(PluginsAnswer {
            commands: found.commands.iter().map(status::command).collect(),
            agents: agents.map(status::agent).collect(),
            plugins: found.plugins.iter().map(status::plugin).collect(),
            mcp_servers: status::servers(self.session.servers()).mcp_servers,
            error_count: found.problems.len(),
        })))
    }

    /// Reads a file in a background task, so that the input is still read.
    pub(super) fn read_file(&self, id: RequestId, request: ReadFileRequest) {
        let (session, channel) = (self.session.clone(), Arc::clone(&self.channel));
        haft::spawn_boxed(async move {
            let in_base64 = request.encoding.as_deref() == Some("base64");
            let path = Path::new(&request.path);
            let read = session.read_file(path, request.max_bytes).await;
            let read = read.map(|read| SessionAnswer::File(status::file(read, in_base64)));
            channel.respond(id, read);
        });
    }

    /// Reverts files in a background task, so that the input is still read.
    pub(super) fn rewind(&self, id: RequestId, request: RewindRequest) {
        let session = self.session.clone();
        let channel = Arc::clone(&self.channel);
        let (message, dry) = (request.user_message_id, request.dry_run);
        if self.session.is_running() {
            let busy = "files cannot be reverted while a message is answered: interrupt it first";
            channel.respond(id, Err(busy.to_owned()));
            return;
        }
        tokio::task::spawn_blocking(move || {
            let told = match session.rewind(&message, dry) {
                Err(why) if dry => Ok(RewindAnswer {
                    error: Some(why),
                    ..RewindAnswer::default()
                }),
                told => told.map(|told| status::rewound(&told)),
            };
            channel.respond(id, told.map(SessionAnswer::Rewind));
        });
    }

    /// Handles a message from a client-side MCP server that is not an answer to a request.
    fn receive_mcp_message(&self, server: &str) -> Result<SessionAnswer, String> {
        if self.session.has_server(server) {
            Ok(SessionAnswer::DONE)
        } else {
            Err(format!("unknown MCP server {server:?}"))
        }
    }

    /// Reconnects a server in a background task: the messages of a client-side server arrive
    /// through the input, which must still be read.
    pub(super) fn reconnect(&self, id: RequestId, request: ServerRequest) {
        let (session, channel) = (self.session.clone(), Arc::clone(&self.channel));
        haft::spawn_boxed(async move {
            let connected = session.reconnect_server(&request.server_name).await;
            channel.respond(id, done(connected));
        });
    }
}

/// Returns the answer for a request without a result.
fn done(done: Result<(), String>) -> Result<SessionAnswer, String> {
    done.map(|()| SessionAnswer::DONE)
}
