use std::{
    ffi::OsString,
    os::unix::{
        ffi::OsStringExt,
        fs::{PermissionsExt, symlink},
    },
};

use super::*;

/// What git itself finds in a directory: the directory of the repository and the common one.
fn found_by_git(directory: &Path, home: &Path) -> Option<(PathBuf, PathBuf)> {
    let output = haft_testkit::command("git")
        .args(["rev-parse", "--path-format=absolute"])
        .args(["--absolute-git-dir", "--git-common-dir"])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/local/bin")
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    // No name here holds a newline.
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let mut paths = lines.map(|line| PathBuf::from(OsString::from_vec(line.to_vec())));
    let found = (paths.next()?, paths.next()?);
    output.status.success().then_some(found)
}

/// Numbers that depend only on the seed.
struct Choices(u64);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % count
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

const OBJECT: &str = "0123456789abcdef0123456789abcdef01234567";

fn write(path: &Path, contents: &[u8], mode: u32) {
    fs::write(path, contents).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Puts what may be a repository into a directory.
fn plant(directory: &Path, choices: &mut Choices) {
    fs::create_dir_all(directory).unwrap();
    let head = directory.join("HEAD");
    match choices.below(16) {
        0 => {}
        1 => write(&head, b"", 0o644),
        2 => write(&head, b"nothing\n", 0o644),
        3 => write(&head, b"ref: heads/x\n", 0o644),
        4 => write(&head, b"ref:\t\n refs/heads/x", 0o644),
        5 => write(&head, OBJECT.as_bytes(), 0o644),
        6 => write(&head, OBJECT.to_uppercase().as_bytes(), 0o644),
        7 => write(&head, &OBJECT.as_bytes()[1..], 0o644),
        8 => write(&head, format!("{OBJECT}{OBJECT}").as_bytes(), 0o644),
        9 => symlink("refs/heads/none", &head).unwrap(),
        10 => {
            write(&directory.join("head"), b"ref: refs/heads/x\n", 0o644);
            symlink("head", &head).unwrap();
        }
        11 => fs::create_dir(&head).unwrap(),
        _ => write(&head, b"ref: refs/heads/x\n", 0o644),
    }
    for part in ["objects", "refs"] {
        let path = directory.join(part);
        match choices.below(12) {
            0 => {}
            1 => write(&path, b"", 0o644),
            2 => write(&path, b"", 0o755),
            3 => symlink(".", &path).unwrap(),
            4 => symlink("nowhere", &path).unwrap(),
            _ => fs::create_dir(&path).unwrap(),
        }
    }
    let commons: &[&[u8]] = &[
        b"",
        b"\n",
        b".",
        b"..\n",
        b"../common\n",
        b"../common \n",
        b"../common\r\n\n",
        b"../c\xff\n",
        b" ../common",
        b"../common\0x\n",
        b"none\n",
        b"none/deep\n",
        b"\0",
    ];
    if choices.below(3) == 0 {
        let contents = choices.pick(commons);
        match choices.below(12) {
            0 => fs::create_dir(directory.join("commondir")).unwrap(),
            1 => symlink("nowhere", directory.join("commondir")).unwrap(),
            _ => write(&directory.join("commondir"), contents, 0o644),
        }
    }
}

/// Puts a valid repository into a directory.
fn plant_valid(directory: &Path) {
    for part in ["objects", "refs"] {
        fs::create_dir_all(directory.join(part)).unwrap();
    }
    write(&directory.join("HEAD"), b"ref: refs/heads/x\n", 0o644);
}

/// Puts something named `.git` into a directory, or makes the directory itself a repository.
fn fill(directory: &Path, choices: &mut Choices) {
    // Where the files below may lead.
    for name in [
        &b"common"[..],
        b"common ",
        b"c\xff",
        b"store",
        b"store ",
        b"s\xff",
    ] {
        if choices.below(2) == 0 {
            plant_valid(&directory.join(OsStr::from_bytes(name)));
        }
    }
    let dot_git = directory.join(".git");
    let links: &[&[u8]] = &[
        b"gitdir: store\n",
        b"gitdir: store",
        b"gitdir: store \n",
        b"gitdir: store\r\n",
        b"gitdir: ./store\n\n",
        b"gitdir: s\xff\n",
        b"gitdir:store\n",
        b"gitdir: ",
        b"gitdir: \n",
        b"gitdir:  store\n",
        b"gitdir: store\0x\n",
        b"gitdir: \0\n",
        b"gitdir: none\n",
        b"gitdir: ../store\n",
        b"gitdir: linked\n",
        b"",
        b"store\n",
        b" gitdir: store\n",
        b"GITDIR: store\n",
        b"gitdir: store\t\n",
    ];
    match choices.below(10) {
        0 => {}
        1 => fs::create_dir(&dot_git).unwrap(),
        2 => plant_valid(&dot_git),
        3 => plant(&dot_git, choices),
        4 => {
            let _ = fs::remove_dir_all(directory.join("store"));
            plant(&directory.join("store"), choices);
            symlink("store", &dot_git).unwrap();
        }
        5 => symlink("nowhere", &dot_git).unwrap(),
        6 => plant(directory, choices),
        7 => {
            let target = directory.join("store");
            let mut contents = b"gitdir: ".to_vec();
            contents.extend(target.as_os_str().as_bytes());
            write(&dot_git, &contents, 0o644);
        }
        _ => write(&dot_git, choices.pick(links), 0o644),
    }
    if choices.below(2) == 0 {
        plant(&directory.join("linked"), choices);
    }
}

#[test]
fn the_repository_that_git_uses_is_found_in_generated_layouts() {
    let (mut found, mut missing) = (0, 0);
    for seed in 0..if haft_testkit::is_thorough() {
        500
    } else {
        100
    } {
        let mut choices = Choices(seed);
        choices.below(1);
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        let (upper, lower) = (top.join("a"), top.join("a/b"));
        fs::create_dir_all(lower.join("c")).unwrap();
        fill(&upper, &mut choices);
        fill(&lower, &mut choices);
        symlink("b/c", upper.join("link")).unwrap();
        let outer = top.join("outer");
        plant_valid(&outer.join(".git"));
        symlink(&lower, outer.join("link")).unwrap();
        for start in [
            &lower.join("c"),
            &upper.join("link"),
            &outer.join("link"),
            &upper,
        ] {
            let expected = found_by_git(start, &top);
            let got = match discover(start) {
                GitDiscovery::Found(repository) => {
                    Some((repository.git_dir, repository.common_dir))
                }
                GitDiscovery::Invalid(_) | GitDiscovery::Outside => None,
            };
            assert_eq!(got, expected, "seed {seed}, {}", start.display());
            match expected {
                Some(_) => found += 1,
                None => missing += 1,
            }
        }
    }
    assert!(found > 50 && missing > 50, "{found} and {missing}");
}

#[test]
fn a_path_behind_a_link_and_dots_leads_to_the_repository_of_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    plant_valid(&top.join("one/.git"));
    plant_valid(&top.join("two/.git"));
    fs::create_dir_all(top.join("two/deep")).unwrap();
    symlink(top.join("two/deep"), top.join("one/link")).unwrap();
    for (start, expected) in [
        ("one", "one"),
        ("one/link", "two"),
        ("one/link/..", "two"),
        ("one/missing/deep", "one"),
    ] {
        let GitDiscovery::Found(found) = discover(&top.join(start)) else {
            panic!("{start}");
        };
        assert_eq!(found.work_tree, Some(top.join(expected)), "{start}");
    }
}

#[test]
fn a_named_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    plant_valid(&top);
    fs::remove_file(top.join("HEAD")).unwrap();
    let pipe = |name: &str| {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, top.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
    };
    pipe("HEAD");
    assert_eq!(discover(&top), GitDiscovery::Invalid(top.clone()));
    fs::remove_file(top.join("HEAD")).unwrap();
    plant_valid(&top);
    pipe("commondir");
    assert_eq!(discover(&top), GitDiscovery::Invalid(top.clone()));
}

#[test]
fn two_parts_of_a_repository_are_enough() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], bool)] = &[
        (&[], false),
        (&["HEAD"], false),
        (&["refs", "config"], false),
        (&["commondir", "refs"], false),
        (&["HEAD", "refs"], true),
        (&["objects", "refs"], true),
        (&["HEAD", "commondir"], true),
    ];
    for (number, (names, expected)) in cases.iter().enumerate() {
        let directory = dir.path().join(number.to_string());
        fs::create_dir(&directory).unwrap();
        let added = |name: &str| has_repository_parts_with(&directory, OsStr::new(name));
        for name in *names {
            // What it leads to does not matter.
            symlink("nowhere", directory.join(name)).unwrap();
        }
        assert_eq!(has_repository_parts(&directory), *expected, "{names:?}");
        assert_eq!(added("README"), *expected, "{names:?}");
        if names == &["HEAD"] {
            assert!(added("Objects") && added("commondir"));
        }
    }
}
