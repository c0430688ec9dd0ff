//! A program that does nothing but keep sandboxes: for those who embed the crates without `haft`.

fn main() {
    haft_sandbox::child::run_if_asked();
    std::process::exit(2);
}
