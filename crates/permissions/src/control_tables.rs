//! The names of files and directories that decide which programs run, as tables. Each entry names the program that
//! obeys them.
//!
//! Not in the tables: what a project is made of and its own tools run (`Makefile`, `package.json`, `justfile`,
//! `build.rs`, `.github/workflows`), and what only picks the version of an installed program (`.nvmrc`).

/// The program that obeys a name, and the names in small letters. `a/b` is `b` in a directory `a`.
pub(super) type ControlEntry = (&'static str, &'static [&'static str]);

/// Directories with everything below them.
#[rustfmt::skip] // one line for each program
pub(super) const DIRECTORIES: &[ControlEntry] = &[
    ("git(1)", &[".git", ".config/git"]),
    ("hook managers: Husky, core.hooksPath by convention, Lefthook, Overcommit, Trunk", &[".husky", ".githooks", ".git-hooks", ".lefthook", ".lefthook-local", ".git-hooks.d", ".overcommit", ".trunk"]),
    ("darcs", &["_darcs/prefs"]),
    ("DataLad procedures", &[".datalad"]),
    // Editors and their debuggers.
    ("VS Code and its forks", &[".vscode"]),
    ("Visual Studio", &[".vs"]),
    ("JetBrains IDEs, Fleet", &[".idea", ".run", ".fleet"]),
    ("Zed", &[".zed", ".config/zed"]),
    ("Helix", &[".helix", ".config/helix"]),
    ("Vim, Neovim", &[".vim", ".nvim", ".config/nvim", ".config/vim"]),
    ("Emacs", &[".emacs.d", ".config/emacs", ".doom.d", ".config/doom"]),
    ("Nova", &[".nova"]),
    ("Theia", &[".theia"]),
    ("Eclipse external tools", &[".externaltoolbuilders"]),
    ("Obsidian plugins", &[".obsidian"]),
    ("development containers", &[".devcontainer"]),
    // Agents.
    ("Claude Code, haft", &[".claude"]),
    ("Cursor", &[".cursor"]),
    ("Gemini CLI, Qwen Code, iFlow", &[".gemini", ".qwen", ".iflow"]),
    ("Codex", &[".codex"]),
    ("Kiro, Amazon Q", &[".kiro", ".amazonq"]),
    ("Windsurf, Codeium", &[".windsurf", ".codeium"]),
    ("Continue", &[".continue"]),
    ("Aider", &[".aider"]),
    ("opencode, Crush", &[".opencode", ".crush", ".config/opencode", ".config/crush"]),
    ("Goose", &[".goose", ".config/goose"]),
    ("Amp, Antigravity: commands and skills", &[".amp", ".agents", ".agent"]),
    ("Roo Code, Kilo Code, Cline", &[".roo", ".kilocode", ".cline", ".clinerules"]),
    ("Junie", &[".junie"]),
    ("Trae, Qoder, CodeBuddy", &[".trae", ".qoder", ".codebuddy"]),
    ("GitHub Copilot: hooks and servers", &[".copilot", ".github/copilot", ".github/hooks"]),
    ("Factory Droid, Augment, Zencoder, Rovo Dev, OpenHands", &[".factory", ".augment", ".zencoder", ".rovodev", ".openhands"]),
    ("Cody, Tabnine", &[".cody", ".tabnine"]),
    // Programs that others start.
    ("Cargo", &[".cargo"]),
    ("Yarn", &[".yarn"]),
    ("Maven wrapper and extensions", &[".mvn"]),
    ("mise", &[".mise", ".config/mise"]),
    ("direnv", &[".config/direnv", ".local/share/direnv"]),
    // What a session of the user starts.
    ("fish", &[".config/fish"]),
    ("Nushell, Xonsh, Elvish, PowerShell", &[".config/nushell", ".config/xonsh", ".config/elvish", ".config/powershell"]),
    ("XDG autostart", &[".config/autostart", ".config/plasma-workspace"]),
    ("systemd units and environment of the user", &[".config/systemd", ".config/environment.d", ".local/share/systemd"]),
    ("D-Bus services of the user", &[".local/share/dbus-1"]),
    ("desktop entries of the user", &[".local/share/applications"]),
    ("programs of the user in PATH", &[".local/bin"]),
    ("i3, Sway, Hyprland", &[".config/i3", ".config/sway", ".config/hypr"]),
    ("tmux, kitty, Alacritty, WezTerm, Ghostty", &[".config/tmux", ".config/kitty", ".config/alacritty", ".config/wezterm", ".config/ghostty"]),
    ("Oh My Zsh, Oh My Bash, Bash-it", &[".oh-my-zsh", ".oh-my-bash", ".bash_it"]),
];

/// Files.
#[rustfmt::skip] // one line for each program
pub(super) const FILES: &[ControlEntry] = &[
    // Version control and its hooks.
    ("git(1)", &[".gitconfig", ".gitmodules"]),
    ("Mercurial", &[".hgrc", ".hg/hgrc", ".hg/hgrc-not-shared"]),
    ("Jujutsu", &[".jjconfig.toml", ".jj/repo/config.toml", ".jj/workspace-config.toml"]),
    ("Sapling", &[".sl/config"]),
    ("Pijul", &[".pijul/config"]),
    ("Breezy, Bazaar", &[".bzr/branch/branch.conf"]),
    ("pre-commit", &[".pre-commit-config.yaml", ".pre-commit-config.yml"]),
    ("prek", &["prek.toml"]),
    ("Lefthook", &["lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook.jsonc", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", ".lefthook.jsonc", ".config/lefthook.yml", ".config/lefthook.yaml", ".config/lefthook.toml", ".config/lefthook.json"]),
    ("Lefthook, own additions", &["lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json", ".lefthook-local.yml", ".lefthook-local.yaml", ".lefthook-local.toml", ".lefthook-local.json"]),
    ("Husky 4", &[".huskyrc", ".huskyrc.json", ".huskyrc.yaml", ".huskyrc.yml", ".huskyrc.js"]),
    ("simple-git-hooks", &[".simple-git-hooks.json", ".simple-git-hooks.js", ".simple-git-hooks.cjs", "simple-git-hooks.json", "simple-git-hooks.js", "simple-git-hooks.cjs"]),
    ("Overcommit", &[".overcommit.yml"]),
    ("CaptainHook", &["captainhook.json"]),
    ("GrumPHP", &["grumphp.yml", "grumphp.yaml", "grumphp.yml.dist"]),
    ("rusty-hook, hk", &[".rusty-hook.toml", "hk.pkl"]),
    // Editors, debuggers, language servers.
    ("Vim, Neovim: exrc and local start files", &[".exrc", ".nexrc", "_exrc", ".vimrc", "_vimrc", ".gvimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".local.vimrc", ".vimspector.json"]),
    ("Emacs", &[".emacs", ".emacs.el", ".dir-locals.el", ".dir-locals-2.el", ".spacemacs"]),
    ("Kate projects", &[".kateproject", ".kateproject.build"]),
    ("gdb, LLDB", &[".gdbinit", ".gdbearlyinit", ".lldbinit"]),
    ("development containers", &[".devcontainer.json"]),
    ("Pyright: the interpreter to run", &["pyrightconfig.json"]),
    ("rust-analyzer: commands to run", &["rust-analyzer.toml", ".rust-analyzer.toml"]),
    ("Lua language server: plugins", &[".luarc.json", ".luarc.jsonc"]),
    ("Phpactor", &[".phpactor.json", ".phpactor.yml"]),
    ("Eclipse annotation processors", &[".factorypath"]),
    ("ripgrep: --pre", &[".ripgreprc"]),
    // Agents.
    ("MCP clients", &[".mcp.json"]),
    ("Claude Code, haft", &[".claude.json"]),
    ("Aider: lint and test commands", &[".aider.conf.yml"]),
    ("opencode, Crush", &["opencode.json", "opencode.jsonc", "crush.json", ".crush.json"]),
    ("Roo Code modes", &[".roomodes"]),
    // Shells and interpreters.
    ("bash(1)", &[".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".bash_functions", ".bash_completion"]),
    ("zsh(1)", &[".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".p10k.zsh", ".zpreztorc"]),
    ("sh(1), ksh(1), mksh(1)", &[".profile", ".kshrc", ".mkshrc", ".shrc", ".shinit"]),
    ("csh(1), tcsh(1)", &[".cshrc", ".tcshrc", ".login", ".logout", ".cshdirs"]),
    ("Xonsh", &[".xonshrc"]),
    ("readline(3)", &[".inputrc"]),
    ("direnv, autoenv", &[".envrc", ".autoenv", ".autoenv.leave", ".autoenv.zsh", ".autoenv_leave.zsh"]),
    ("asdf, mise, proto: versions by path or address, hooks", &[".tool-versions", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".config/mise.toml", ".rtx.toml", ".prototools"]),
    ("irb, pry", &[".irbrc", ".pryrc"]),
    ("R", &[".rprofile", ".renviron"]),
    ("pdb, GHCi, OCaml, IEx, Octave", &[".pdbrc", ".ghci", ".ocamlinit", ".iex.exs", ".octaverc"]),
    ("psql, sqlite3", &[".psqlrc", ".sqliterc"]),
    // Sessions of the user.
    ("pam_env(8)", &[".pam_environment"]),
    ("X sessions", &[".xprofile", ".xinitrc", ".xserverrc", ".xsession", ".xsessionrc", ".xsession-options"]),
    ("GNU Screen, tmux", &[".screenrc", ".tmux.conf"]),
    ("mail delivery and remote logins", &[".forward", ".procmailrc", ".mailcap", ".rhosts", ".k5login"]),
    ("less: input filters", &[".lessfilter", ".lesskey"]),
    // Packages and builds.
    ("npm", &[".npmrc"]),
    ("Yarn", &[".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs"]),
    ("pnpm", &[".pnpmfile.cjs", ".pnpmfile.mjs"]),
    ("Bun", &["bunfig.toml", ".bunfig.toml"]),
    ("Corepack", &[".corepack.env"]),
    ("Bazel, Bazelisk", &[".bazelrc", ".bazelversion", ".bazeliskrc"]),
    ("Gradle and Maven wrappers", &["gradle-wrapper.properties", "maven-wrapper.properties"]),
    ("sbt launcher", &[".sbtopts", ".jvmopts"]),
];

/// Ends of the names of files.
pub(super) const ENDINGS: &[ControlEntry] = &[
    ("VS Code workspaces", &[".code-workspace"]),
    ("Sublime Text projects", &[".sublime-project"]),
    ("IntelliJ projects", &[".ipr", ".iws"]),
];

/// Names directly in a home that decide what runs and do not begin with a dot.
pub(super) const HOME_NAMES: &[ControlEntry] =
    &[("the login shells of distributions: in PATH", &["bin"])];

/// Paths below the home that begin with a dot and that a session in the home may write, by the reason.
#[rustfmt::skip] // one line for each reason
pub(super) const HOME_DATA: &[ControlEntry] = &[
    ("caches, which programs make again", &[".cache"]),
    ("state: logs, positions, recent files", &[".local/state"]),
    ("data that is not run", &[".local/share/trash", ".local/share/recently-used.xbel", ".local/share/fonts", ".local/share/icons", ".local/share/sounds", ".local/share/zoxide", ".local/share/tldr", ".local/share/gvfs-metadata"]),
    ("package caches of JavaScript", &[".npm/_cacache", ".npm/_locks", ".npm/_logs", ".npm/_npx", ".pnpm-store", ".local/share/pnpm/store", ".yarn/berry", ".bun/install/cache", ".node-gyp"]),
    ("package caches of Rust", &[".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".cargo/.global-cache"]),
    ("package caches of the JVM", &[".gradle/caches", ".gradle/daemon", ".gradle/native", ".gradle/notifications", ".gradle/wrapper/dists", ".gradle/.tmp", ".m2/repository", ".m2/wrapper/dists", ".ivy2/cache", ".ivy2/local", ".sbt/boot", ".konan/cache", ".konan/dependencies"]),
    ("package caches of .NET", &[".nuget/packages", ".local/share/nuget"]),
    ("package caches of Ruby, PHP, Perl", &[".bundle/cache", ".composer/cache", ".cpan/sources", ".cpan/build"]),
    ("package caches of Haskell, OCaml, Elixir, Julia, Dart, D, Nim", &[".cabal/packages", ".opam/download-cache", ".hex/packages", ".hex/cache.ets", ".julia/registries", ".julia/packages", ".julia/compiled", ".julia/artifacts", ".pub-cache/hosted", ".dub/packages", ".nimble/pkgcache"]),
    ("package caches of Python and conda", &[".conda/pkgs"]),
    ("package caches of Swift, Arduino, PlatformIO", &[".swiftpm/cache", ".arduino15/staging", ".platformio/.cache"]),
    ("small files that programs write and nothing runs", &[".lesshst", ".wget-hsts", ".rnd", ".gnuplot_history", ".sudo_as_admin_successful", ".xsession-errors", ".npm/_update-notifier-last-checked"]),
    ("worktrees of sessions", &[".claude/worktrees"]),
    ("a repository of the home: the rules for repositories apply", &[".git", ".hg", ".jj", ".sl", ".bzr", ".pijul"]),
];

/// Paths below those of [`HOME_DATA`] that a session in the home may not write, by the reason.
pub(super) const HOME_PROGRAMS: &[ControlEntry] = &[
    ("pre-commit runs the hooks in it", &[".cache/pre-commit"]),
    ("haft itself", &[".cache/haft"]),
    (
        "Nix profiles lead to programs",
        &[".local/state/nix", ".local/state/home-manager"],
    ),
];

/// The names of a table.
pub(super) fn names(table: &'static [ControlEntry]) -> impl Iterator<Item = &'static str> {
    table.iter().flat_map(|(_, names)| names.iter().copied())
}
