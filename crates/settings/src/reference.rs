//! Every setting that files may hold: what it takes, whose files count, what it does. The reference for
//! people is made from it, and so is what the Config tool knows of settings.

use std::fmt::Write;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct SettingKey {
    /// Its name, with dots between the parts.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// In whose files it counts.
    pub counts_in: CountsIn,
    /// A matter of taste. What is not may change what is permitted, run code, or hold secrets.
    pub is_light: bool,
    /// What it does, for people; `None`: it is accepted for other programs, and does nothing here.
    pub meaning: Option<&'static str>,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A text.
    Text,
    /// One text or several.
    Texts,
    /// A list of texts.
    List,
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// An object.
    Object,
}

impl Takes {
    /// How it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Texts => "text or list",
            Self::List => "list",
            Self::Flag => "true or false",
            Self::Number => "number",
            Self::Object => "object",
        }
    }
}

/// In whose files a setting counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountsIn {
    /// In every file. What loosens waits for trust where the file comes with the workspace.
    All,
    /// Not in the project's and the local file.
    Users,
    /// In the administrator's file.
    Managed,
}

impl CountsIn {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Users => "user",
            Self::Managed => "managed",
        }
    }
}

use CountsIn::{All, Managed, Users};
use Takes::{Flag, List, Number, Object, Text, Texts};

const fn key(
    name: &'static str,
    takes: Takes,
    counts_in: CountsIn,
    is_light: bool,
    meaning: Option<&'static str>,
) -> SettingKey {
    SettingKey {
        name,
        takes,
        counts_in,
        is_light,
        meaning,
    }
}

/// Changes what is permitted, runs code, or holds secrets.
const fn heavy(name: &'static str, takes: Takes, meaning: &'static str) -> SettingKey {
    key(name, takes, All, false, Some(meaning))
}

const fn light(name: &'static str, takes: Takes, meaning: &'static str) -> SettingKey {
    key(name, takes, All, true, Some(meaning))
}

const fn managed(name: &'static str, takes: Takes, meaning: &'static str) -> SettingKey {
    key(name, takes, Managed, false, Some(meaning))
}

const fn users(name: &'static str, takes: Takes, meaning: &'static str) -> SettingKey {
    key(name, takes, Users, false, Some(meaning))
}

/// Accepted, without effect.
const fn unused(name: &'static str, takes: Takes, is_light: bool) -> SettingKey {
    key(name, takes, All, is_light, None)
}

/// Every setting, in groups.
pub const GROUPS: [(&str, &[SettingKey]); 8] = [
    ("Permission", PERMISSION),
    ("Sandbox", SANDBOX),
    ("Hooks and variables", HOOKS),
    ("Model", MODEL),
    ("Instructions, memory, agents and skills", INSTRUCTIONS),
    ("MCP servers and plugins", SERVERS),
    ("Terminal", TERMINAL),
    ("Accepted, without effect here", UNUSED),
];

const PERMISSION: &[SettingKey] = &[
    heavy(
        "permissions.allow",
        List,
        "rules that let calls through without asking (`haft help rules`)",
    ),
    heavy("permissions.ask", List, "rules that ask, in every mode"),
    heavy(
        "permissions.deny",
        List,
        "rules that refuse; no other rule, mode or hook lifts them",
    ),
    heavy(
        "permissions.additionalDirectories",
        List,
        "further working directories",
    ),
    heavy(
        "permissions.defaultMode",
        Text,
        "`default`, `acceptEdits`, `plan`, `dontAsk` or `bypassPermissions`",
    ),
    heavy(
        "permissions.disableBypassPermissionsMode",
        Text,
        "`disable`: the mode bypassPermissions cannot be had",
    ),
    managed(
        "allowManagedPermissionRulesOnly",
        Flag,
        "only the administrator's rules count",
    ),
    users(
        "askUserQuestionTimeout",
        Text,
        "how long an answer is waited for: `60s`, `5m`, `10m` or `never`",
    ),
];

const SANDBOX: &[SettingKey] = &[
    heavy(
        "sandbox.enabled",
        Flag,
        "`true`: commands have no network but for the hosts that are allowed, and confined ones need no \
         permission; `false`: nothing is confined; without it, files are confined and the network of \
         permitted commands is open",
    ),
    heavy(
        "sandbox.failIfUnavailable",
        Flag,
        "rather no session than one without a sandbox",
    ),
    heavy(
        "sandbox.autoAllowBashIfSandboxed",
        Flag,
        "with `sandbox.enabled`: a confined command needs no permission (the default)",
    ),
    heavy(
        "sandbox.excludedCommands",
        List,
        "commands that run unconfined, written as Bash rules",
    ),
    heavy(
        "sandbox.allowUnsandboxedCommands",
        Flag,
        "`false`: no call may ask to run unconfined",
    ),
    heavy(
        "sandbox.filesystem.allowWrite",
        List,
        "may be changed beside the working directories",
    ),
    heavy("sandbox.filesystem.denyWrite", List, "may not be changed"),
    heavy("sandbox.filesystem.denyRead", List, "may not be read"),
    heavy(
        "sandbox.filesystem.allowRead",
        List,
        "may be read although it lies in what may not",
    ),
    users(
        "sandbox.filesystem.disabled",
        Flag,
        "files are not confined, only the network is",
    ),
    heavy(
        "sandbox.network.allowedDomains",
        List,
        "hosts that may be reached: `host`, `*.host`, with or without `:port`",
    ),
    heavy(
        "sandbox.network.deniedDomains",
        List,
        "hosts that may not be reached; wins",
    ),
    users(
        "sandbox.network.strictAllowlist",
        Flag,
        "a host that is not named is refused, not asked about",
    ),
    managed(
        "sandbox.network.allowManagedDomainsOnly",
        Flag,
        "only the administrator allows hosts",
    ),
];

const HOOKS: &[SettingKey] = &[
    heavy(
        "hooks",
        Object,
        "programs that run at certain moments (`haft help hooks`)",
    ),
    heavy(
        "disableAllHooks",
        Flag,
        "no hook runs, but the administrator's",
    ),
    managed(
        "allowManagedHooksOnly",
        Flag,
        "only the administrator's hooks run",
    ),
    heavy(
        "allowedHttpHookUrls",
        List,
        "where hooks of type `http` may post to; `*` stands for anything",
    ),
    heavy(
        "httpHookAllowedEnvVars",
        List,
        "variables that headers of such hooks may hold",
    ),
    heavy(
        "env",
        Object,
        "variables for the session and for commands; an empty text removes one",
    ),
];

const MODEL: &[SettingKey] = &[
    light(
        "model",
        Text,
        "the model, by its name or a short one such as `sonnet`",
    ),
    light(
        "fallbackModel",
        Texts,
        "what is asked when that one is overloaded",
    ),
    heavy("availableModels", List, "models that may be chosen"),
    heavy(
        "modelOverrides",
        Object,
        "other names for models, as a provider wants them",
    ),
    light(
        "effortLevel",
        Text,
        "how much the model thinks: `low`, `medium`, `high`, `max`",
    ),
    light(
        "alwaysThinkingEnabled",
        Flag,
        "`true`: the model thinks first, as much as it finds right (what a session is given and MAX_THINKING_TOKENS win)",
    ),
    users(
        "apiKeyHelper",
        Text,
        "a command that prints the key, for `sh`; used where no variable holds one, run again after \
         CLAUDE_CODE_API_KEY_HELPER_TTL_MS (5 minutes) and when the key is refused",
    ),
    light(
        "autoCompactEnabled",
        Flag,
        "`false`: a conversation is summarized by `/compact` only; one that no longer fits is refused",
    ),
    heavy(
        "autoCompactWindow",
        Number,
        "summarize as if the model could read only so many tokens",
    ),
    users(
        "webSearch",
        Text,
        "who searches the web: `provider`, the address of a SearXNG instance (HAFT_SEARCH_URL wins), \
         `mcp__SERVER__TOOL`, or `off` (`haft help web`)",
    ),
    users(
        "browser",
        Object,
        "`path` of Chromium, `headed` (a window), `memoryMb` (2048) above which it is closed, \
         `secrets` that are typed into pages (`haft help browser`)",
    ),
    heavy(
        "lsp",
        Object,
        "language servers by name (of a project once it is trusted); `diagnostics`: `new`, `errors` or `off`; of the \
         user alone `memoryMb` (2048) and `allowUnsandboxed`; `false`: none (`haft help language-servers`)",
    ),
    light("language", Text, "the language of its answers"),
    light("outputStyle", Text, "the style of its answers"),
];

const INSTRUCTIONS: &[SettingKey] = &[
    heavy("agent", Text, "the main agent is of this kind"),
    heavy(
        "claudeMdExcludes",
        List,
        "instruction files that are not read",
    ),
    heavy(
        "autoMemoryEnabled",
        Flag,
        "`false`: no notes outlive a session",
    ),
    users("autoMemoryDirectory", Text, "where these notes are"),
    heavy("plansDirectory", Text, "where plans are saved"),
    users(
        "cleanupPeriodDays",
        Number,
        "sessions that were not written to for so many days are removed at the start of another, in all \
         projects; without it, none is",
    ),
    light(
        "attribution.commit",
        Text,
        "what the model ends commit messages with; without it, or empty, nothing",
    ),
    light(
        "attribution.pr",
        Text,
        "what it ends descriptions of pull requests with",
    ),
    light(
        "includeCoAuthoredBy",
        Flag,
        "`false`: neither of both (an older name for leaving them empty)",
    ),
    heavy(
        "skillOverrides",
        Object,
        "skills by name: `on`, `off` and the like",
    ),
    light(
        "skillListingBudgetFraction",
        Number,
        "how much of the context the list of skills may take",
    ),
    light(
        "skillListingMaxDescChars",
        Number,
        "how long a skill's description may be in it",
    ),
    heavy("disableBundledSkills", Flag, "no skills but one's own"),
    heavy(
        "disableSkillShellExecution",
        Flag,
        "commands in skills are not run",
    ),
];

const SERVERS: &[SettingKey] = &[
    heavy(
        "allowedMcpServers",
        List,
        "only these MCP servers: `{serverName}`, `{serverCommand: [..]}` or `{serverUrl}`; a project's own list \
         only narrows",
    ),
    heavy(
        "deniedMcpServers",
        List,
        "never these MCP servers, wherever they are named; as above",
    ),
    unused("enabledMcpjsonServers", List, false),
    heavy(
        "disabledMcpjsonServers",
        List,
        "servers of `.mcp.json` that are not used",
    ),
    unused("enableAllProjectMcpServers", Flag, false),
    unused("enabledPlugins", Object, false),
    unused("extraKnownMarketplaces", Object, false),
];

const TERMINAL: &[SettingKey] = &[
    light(
        "theme",
        Text,
        "`auto`, `dark`, `light`, `-daltonized` or `-ansi` behind either, `custom:NAME` of `~/.claude/themes`",
    ),
    light("editorMode", Text, "`vim`: vi keys in the editor"),
    light(
        "vimInsertModeRemaps",
        Object,
        "keys typed in vi's insert mode and what they mean, such as `{\"jj\": \"<Esc>\"}`",
    ),
    light("verbose", Flag, "cards of calls are shown nearly whole"),
    light(
        "prefersReducedMotion",
        Flag,
        "nothing turns or moves by itself",
    ),
    light("axScreenReader", Flag, "a session in lines, as `--plain`"),
    light(
        "preferredNotifChannel",
        Text,
        "how you are called: `terminal_bell`, `iterm2`, `iterm2_with_bell`, `kitty`, `ghostty`, `notifications_disabled`",
    ),
    light(
        "terminalProgressBarEnabled",
        Flag,
        "the progress bar of the window shows that something runs",
    ),
    heavy(
        "statusLine",
        Object,
        "`{type: command, command, padding, refreshInterval}`: a command that writes the status row",
    ),
    heavy(
        "fileSuggestion",
        Object,
        "`{type: command, command}`: a command that finds the files for `@`",
    ),
    light(
        "respectGitignore",
        Flag,
        "`false`: `@` finds ignored files, too",
    ),
    light(
        "searchIndex",
        Flag,
        "`false`: searches keep nothing between calls, and no index files (as `HAFT_SEARCH_INDEX=off`)",
    ),
    light(
        "respondToBashCommands",
        Flag,
        "`false`: the model does not answer to `!command`",
    ),
];

const UNUSED: &[SettingKey] = &[
    key("autoMode", Object, Users, false, None),
    unused("defaultShell", Text, false),
    unused("includeGitInstructions", Flag, true),
    unused("skipWebFetchPreflight", Flag, false),
    unused("spinnerTipsEnabled", Flag, true),
    unused("tui", Text, true),
];

/// All settings.
pub fn keys() -> impl Iterator<Item = &'static SettingKey> {
    GROUPS.iter().flat_map(|(_, keys)| keys.iter())
}

/// The reference, as Markdown.
pub fn markdown() -> String {
    let mut text = String::new();
    for (group, keys) in GROUPS {
        let _ = writeln!(text, "### {group}\n");
        let _ = writeln!(
            text,
            "| Setting | Takes | Counts in | Meaning |\n|---|---|---|---|"
        );
        for key in keys {
            let meaning = key.meaning.unwrap_or("no effect here");
            let (takes, whose) = (key.takes.name(), key.counts_in.name());
            let _ = writeln!(text, "| `{}` | {takes} | {whose} | {meaning} |", key.name);
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_page_for_people_is_made_from_it() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let text = fs::read_to_string(page).unwrap();
        let (head, table) = text.split_once("<!-- generated -->\n\n").unwrap();
        if std::env::var_os("HAFT_WRITE_DOCS").is_some() {
            fs::write(page, format!("{head}<!-- generated -->\n\n{}", markdown())).unwrap();
            return;
        }
        assert_eq!(
            table,
            markdown(),
            "run the test again with HAFT_WRITE_DOCS=1"
        );
    }

    #[test]
    fn no_setting_is_named_twice() {
        let mut names: Vec<&str> = keys().map(|key| key.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
