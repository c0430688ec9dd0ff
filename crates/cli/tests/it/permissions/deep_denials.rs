//! Files that a Read deny rule covers, far down in a tree: no confined command reads one, at any depth, in other
//! people's code, behind a link, or in a directory that its owner closed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};

use crate::{
    binary::run,
    users::{self, Home},
};

const KEY: &str = "SECRET-OF-THE-PROJECT";

#[test]
fn a_denied_file_is_not_read_however_large_the_tree_is() {
    for user in users::all() {
        let home = Home::new(user);
        let folder = |name: &str| {
            let mut made = String::new();
            for part in name.split('/') {
                made = format!("{made}/{part}").trim_start_matches('/').to_owned();
                home.folder(&made);
            }
        };
        // More directories than a bounded scan reads before it comes to the last ones.
        for number in 0..1_200 {
            folder(&format!("work/a/{number}"));
        }
        let mut list = String::new();
        for directory in [
            "work/zz/y/x/w",
            "work/node_modules/p",
            "work/target/debug",
            "work/.venv/lib",
            "work/.vscode/deep",
            "work/a/1199",
            "work/closed",
            "elsewhere/behind/link",
        ] {
            folder(directory);
            home.write(
                &format!("{directory}/.env"),
                &format!("{KEY} {directory}\n"),
            );
            if let Some(below) = directory.strip_prefix("work/") {
                list += &format!("{below}/.env\n");
            }
        }
        symlink(home.path("elsewhere"), home.path("work/link")).unwrap();
        list += "link/behind/link/.env\n";
        home.write("work/list", &list);
        home.write("work/plain.txt", "PLAIN\n");
        fs::set_permissions(home.path("work/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        let reader = "#!/bin/sh\nchmod 700 closed 2>/dev/null\n\
                      while read -r path; do cat \"$path\"; cp \"$path\" copy && cat copy; \
                      ln \"$path\" name && cat name; mv \"$path\" moved && cat moved; \
                      done < list 2>/dev/null\n\
                      mv zz moved-2; cat moved-2/y/x/w/.env; grep -rh . zz link/ 2>/dev/null; cat plain.txt\n";
        home.write("work/reader", reader);
        fs::set_permissions(home.path("work/reader"), fs::Permissions::from_mode(0o755)).unwrap();
        for (rule, shows) in [(Some("Read(**/.env)"), false), (None, true)] {
            let deny: Vec<&str> = rule.into_iter().collect();
            let settings = json!({"permissions": {"deny": deny}}).to_string();
            let call =
                json!({"name": "Bash", "input": {"command": "./reader", "timeout": 120_000}});
            let mut haft = home.haft();
            haft.args(["--settings", &settings, "--allowedTools", "Bash", "exec"]);
            let ran = run(&mut haft, format!("{call}\n").as_bytes());
            let answer: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
            let content = answer["content"].as_str().unwrap();
            assert!(content.contains("PLAIN"), "{user:?} {rule:?}: {content}");
            assert_eq!(content.contains(KEY), shows, "{user:?} {rule:?}: {content}");
        }
    }
}
