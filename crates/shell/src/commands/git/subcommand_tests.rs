use crate::{
    commands::testing::*,
    effect::{EffectVerdict, RuleCoverage, StartedProgram},
};

#[test]
fn history_and_comparisons_are_read_only() {
    assert_read_only(&[
        "git log",
        "git log --oneline -20",
        "git log -n 5 --stat",
        "git log -n5 -p -- src",
        "git log --graph --all --decorate --oneline",
        "git log --pretty=format:'%h %s' --since=2024-01-01",
        "git log --since '2 weeks ago' --author me --no-merges",
        "git log --format=%H -1",
        "git log -S foo --pickaxe-regex",
        "git log -Gfoo -i --all",
        "git log -L 10,20:src/main.rs",
        "git log --follow -- a.rs",
        "git log --grep=--output",
        "git log main..feature --cherry-pick --right-only",
        "git log --diff-filter=D --summary",
        "git log --name-only --date=short --reverse",
        "git log -- --output=x",
        "git log --diff-merges=first-parent",
        "git log origin/main..HEAD",
        "git diff",
        "git diff --cached --stat",
        "git diff --staged HEAD~1 -- a b",
        "git diff -w --word-diff --color-words main...HEAD",
        "git diff -U10 --no-ext-diff --no-textconv",
        "git diff --name-status -M90% -C main",
        "git diff --no-index a b",
        "git diff --exit-code --quiet",
        "git diff -O order.txt",
        "git show",
        "git show HEAD~2 --stat",
        "git show HEAD:src/lib.rs",
        "git show --format= --name-only abc123",
        "git show v1.0^{commit}",
        "git whatchanged -3",
        "git reflog",
        "git reflog show HEAD -n 5",
        "git reflog -20 --date=iso",
        "git reflog list",
        "git reflog exists refs/heads/x",
        "git stash list",
        "git stash show -p",
        "git stash show stash@{1} --stat",
        "git shortlog -sne --all",
        "git shortlog -sn HEAD~10..",
        "git rev-list --count HEAD",
        "git rev-list --objects --all --max-count=5",
        "git blame -L 1,10 src/main.rs",
        "git blame -w -C -C HEAD -- f",
        "git annotate f",
        "git diff-tree --no-commit-id --name-only -r HEAD",
        "git diff-index --quiet HEAD --",
        "git diff-files --name-only",
        "git range-diff a...b",
        "git format-patch --stdout -1",
        "git log -p --output-indicator-new=x",
    ]);
}

#[test]
fn history_with_other_options_is_not_read_only() {
    assert_not_read_only(&[
        "git log --output=f",
        "git log --output f",
        "git log --outp=f",
        "git diff --output=f",
        "git show --ext-diff HEAD",
        "git log --ext-d -p",
        "git diff --textconv",
        "git show --textc",
        "git log --show-signature",
        "git log --format=%G?",
        "git log --pretty=format:'%h %GS'",
        "git log --remerge-diff",
        "git log --diff-merges=remerge",
        "git log --format --output=f",
        "git log --pretty --output=f",
        "git log --grep --output=f",
        "git log --grep --decorate-refs x --author --output=f",
        "git log --unknown-option",
        "git log $x",
        "git log *",
        "git diff -- $x",
        "git blame --output=f a",
        "git rev-list --output=f HEAD",
        "git shortlog --output=f",
        "git format-patch -1",
        "git format-patch -o out HEAD~3",
        "git stash list -- --output=f",
        "git stash show -- --output=f",
        "git config -- --edit",
        "git config --get -- --edit",
        "git reflog expire --all",
        "git reflog delete HEAD@{1}",
        "git stash",
        "git stash push -m x",
        "git stash pop",
        "git stash drop",
        "git stash clear",
        "git stash -p",
        "git stash create",
    ]);
}

#[test]
fn queries_are_read_only_and_their_other_forms_are_not() {
    assert_read_only(&[
        "git status",
        "git status -sb",
        "git status --porcelain=v2 --branch",
        "git status -uno --ignored",
        "git status --short -- src",
        "git branch",
        "git branch -a",
        "git branch -vv",
        "git branch --list 'feat/*'",
        "git branch --show-current",
        "git branch --contains abc123",
        "git branch -r --merged main",
        "git branch --no-merged",
        "git branch --sort=-committerdate --format='%(refname:short)'",
        "git branch -l x",
        "git tag",
        "git tag -l 'v*'",
        "git tag --list --sort=-v:refname",
        "git tag -n3",
        "git tag --contains HEAD",
        "git tag --points-at HEAD",
        "git tag --merged",
        "git remote",
        "git remote -v",
        "git remote get-url origin",
        "git remote get-url --all origin",
        "git remote show",
        "git rev-parse HEAD",
        "git rev-parse --show-toplevel",
        "git rev-parse --abbrev-ref HEAD",
        "git rev-parse --short=8 HEAD",
        "git rev-parse --verify -q main",
        "git rev-parse --abbrev-ref --symbolic-full-name @{u}",
        "git config --get user.name",
        "git config user.email",
        "git config -l",
        "git config --list --show-origin",
        "git config --global --get-regexp '^alias'",
        "git config get user.name",
        "git config list --local",
        "git config --get --default x a.b",
        "git for-each-ref --format='%(refname)' refs/heads",
        "git for-each-ref --sort=-committerdate --count=5",
        "git show-ref --heads",
        "git show-ref --verify refs/heads/main",
        "git symbolic-ref HEAD",
        "git symbolic-ref --short -q HEAD",
        "git worktree list --porcelain",
        "git notes list",
        "git notes --ref=x show HEAD",
        "git submodule",
        "git submodule status --recursive",
        "git sparse-checkout list",
        "git rerere status",
        "git bisect log",
        "git var GIT_EDITOR",
        "git version --build-options",
        "git help",
        "git help -a",
        "git check-ref-format --branch x",
        "git interpret-trailers --parse",
        "git stripspace",
        "git show-branch --all",
    ]);
    assert_not_read_only(&[
        "git branch x",
        "git branch -v x",
        "git branch -d x",
        "git branch -D x",
        "git branch -m a b",
        "git branch -f x HEAD",
        "git branch --set-upstream-to=origin/x",
        "git branch --edit-description",
        "git branch --contains --format -D x",
        "git branch --no-list x",
        "git branch --format='%(signature)'",
        "git tag v1",
        "git tag -a v1 -m x",
        "git tag -d v1",
        "git tag -v v1",
        "git tag --sort=x v1",
        "git remote add o u",
        "git remote show origin",
        "git remote update",
        "git remote prune origin",
        "git remote rm o",
        "git remote set-url o u",
        "git config user.name me",
        "git config set user.name me",
        "git config a.b --list",
        "git config $x",
        "git config --add a.b c",
        "git config --unset a.b",
        "git config --global -e",
        "git config edit",
        "git symbolic-ref HEAD refs/heads/x",
        "git symbolic-ref -d x",
        "git worktree add p",
        "git worktree remove p",
        "git worktree prune",
        "git notes add -m x",
        "git submodule update --init",
        "git submodule foreach ls",
        "git submodule summary",
        "git rerere",
        "git rerere forget f",
        "git bisect start",
        "git bisect good",
        "git bisect run make",
        "git bisect view",
        "git help log",
        "git log --help",
        "git interpret-trailers --in-place f",
        "git verify-commit HEAD",
        "git verify-tag v1",
        "git credential fill",
        "git var $x",
    ]);
}

#[test]
fn objects_are_read_and_programs_are_not_started() {
    assert_read_only(&[
        "git ls-files",
        "git ls-files -o --exclude-standard",
        "git ls-files -z -- '*.rs'",
        "git ls-files --error-unmatch f",
        "git ls-tree -r --name-only HEAD",
        "git ls-tree HEAD src/",
        "git cat-file -p HEAD",
        "git cat-file -t abc",
        "git cat-file blob HEAD:f",
        "git cat-file --batch-check",
        "git grep -n foo",
        "git grep -e foo --and -e bar -- src",
        "git grep -l foo HEAD~3",
        "git grep -e --output",
        "git grep --no-index x .",
        "git grep -C3 -i x",
        "git describe --tags --always --dirty",
        "git name-rev HEAD",
        "git merge-base main HEAD",
        "git cherry -v main",
        "git count-objects -vH",
        "git check-ignore -v f",
        "git check-attr -a f",
        "git archive HEAD",
        "git archive --format=tar HEAD src",
        "git hash-object f",
        "git fsck --no-dangling",
        "git merge-tree a b c",
        "git patch-id",
        "git get-tar-commit-id",
        "git bundle verify f",
        "git merge-file -p a b c",
        "git apply --stat p.diff",
        "git apply --check p.diff",
    ]);
    assert_not_read_only(&[
        "git grep -O foo",
        "git grep -Oless foo",
        "git grep -nOvi foo",
        "git grep --open-files-in-pager=sh foo",
        "git grep --open foo",
        "git grep --textconv foo",
        "git cat-file --textconv HEAD:f",
        "git cat-file --filters HEAD:f",
        "git archive -o x.tar HEAD",
        "git archive --output=x.tar HEAD",
        "git archive --add-file -o x HEAD",
        "git archive --remote=host:repo HEAD",
        "git hash-object -w f",
        "git fsck --lost-found",
        "git merge-tree a b",
        "git merge-tree --write-tree a b",
        "git bundle create f HEAD",
        "git merge-file a b c",
        "git apply p.diff",
        "git apply --stat --apply p.diff",
        "git unpack-file abc",
        "git ls-remote origin",
        "git difftool",
        "git mergetool",
    ]);
}

#[test]
fn what_changes_something_is_mutating_whatever_its_options() {
    let cases = [
        ("git commit -m x", "it records a commit"),
        ("git commit --amend --no-edit", "it records a commit"),
        ("git add -A", "it changes the index"),
        ("git push", "it sends commits to a remote"),
        ("git push -f origin main", "it sends commits to a remote"),
        ("git pull --rebase", "it fetches from a remote and merges"),
        ("git fetch --all", "it fetches from a remote"),
        ("git fetch --dry-run", "it fetches from a remote"),
        ("git checkout main", "it changes what is checked out"),
        ("git switch -c x", "it switches branches"),
        ("git restore f", "it discards changes"),
        (
            "git reset --hard",
            "it moves the branch and may discard changes",
        ),
        ("git merge x", "it merges into the branch"),
        ("git rebase -i HEAD~3", "it rewrites commits"),
        ("git cherry-pick abc", "it makes commits"),
        ("git clean -fd", "it deletes untracked files"),
        ("git clean -n --no-dry-run -f", "it deletes untracked files"),
        ("git rm f", "it removes files"),
        ("git mv a b", "it moves files"),
        ("git init", "it makes a repository"),
        (
            "git clone https://example.com/x.git",
            "it copies a repository",
        ),
        ("git gc", "it rewrites the object store"),
        (
            "git update-ref refs/heads/x HEAD",
            "it writes into the repository",
        ),
        ("git am p", "it applies patches"),
        ("git filter-branch --all", "it rewrites history"),
    ];
    for (line, reason) in cases {
        assert_eq!(verdict(line), format!("mutating: {reason}"), "{line}");
    }
}

#[test]
fn a_dry_run_is_read_only() {
    assert_read_only(&[
        "git add -n .",
        "git add --dry-run -A",
        "git clean -nd",
        "git clean -ndx src",
        "git rm -n -r src",
        "git mv -n a b",
    ]);
    assert_not_read_only(&[
        "git clean -ni",
        "git add -n -p",
        "git commit --dry-run",
        "git add -nN f",
        "git push -n",
        "git add -n --no-dry-run .",
    ]);
}

#[test]
fn content_is_read_from_files_and_from_the_object_store() {
    let cases: [(&str, &[&str]); 24] = [
        ("git show HEAD:a/b", &["read a/b"]),
        ("git show :f", &["read f"]),
        ("git show :2:f", &["read f"]),
        ("git show HEAD@{10:30}:f", &["read f"]),
        ("git show HEAD", &["tree ."]),
        ("git show HEAD:a HEAD", &["read a", "tree ."]),
        ("git diff", &["tree ."]),
        ("git diff -- a", &["tree a"]),
        ("git diff -- '*.env'", &["tree glob(*.env)"]),
        ("git diff -- ':!a'", &["tree ."]),
        ("git diff .env", &["tree .env"]),
        ("git diff README.md", &["tree README.md", "tree ."]),
        (
            "git diff --no-index /etc/passwd x",
            &["tree /etc/passwd", "tree x"],
        ),
        ("git diff --stat -- a", &["names a"]),
        ("git log", &[]),
        ("git log -p", &["tree ."]),
        ("git log -p -- a", &["tree a"]),
        ("git log -L 1,2:a", &["read a"]),
        ("git log -- a", &["names a"]),
        ("git blame f", &["tree f"]),
        ("git grep x -- a", &["tree a"]),
        ("git grep -f p x", &["read p", "tree x", "tree ."]),
        ("git cat-file blob HEAD:f", &["read f"]),
        ("git cat-file --batch", &["tree ."]),
    ];
    for (line, expected) in cases {
        assert_eq!(effects(line), expected, "{line}");
    }
}

#[test]
fn writes_removals_and_hosts_are_named() {
    let cases: [(&str, &[&str]); 34] = [
        ("git diff --output=f HEAD", &["OptionWrite f", "tree ."]),
        ("git archive -o f HEAD", &["OptionWrite f", "tree ."]),
        ("git rm -r a b", &["Removal a", "Removal b"]),
        ("git rm --cached a", &[]),
        ("git mv a b", &["Removal a", "Tree b"]),
        ("git clean -fd", &["Removal ."]),
        ("git clean -f -- a", &["Removal a"]),
        ("git checkout -- a", &["Tree a"]),
        ("git checkout HEAD~1 a", &["Tree a"]),
        ("git restore -s main a", &["Tree a"]),
        ("git restore --staged a", &[]),
        ("git restore -s main :/a", &["Tree ."]),
        ("git checkout main", &["Tree main", "Tree ."]),
        ("git checkout -b new", &[]),
        ("git checkout .", &["Tree ."]),
        ("git switch -c new", &["read new"]),
        ("git switch main", &["read main", "Tree ."]),
        ("git reset a", &["read a"]),
        ("git reset --hard", &["Tree ."]),
        ("git stash drop", &["read drop"]),
        ("git stash", &["Tree ."]),
        ("git apply --cached f", &["read f"]),
        ("git apply f", &["read f", "Tree ."]),
        ("git worktree add ../x main", &["Tree ../x", "tree ."]),
        ("git fast-export --all", &["tree ."]),
        ("git bundle create f --all", &["OperandWrite f", "tree ."]),
        ("git checkout-index -a --prefix=d/", &["Tree .", "tree ."]),
        ("git pack-objects --stdout", &["tree ."]),
        (
            "git clone https://Example.com/a/b.git",
            &["net example.com", "Tree b"],
        ),
        (
            "git clone git@example.com:a/b d",
            &["net example.com", "Tree d"],
        ),
        ("git push", &["net ?"]),
        ("git fetch origin", &["net ?"]),
        ("git ls-remote https://example.com/x", &["net example.com"]),
        (
            "git merge-file a b c",
            &["OperandWrite a", "read a", "read b", "read c"],
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(effects(line), expected, "{line}");
    }
}

#[test]
fn what_starts_programs_needs_an_exact_rule_and_shows_them() {
    let exact = [
        "git log --ext-diff",
        "git diff --textconv",
        "git grep -O x",
        "git fetch --upload-pack=x origin",
        "git clone -c a=b u",
        "git clone 'ext::sh -c x'",
        "git rebase -x make main",
        "git config -e",
    ];
    for line in exact {
        assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
    }
    let rebase = find("git rebase --exec 'make test' main");
    assert_eq!(rebase.verdict, EffectVerdict::Mutating);
    assert!(
        matches!(&rebase.starts[..], [StartedProgram::Script(script)] if script.is("make test"))
    );
    let bisect = find("git bisect run make test");
    assert!(
        matches!(&bisect.starts[..], [StartedProgram::Command { argv, more: false }] if argv.len() == 2)
    );
    let each = find("git submodule foreach 'rm x'");
    assert!(matches!(&each.starts[..], [StartedProgram::Script(script)] if script.is("rm x")));
}

#[test]
fn tables_are_well_formed() {
    for table in super::TABLES {
        assert_well_formed(table);
    }
}
