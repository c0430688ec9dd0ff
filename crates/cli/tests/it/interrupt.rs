use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use tempfile::tempdir;

use crate::binary::haft;

#[test]
fn a_signal_ends_it_with_the_code_that_says_so() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let dir = tempdir().unwrap();
        let mut child = haft(dir.path())
            .arg("exec")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // Once it has answered it listens to signals; stdin stays open.
        stdin
            .write_all(b"{\"name\": \"LS\", \"input\": {}}\n")
            .unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"is_error\":false"), "{answer}");
        let sent = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}
