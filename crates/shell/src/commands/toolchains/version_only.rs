//! Programs that are safe only when they print their version or help.

use crate::{arg::Arg, commands::spec::KnownCommand, effect::CommandFinding};

const BUILDS: &str = "it runs commands from files of the workspace";
const LAUNCHES: &str = "it lets the workspace choose the program that runs";
const RUNS: &str = "it runs a program";
const COMPILES: &str = "it compiles";
const CHECKS: &str = "it runs with the configuration and plugins of the workspace";
const INFRASTRUCTURE: &str = "it works on infrastructure";

/// The programs' names, their only safe arguments (one that ends in `=` may have any value), and
/// the reason why everything else is unsafe.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "gcc g++ cc c++ cpp clang clang++ gfortran gnat",
        "--version -v -dumpversion -dumpfullversion -dumpmachine -print-search-dirs \
         -print-libgcc-file-name -print-multiarch -print-sysroot -print-multi-lib -print-file-name= \
         -print-prog-name= -print-targets --help --target-help -Q --help=",
        COMPILES,
    ),
    (
        "ld ld.lld ld.gold lld gold",
        "--version -v -V --help --verbose",
        "it links",
    ),
    ("as", "--version -V --help", "it writes object files"),
    (
        "make gmake",
        "--version -v --help -h",
        "make runs what the Makefile says",
    ),
    (
        "cmake",
        "--version -version --help -h --help-full --help-manual-list --help-command-list \
         --help-module-list --help-policy-list --help-property-list --help-variable-list",
        BUILDS,
    ),
    ("ctest cpack", "--version -version --help -h", BUILDS),
    ("ninja samu", "--version --help -h", BUILDS),
    (
        "meson autoconf automake libtool",
        "--version --help -h",
        BUILDS,
    ),
    // SConscript files, rebar.config and its plugins, .erlang, .rspec, .rubocop.yml and similar
    // files are loaded before a version or the help is printed.
    (
        "scons rebar3 erl elixir elixirc iex mix husky lefthook pre-commit rake invoke fab mage just task",
        "",
        BUILDS,
    ),
    (
        "java",
        "-version --version -help --help -h -? -fullversion --full-version -showversion",
        RUNS,
    ),
    (
        "javac kotlinc kotlin scalac groovyc",
        "-version --version -help --help",
        COMPILES,
    ),
    (
        "scala groovy jshell",
        "-version --version -help --help",
        RUNS,
    ),
    ("node nodejs", "--version -v --help -h --v8-options", RUNS),
    ("deno", "--version -V --help -h", RUNS),
    ("bun", "--version -v --revision --help -h", RUNS),
    ("ruby", "--version -v --help -h --copyright", RUNS),
    (
        "php",
        "--version -v -i -m --info --modules --help -h --ini",
        RUNS,
    ),
    ("perl", "--version -v -V", RUNS),
    ("lua luajit", "-v", RUNS),
    ("R Rscript julia octave", "--version --help -h -v", RUNS),
    (
        "dotnet",
        // The version that the workspace requests handles all other arguments.
        "--info --list-sdks --list-runtimes",
        BUILDS,
    ),
    ("swift swiftc", "--version -version --help -h", COMPILES),
    ("xcodebuild", "-version -help -showsdks", BUILDS),
    (
        "ghc ghci stack cabal",
        "--version --numeric-version -V --help -h",
        COMPILES,
    ),
    ("zig", "version env help --help -h targets", BUILDS),
    (
        "nim crystal dart dmd ldc2 ocaml opam",
        "--version -v --help -h",
        COMPILES,
    ),
    (
        "mvn mvnw gradle gradlew sbt ant bazel bazelisk buck buck2 pants please lein mill flutter",
        "",
        LAUNCHES,
    ),
    (
        "yarn yarnpkg pnpm pnpx npx bunx corepack bundle bundler composer",
        "",
        LAUNCHES,
    ),
    // These programs load the project's version, plugins or settings before they print a version.
    (
        "pytest py.test tox jest ava mocha gulp grunt nx turbo lerna rush serverless",
        "",
        LAUNCHES,
    ),
    // Plugins and settings of the project are loaded first.
    ("poetry pipenv hatch pdm rye nox pyenv", "", BUILDS),
    (
        "mypy pyright isort flake8 pylint bandit eslint prettier stylelint vitest playwright \
         cypress rspec rubocop phpunit phpstan golangci-lint tsc",
        "",
        CHECKS,
    ),
    // Programs without plugins in an interpreted language: they print and exit.
    (
        "ruff black biome staticcheck shfmt clang-format clang-tidy rustfmt",
        "--version --help",
        CHECKS,
    ),
    (
        "terraform tofu packer helm kustomize skaffold minikube kind k3d k9s argocd flux istioctl eksctl",
        "version --version -version -v --help --short --client -json",
        INFRASTRUCTURE,
    ),
    // A Vagrantfile, an ansible.cfg with plugins, a Berksfile or a project's plugins are loaded
    // first.
    (
        "terragrunt pulumi vagrant helmfile ansible ansible-playbook ansible-galaxy \
         ansible-inventory ansible-vault salt puppet chef knife",
        "",
        INFRASTRUCTURE,
    ),
    (
        "aws gcloud gsutil bq az doctl flyctl fly",
        "--version version",
        "it talks to a cloud",
    ),
    // These programs run the version that is installed below the project.
    (
        "heroku vercel netlify wrangler firebase cdk sam",
        "",
        "it talks to a cloud",
    ),
];

/// The rows as entries. Each command is evaluated with the row that has its name.
pub(in crate::commands) const ENTRIES: &[KnownCommand] = &{
    let mut entries = [KnownCommand::Own("", only_prints); TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        entries[at] = KnownCommand::Own(TABLE[at].0, only_prints);
        at += 1;
    }
    entries
};

fn only_prints(argv: &[Arg]) -> CommandFinding {
    let name = argv.first().and_then(Arg::text).unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or(name);
    let row = TABLE
        .iter()
        .find(|(names, ..)| names.split(' ').any(|listed| listed == name));
    let Some((_, words, why)) = row else {
        return CommandFinding::unknown(format!("what {name} does is not known"));
    };
    let prints = |arg: &Arg| {
        let text = arg.text().unwrap_or_default();
        words
            .split_ascii_whitespace()
            .any(|word| match word.strip_suffix('=') {
                Some(_) => text.starts_with(word),
                None => text == word,
            })
    };
    match argv.get(1..) {
        Some(words) if !words.is_empty() && words.iter().all(prints) => {
            CommandFinding::read_only("it only prints")
        }
        _ => CommandFinding::unknown(*why),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;

    #[test]
    fn versions_and_help_are_read_only() {
        assert_read_only(&[
            "gcc --version",
            "gcc -v",
            "gcc -dumpmachine",
            "gcc -print-file-name=libc.a",
            "clang --version",
            "ld --version",
            "make --version",
            "make -v",
            "cmake --version",
            "ninja --version",
            "java -version",
            "javac --version",
            "node --version",
            "node -v",
            "deno --version",
            "bun -v",
            "ruby -v",
            "php -v",
            "php -m",
            "perl -v",
            "dotnet --info",
            "dotnet --list-sdks",
            "swift --version",
            "zig version",
            "terraform version",
            "helm version",
            "aws --version",
            "ruff --version",
        ]);
    }

    #[test]
    fn everything_else_is_not_and_nothing_of_a_launcher_is() {
        assert_not_read_only(&[
            "gcc x.c",
            "gcc --version -wrapper sh",
            "gcc -specs=x -v",
            "gcc",
            "make",
            "make -n",
            "make --version all",
            "cmake .",
            "cmake -P x",
            "node",
            "node x.js",
            "node -e 1",
            "node -v -e 1",
            "ruby -v x.rb",
            "perl -ve 1",
            "java -version X",
            "java -jar x",
            "dotnet --version",
            "yarn --version",
            "yarn -v",
            "pnpm --version",
            "npx --version",
            "corepack --version",
            "mvn --version",
            "gradle -v",
            "bundle --version",
            "composer --version",
            "pytest --version",
            "flake8 --version",
            "flake8 --help",
            "pylint --version",
            "poetry --version",
            "scons --version",
            "rspec --version",
            "rebar3 --version",
            "erl -v",
            "rubocop --version",
            "phpstan --version",
            "husky --version",
            "stylelint --version",
            "eslint --version",
            "prettier --help",
            "ansible --version",
            "pre-commit --version",
            "tox --version",
            "jest --version",
            "mocha --version",
            "turbo --version",
            "bazel version",
            "terraform plan",
            "terraform fmt -check",
            "helm list",
            "aws s3 ls",
            "pytest",
            "eslint .",
            "ruff check",
            "just --list",
            "pre-commit run",
            "gcc $x",
        ]);
        assert_eq!(
            verdict("make test"),
            "unknown: make runs what the Makefile says"
        );
    }
}
