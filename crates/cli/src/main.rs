//! The binary `haft`. `run` dispatches to the modes.

mod args;
mod clock;
mod exit;
mod line_input;
mod modes;
mod process_hardening;
mod runtime;
mod session;
mod show;
mod signals;
mod stdio;
mod terminal_approver;
mod terminal_questions;
mod tui;

use std::process::ExitCode;

use args::{CliCommand, McpCommand};
use exit::Exit;

/// The version line for users.
const OWN_VERSION: &str = concat!("haft ", env!("CARGO_PKG_VERSION"));

/// The compatibility level of the protocol, then our own name and version. SDKs parse this line.
const VERSION: &str = concat!("2.1.240 (haft ", env!("CARGO_PKG_VERSION"), ")");

fn main() -> ExitCode {
    // The same program also serves as the sandbox's child process and as the PDF parser, which runs
    // in a separate process so that a crash stays there. This must run first, while the process has
    // only one thread.
    haft::tools::serve_child();
    tui::serve_if_asked();
    process_hardening::harden_process();
    haft_sandbox::trim_freed_buffers();
    args::answer_if_asked();
    match run() {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error).into(),
    }
}

fn run() -> anyhow::Result<Exit> {
    runtime::log();
    let Some(args) = args::parse()? else {
        return Ok(Exit::Success);
    };
    match args.command {
        CliCommand::Headless(flags) if flags.plain => {
            runtime::block_on(tui::plain::run_flags(args.session, *flags))
        }
        CliCommand::Headless(headless) => {
            runtime::block_on(modes::headless::run(args.session, *headless))
        }
        CliCommand::Interactive(flags) if tui::is_plain(flags.plain) => {
            runtime::block_on(tui::plain::run_flags(args.session, *flags))
        }
        CliCommand::Interactive(flags) => {
            tui::run(modes::headless::interactive(args.session, *flags)?)
        }
        CliCommand::Demo(demo) => runtime::block_on(modes::demo::run(demo)),
        CliCommand::Mcp(McpCommand::Serve(flags)) if flags.http.is_none() => {
            runtime::block_on_one_thread(modes::mcp::serve(args.session, flags))
        }
        CliCommand::Mcp(asked) => runtime::block_on(modes::mcp::run(args.session, asked)),
        CliCommand::Sessions(asked) => modes::sessions::run(&args.session, &asked),
        CliCommand::Exec(flags) => runtime::block_on(modes::exec::run(args.session, flags)),
        CliCommand::Call(call) => runtime::block_on(modes::call::run(args.session, call)),
        CliCommand::Tools(tools) => runtime::block_on(modes::tools::run(args.session, tools)),
        CliCommand::Models(models) => runtime::block_on(modes::models::run(args.session, models)),
        CliCommand::Undo(undo) => modes::undo::run(&args.session, &undo),
        CliCommand::Permissions(asked) => modes::permissions::run(&args.session, asked),
        CliCommand::Doctor { json } => runtime::block_on(modes::doctor::run(args.session, json)),
        CliCommand::Acp(flags) => runtime::block_on(modes::acp::run(args.session, *flags)),
        CliCommand::Login => runtime::block_on(modes::login::login(args.session)),
        CliCommand::Logout => modes::login::logout(),
        CliCommand::Completions { shell } => modes::completions::run(&shell),
        CliCommand::Man { directory } => modes::man::run(&directory),
        CliCommand::Help { words } => modes::help::run(&words),
    }
}
