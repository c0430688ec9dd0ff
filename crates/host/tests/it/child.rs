//! The program that confines the commands of the tests.

fn main() {
    haft_tools::serve_child();
}
