//! Folders that are removed and made again between two questions: whatever order their events are
//! taken in, and whether or not they get the same numbers from the file system, they are watched.

use std::fs;

use crate::kept::{Both, some_files};

#[test]
fn folders_that_are_made_again_are_watched() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    for round in 0..60 {
        fs::remove_dir_all(tree.root.join("sub")).unwrap();
        fs::create_dir_all(tree.root.join("sub/deep/deeper")).unwrap();
        if round % 3 == 0 {
            tree.write("sub/deep/first.txt", "needle\n");
        }
        both.has(&tree, "sub/deep/new.txt");
        for path in ["sub/deep/deeper/new.txt", "sub/deep/new.txt", "sub/new.txt"] {
            tree.write(path, "needle\n");
            assert!(both.has(&tree, path), "{path}, round {round}");
        }
    }
    both.check(&tree);
}
