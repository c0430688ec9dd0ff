//! The program that confines the commands of the tests.

fn main() {
    haft_sandbox::child::run_if_asked();
}
