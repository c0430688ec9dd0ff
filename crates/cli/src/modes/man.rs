//! `haft man DIR`: writes manual pages, generated from the same definitions as `--help`.

use std::{fs, path::Path};

use anyhow::Context;

use crate::{args, exit::Exit, show};

pub(crate) fn run(directory: &Path) -> anyhow::Result<Exit> {
    fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    let pages = args::pages();
    for (name, command) in &pages {
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        let file = directory.join(format!("{name}.1"));
        fs::write(&file, page).with_context(|| format!("{}", file.display()))?;
    }
    let count = pages.len();
    show::line(&format!("{count} pages in {}", directory.display()))?;
    Ok(Exit::Success)
}
