use std::sync::Arc;

use haft_contract::Services;
use haft_testkit::{TempProject, contract::check_contract};
use haft_tools::{MemoryFolder, ShellProgram};
use serde_json::json;

#[tokio::test]
async fn every_tool_keeps_to_the_contract() {
    for tool in haft_tools::all() {
        let project = TempProject::new([
            ("a.txt", "one\ntwo\n"),
            ("sub/b.rs", "fn b() {}\n"),
            (".claude/skills/greet/SKILL.md", "Greet $0.\n"),
        ]);
        let (file, root) = (project.path("a.txt"), project.root().to_path_buf());
        let inputs = match tool.spec().name.as_str() {
            "Read" => vec![
                json!({"file_path": file}),
                json!({"file_path": file, "offset": 2, "limit": 1}),
                json!({"file_path": project.path("missing")}),
            ],
            "Write" => vec![
                json!({"file_path": project.path("new.txt"), "content": "x\n"}),
                json!({"file_path": file, "content": "refused: not read\n"}),
            ],
            "Edit" => vec![
                json!({"file_path": project.path("made"), "old_string": "", "new_string": "x\n"}),
                json!({"file_path": file, "old_string": "one", "new_string": "1"}),
            ],
            "NotebookEdit" => {
                let path = project.path("n.ipynb");
                project.write(
                    "n.ipynb",
                    r#"{"cells": [], "nbformat": 4, "nbformat_minor": 5}"#,
                );
                vec![
                    json!({"notebook_path": path, "new_source": "x", "cell_type": "code", "edit_mode": "insert"}),
                    json!({"notebook_path": path, "cell_id": "cell-0", "new_source": ""}),
                ]
            }
            "LSP" => vec![
                json!({"operation": "documentSymbol", "filePath": project.path("sub/b.rs")}),
                json!({"operation": "hover", "filePath": file}),
            ],
            "LS" => vec![json!({"path": root}), json!({"path": file})],
            "Glob" => vec![
                json!({"pattern": "*.rs", "path": root}),
                json!({"pattern": "[", "path": root}),
            ],
            "Grep" => vec![
                json!({"pattern": "o", "path": root, "output_mode": "content"}),
                json!({"pattern": "(", "path": root}),
            ],
            "ReplaceInFiles" => vec![
                json!({"pattern": "o", "replacement": "0", "path": root}),
                json!({"pattern": "(", "replacement": "", "regex": true, "path": root}),
                json!({"pattern": "two", "replacement": "2", "preview": false, "path": root}),
                json!({"plan_id": "none"}),
            ],
            "Bash" => vec![
                json!({"command": "cat a.txt"}),
                json!({"command": "echo x > made", "description": "Makes a file"}),
                json!({"command": "exit 3"}),
            ],
            "Monitor" => vec![
                json!({"description": "Counts", "command": "seq 3"}),
                json!({"description": "Both", "command": "seq 3", "ws": {"url": "ws://a.example"}}),
                json!({"description": "Near", "ws": {"url": "ws://127.0.0.1:1/"}}),
            ],
            "REPL" => vec![
                json!({"language": "python", "code": "1 + 1"}),
                json!({"language": "python", "code": " "}),
                json!({"language": "node", "restart": true}),
            ],
            "CronCreate" => vec![
                json!({"cron": "7 * * * *", "prompt": "look"}),
                json!({"cron": "60 * * * *", "prompt": "look"}),
            ],
            "CronDelete" => vec![json!({"id": "nope"})],
            "CronList" => vec![json!({})],
            "ScheduleWakeup" => vec![
                json!({"delaySeconds": 5, "prompt": "look"}),
                json!({"stop": true}),
            ],
            "TaskOutput" | "TaskStop" => vec![json!({"task_id": "bash_1"})],
            "Agent" => vec![
                json!({"description": "Looks", "prompt": "Look around."}),
                json!({"description": "Looks", "prompt": "Look.", "isolation": "remote"}),
            ],
            "SendMessage" => vec![json!({"to": "a1", "message": "Go on."})],
            "Skill" => vec![
                json!({"skill": "greet", "args": "Ann"}),
                json!({"skill": "none"}),
            ],
            "Undo" => vec![
                json!({"preview": true}),
                json!({"undo_id": "0190a1b2-0000-7000-8000-000000000000"}),
            ],
            "EnterWorktree" => vec![
                json!({"name": "fix/a"}),
                json!({"name": "../a"}),
                json!({"path": root}),
            ],
            "ExitWorktree" => vec![
                json!({"action": "keep"}),
                json!({"action": "remove", "discard_changes": true}),
            ],
            "TaskCreate" => vec![
                json!({"subject": "Build", "description": "", "metadata": {"a": 1}}),
                json!({"subject": "Test", "description": "all of it", "activeForm": "Testing"}),
            ],
            "TaskGet" => vec![json!({"taskId": "1"})],
            "TaskList" | "EnterPlanMode" => vec![json!({})],
            "TaskUpdate" => vec![
                json!({"taskId": "1", "status": "completed"}),
                json!({"taskId": "9", "addBlocks": ["1"]}),
            ],
            "TodoWrite" => vec![
                json!({"todos": [{"content": "a", "status": "pending", "activeForm": "b"}]}),
                json!({"todos": []}),
            ],
            "ExitPlanMode" => vec![json!({"plan": "1. Look"}), json!({})],
            "AskUserQuestion" => vec![json!({"questions": [{
                "question": "Which?",
                "header": "Way",
                "options": [
                    {"label": "a", "description": "b"},
                    {"label": "c", "description": "d"},
                ],
            }]})],
            "PushNotification" => vec![
                json!({"message": "Done", "status": "done"}),
                json!({"message": " \n "}),
            ],
            "ReportFindings" => vec![
                json!({"findings": []}),
                json!({"level": "high", "findings": [{
                    "file": "a.rs", "line": 3, "summary": "Off by one", "failure_scenario": "n = 0",
                }]}),
                json!({"findings": [{"file": "a.rs", "summary": " ", "failure_scenario": "x"}]}),
            ],
            "Think" => vec![json!({"thought": "hm"})],
            "Sleep" => vec![json!({"seconds": 1})],
            "MemoryRead" => vec![json!({}), json!({"path": "a.md"}), json!({"path": "../a"})],
            "MemoryWrite" => vec![
                json!({"path": "a.md", "content": "x"}),
                json!({"path": "a.md", "content": ""}),
                json!({"path": "/etc/passwd", "content": "x"}),
            ],
            "Config" => vec![
                json!({"setting": "model"}),
                json!({"setting": "x", "value": 1}),
            ],
            "WaitForMcpServers" => vec![json!({}), json!({"servers": ["git"]})],
            "Browser" => vec![
                json!({"action": "close"}),
                json!({"action": "click"}),
                json!({"action": "navigate", "url": "file:///etc/passwd"}),
            ],
            "WebFetch" => vec![
                json!({"url": "http://127.0.0.1:1/", "prompt": "What is it?"}),
                json!({"url": "file:///etc/passwd", "prompt": "x", "offset": 5}),
            ],
            "WebSearch" => vec![
                json!({"query": "rust"}),
                json!({"query": "rust", "allowed_domains": ["a"], "blocked_domains": ["b"]}),
            ],
            "ToolSearch" => vec![json!({"query": "note"}), json!({"query": "select:Undo"})],
            other => panic!("{other}: a new tool needs sample inputs here"),
        };
        let folder = TempProject::new([]);
        let program = ShellProgram::new(env!("CARGO_BIN_EXE_haft-tools-child").into());
        let memory = MemoryFolder::new(folder.path("memory"));
        let book = crate::skill::book(&project, true, &json!({}));
        let services = Services::none()
            .with(Arc::new(program))
            .with(Arc::new(memory))
            .with(Arc::new(book));
        let services = haft_tools::with_services(services, folder.root(), project.root());
        let services = haft_tools::with_worktrees(services);
        check_contract(tool, services, &project, &inputs).await;
    }
}
