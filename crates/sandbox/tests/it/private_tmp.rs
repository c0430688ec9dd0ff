//! Commands of a session have their own `/tmp` and `/var/tmp`.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use haft_sandbox::{
    ClosedDirectories, GuardedNames, Mechanism, ReadOnlyProfile, SandboxNetwork, SandboxProfile,
    WorkspaceProfile,
};

use crate::setting::Place;

/// The mechanisms that have mount namespaces.
const MECHANISMS: [Mechanism; 2] = [Mechanism::Namespaces, Mechanism::Bubblewrap];

/// A session with a private `/tmp`, whose project is below the machine's `/tmp`.
struct PrivateSession(Place);

impl PrivateSession {
    /// `None` if the mechanism is not available.
    async fn with(mechanism: Mechanism) -> Option<Self> {
        haft_testkit::bound_this_process();
        let place = Place::with(mechanism);
        assert!(
            place.project().starts_with("/tmp") || place.project().starts_with("/var/tmp"),
            "these tests need a temporary directory"
        );
        let session = Self(place);
        let found = session.0.sandbox.prepare(&session.workspace(&[])).await;
        if found.unwrap() != mechanism {
            haft_testkit::skip(&format!("a private /tmp with {}", mechanism.name()));
            return None;
        }
        Some(session)
    }

    fn closed(&self, open: &[&Path]) -> ClosedDirectories {
        let open = open.iter().map(|path| path.to_path_buf());
        ClosedDirectories {
            directories: Vec::new(),
            open: open.chain([self.0.project()]).collect(),
            private_tmp: true,
        }
    }

    fn workspace(&self, open: &[&Path]) -> SandboxProfile {
        SandboxProfile::Workspace(WorkspaceProfile {
            writable: vec![self.0.project()],
            protected: Vec::new(),
            hidden: Vec::new(),
            guarded: Some(GuardedNames {
                parts: [".git".to_owned()].into(),
                closed_to_directories: [".git".to_owned()].into(),
                ..GuardedNames::default()
            }),
            closed: self.closed(open),
            network: SandboxNetwork::Open,
        })
    }

    fn readonly(&self, open: &[&Path]) -> SandboxProfile {
        SandboxProfile::ReadOnly(ReadOnlyProfile {
            hidden: Vec::new(),
            closed: self.closed(open),
        })
    }

    async fn run(&self, line: &str) -> String {
        self.0.run(&self.workspace(&[]), line).await.text
    }
}

/// Returns a new path in a temporary directory of the machine, which is removed with the guard.
fn outside(directory: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::Builder::new()
        .prefix("outside-")
        .tempdir_in(directory)
        .unwrap();
    let path = dir.path().join("file");
    (dir, path)
}

#[tokio::test]
async fn commands_of_a_session_share_their_tmp_and_see_nothing_of_the_machines() {
    for mechanism in MECHANISMS {
        let Some(session) = PrivateSession::with(mechanism).await else {
            continue;
        };
        let (_tmp, file) = outside("/tmp");
        let (_var, other) = outside("/var/tmp");
        for path in [&file, &other] {
            fs::write(path, "of the machine").unwrap();
        }
        let name = format!("haft-test-{}", std::process::id());
        let line = format!(
            "echo x > /tmp/{name}; echo y > /var/tmp/{name}; cat {} {}; echo $TMPDIR; \
             stat -c '%a %u' /tmp /var/tmp; mktemp; ls -d /tmp/haft-tmp* /tmp/.tmp*",
            file.display(),
            other.display()
        );
        let text = session.run(&line).await;
        let user = rustix::process::geteuid().as_raw();
        assert!(!text.contains("of the machine"), "{text}");
        assert!(
            text.contains(&format!("/tmp\n1777 {user}\n1777 {user}\n/tmp/tmp.")),
            "{text}"
        );
        assert!(!Path::new("/tmp").join(&name).exists());
        // Also a command that only reads, and a later one.
        let reading = session.readonly(&[]);
        let line = format!("cat /tmp/{name} /var/tmp/{name}; echo z > /tmp/z && cat file /tmp/z");
        fs::write(session.0.project().join("file"), "mine\n").unwrap();
        let text = session.0.run(&reading, &line).await.text;
        assert_eq!(text, "x\ny\nmine\nz\n", "{}", mechanism.name());
        assert_eq!(
            session
                .run("cat /tmp/z; rm /tmp/z; ls /tmp/z")
                .await
                .lines()
                .next(),
            Some("z")
        );
        // Another session has another one.
        let second = PrivateSession::with(mechanism).await.unwrap();
        let text = second.run(&format!("ls /tmp/{name} && echo FOUND")).await;
        assert!(!text.contains("FOUND"), "{text}");
        session.0.sandbox.close().await;
        assert!(!session.0.path("scratch").exists());
    }
}

#[tokio::test]
async fn a_project_below_tmp_is_at_its_own_path_and_guarded_as_elsewhere() {
    for mechanism in MECHANISMS {
        let Some(session) = PrivateSession::with(mechanism).await else {
            continue;
        };
        let project = session.0.project();
        let text = session.run("echo x > new && pwd && cat \"$PWD/new\"").await;
        assert_eq!(text, format!("{}\nx\n", project.display()));
        assert_eq!(fs::read_to_string(project.join("new")).unwrap(), "x\n");
        // Nothing that a command does in its `/tmp` reaches the control files of the project.
        let top = Path::new("/tmp").join(project.components().nth(2).unwrap());
        let attempts = [
            "mkdir .git && echo GOT".to_owned(),
            "mkdir -p /tmp/a/.git && touch /tmp/a/.git/config && mv /tmp/a/.git . && echo moved"
                .to_owned(),
            "mkdir -p /tmp/b && touch /tmp/b/config && mv /tmp/b .git && echo moved".to_owned(),
            format!("mv {} /tmp/away && echo GOT", top.display()),
            format!("rmdir {} && echo GOT", top.display()),
            format!(
                "rm -f {} ; ln -s /etc {} && echo GOT",
                top.display(),
                top.display()
            ),
            format!("touch {}/beside && echo GOT", top.display()),
            "ln -s \"$PWD\" /tmp/link && mkdir /tmp/link/.git && echo GOT".to_owned(),
            "ln new /tmp/hard && echo GOT".to_owned(),
            "echo y > /proc/self/root\"$PWD\"/.git && echo GOT".to_owned(),
        ];
        for line in attempts {
            let text = session.run(&line).await;
            assert!(!text.contains("GOT"), "{} {line}: {text}", mechanism.name());
            assert!(!project.join(".git").exists(), "{line}: {text}");
            assert!(project.join("new").exists(), "{line}");
        }
        // What is allowed still works, across both.
        let line = "cp new /tmp/new && mv /tmp/new moved && cat moved && mkdir -p /tmp/d/e && \
                    echo q > /tmp/d/e/f && mv /tmp/d d && cat d/e/f && mv d /tmp/back && \
                    ln /tmp/back/e/f /tmp/two && cat /tmp/two && chmod 600 /tmp/two && \
                    git init -q /tmp/repository && ls -d /tmp/repository/.git";
        let text = session.run(line).await;
        assert_eq!(
            text,
            "x\nq\nq\n/tmp/repository/.git\n",
            "{}",
            mechanism.name()
        );
    }
}

#[tokio::test]
async fn an_open_path_below_tmp_is_visible_and_cannot_be_changed() {
    for mechanism in MECHANISMS {
        let Some(session) = PrivateSession::with(mechanism).await else {
            continue;
        };
        let (dir, file) = outside("/tmp");
        fs::write(&file, "given").unwrap();
        fs::write(dir.path().join("hidden"), "SECRET").unwrap();
        for profile in [session.workspace(&[&file]), session.readonly(&[&file])] {
            let line = format!(
                "cat {0}; echo bad > {0}; rm -f {0}; echo bad > {1}/other; cat {1}/hidden",
                file.display(),
                dir.path().display()
            );
            let text = session.0.run(&profile, &line).await.text;
            assert!(text.starts_with("given"), "{text}");
            assert!(!text.contains("SECRET"), "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "given");
            assert!(!dir.path().join("other").exists());
        }
        // A whole directory, and a directory of the session is not replaced by a later one.
        let text = session
            .0
            .run(&session.workspace(&[dir.path()]), "true")
            .await;
        assert_eq!(text.text, "");
        let line = format!("cat {}/hidden", dir.path().display());
        let text = session
            .0
            .run(&session.readonly(&[dir.path()]), &line)
            .await
            .text;
        assert_eq!(text, "SECRET");
    }
}

#[tokio::test]
async fn a_mount_point_that_a_command_replaced_by_a_link_leads_nowhere() {
    let Some(session) = PrivateSession::with(Mechanism::Namespaces).await else {
        return;
    };
    let (dir, file) = outside("/tmp");
    fs::write(&file, "given").unwrap();
    let top = dir.path().display();
    // In this sandbox the directory is no mount point, so the command may create the link.
    let text = session
        .run(&format!("ln -s \"$PWD\" {top} && echo linked"))
        .await;
    assert_eq!(text, "linked\n");
    let profile = session.workspace(&[&file]);
    let line = format!("cat {}", file.display());
    assert_eq!(session.0.run(&profile, &line).await.text, "given");
    assert!(!session.0.project().join("file").exists());
}

#[tokio::test]
async fn a_socket_of_the_machine_that_starts_to_listen_in_tmp_cannot_be_reached() {
    if haft_testkit::lacks("python3") {
        return haft_testkit::skip("sockets in /tmp: no python3");
    }
    for mechanism in MECHANISMS {
        let Some(session) = PrivateSession::with(mechanism).await else {
            continue;
        };
        for directory in ["/tmp", "/var/tmp"] {
            let (_dir, path) = outside(directory);
            let socket = path.with_file_name("s");
            let started = session.0.project().join("started");
            let line = format!(
                "touch started; until [ -e go ]; do sleep 0.01; done; python3 -c 'import socket; \
                 s=socket.socket(socket.AF_UNIX); s.connect(\"{}\"); print(\"REACHED\")'; echo end",
                socket.display()
            );
            let listen = async {
                while !started.exists() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                let listener = UnixListener::bind(&socket).unwrap();
                fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
                fs::write(session.0.project().join("go"), "").unwrap();
                listener
            };
            let (_listener, text) = tokio::join!(listen, session.run(&line));
            assert!(text.contains("end") && !text.contains("REACHED"), "{text}");
            for name in ["started", "go"] {
                fs::remove_file(session.0.project().join(name)).unwrap();
            }
        }
        // One of a command of the session can.
        let line = "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); \
                    s.bind(\"/tmp/own\"); s.listen(); c=socket.socket(socket.AF_UNIX); \
                    c.connect(\"/tmp/own\"); print(\"REACHED\")'";
        assert_eq!(session.run(line).await, "REACHED\n");
    }
}

#[tokio::test]
async fn where_tmp_itself_is_a_working_directory_it_is_the_machines() {
    let place = Place::new();
    let mut profile = SandboxProfile::Workspace(WorkspaceProfile {
        writable: vec!["/tmp".into()],
        protected: Vec::new(),
        hidden: Vec::new(),
        guarded: Some(GuardedNames::default()),
        closed: ClosedDirectories {
            private_tmp: true,
            ..ClosedDirectories::default()
        },
        network: SandboxNetwork::None,
    });
    if place.sandbox.prepare(&profile).await.unwrap() >= Mechanism::Reduced {
        return haft_testkit::skip("a working directory /tmp: no mount namespaces");
    }
    let (_dir, file) = outside("/tmp");
    let line = format!("echo x > {} && echo $TMPDIR", file.display());
    let text = place.run(&profile, &line).await.text;
    let scratch = place.path("scratch");
    assert_eq!(text, format!("{}\n", scratch.display()));
    assert_eq!(fs::metadata(&file).unwrap().size(), 2);
    // Without mount namespaces, `/tmp` stays the machine's.
    let reduced = Place::with(Mechanism::Reduced);
    if let SandboxProfile::Workspace(workspace) = &mut profile {
        workspace.writable = vec![reduced.project()];
    }
    if reduced.sandbox.prepare(&profile).await.unwrap() == Mechanism::Reduced {
        let text = reduced.run(&profile, "echo $TMPDIR").await.text;
        assert_eq!(text, format!("{}\n", reduced.path("scratch").display()));
    }
}
