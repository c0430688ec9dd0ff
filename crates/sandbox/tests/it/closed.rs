//! Of a closed directory a command sees what is open, and nothing else.

use std::{fs, os::unix::fs::symlink};

use haft_sandbox::{
    ClosedDirectories, GuardedNames, Mechanism, ReadOnlyProfile, SandboxNetwork, SandboxProfile,
    WorkspaceProfile,
};

use crate::setting::Place;

/// A place in a home that is closed: what is in there, and the profiles.
fn profiles(place: &Place) -> [SandboxProfile; 2] {
    let home = place.project().parent().unwrap().to_path_buf();
    for (name, text) in [
        ("notes", "SECRET note"),
        (".ssh/id", "SECRET key"),
        (".tool/bin/run", "a tool"),
        (".tool/token", "SECRET token"),
        ("dotfiles/config", "a setting"),
        ("project/file", "mine"),
    ] {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink("dotfiles/config", home.join(".config")).unwrap();
    symlink(home.join(".ssh"), home.join("project/keys")).unwrap();
    symlink(home.join("notes"), home.join("project/notes")).unwrap();
    let open = [".tool", ".config", "missing"].map(|name| home.join(name));
    let hidden = vec![home.join(".ssh"), home.join(".tool/token")];
    let closed = |open: Vec<_>| ClosedDirectories {
        directories: vec![home.clone()],
        open,
        ..ClosedDirectories::default()
    };
    let mut with_project = open.to_vec();
    with_project.push(home.join("project"));
    [
        SandboxProfile::ReadOnly(ReadOnlyProfile {
            hidden: hidden.clone(),
            closed: closed(with_project),
        }),
        SandboxProfile::Workspace(WorkspaceProfile {
            writable: vec![home.join("project")],
            protected: Vec::new(),
            hidden,
            closed: closed(open.to_vec()),
            guarded: Some(GuardedNames::default()),
            network: SandboxNetwork::None,
        }),
    ]
}

#[tokio::test]
async fn of_a_closed_directory_only_what_is_open_is_seen() {
    for best in [Mechanism::Namespaces, Mechanism::Bubblewrap] {
        let place = Place::with(best);
        for profile in profiles(&place) {
            if place.sandbox.prepare(&profile).await.unwrap() != best {
                haft_testkit::skip(&format!(
                    "closed directories with {}: it cannot be had here",
                    best.name()
                ));
                break;
            }
            let about = format!("{} {}", best.name(), profile.name());
            let says = async |line: &str| place.run(&profile, line).await.text;
            assert_eq!(says("cat file").await, "mine", "{about}");
            assert_eq!(says("cat ../.tool/bin/run").await, "a tool", "{about}");
            assert_eq!(says("cat ../.config").await, "a setting", "{about}");
            assert_eq!(
                says("echo x > $TMPDIR/x && cat $TMPDIR/x").await,
                "x\n",
                "{about}"
            );
            let hunt = "cd ..; cat notes .ssh/id project/keys/id project/notes .tool/token; \
                        grep -rs SECRET . /proc/self/root$PWD /proc/self/cwd/; find . -name 'n*'; \
                        cat dotfiles/config; umount . ; umount project; cat notes";
            let said = says(hunt).await;
            assert!(
                !said.contains("SECRET") && !said.contains("a setting"),
                "{about}: {said}"
            );
            // Even to root it is said that a file may not be read.
            let said = says("cat ../.tool/token").await;
            assert!(said.contains("Permission denied"), "{about}: {said}");
            let said = says("echo x > ../made; mkdir ../more; echo x > ../.tool/made").await;
            assert!(
                said.matches("Read-only file system").count() >= 2,
                "{about}: {said}"
            );
            if let SandboxProfile::Workspace(_) = profile {
                assert_eq!(says("echo x > made && cat made").await, "x\n", "{about}");
                assert!(place.path("project/made").exists(), "{about}");
            }
        }
        assert_eq!(
            fs::read_to_string(place.path("notes")).unwrap(),
            "SECRET note"
        );
        assert!(!place.path("made").exists() && !place.path(".tool/made").exists());
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn an_open_file_that_was_replaced_is_seen_as_it_is_now() {
    let place = Place::new();
    let [profile, _] = profiles(&place);
    assert_eq!(
        place.run(&profile, "cat ../.config").await.text,
        "a setting"
    );
    let (file, new) = (place.path("dotfiles/config"), place.path("dotfiles/new"));
    fs::write(&new, "another").unwrap();
    fs::rename(new, file).unwrap();
    assert_eq!(place.run(&profile, "cat ../.config").await.text, "another");
}
