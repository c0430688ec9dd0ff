//! The obedient model, for trying programs by hand: `cargo run -p haft-testkit --example obedient_model`, then
//! set `ANTHROPIC_BASE_URL` to what it prints. It ends with its input.

use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let server = haft_testkit::obedient::start();
    writeln!(io::stdout(), "{}", server.url)?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
