//! `haft login` and `haft logout`: a key that is kept for this user.

use std::{fs, os::unix::fs::MetadataExt};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{haft, run};

#[test]
fn a_key_is_kept_for_the_user_alone_and_forgotten_again() {
    let dir = tempdir().unwrap();
    let config = dir.path().join("config");
    let key_file = config.join("haft/key");
    let command = |word: &str, input: &[u8]| {
        let mut command = haft(dir.path());
        run(command.env("CLAUDE_CONFIG_DIR", &config).arg(word), input)
    };
    let refused = command("login", b"two words\n");
    assert_eq!(refused.code, 1);
    assert_eq!(
        refused.stderr,
        "haft: not a valid key: expected printable ASCII characters without spaces\n"
    );
    let kept = command("login", b"sk-secret\n");
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    assert!(
        kept.stdout.contains("which only you can read"),
        "{}",
        kept.stdout
    );
    assert!(!kept.stdout.contains("sk-secret"));
    assert_eq!(fs::read_to_string(&key_file).unwrap(), "sk-secret\n");
    assert_eq!(fs::metadata(&key_file).unwrap().mode() & 0o777, 0o600);
    let gone = command("logout", b"");
    assert!(gone.stdout.contains("is deleted"), "{}", gone.stdout);
    assert!(!key_file.exists());
    assert_eq!(command("logout", b"").stdout, "No key was stored.\n");
}

#[test]
fn hooks_learn_of_a_login() {
    let dir = tempdir().unwrap();
    let config = dir.path().join("config");
    fs::create_dir(&config).unwrap();
    let hooks = json!({"hooks": {"Notification": [
        {"matcher": "auth_success", "hooks": [{"type": "command", "command": "cat > told.json; echo nothing; exit 2"}]},
        {"matcher": "idle_prompt", "hooks": [{"type": "command", "command": "touch other"}]},
    ]}});
    fs::write(config.join("settings.json"), hooks.to_string()).unwrap();
    let mut command = haft(dir.path());
    let ran = run(
        command.env("CLAUDE_CONFIG_DIR", &config).arg("login"),
        b"sk-secret\n",
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let told = fs::read_to_string(dir.path().join("told.json")).unwrap();
    assert!(!told.contains("sk-secret"), "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["hook_event_name"], "Notification");
    assert_eq!(told["notification_type"], "auth_success");
    assert!(!dir.path().join("other").exists());
    // A key that is refused is no login.
    fs::remove_file(dir.path().join("told.json")).unwrap();
    let mut command = haft(dir.path());
    let ran = run(
        command.env("CLAUDE_CONFIG_DIR", &config).arg("login"),
        b"two words\n",
    );
    assert_eq!(ran.code, 1);
    assert!(!dir.path().join("told.json").exists());
}
