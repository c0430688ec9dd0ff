//! The table of families, and of the programs for which no family or no rule is proposed.

use super::{OptionForm, RuleFamily, VerbKind};

/// Returns a family without options that need their own rule.
const fn family(programs: &'static str, verbs: &'static str) -> RuleFamily {
    RuleFamily {
        programs,
        verbs,
        kind: VerbKind::Fixed,
        form: OptionForm::Whole,
        uncovered: "",
        moves: "",
        values: "",
        is_single: false,
        has_shell_operands: false,
    }
}

/// Returns a family of local git writes, which are offered together.
const fn git(verb: &'static str) -> RuleFamily {
    RuleFamily {
        kind: VerbKind::LocalGit,
        form: OptionForm::Gnu,
        ..family("git", verb)
    }
}

/// Options of pytest that load code or other configuration, or that send the results.
const PYTEST: &str = "-p -c -o --config-file --override-ini --confcutdir --pastebin --pdbcls \
                      --import-mode";

/// Options of Python linters that load code, or that start an interpreter.
const PYTHON_LINTERS: &str = "--python-executable --config --config-file --append-config \
                              --init-hook --load-plugins --rcfile --pythonpath --plugins \
                              --enable-extensions --shadow-file --install-types";

/// Options of JavaScript tools that load code or other configuration.
const JAVASCRIPT: &str = "-c --config --config-path --rulesdir --resolve-plugins-relative-to \
                          --plugin --plugins --parser --plugin-search-dir --custom-syntax \
                          --custom-formatter -r --require --import --loader --globalSetup \
                          --globalTeardown --setupFiles --setupFilesAfterEnv --runner \
                          --testRunner --reporters --transform --testEnvironment --resolver \
                          --preset --snapshotSerializers --watchPlugins --filter --node-options \
                          --node-option --environment --snapshotEnvironment --modulePaths";

/// Options of package managers that choose what runs a script.
const SCRIPTS: &str = "--script-shell --shell --shell-mode --node-options --userconfig \
                       --globalconfig --git --editor --viewer --browser --init-module";

pub(super) static FAMILIES: &[RuleFamily] = &[
    // Local git.
    git("add"),
    git("commit"),
    git("switch"),
    git("checkout+-b"),
    RuleFamily {
        kind: VerbKind::Fixed,
        ..git("stash mv")
    },
    RuleFamily {
        kind: VerbKind::Fixed,
        uncovered: "-s --strategy -x --exec",
        ..git("merge rebase")
    },
    RuleFamily {
        kind: VerbKind::Fixed,
        uncovered: "--strategy",
        ..git("cherry-pick revert")
    },
    // Rust.
    RuleFamily {
        uncovered: "--config -Z -C",
        moves: "--manifest-path --target-dir --out-dir",
        ..family(
            "cargo",
            "test t build b check c clippy doc d bench fmt nextest+run",
        )
    },
    RuleFamily {
        uncovered: "--config --config-path",
        ..family("rustfmt", "")
    },
    // Go.
    RuleFamily {
        form: OptionForm::Words,
        uncovered: "-exec -toolexec -vettool -fixtool -ldflags -gcflags -asmflags -gccgoflags \
                    -overlay -compiler",
        moves: "-C -modfile",
        ..family("go", "test build vet fmt")
    },
    RuleFamily {
        form: OptionForm::Words,
        uncovered: "-cpuprofile",
        ..family("gofmt goimports gofumpt", "")
    },
    RuleFamily {
        uncovered: "-c --config --cpu-profile-path --mem-profile-path --trace-path",
        ..family("golangci-lint", "run fmt")
    },
    // Scripts by name.
    RuleFamily {
        kind: VerbKind::Script,
        form: OptionForm::Gnu,
        uncovered: SCRIPTS,
        moves: "--prefix -C",
        ..family("npm", "run+NAME run-script+NAME")
    },
    RuleFamily {
        form: OptionForm::Gnu,
        uncovered: SCRIPTS,
        moves: "--prefix -C",
        ..family("npm", "test t tst")
    },
    RuleFamily {
        kind: VerbKind::Script,
        uncovered: SCRIPTS,
        moves: "--dir -C --prefix",
        ..family("pnpm", "run+NAME NAME")
    },
    RuleFamily {
        kind: VerbKind::Script,
        uncovered: SCRIPTS,
        moves: "--cwd",
        ..family("yarn yarnpkg", "run+NAME")
    },
    RuleFamily {
        uncovered: SCRIPTS,
        moves: "--cwd",
        ..family("yarn yarnpkg", "test build lint typecheck format check")
    },
    RuleFamily {
        kind: VerbKind::Script,
        uncovered: SCRIPTS,
        moves: "--cwd",
        ..family("bun", "run+NAME")
    },
    RuleFamily {
        uncovered: "--preload -r --require --import --config -c --define -d --loader -l \
                    --extension-order --env-file --inspect --inspect-brk --inspect-wait",
        moves: "--cwd",
        ..family("bun", "test")
    },
    RuleFamily {
        kind: VerbKind::Script,
        form: OptionForm::Gnu,
        uncovered: "-f --file --makefile -I --include-dir -E --eval",
        moves: "-C --directory",
        has_shell_operands: true,
        ..family("make gmake", "NAME")
    },
    RuleFamily {
        kind: VerbKind::Script,
        uncovered: "-s --shell -E --env :::",
        moves: "-C --cd",
        ..family("mise", "run+NAME r+NAME")
    },
    RuleFamily {
        kind: VerbKind::Script,
        uncovered: "-c --command -f --justfile --shell --shell-arg --shell-command --set \
                    --dotenv-path -E",
        moves: "-d --working-directory",
        has_shell_operands: true,
        ..family("just", "NAME")
    },
    // Python.
    RuleFamily {
        uncovered: PYTEST,
        moves: "--rootdir --basetemp",
        ..family("pytest py.test", "")
    },
    RuleFamily {
        uncovered: PYTEST,
        moves: "--rootdir --basetemp",
        ..family("python python3", "-m+pytest")
    },
    RuleFamily {
        form: OptionForm::Gnu,
        uncovered: PYTHON_LINTERS,
        ..family(
            "python python3",
            "-m+unittest -m+mypy -m+ruff -m+black -m+flake8 -m+pylint -m+isort -m+py_compile",
        )
    },
    RuleFamily {
        form: OptionForm::Gnu,
        uncovered: PYTHON_LINTERS,
        ..family("mypy black flake8 pylint isort pyright", "")
    },
    RuleFamily {
        uncovered: PYTHON_LINTERS,
        ..family("ruff", "check format")
    },
    RuleFamily {
        uncovered: PYTEST,
        moves: "--rootdir --basetemp",
        ..family("uv", "run+pytest run+python+-m+pytest")
    },
    RuleFamily {
        form: OptionForm::Gnu,
        uncovered: PYTHON_LINTERS,
        ..family(
            "uv",
            "run+ruff run+mypy run+black run+flake8 run+pylint run+isort run+pyright",
        )
    },
    // JavaScript.
    RuleFamily {
        kind: VerbKind::LockedTool,
        uncovered: JAVASCRIPT,
        ..family("npx bunx", "NAME")
    },
    RuleFamily {
        uncovered: "--plugins",
        ..family("tsc vue-tsc", "")
    },
    RuleFamily {
        uncovered: JAVASCRIPT,
        ..family("eslint prettier stylelint oxlint jest vitest mocha", "")
    },
    RuleFamily {
        uncovered: JAVASCRIPT,
        ..family("biome", "check lint format ci")
    },
    RuleFamily {
        uncovered: JAVASCRIPT,
        ..family("playwright", "test")
    },
    RuleFamily {
        uncovered: JAVASCRIPT,
        ..family("vite next", "build lint")
    },
    // JVM and .NET.
    RuleFamily {
        uncovered: "-s --settings -gs --global-settings -t --toolchains -D",
        moves: "-f --file",
        values: "-pl --projects -P --activate-profiles -T --threads -rf --resume-from",
        form: OptionForm::Words,
        is_single: true,
        ..family("mvn mvnw", "test compile verify package test-compile")
    },
    RuleFamily {
        uncovered: "-I --init-script -b --build-file -c --settings-file --include-build -D",
        moves: "-p --project-dir",
        values: "--tests -x --exclude-task --max-workers",
        form: OptionForm::Words,
        is_single: true,
        ..family(
            "gradle gradlew",
            "test build check assemble classes compileJava compileKotlin",
        )
    },
    RuleFamily {
        uncovered: "--test-adapter-path --settings -s --property -p --logger -l --collect --diag \
                    --tool-path",
        ..family("dotnet", "test build format")
    },
    // C and C++.
    RuleFamily {
        uncovered: "--",
        ..family("cmake", "--build")
    },
    RuleFamily {
        uncovered: "-S --script -SP --script-new-process -D --dashboard -M -T --build-and-test \
                    --test-command --build-makeprogram --submit-index --extra-submit --overwrite",
        moves: "--test-dir",
        ..family("ctest", "")
    },
    RuleFamily {
        uncovered: "-f -t",
        moves: "-C",
        ..family("ninja", "")
    },
    family(
        "clang-format shfmt shellcheck hadolint yamllint actionlint",
        "",
    ),
    // Other languages.
    RuleFamily {
        uncovered: "--precompiled --enable-experiment --vm-service --observe",
        ..family("dart", "test analyze format")
    },
    RuleFamily {
        uncovered: "--local-engine --local-engine-src-path --extra-front-end-options \
                    --extra-gen-snapshot-options",
        ..family("flutter", "test analyze build")
    },
    RuleFamily {
        uncovered: "-Xswiftc -Xcc -Xcxx -Xlinker -Xbuild-tools-swiftc --toolchain --sdk \
                    --destination --swift-sdk --triple --config-path",
        moves: "--package-path --scratch-path",
        ..family("swift", "build test")
    },
    RuleFamily {
        uncovered: "--build-file --build-runner --zig-lib-dir --libc --test-cmd --test-cmd-bin",
        ..family("zig", "build test")
    },
    RuleFamily {
        uncovered: "-r --require --eval -e",
        ..family("mix", "test format compile credo")
    },
    RuleFamily {
        uncovered: "-r --require -I -O --options -c --config --plugin -f --format --formatter",
        ..family("rspec rubocop", "")
    },
    RuleFamily {
        uncovered: "-c --configuration --bootstrap -d --extension --include-path --prepend",
        ..family("phpunit", "")
    },
];

/// Commands of pnpm, which are not names of scripts.
pub(super) const PNPM_COMMANDS: &str = "add approve-builds audit bin bugs cache cat-file cat-index \
    ci clean completion config c create dedupe deploy dlx docs doctor edit env exec fetch find-hash \
    get help ignored-builds import info init install i install-test it licenses link ln list ll la \
    ls login logout nx node outdated owner pack patch patch-commit patch-remove pkg prefix prune \
    publish rebuild rb recursive remove rm root run runtime rt search self-update server set setup \
    stage start stop store tag team token uninstall un unlink unpublish update up upgrade version \
    view whoami why workspace x";

/// Programs for which only the exact words are proposed: they remove, publish, send, contact another
/// machine, change infrastructure or services, or change what is installed.
pub(super) const EXACT_ONLY: &str = "ansible ansible-playbook ansible-galaxy apk apt apt-get at aws \
    az batch brew bundle bundler cdk chef chmod chown chgrp choco code-server composer conda corepack \
    crontab curl dd dnf docker docker-compose doctl dpkg eb emerge fab fastlane firebase flatpak fly \
    flyctl ftp gcloud gem gh glab gsutil heroku helm helmfile hub install kubectl kustomize launchctl \
    lftp ln mail mailx mamba mkfs mongosh mount msmtp mutt mysql mysqldump netlify nix-env \
    opam pacman pg_dump pg_restore pip pip3 pkg podman podman-compose port psql pulumi rclone \
    redis-cli restic rm rmdir rpm rsync s3cmd salt scp sendmail serverless service sftp shred \
    skaffold sls snap sqlplus stripe supabase swaks systemctl tee telnet terraform terragrunt tofu \
    truncate twine vagrant vercel wget winget wrangler xh yum zypper";

/// Second words of an unknown program after which only the exact words are proposed: they start
/// another program, remove, publish or send.
pub(super) const EXACT_VERBS: &str = "apply clean clear delete deploy destroy dlx drop eval exec fork \
    install kill login logout merge nuke prune publish purge push raw release remove repl reset rm \
    run send sh shell spawn ssh submit sudo uninstall unpublish upload wipe with x yank";

/// Programs whose arguments are programs or other commands. A rule does not contain what they run,
/// so even identical text may run something else. Version numbers at the end are ignored.
pub(super) const NEVER: &str = "ash awk bash bun bunx busybox chroot csh dash deno direnv doas env \
    eval exec expect find fish flock gawk ghci groovy guile ionice irb jshell julia ksh lua luajit \
    mawk mksh node nodejs nsenter npx nu osascript parallel perl php pipx pnpx psql pwsh pypy python \
    Rscript ruby sed setsid sh source sqlite ssh su sudo systemd-run tclsh tcsh unshare uvx watch \
    xargs yash zsh";
