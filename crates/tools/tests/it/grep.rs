//! The text of content mode is that of `rg -n --no-heading`.

use serde_json::{Value, json};

use crate::session::Session;

#[tokio::test]
async fn content_reads_as_ripgrep_prints_it() {
    let session = Session::new([
        (".gitignore", "*.log\n"),
        (".git/HEAD", "hay needle\n"),
        (".hidden/a.txt", "needle in hidden\n"),
        ("noise.log", "needle ignored\n"),
        (
            "src/a.rs",
            "one\ntwo needle\nthree\nfour\nfive needle\nsix\nneedle needle\n",
        ),
        ("src/b.rs", "Needle\nno final needle"),
        ("src/crlf.txt", "needle\r\nx\r\n"),
        ("z: y.txt", "a needle\n"),
    ]);
    let cases: [(&str, Value, &[&str]); 9] = [
        ("plain", json!({}), &[]),
        ("ignoring case", json!({"-i": true}), &["-i"]),
        ("after", json!({"-A": 1}), &["-A1"]),
        ("before", json!({"-B": 2}), &["-B2"]),
        ("around wins", json!({"-C": 1, "-A": 5}), &["-C1"]),
        ("only matches", json!({"-o": true}), &["-o"]),
        ("without numbers", json!({"-n": false}), &["-N"]),
        ("a glob", json!({"glob": "*.rs"}), &["-g", "*.rs"]),
        ("a type", json!({"type": "rust"}), &["-t", "rust"]),
    ];
    for (what, extra, flags) in cases {
        let output = haft_testkit::command("rg")
            .args([
                "--no-config",
                "-n",
                "--no-heading",
                "--sort=path",
                "--color=never",
            ])
            .args(["--hidden", "-g", "!.git"])
            .args(flags)
            .arg("needle")
            .current_dir(session.project.root())
            .output();
        let Ok(output) = output else {
            haft_testkit::skip("searches compared with ripgrep: no rg");
            return;
        };
        let expected = String::from_utf8(output.stdout).unwrap();
        let mut input = json!({"pattern": "needle", "output_mode": "content"});
        input
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let found = session.say("Grep", input).await.ok();
        // ripgrep leaves a CR at the end of a line; for the model it is part of the break.
        assert_eq!(found, expected.replace('\r', "").trim_end(), "{what}");
    }
}
