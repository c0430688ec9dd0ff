//! What real tools do to a tree: builds, checkouts, installations, archives.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use haft_testkit::measure::row;

use crate::{costs, project::Project, row_of};

pub(crate) async fn measure() {
    tool(
        "cargo",
        "`cargo build` of 40 crates",
        cargo_workspace,
        "cargo build --offline --quiet",
    )
    .await;
    tool(
        "git",
        "`git reset --hard && git clean -fdxq` in 5,000 files",
        repository,
        "git reset --quiet --hard && git clean -fdxq",
    )
    .await;
    tool(
        "tar",
        "`tar x` of 20,000 files",
        archive,
        "tar xf files.tar",
    )
    .await;
    tool(
        "pip",
        "`pip install` of a wheel with 2,000 files",
        wheel,
        "$(python3 -c 'import sys; print(sys.executable)') -m pip install --quiet --no-index --no-deps --no-cache-dir --target installed ./large-1.0-py3-none-any.whl",
    )
    .await;
    tool(
        "npm",
        "`npm ci` of 20 packages with 2,000 files",
        packages,
        "npm ci --offline --silent --no-audit --no-fund --cache .npm-cache",
    )
    .await;
}

/// Measures a command of a program, if it is installed.
async fn tool(program: &str, what: &str, fill: fn(&Path), command: &str) {
    let found = Command::new(program).arg("--version").output();
    if !found.is_ok_and(|found| found.status.success()) {
        row(what, &format!("{program} is not installed"), "", true);
        return;
    }
    row_of(what, costs(&Project::new(fill), command).await, None);
}

fn shell(root: &Path, command: &str) {
    let mut shell = Command::new("bash");
    let status = shell
        .args(["-euc", command])
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{command}");
}

fn cargo_workspace(root: &Path) {
    let manifest = "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n";
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    for number in 0..40 {
        let source = root.join(format!("crates/c{number}/src"));
        fs::create_dir_all(&source).unwrap();
        let manifest =
            format!("[package]\nname = \"c{number}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        fs::write(root.join(format!("crates/c{number}/Cargo.toml")), manifest).unwrap();
        let mut text = String::new();
        for function in 0..200 {
            text += &format!(
                "pub fn f{function}(n: u64) -> Vec<String> {{ (0..n).map(|i| format!(\"{{i}} {function}\")).collect() }}\n"
            );
        }
        fs::write(source.join("lib.rs"), text).unwrap();
    }
}

/// A repository with committed, changed, new and ignored files.
fn repository(root: &Path) {
    shell(
        root,
        "git init -q . && git config user.name n && git config user.email e@example.org
         for d in $(seq 50); do mkdir d$d; for n in $(seq 100); do echo \"$d $n\" > d$d/$n; done; done
         echo out > .gitignore && git add -A && git commit -qm one
         for d in $(seq 25); do for n in $(seq 50); do echo changed >> d$d/$n; done; done
         rm -r d50 && mkdir out new && for n in $(seq 1000); do echo $n > out/$n; echo $n > new/$n; done",
    );
}

fn archive(root: &Path) {
    shell(
        root,
        "mkdir files && cd files
         for d in $(seq 100); do mkdir d$d; for n in $(seq 200); do echo \"$d $n\" > d$d/$n; done; done
         cd .. && tar cf files.tar files && rm -r files",
    );
}

fn wheel(root: &Path) {
    shell(
        root,
        "mkdir -p large large-1.0.dist-info
         for n in $(seq 2000); do echo \"value = $n\" > large/m$n.py; done
         printf 'Metadata-Version: 2.1\\nName: large\\nVersion: 1.0\\n' > large-1.0.dist-info/METADATA
         printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > large-1.0.dist-info/WHEEL
         : > large-1.0.dist-info/RECORD
         python3 -m zipfile -c large-1.0-py3-none-any.whl large large-1.0.dist-info
         rm -r large large-1.0.dist-info",
    );
}

fn packages(root: &Path) {
    shell(
        root,
        "dependencies=
         for p in $(seq 20); do
           mkdir -p package && for n in $(seq 100); do echo \"exports.n = $n\" > package/$n.js; done
           echo \"{\\\"name\\\": \\\"p$p\\\", \\\"version\\\": \\\"1.0.0\\\"}\" > package/package.json
           tar czf p$p.tgz package && rm -r package
           dependencies=\"$dependencies${dependencies:+,} \\\"p$p\\\": \\\"file:p$p.tgz\\\"\"
         done
         echo \"{\\\"name\\\": \\\"x\\\", \\\"version\\\": \\\"1.0.0\\\", \\\"dependencies\\\": {$dependencies}}\" > package.json
         npm install --offline --silent --no-audit --no-fund --cache .npm-cache --package-lock-only",
    );
}
