//! The reference of all settings: type, files where they have an effect, and meaning. The
//! documentation is generated from it, and the Config tool uses it.

use std::fmt::Write;

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct SettingKey {
    /// Its name, with dots between the parts.
    pub name: &'static str,
    /// Its type.
    pub value_type: SettingType,
    /// The files where it has an effect.
    pub allowed_scopes: AllowedScopes,
    /// Whether it is a preference. Other settings may change permissions, run code or hold secrets.
    pub is_light: bool,
    /// Its meaning for users; `None` if it is accepted for other programs but has no effect here.
    pub meaning: Option<&'static str>,
}

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingType {
    /// A text.
    Text,
    /// A text or a list of texts.
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

impl SettingType {
    /// Returns its name in the documentation.
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

/// The files where a setting has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedScopes {
    /// All files. In files of the workspace, loosening values need trust.
    All,
    /// All files except the project's and the local one.
    Users,
    /// Only the administrator's file.
    Managed,
}

impl AllowedScopes {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Users => "user",
            Self::Managed => "managed",
        }
    }
}

use AllowedScopes::{All, Managed, Users};
use SettingType::{Flag, List, Number, Object, Text, Texts};

const fn key(
    name: &'static str,
    takes: SettingType,
    counts_in: AllowedScopes,
    is_light: bool,
    meaning: Option<&'static str>,
) -> SettingKey {
    SettingKey {
        name,
        value_type: takes,
        allowed_scopes: counts_in,
        is_light,
        meaning,
    }
}

/// A setting that changes permissions, runs code or holds secrets.
const fn heavy(name: &'static str, takes: SettingType, meaning: &'static str) -> SettingKey {
    key(name, takes, All, false, Some(meaning))
}

const fn light(name: &'static str, takes: SettingType, meaning: &'static str) -> SettingKey {
    key(name, takes, All, true, Some(meaning))
}

const fn managed(name: &'static str, takes: SettingType, meaning: &'static str) -> SettingKey {
    key(name, takes, Managed, false, Some(meaning))
}

const fn users(name: &'static str, takes: SettingType, meaning: &'static str) -> SettingKey {
    key(name, takes, Users, false, Some(meaning))
}

/// A setting that is accepted without effect.
const fn unused(name: &'static str, takes: SettingType, is_light: bool) -> SettingKey {
    key(name, takes, All, is_light, None)
}

/// All settings, in groups.
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
        "rules that allow calls without asking (`haft help rules`)",
    ),
    heavy("permissions.ask", List, "rules that ask, in every mode"),
    heavy(
        "permissions.deny",
        List,
        "rules that deny; no other rule, mode or hook overrides them",
    ),
    heavy(
        "permissions.additionalDirectories",
        List,
        "additional working directories",
    ),
    users(
        "permissions.wrappers",
        List,
        "programs after whose name the actual command starts, such as `rtk`",
    ),
    heavy(
        "permissions.defaultMode",
        Text,
        "`default`, `acceptEdits`, `plan`, `auto`, `dontAsk` or `bypassPermissions`; the project's and the local \
         file cannot set `auto` or `bypassPermissions`",
    ),
    heavy(
        "permissions.disableBypassPermissionsMode",
        Text,
        "`disable`: the mode bypassPermissions is unavailable",
    ),
    heavy(
        "permissions.disableAutoMode",
        Text,
        "`disable`: the mode auto is unavailable; also as `disableAutoMode`",
    ),
    heavy(
        "autoMode.classifyAllShell",
        Flag,
        "`true`: in the mode auto, allow rules for commands do not apply",
    ),
    heavy(
        "autoMode.hard_deny",
        List,
        "rules that deny, in every mode; haft cannot enforce an entry that is a sentence: the mode auto is \
         available after you accept that in a terminal",
    ),
    managed(
        "allowManagedPermissionRulesOnly",
        Flag,
        "only the administrator's rules apply",
    ),
    users(
        "askUserQuestionTimeout",
        Text,
        "how long a question waits for an answer: `60s`, `5m`, `10m` or `never`",
    ),
];

const SANDBOX: &[SettingKey] = &[
    heavy(
        "sandbox.enabled",
        Flag,
        "`true`: commands reach only allowed hosts, and confined commands need no permission; `false`: no command is confined; unset: files are confined, and the network of permitted commands is open",
    ),
    heavy(
        "sandbox.failIfUnavailable",
        Flag,
        "a session starts only if the sandbox is available",
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
        "sandbox.offlineCommands",
        List,
        "commands that run unasked in the sandbox without network, written as Bash rules; a project's after trust (`haft help rules`)",
    ),
    heavy(
        "sandbox.allowUnsandboxedCommands",
        Flag,
        "`false`: no call may request to run unconfined",
    ),
    heavy(
        "sandbox.filesystem.allowWrite",
        List,
        "paths that may be changed in addition to the working directories",
    ),
    heavy(
        "sandbox.filesystem.denyWrite",
        List,
        "paths that may not be changed",
    ),
    heavy(
        "sandbox.filesystem.denyRead",
        List,
        "paths that may not be read",
    ),
    heavy(
        "sandbox.filesystem.allowRead",
        List,
        "paths that may be read although `denyRead` contains them",
    ),
    users(
        "sandbox.filesystem.disabled",
        Flag,
        "`true`: only the network is confined, not files",
    ),
    heavy(
        "sandbox.network.allowedDomains",
        List,
        "hosts that may be reached: `host`, `*.host`, with or without `:port`",
    ),
    heavy(
        "sandbox.network.deniedDomains",
        List,
        "hosts that may not be reached; overrides `allowedDomains`",
    ),
    heavy(
        "sandbox.network.readDomains",
        List,
        "hosts at which lines that only read run unasked; a project's after trust (`haft help rules`)",
    ),
    users(
        "sandbox.network.strictAllowlist",
        Flag,
        "`true`: hosts that are not listed are refused without asking",
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
        "commands that run on certain events (`haft help hooks`)",
    ),
    heavy(
        "disableAllHooks",
        Flag,
        "`true`: only the administrator's hooks run",
    ),
    managed(
        "allowManagedHooksOnly",
        Flag,
        "`true`: only the administrator's hooks run, also if other files define some",
    ),
    heavy(
        "allowedHttpHookUrls",
        List,
        "URLs that hooks of type `http` may post to; `*` matches any text",
    ),
    heavy(
        "httpHookAllowedEnvVars",
        List,
        "variables that headers of such hooks may contain",
    ),
    heavy(
        "env",
        Object,
        "variables for the session and for commands; an empty value removes one",
    ),
];

const MODEL: &[SettingKey] = &[
    light(
        "model",
        Text,
        "the model, by its name or an alias such as `sonnet`",
    ),
    light(
        "fallbackModel",
        Texts,
        "the model to use when that one is overloaded",
    ),
    heavy("availableModels", List, "models that may be chosen"),
    heavy(
        "modelOverrides",
        Object,
        "other names for models, as a provider expects them",
    ),
    light(
        "effortLevel",
        Text,
        "how much the model thinks: `low`, `medium`, `high`, `max`",
    ),
    light(
        "alwaysThinkingEnabled",
        Flag,
        "`true`: the model thinks first, as much as it decides (options of the session and MAX_THINKING_TOKENS take precedence)",
    ),
    users(
        "apiKeyHelper",
        Text,
        "a command for `sh` that prints the key; used if no variable contains one, and run again after CLAUDE_CODE_API_KEY_HELPER_TTL_MS (5 minutes) or when the key is refused",
    ),
    light(
        "autoCompactEnabled",
        Flag,
        "`false`: only `/compact` summarizes a conversation; a request that no longer fits fails",
    ),
    heavy(
        "autoCompactWindow",
        Number,
        "the context window in tokens; it determines when conversations are compacted",
    ),
    users(
        "webSearch",
        Text,
        "the web search backend: `provider`, the URL of a SearXNG instance (HAFT_SEARCH_URL takes precedence), `mcp__SERVER__TOOL`, or `off` (`haft help web`)",
    ),
    users(
        "browser",
        Object,
        "`path` of Chromium, `headed` (a window), `memoryMb` (2048), above which it is closed, `secrets` to type into pages (`haft help browser`)",
    ),
    heavy(
        "lsp",
        Object,
        "language servers by name (a project's once it is trusted); `diagnostics`: `new`, `errors` or `off`; only in the user's file `memoryMb` (2048) and `allowUnsandboxed`; `false`: none (`haft help language-servers`)",
    ),
    light("language", Text, "the language of the model's replies"),
    light("outputStyle", Text, "the style of the model's replies"),
];

const INSTRUCTIONS: &[SettingKey] = &[
    heavy("agent", Text, "the agent kind of the main agent"),
    heavy("claudeMdExcludes", List, "instruction files to ignore"),
    heavy(
        "autoMemoryEnabled",
        Flag,
        "`false`: no memory is stored between sessions",
    ),
    users("autoMemoryDirectory", Text, "the directory of this memory"),
    heavy("plansDirectory", Text, "the directory for plans"),
    users(
        "cleanupPeriodDays",
        Number,
        "sessions of all projects that did not change for this number of days are removed when a session starts; unset: never",
    ),
    users(
        "undo.copyBytes",
        Number,
        "the most bytes that a session copies so that commands can be undone; default: 1 GiB; 1 GiB or 2 % of the disk stays free",
    ),
    users(
        "undo.fileBytes",
        Number,
        "files with more bytes are not copied before a command changes them; default: 256 MiB",
    ),
    users(
        "undo.pinBytes",
        Number,
        "the most bytes that files removed by the commands of a session may keep on the disk for undo; default: 10 GiB, at most a quarter of the free space",
    ),
    light(
        "attribution.commit",
        Text,
        "text that the model appends to commit messages; unset or empty: none",
    ),
    light(
        "attribution.pr",
        Text,
        "text that it appends to descriptions of pull requests",
    ),
    light(
        "includeCoAuthoredBy",
        Flag,
        "`false`: neither of the two (an older setting)",
    ),
    heavy(
        "skillOverrides",
        Object,
        "skills by name: `on`, `off` and the like",
    ),
    light(
        "skillListingBudgetFraction",
        Number,
        "the fraction of the context window that the list of skills may take",
    ),
    light(
        "skillListingMaxDescChars",
        Number,
        "the maximum length of a skill's description in that list",
    ),
    heavy(
        "disableBundledSkills",
        Flag,
        "`true`: only your own skills are available",
    ),
    heavy(
        "disableSkillShellExecution",
        Flag,
        "`true`: commands in skills are not run",
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
        "these MCP servers are never used, regardless of where they are configured; entries as above",
    ),
    unused("enabledMcpjsonServers", List, false),
    heavy(
        "disabledMcpjsonServers",
        List,
        "servers of `.mcp.json` that are not used",
    ),
    unused("enableAllProjectMcpServers", Flag, false),
    heavy(
        "enabledPlugins",
        Object,
        "which installed plugins are loaded, each `NAME@MARKETPLACE` with `true` or `false`; from a project file only after trust",
    ),
    unused("extraKnownMarketplaces", Object, false),
];

const TERMINAL: &[SettingKey] = &[
    light(
        "theme",
        Text,
        "`auto`, `dark`, `light`, the latter two also with `-daltonized` or `-ansi`, or `custom:NAME` of `~/.claude/themes`",
    ),
    light("editorMode", Text, "`vim`: vi keys in the editor"),
    light(
        "vimInsertModeRemaps",
        Object,
        "key mappings of vi's insert mode, such as `{\"jj\": \"<Esc>\"}`",
    ),
    light("verbose", Flag, "`true`: calls are shown in full"),
    light("prefersReducedMotion", Flag, "`true`: no animations"),
    light(
        "axScreenReader",
        Flag,
        "`true`: a line-oriented session, like `--plain`",
    ),
    light(
        "preferredNotifChannel",
        Text,
        "how notifications are shown: `terminal_bell`, `iterm2`, `iterm2_with_bell`, `kitty`, `ghostty`, `notifications_disabled`",
    ),
    light(
        "terminalProgressBarEnabled",
        Flag,
        "`true`: the window's progress bar shows when the model works",
    ),
    heavy(
        "statusLine",
        Object,
        "`{type: command, command, padding, refreshInterval}`: a command that prints the status row",
    ),
    heavy(
        "fileSuggestion",
        Object,
        "`{type: command, command}`: a command that finds the files for `@`",
    ),
    light(
        "respectGitignore",
        Flag,
        "`false`: `@` also finds ignored files",
    ),
    light(
        "searchIndex",
        Flag,
        "`false`: no search index, in memory or on disk (like `HAFT_SEARCH_INDEX=off`)",
    ),
    light(
        "respondToBashCommands",
        Flag,
        "`false`: the model does not answer to `!command`",
    ),
];

const UNUSED: &[SettingKey] = &[
    unused("autoMode.environment", List, false),
    unused("autoMode.allow", List, false),
    unused("autoMode.soft_deny", List, false),
    unused("useAutoModeDuringPlan", Flag, false),
    unused("defaultShell", Text, false),
    unused("includeGitInstructions", Flag, true),
    unused("skipWebFetchPreflight", Flag, false),
    unused("spinnerTipsEnabled", Flag, true),
    unused("tui", Text, true),
];

/// Returns all settings.
pub fn keys() -> impl Iterator<Item = &'static SettingKey> {
    GROUPS.iter().flat_map(|(_, keys)| keys.iter())
}

/// Returns the reference as Markdown.
pub fn markdown() -> String {
    let mut text = String::new();
    for (group, keys) in GROUPS {
        let _ = writeln!(text, "### {group}\n");
        let _ = writeln!(
            text,
            "| Setting | Takes | Valid in | Meaning |\n|---|---|---|---|"
        );
        for key in keys {
            let meaning = key.meaning.unwrap_or("no effect here");
            let (takes, whose) = (key.value_type.name(), key.allowed_scopes.name());
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
