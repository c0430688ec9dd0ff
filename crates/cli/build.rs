//! Makes the release binary smaller where this machine's linker and loader can: relocations packed
//! (2 % of the file) and identical functions stored once. A debug binary, which tests start thousands of
//! times, has no relocations to process at its start. Each option is first tried on a small program, which is then
//! run.
//!
//! A binary with packed relocations needs glibc 2.36 or later; `HAFT_PORTABLE=1` leaves them out.

use std::{
    env,
    ffi::OsString,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

const PACKED_RELOCATIONS: &str = "-Wl,-z,pack-relative-relocs";
const EQUAL_FUNCTIONS_ONCE: &str = "-Wl,--icf=all";
const AT_A_FIXED_ADDRESS: &str = "-no-pie";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HAFT_PORTABLE");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    // Only what this machine can run can be tried here.
    let native = env::var("HOST").ok() == env::var("TARGET").ok();
    if !is("CARGO_CFG_TARGET_OS", "linux") || !native {
        return;
    }
    let arguments: &[_] = match is("PROFILE", "release") {
        true if is("HAFT_PORTABLE", "1") => &[EQUAL_FUNCTIONS_ONCE],
        true => &[PACKED_RELOCATIONS, EQUAL_FUNCTIONS_ONCE],
        false => &[AT_A_FIXED_ADDRESS],
    };
    for argument in arguments.iter().filter(|argument| works(argument)) {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}

/// Whether a program links with this argument and runs.
fn works(argument: &str) -> bool {
    try_program(argument).unwrap_or(false)
}

fn try_program(argument: &str) -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, program) = (folder.join("tried.rs"), folder.join("tried"));
    fs::write(&source, "fn main() { println!(\"it runs\") }").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = OsString::from("linker=");
        flag.push(linker);
        rustc.arg("-C").arg(flag);
    }
    let linked = rustc
        .args(["--edition=2024", "--crate-type=bin", "-C"])
        .arg(format!("link-arg={argument}"))
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    Some(linked.success() && Command::new(&program).output().ok()?.stdout == b"it runs\n")
}
