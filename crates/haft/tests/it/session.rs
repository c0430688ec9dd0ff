use std::time::Duration;

use haft::{
    BuildError, ConfinementProfile, Effects, Haft, PermissionMode, ToolFormat,
    engine::{
        layers::{LayerSettings, ToolSettings},
        permissions::SandboxSettings,
    },
};
use haft_testkit::{FakeBash, TempProject, toy_tools};
use serde_json::json;

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let error = Haft::builder("/no/such/place")
        .build()
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("/no/such/place cannot be a working directory"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_that_is_taken_is_an_error_that_names_the_tool() {
    let error = Haft::builder(".")
        .tool(toy_tools::Echo)
        .tool(toy_tools::Echo)
        .build()
        .await
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "tool Echo: the name \"Echo\" is already taken by the tool Echo"
    );
}

#[tokio::test]
async fn rather_no_session_than_one_that_cannot_confine_where_that_must_be() {
    let wanted = |required, available| SandboxSettings {
        enabled: Some(true),
        required,
        available,
        ..SandboxSettings::default()
    };
    for (sandbox, refused) in [
        (wanted(true, false), true),
        (wanted(true, true), false),
        (wanted(false, false), false),
    ] {
        let built = Haft::builder(".").sandbox(sandbox).build().await;
        match built.err() {
            Some(error @ BuildError::Unconfined { .. }) => {
                assert!(refused, "{error}");
                assert!(error.to_string().contains("sandbox.failIfUnavailable"));
            }
            Some(other) => panic!("{other}"),
            None => assert!(!refused),
        }
    }
}

#[tokio::test]
async fn a_command_is_told_how_it_is_confined() {
    let project = TempProject::new([("work/a", "")]);
    let bash = FakeBash::with(Effects::EXCLUSIVE);
    let sandbox = SandboxSettings {
        enabled: Some(true),
        available: true,
        lets_through: true,
        ..SandboxSettings::default()
    };
    let mut haft = Haft::builder(project.path("work"))
        .without_built_ins()
        .tool(bash.clone())
        .sandbox(sandbox)
        .session_folder(project.path("session"))
        .build()
        .await
        .unwrap();
    let finished = haft.call("Bash", json!({"command": "make"})).await;
    assert!(!finished.is_error, "{}", finished.text());
    let confinement = bash.take().unwrap();
    assert_eq!(confinement.profile, ConfinementProfile::Workspace);
    // Caches of tools in the home are beside it, where there are any.
    let mut writable = confinement.writable.to_vec();
    writable.retain(|path| !confinement.caches.contains(path));
    assert_eq!(writable, [project.path("work")]);
}

#[tokio::test]
async fn a_further_directory_is_inside_too() {
    let project = TempProject::new([("work/a", ""), ("more/b.txt", "beta\n"), ("else/c", "")]);
    let mut haft = Haft::builder(project.path("work"))
        .directory(project.path("more"))
        .permission_mode(PermissionMode::AcceptEdits)
        .session_folder(project.path("session"))
        .build()
        .await
        .unwrap();
    assert!(
        !haft
            .call("Read", json!({"file_path": "../more/b.txt"}))
            .await
            .is_error
    );
    assert!(
        !haft
            .call("Write", json!({"file_path": "../more/n", "content": "x"}))
            .await
            .is_error
    );
    for call in ["Read", "Write"] {
        let input = json!({"file_path": "../else/c", "content": "x"});
        let input = if call == "Read" {
            json!({"file_path": "../else/c"})
        } else {
            input
        };
        assert!(haft.call(call, input).await.is_error, "{call}");
    }
    assert_eq!(project.read("else/c"), "");
}

#[tokio::test]
async fn settings_reach_the_layers_and_tools_of_ones_own_stand_beside_the_built_ins() {
    let settings = LayerSettings {
        tools: [(
            "Hang".to_owned(),
            ToolSettings {
                timeout: Some(Duration::from_millis(1)),
                ..ToolSettings::default()
            },
        )]
        .into(),
        ..LayerSettings::default()
    };
    let mut haft = Haft::builder(".")
        .tool(toy_tools::Hang)
        .layer_settings(settings)
        .concurrency(2)
        .model("test")
        .build()
        .await
        .unwrap();
    assert!(haft.pool().find("Read").is_some());
    let answer = haft
        .call("Hang", json!({"polite": true, "reads": true}))
        .await
        .text();
    assert!(answer.starts_with("timed out after 0.001 s"), "{answer}");
}

#[tokio::test]
async fn the_definitions_of_the_built_ins_are_pinned_byte_for_byte() {
    let definitions = async || {
        let haft = Haft::builder(".").build().await.unwrap();
        serde_json::to_string_pretty(&haft.definitions(ToolFormat::Anthropic)).unwrap()
    };
    let (first, second) = (definitions().await, definitions().await);
    assert_eq!(first, second);
    insta::assert_snapshot!(first);
}

#[tokio::test]
async fn no_built_in_is_ever_answered_from_a_cache() {
    let haft = Haft::builder(".").build().await.unwrap();
    for tool in haft.pool().iter() {
        assert_eq!(tool.spec().profile.cache, None, "{}", tool.spec().name);
    }
}

#[tokio::test]
async fn a_cancelled_turn_does_not_end_the_session() {
    let project = TempProject::new([("a.txt", "one\n")]);
    let mut haft = Haft::builder(project.root()).build().await.unwrap();
    let read = || json!({"file_path": "a.txt"});
    let cancel = haft.cancel_token();
    cancel.cancel();
    assert!(haft.call("Read", read()).await.is_error);
    // The token belonged to that turn; the next one has its own.
    assert!(!haft.cancel_token().is_cancelled());
    let again = haft.call("Read", read()).await;
    assert!(!again.is_error, "{}", again.text());
    haft.session_token().cancel();
    assert!(haft.call("Read", read()).await.is_error);
    assert!(
        haft.call("Read", read()).await.is_error,
        "the session is over"
    );
}

#[tokio::test]
async fn refusals_name_no_flags_to_a_program_and_no_path_of_rust() {
    let project = TempProject::new([("a.txt", "one\n")]);
    let outside = TempProject::new([("a.txt", "one\n")]);
    for (names_flags, expected) in [
        (false, "a further working directory that holds it"),
        (true, "--add-dir DIR"),
    ] {
        let builder = Haft::builder(project.root()).names_flags(names_flags);
        let mut haft = builder.build().await.unwrap();
        let input = json!({"file_path": outside.root().join("x.txt"), "content": "x"});
        let refused = haft.call("Write", input).await.text();
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(refused.contains("--"), names_flags, "{refused}");
        assert!(!refused.contains("::"), "{refused}");
    }
}
