//! What is worked out once for a call, no matter who asks for it: what its command line does.

use std::{fs, path::Path, sync::Arc};

use haft::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, Haft, PermissionMode,
    engine::{
        hook_conditions::read,
        hooks::Hooks,
        permissions::{PatternBases, SettingsScope},
    },
    tools::ShellProgram,
};
use haft_shell::read_counter;
use serde_json::{Value, json};

struct Agrees;

impl Approver for Agrees {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Allow })
    }
}

/// Hooks before and after every call, most of which look at its line; one writes it anew.
fn hooks(project: &Path) -> Hooks {
    let silent = |condition: &str| json!({"type": "command", "command": "true", "if": condition});
    let rewrite = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "echo read-once-after"},
    }});
    let rewrite = json!({
        "type": "command",
        "command": format!("cat > /dev/null; echo '{rewrite}'"),
        "if": "Bash(echo read-once-before)",
    });
    let value = json!({
        "PreToolUse": [{"matcher": "Bash", "hooks": [
            silent("Bash(git *)"), silent("Bash(npm run *)"), silent("Read(x)"), rewrite,
        ]}],
        "PostToolUse": [{"matcher": "Bash", "hooks": [silent("Bash(git *)"), silent("Bash(cargo *)")]}],
    });
    let bases = PatternBases {
        cwd: project.into(),
        home: project.into(),
        slash: project.into(),
    };
    let (handlers, problems) = read(SettingsScope::User, None, &value, &bases);
    assert_eq!(problems, []);
    Hooks::new(handlers, project)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_line_is_read_once_a_call() {
    read_counter::begin();
    let folder = tempfile::tempdir().unwrap();
    let project = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(project.join("work/sub")).unwrap();
    fs::write(project.join("work/sub/a.txt"), "a\n").unwrap();
    let mut haft = Haft::builder(project.join("work"))
        .permission_mode(PermissionMode::Default)
        .home(&project)
        .service(Arc::new(ShellProgram::new(
            env!("CARGO_BIN_EXE_haft").into(),
        )))
        .session_folder(project.join("session"))
        .hooks(hooks(&project))
        .approver(Arc::new(Agrees))
        .build()
        .await
        .unwrap();
    let lines = [
        // It only reads, and is let through.
        "echo read-once",
        // Its answer is told by its exit code.
        "grep read-once-nowhere sub/a.txt",
        // A person is asked.
        "touch read-once.txt",
        "cd sub && echo read-once",
        // The directory is another one now.
        "cat a.txt read-once.txt",
    ];
    for line in lines {
        let finished = haft.call("Bash", json!({ "command": line })).await;
        assert_eq!(
            read_counter::read_count(line),
            1,
            "{line}: {}",
            finished.text()
        );
    }
    // The same line in another call is read anew: the directory, or the files, may be others.
    let again = "echo read-once";
    haft.call("Bash", json!({ "command": again })).await;
    assert_eq!(read_counter::read_count(again), 2);

    let before = "echo read-once-before";
    let finished = haft.call("Bash", json!({ "command": before })).await;
    assert_eq!(finished.text().trim(), "read-once-after");
    let structured = finished.structured.unwrap_or(Value::Null);
    assert_eq!(structured["stdout"], "read-once-after", "{structured}");
    assert_eq!(read_counter::read_count(before), 1);
    assert_eq!(read_counter::read_count("echo read-once-after"), 1);
}
