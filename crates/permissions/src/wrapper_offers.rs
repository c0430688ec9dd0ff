//! The choice to declare a program as a wrapper: rules then apply to the command after its name.

use std::env;

use haft_contract::{RuleOffer, rule_offer::COMMAND_WRAPPER};
use haft_settings::real_path;
use haft_shell::commands::rule_families::probable_wrapper;

use super::rule_offers::LineProposals;

impl LineProposals<'_> {
    /// Returns the choice for the first part that a program without a table probably starts, if the
    /// program is installed outside the working directories.
    pub(super) fn wrapper_choice(&self, asking: &[usize]) -> Option<RuleOffer> {
        let parts = &self.shell.analysis.parts;
        let mut names = asking
            .iter()
            .filter_map(|at| probable_wrapper(parts.get(*at)?));
        let name = names.find(|name| self.is_installed_outside(name))?;
        RuleOffer::for_call(vec![format!("{COMMAND_WRAPPER}({name})")])
    }

    fn is_installed_outside(&self, name: &str) -> bool {
        let Some(path) = env::var_os("PATH") else {
            return false;
        };
        // The shell starts the first one.
        let mut files = env::split_paths(&path).map(|directory| directory.join(name));
        files.find(|file| file.is_file()).is_some_and(|file| {
            file.is_absolute()
                && !self.policy.is_inside(&file)
                && !self.policy.is_inside(&real_path::resolve_links(&file))
        })
    }
}
