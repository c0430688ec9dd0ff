//! The settings that new content adds to a repository's git configuration.
//!
//! A program that can write this file can choose what git starts the next time, in any process. So
//! only settings from a list of safe ones may be added. All other settings must already be in the
//! old content.

use super::{GitConfigRisk, GitSetting, parse};

/// Keys of each section that start nothing, include no other settings and redirect git to no other
/// place. `*` means all keys.
///
/// The list contains the keys that `git init`, `clone`, `remote`, `branch` and `submodule` write,
/// and keys that users commonly set for one repository.
#[rustfmt::skip]
const HARMLESS: &[(&str, &str)] = &[
    ("advice", "*"),
    ("author", "name email"),
    ("branch", "remote merge rebase description pushremote autosetupmerge autosetuprebase sort \
        vscode-merge-base gh-merge-base github-pr-owner-number github-pr-base-branch"),
    ("checkout", "defaultremote guess workers"),
    ("color", "*"),
    ("column", "*"),
    ("commit", "cleanup status verbose"),
    ("commitgraph", "*"),
    ("committer", "name email"),
    ("core", "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode \
        symlinks autocrlf eol safecrlf quotepath abbrev compression loosecompression sparsecheckout \
        sparsecheckoutcone untrackedcache splitindex preloadindex longpaths protecthfs protectntfs \
        sharedrepository bigfilethreshold commentchar commentstring whitespace trustctime checkstat \
        multipackindex commitgraph hidedotfiles"),
    ("diff", "algorithm renames renamelimit context colormoved colormovedws mnemonicprefix noprefix \
        indentheuristic ignoresubmodules wserrorhighlight"),
    ("extensions", "objectformat compatobjectformat refstorage worktreeconfig"),
    ("feature", "*"),
    ("fetch", "prune prunetags parallel fsckobjects writecommitgraph showforcedupdates output all"),
    ("gc", "auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable"),
    ("http", "postbuffer version lowspeedlimit lowspeedtime"),
    ("i18n", "*"),
    ("index", "*"),
    ("init", "defaultbranch"),
    ("lfs", "repositoryformatversion access locksverify"),
    ("log", "abbrevcommit date decorate follow mailmap showroot"),
    ("maintenance", "auto strategy"),
    ("merge", "conflictstyle ff renames renamelimit directoryrenames stat log renormalize"),
    ("pack", "*"),
    ("pull", "ff rebase"),
    ("push", "default autosetupremote followtags"),
    ("rebase", "autostash autosquash updaterefs stat backend missingcommitscheck"),
    ("receive", "denycurrentbranch denynonfastforwards denydeletes"),
    ("remote", "url pushurl fetch push mirror tagopt prune prunetags skipdefaultupdate skipfetchall \
        pushdefault gh-resolved"),
    ("rerere", "enabled autoupdate"),
    ("status", "short branch showstash showuntrackedfiles renames aheadbehind relativepaths"),
    ("submodule", "url active branch ignore fetchrecursesubmodules recurse fetchjobs \
        propagatebranches"),
    ("tag", "sort"),
    ("uploadpack", "allowfilter allowanysha1inwant allowreachablesha1inwant allowtipsha1inwant"),
    ("user", "name email signingkey useconfigonly"),
];

/// Returns the settings of the new content that are not known to be safe and were not in the old
/// content with the same values.
///
/// `tree` returns whether the working tree may be at a path. New content that cannot be parsed is
/// one risk.
pub fn added_risks(old: &str, new: &str, tree: &dyn Fn(&str) -> bool) -> Vec<GitConfigRisk> {
    let new = match parse(new) {
        Ok(settings) => settings,
        Err(fault) => {
            return vec![GitConfigRisk {
                key: "a line of it".to_owned(),
                line: fault.line,
                effect: "cannot be read",
            }];
        }
    };
    let old = parse(old).unwrap_or_default();
    let doubtful = |setting: &&GitSetting| !is_harmless(setting, tree);
    let values = |settings: &[GitSetting], name: &str| -> Vec<Option<String>> {
        let named = settings.iter().filter(|setting| setting.name() == name);
        named.map(|setting| setting.value.clone()).collect()
    };
    let added = new.iter().filter(doubtful).filter(|setting| {
        // Compare all values of a key in order, because the last one may be the one in effect.
        let name = setting.name();
        values(&new, &name) != values(&old, &name)
    });
    added
        .map(|setting| GitConfigRisk {
            key: setting.name(),
            line: setting.line,
            effect: "is not known to be safe and was added",
        })
        .collect()
}

fn is_harmless(setting: &GitSetting, tree: &dyn Fn(&str) -> bool) -> bool {
    let value = setting.value.as_deref().unwrap_or_default();
    match (setting.section.as_str(), setting.key.as_str()) {
        ("core", "worktree") => return setting.subsection.is_none() && tree(value),
        // git's built-in file system monitor; any other value is a program.
        ("core", "fsmonitor") => return setting.switch().is_some(),
        // Disabling signatures starts nothing.
        ("commit" | "tag" | "push", "gpgsign") => return setting.switch() == Some(false),
        ("submodule", "update") => {
            return ["none", "checkout", "rebase", "merge"].contains(&value);
        }
        // The text before `::` names a program.
        ("remote", "url" | "pushurl" | "pushdefault")
        | ("submodule", "url")
        | ("branch", "remote" | "pushremote")
            if names_a_helper(value) || value.starts_with('-') =>
        {
            return false;
        }
        _ => {}
    }
    let known = HARMLESS.iter().find(|(name, _)| setting.section == *name);
    known.is_some_and(|(_, keys)| {
        *keys == "*" || keys.split_whitespace().any(|key| key == setting.key)
    })
}

/// Returns whether an address names the program that reaches it, as in `ext::sh -c …`.
fn names_a_helper(address: &str) -> bool {
    let scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    address.trim_start_matches(scheme).starts_with("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(old: &str, new: &str) -> Vec<String> {
        let risks = added_risks(old, new, &|_| false);
        risks.into_iter().map(|risk| risk.key).collect()
    }

    /// Every key that git documents as one that starts a program, or that leads git elsewhere.
    #[test]
    fn no_key_that_starts_a_program_can_be_added() {
        let keys = "alias.x browser.x.cmd browser.x.path core.alternateRefsCommand core.askPass \
            core.attributesFile core.editor core.excludesFile core.gitProxy core.hooksPath core.pager \
            core.sshCommand core.worktree credential.helper credential.https://x.helper diff.external \
            diff.guitool diff.tool diff.x.command diff.x.textconv difftool.x.cmd difftool.x.path \
            extensions.partialClone filter.x.clean filter.x.process filter.x.smudge \
            gc.recentObjectsHook gpg.program gpg.ssh.defaultKeyCommand gpg.ssh.program gpg.x509.program \
            guitool.x.cmd help.browser http.proxy http.sslVerify imap.tunnel include.path \
            includeIf.gitdir:x.path instaweb.browser instaweb.httpd interactive.diffFilter \
            lfs.customtransfer.x.path lfs.extension.x.clean log.showSignature man.x.cmd man.x.path \
            man.viewer merge.guitool merge.tool merge.x.driver mergetool.x.cmd mergetool.x.path \
            pager.log pager.x protocol.allow protocol.ext.allow push.gpgSign remote.x.promisor \
            remote.x.receivepack remote.x.uploadpack remote.x.vcs sendemail.ccCmd \
            sendemail.headerCmd sendemail.smtpServer sendemail.toCmd sendemail.x.toCmd \
            sequence.editor tar.x.command trace2.eventTarget trailer.x.cmd trailer.x.command \
            uploadpack.packObjectsHook url.x.insteadOf url.x.pushInsteadOf web.browser \
            branch.x.mergeOptions commit.template no-such-section.key";
        for name in keys.split_whitespace() {
            let (section, key) = name.rsplit_once('.').unwrap();
            let head = match section.split_once('.') {
                Some((section, sub)) => format!("[{section} \"{sub}\"]"),
                None => format!("[{section}]"),
            };
            let text = format!("{head}\n\t{key} = ./x\n");
            assert_eq!(added("", &text).len(), 1, "{name}");
            // What was there stays, whatever else is added.
            let more = format!("{text}[remote \"new\"]\n\turl = https://h/x\n");
            assert!(added(&text, &more).is_empty(), "{name}");
            let other = format!("{head}\n\t{key} = ./y\n");
            assert_eq!(added(&text, &other).len(), 1, "{name}");
            assert_eq!(added(&text, &format!("{text}{other}")).len(), 2, "{name}");
        }
    }

    #[test]
    fn what_everyday_commands_write_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            \tlogallrefupdates = true\n\tfsmonitor = true\n[remote \"origin\"]\n\
            \turl = git@github.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\
            [submodule \"lib\"]\n\tactive = true\n\turl = ../lib\n\tupdate = rebase\n\
            [user]\n\tname = A\n\temail = a@b\n[commit]\n\tgpgsign = false\n[remote \"v6\"]\n\turl = ssh://[::1]/x\n";
        assert_eq!(added("", text), [""; 0]);
        let helper = "[remote \"x\"]\n\turl = ext::sh -c true\n";
        assert_eq!(added("", helper), ["remote.x.url"]);
        assert_eq!(added("", "[commit]\n\tgpgsign\n"), ["commit.gpgsign"]);
        let program = "[submodule \"x\"]\n\tupdate = !sh\n";
        assert_eq!(added("", program), ["submodule.x.update"]);
        assert_eq!(added("", "[core]\n\tfsmonitor = ./x\n"), ["core.fsmonitor"]);
        assert_eq!(added("", "[core\n"), ["a line of it"]);
        let tree = "[core]\n\tworktree = ../../../lib\n";
        assert!(added_risks("", tree, &|at| at == "../../../lib").is_empty());
    }
}
