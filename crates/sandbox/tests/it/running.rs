//! How commands run and end.

use haft_sandbox::{ExitKind, SandboxProfile};

use crate::setting::{Place, read};

#[tokio::test]
async fn a_command_runs_in_each_profile_and_tells_its_code_and_directory() {
    let place = Place::new();
    for profile in [Place::readonly(), place.workspace(), SandboxProfile::Full] {
        let outcome = place
            .run(&profile, "echo out; echo err >&2; cd /usr; (exit 3)")
            .await;
        assert_eq!(outcome.text, "out\nerr\n", "{profile:?}");
        assert_eq!(outcome.ended.how, ExitKind::Exited(3));
        assert_eq!(outcome.ended.cwd.as_deref(), Some("/usr".as_ref()));
        assert_eq!(outcome.ended.left, 0);
    }
    place.sandbox.close().await;
}

#[tokio::test]
async fn only_what_the_profile_names_is_written() {
    let place = Place::new();
    std::fs::write(place.path("outside"), "old").unwrap();
    let outside = place.path("outside");
    let outside = outside.display();
    let line = format!("echo new > {outside}; echo new > inside; chmod 777 {outside}");
    let outcome = place.run(&Place::readonly(), &line).await;
    assert!(
        outcome.text.contains("Read-only file system"),
        "{}",
        outcome.text
    );
    assert_eq!(read(place.path("project/inside")), None);
    let outcome = place.run(&place.workspace(), &line).await;
    assert!(
        outcome.text.contains("Read-only file system"),
        "{}",
        outcome.text
    );
    assert_eq!(read(place.path("project/inside")).as_deref(), Some("new\n"));
    assert_eq!(read(place.path("outside")).as_deref(), Some("old"));
}

#[test]
fn whether_commands_can_be_confined_is_found_out_by_trying() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = env!("CARGO_BIN_EXE_haft-keeper");
    let found = haft_sandbox::available(keeper.as_ref(), dir.path());
    assert!(found.is_some());
    let found = haft_sandbox::available("/bin/true".as_ref(), dir.path());
    assert_eq!(found, None);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
