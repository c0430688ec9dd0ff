//! One of everything with every field, as it stands on the wire: the lines in `lines/shapes_*` are the
//! protocol, and a change of them is a change of it.

use haft_protocol::*;
use serde_json::json;

const SESSION: &str = include_str!("lines/shapes_session.jsonl");
const CLIENT: &str = include_str!("lines/shapes_client.jsonl");

#[test]
fn everything_a_session_may_write() {
    for line in SESSION.lines() {
        let message: SessionMessage<'_> = serde_json::from_str(line).unwrap();
        assert!(!matches!(message, SessionMessage::Other(_)), "{line}");
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }
}

#[test]
fn everything_a_client_may_write() {
    for line in CLIENT.lines() {
        let message = ClientMessage::read(line.as_bytes()).unwrap();
        assert!(!matches!(message, ClientMessage::Other(_)), "{line}");
        if let ClientMessage::ControlRequest(request) = &message {
            assert!(
                !matches!(request.request, ClientRequest::Other(_)),
                "{line}"
            );
        }
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }
}

#[test]
fn everything_a_session_may_answer() {
    let answers = [
        SessionAnswer::DONE,
        SessionAnswer::Initialize(Box::new(InitializeAnswer {
            commands: vec![DescribedCommand {
                name: "c".to_owned(),
                ..DescribedCommand::default()
            }],
            agents: vec![DescribedAgent {
                name: "a".to_owned(),
                model: Some("m".to_owned()),
                ..DescribedAgent::default()
            }],
            pid: Some(7),
            ..InitializeAnswer::default()
        })),
        SessionAnswer::Interrupt(InterruptAnswer {
            still_queued: vec![Some("u".into()), None],
            cancelled: Some(Vec::new()),
        }),
        SessionAnswer::Mode(ModeAnswer {
            mode: "plan".to_owned(),
        }),
        SessionAnswer::ContextUsage(Box::new(ContextUsageAnswer {
            categories: vec![ContextCategory::default()],
            mcp_tools: vec![ContextMcpTool::default()],
            ..ContextUsageAnswer::default()
        })),
        SessionAnswer::Rewind(RewindAnswer {
            can_rewind: true,
            files_changed: Some(vec!["/p/a".to_owned()]),
            insertions: Some(1),
            deletions: Some(2),
            error: Some("no".to_owned()),
        }),
        SessionAnswer::Servers(McpStatusAnswer {
            mcp_servers: vec![ListedServer {
                name: "calc".to_owned(),
                error: Some("no".to_owned()),
                server_info: Some(json!({"name": "calc"})),
                tools: Some(vec![ListedServerTool {
                    name: "add".to_owned(),
                    description: Some("Adds".to_owned()),
                    annotations: ToolHints {
                        read_only: Some(true),
                        ..ToolHints::default()
                    },
                }]),
                ..ListedServer::default()
            }],
        }),
        SessionAnswer::SetServers(ServersAnswer::default()),
        SessionAnswer::Cancelled(CancelledMessage { cancelled: true }),
        SessionAnswer::Version(BinaryVersion {
            version: "1".to_owned(),
        }),
    ];
    let answers = answers.map(|answer| {
        let response = ControlOutcome::new("r".into(), Ok(answer));
        let message = SessionMessage::ControlResponse(ControlResponse { response });
        serde_json::to_string(&message).unwrap()
    });
    insta::assert_snapshot!(answers.join("\n"));
}
