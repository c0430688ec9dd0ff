//! Control files: below a directory that may be changed, and yet must stay as they are.

use super::{
    stand::Around,
    table::{Case, Scenario, Unconfined::NotTried, bash, check, python},
};

const OVER_LINKS: &str = "bubblewrap cannot mount over a link";
const NO_RIGHT: &str = "Landlock knows no right for modes, owners, times and attributes";
const ALIKE: &str = "Landlock cannot tell control files from others";

#[tokio::test(flavor = "multi_thread")]
async fn control_files_stay_as_they_are() {
    let test = "scenarios::control::control_files_stay_as_they_are";
    let alike = |scenario: Scenario| scenario.happens(Case::reduced_workspace, ALIKE);
    let mut all: Vec<Scenario> = attempts().into_iter().map(alike).collect();
    all.extend(
        links()
            .into_iter()
            .map(alike)
            .map(|scenario| scenario.happens(Case::bubblewrap_workspace, OVER_LINKS)),
    );
    all.push(
        bash("make one that is missing", r#"echo new > "$IN/.missing.json""#).happens(
            Case::workspace,
            "there is nothing to mount on where nothing is: made files are protected from the next command on",
        ),
    );
    all.push(
        bash("mount over one", r#"mount --bind "$IN/file" "$IN/.git/config" && echo GOT; umount -l "$IN/.git/config" && echo GOT"#)
            .unconfined(NotTried),
    );
    // Last: where it succeeds, nothing is left for the others.
    all.push(alike(bash(
        "replace the working directory",
        r#"mv "${IN%/*}" "${IN%/*}-old" && mkdir -p "$IN/.git"; echo new > "$IN/.git/config""#,
    )));
    check(test, &all, Around::Control).await;
}

fn attempts() -> Vec<Scenario> {
    vec![
        bash("write", r#"echo new > "$IN/.git/config""#),
        bash("append", r#"echo new >> "$IN/.claude/settings.json""#),
        bash("truncate", r#": > "$IN/.git/config""#),
        bash(
            "replace by rename",
            r#"echo new > "$IN/n"; mv -f "$IN/n" "$IN/.git/config""#,
        ),
        bash(
            "replace by copy",
            r#"cp --remove-destination "$IN/file" "$IN/.claude/settings.json""#,
        ),
        bash("edit in place", r#"sed -i s/core/x/ "$IN/.git/config""#),
        bash("delete", r#"rm -f "$IN/.git/config""#),
        bash("delete with its directory", r#"rm -rf "$IN/.git""#),
        bash(
            "delete a directory",
            r#"rm -rf "$IN/.git/hooks"; rmdir "$IN/.git/hooks""#,
        ),
        bash(
            "change the mode",
            r#"chmod 777 "$IN/.git/hooks/pre-commit" "$IN/.git/config""#,
        )
        .happens(Case::reduced, NO_RIGHT),
        bash(
            "change the times",
            r#"touch -d 2001-01-01 "$IN/.git/config""#,
        )
        .happens(Case::reduced, NO_RIGHT),
        bash("add a hook", r#"echo new > "$IN/.git/hooks/post-commit""#),
        bash(
            "change a hook",
            r#"echo new >> "$IN/.git/hooks/pre-commit""#,
        ),
        bash(
            "take a hook away",
            r#"mv "$IN/.git/hooks/pre-commit" "$IN/""#,
        ),
        bash(
            "replace the directory of hooks",
            r#"mkdir "$IN/h"; mv "$IN/.git/hooks" "$IN/old"; mv "$IN/h" "$IN/.git/hooks""#,
        ),
        bash(
            "replace the directory above",
            r#"mv "$IN/.git" "$IN/old"; mkdir "$IN/.git"; echo new > "$IN/.git/config""#,
        ),
        bash(
            "replace the directory above that",
            r#"mv "$IN" "$IN-old"; mkdir -p "$IN/.git"; echo new > "$IN/.git/config""#,
        ),
        bash(
            "hard link, then write",
            r#"ln "$IN/.git/config" "$IN/l"; echo new > "$IN/l""#,
        ),
        bash(
            "link, then write",
            r#"ln -s .git "$IN/l"; echo new > "$IN/l/config""#,
        ),
        bash(
            "by the root of oneself",
            r#"echo new > "/proc/self/root$IN/.git/config""#,
        ),
        bash(
            "by the directory of oneself",
            r#"cd "$IN/.git"; echo new > /proc/self/cwd/config"#,
        ),
        python(
            "exchange",
            r#"libc.renameat2(-100, (IN + "/file").encode(), -100, (IN + "/.git/config").encode(), 2)"#,
        ),
        python(
            "exchange the directory above",
            r#"libc.renameat2(-100, (IN + "/real").encode(), -100, (IN + "/.git").encode(), 2)"#,
        ),
        bash("write behind a link", r#"echo new > "$IN/.linked.json""#),
        bash(
            "write where a link leads",
            r#"echo new > "$IN/real/linked.json""#,
        ),
        bash(
            "replace where a link leads",
            r#"mv "$IN/real" "$IN/old"; mkdir "$IN/real"; echo new > "$IN/real/settings.json""#,
        ),
    ]
}

/// A link that is replaced leads elsewhere.
fn links() -> Vec<Scenario> {
    vec![
        bash(
            "replace a link",
            r#"rm -f "$IN/.linked.json"; echo new > "$IN/.linked.json""#,
        ),
        bash(
            "replace a link by rename",
            r#"echo new > "$IN/n"; mv -f "$IN/n" "$IN/.linked.json""#,
        ),
        bash(
            "replace a link above",
            r#"rm -f "$IN/.behind"; mkdir "$IN/.behind"; echo new > "$IN/.behind/settings.json""#,
        ),
    ]
}
