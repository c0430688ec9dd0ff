//! No wait is unbounded: tests that start processes or listen on sockets end their program in time.

use crate::sources::SourceFile;

/// What is waited for, for ever if something is wrong.
const WAITED_FOR: [&str; 4] = [
    "Command::new(",
    "TcpListener::bind(",
    "UnixListener::bind(",
    "UnixDatagram::bind(",
];

/// What bounds the program (`haft_testkit::wait`).
const BOUNDS: [&str; 3] = [
    "bound_this_process()",
    "haft_testkit::command(",
    "TempProject::",
];

/// Files that need none, and why.
const FINE: [(&str, &str); 0] = [];

#[test]
fn tests_that_wait_for_others_are_bounded() {
    let mut files = SourceFile::all("src");
    files.extend(SourceFile::all("tests"));
    let mut waiting = 0;
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.package() != "testkit") {
        // A setting, not a process.
        let tests = file.tests().replace("ExcludedCommand::new(", "");
        let Some(word) = WAITED_FOR.iter().find(|word| tests.contains(**word)) else {
            continue;
        };
        waiting += 1;
        let is_bounded = BOUNDS.iter().any(|bound| tests.contains(bound));
        let is_fine = FINE.iter().any(|(path, _)| *path == file.path);
        if !is_bounded && !is_fine {
            problems.push(format!(
                "{}: {word} without haft_testkit::bound_this_process()",
                file.path
            ));
        }
    }
    assert!(waiting > 5, "the tests were not found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
