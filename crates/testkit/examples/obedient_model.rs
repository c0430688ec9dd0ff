//! The obedient model, for trying programs by hand. Run `cargo run -p haft-testkit --example
//! obedient_model` and set `ANTHROPIC_BASE_URL` to the URL that it prints. It exits when its stdin
//! is closed.

use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let server = haft_testkit::obedient_model::start();
    writeln!(io::stdout(), "{}", server.url)?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
