//! `haft login` and `haft logout`: a key that is kept for this user.

use std::{fs, os::unix::fs::MetadataExt};

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
        "haft: a key is one word of plain characters\n"
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
    assert!(gone.stdout.contains("is gone"), "{}", gone.stdout);
    assert!(!key_file.exists());
    assert_eq!(command("logout", b"").stdout, "No key was kept.\n");
}
