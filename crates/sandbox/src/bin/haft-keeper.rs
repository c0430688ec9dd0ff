//! A program that only runs keepers, for applications that embed the crates without `haft`.

fn main() {
    haft_sandbox::child::run_if_asked();
    std::process::exit(2);
}
