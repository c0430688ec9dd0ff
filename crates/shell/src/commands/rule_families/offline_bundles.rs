//! Bundles of commands that test, build, lint or format a project with one toolchain.
//!
//! If the user lets one of them run in the sandbox without network from now on, the answer covers the
//! whole bundle. Each member is a family, so the options that the family leaves to an exact rule still
//! ask.

use super::{EXACT_VERBS, FamilyKind, VerbKind, command_family, has_word, listed};
use crate::analysis::LinePart;

/// The names of scripts and tasks that only test, build or check.
const SCRIPT_NAMES: [&str; 6] = ["test", "build", "lint", "typecheck", "format", "check"];

/// A toolchain.
struct ToolchainBundle {
    /// The members, as words of families, separated by commas.
    members: &'static str,
    /// Programs whose scripts and tasks with the usual names are members; `NAME` is the name of one.
    scripts: &'static [&'static str],
}

const fn toolchain(members: &'static str) -> ToolchainBundle {
    ToolchainBundle {
        members,
        scripts: &[],
    }
}

static TOOLCHAINS: [ToolchainBundle; 11] = [
    toolchain("go test, go build, go vet, gofmt, golangci-lint run"),
    ToolchainBundle {
        members: "npm test, bun test, yarn test, yarn build, yarn lint, yarn typecheck, \
                  yarn format, yarn check, npx eslint, npx tsc, npx jest, npx vitest, npx prettier, \
                  npx biome, eslint, tsc, jest, vitest, prettier, biome check, biome lint, \
                  biome format",
        scripts: &[
            "npm run NAME",
            "pnpm run NAME",
            "pnpm NAME",
            "yarn run NAME",
            "bun run NAME",
        ],
    },
    toolchain(
        "cargo test, cargo build, cargo check, cargo clippy, cargo fmt, cargo nextest run, cargo doc, \
         rustfmt",
    ),
    toolchain(
        "pytest, python -m pytest, python3 -m pytest, uv run pytest, ruff check, ruff format, \
         python -m ruff, python3 -m ruff, uv run ruff, mypy, python -m mypy, python3 -m mypy, \
         uv run mypy",
    ),
    toolchain("dart test, dart analyze, dart format, flutter test, flutter analyze, flutter build"),
    toolchain(
        "mvn test, mvn compile, mvn test-compile, mvn package, mvn verify, gradle test, \
         gradle build, gradle check, gradle assemble, ./gradlew test, ./gradlew build, \
         ./gradlew check, ./gradlew assemble, ./mvnw test, ./mvnw compile, ./mvnw package, \
         ./mvnw verify",
    ),
    toolchain("dotnet test, dotnet build, dotnet format"),
    toolchain("cmake --build, ctest, ninja"),
    ToolchainBundle {
        members: "",
        scripts: &["make NAME"],
    },
    ToolchainBundle {
        members: "",
        scripts: &["mise run NAME"],
    },
    ToolchainBundle {
        members: "",
        scripts: &["just NAME"],
    },
];

/// Returns the families that one answer about this command covers, its own first. Empty if the command
/// does not test, build or check a project.
pub fn offline_bundle(part: &LinePart) -> Vec<String> {
    let Some(found) = listed(&part.argv).filter(|found| found.starter.is_none()) else {
        return Vec::new();
    };
    let Some(family) = command_family(part) else {
        return Vec::new();
    };
    let own = family.words;
    let is_script = found.family.kind == VerbKind::Script
        && !found
            .verbs
            .iter()
            .any(|verb| has_word(EXACT_VERBS, verb) && *verb != "run");
    let is_tool = matches!(family.kind, FamilyKind::Listed | FamilyKind::LockedTool(_));
    // A program of the project's tools is the same tool.
    let plain = own
        .rsplit_once(".bin/")
        .or_else(|| own.rsplit_once("venv/bin/"))
        .map_or(own.as_str(), |(_, name)| name);
    let plain = plain.strip_prefix("/usr/bin/").unwrap_or(plain);
    let of = |toolchain: &&ToolchainBundle| {
        let mut tools = toolchain.tools();
        tools.any(|member| member == plain)
            || (is_script
                && toolchain.scripts.iter().any(|script| {
                    let start = script.trim_end_matches("NAME");
                    plain
                        .strip_prefix(start)
                        .is_some_and(|name| !name.contains(' '))
                }))
    };
    let Some(toolchain) = TOOLCHAINS.iter().find(of).filter(|_| is_tool) else {
        return Vec::new();
    };
    let program = plain.split(' ').next().unwrap_or_default();
    let mut words = vec![own.clone()];
    for member in toolchain.tools().chain(toolchain.scripts_of(program)) {
        if !words.contains(&member) {
            words.push(member);
        }
    }
    words
}

impl ToolchainBundle {
    /// Returns the members other than scripts.
    fn tools(&self) -> impl Iterator<Item = String> + '_ {
        let tools = self.members.split(", ").filter(|member| !member.is_empty());
        tools.map(str::to_owned)
    }

    /// Returns the members that are scripts which this program runs. A project has one program for
    /// that; if this is another one, returns those of all. `lint:*` is any script such as `lint:fix`.
    fn scripts_of(&self, program: &str) -> impl Iterator<Item = String> + '_ {
        let of_program = |script: &&'static str| script.split(' ').next() == Some(program);
        let own: Vec<&str> = self
            .scripts
            .iter()
            .copied()
            .filter(|script| of_program(script))
            .collect();
        let scripts = match own.is_empty() {
            true => self.scripts.to_vec(),
            false => own,
        };
        scripts.into_iter().flat_map(|script| {
            SCRIPT_NAMES.iter().flat_map(move |name| {
                let plain = script.replace("NAME", name);
                [format!("{plain}:*"), plain].into_iter().rev()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LineLocation, walk::analyze};

    fn bundle(line: &str) -> Vec<String> {
        let place = LineLocation {
            cwd: "/p".into(),
            home: None,
        };
        offline_bundle(&analyze(line, &place).parts[0])
    }

    #[test]
    fn a_bundle_has_the_asked_command_first_and_then_those_of_its_toolchain() {
        assert_eq!(
            bundle("go vet ./..."),
            [
                "go vet",
                "go test",
                "go build",
                "gofmt",
                "golangci-lint run"
            ]
        );
        for (line, first, another) in [
            ("npm run lint:fix", "npm run lint:fix", "npm test"),
            ("npm run e2e", "npm run e2e", "npm run test"),
            ("bun test a.ts", "bun test", "bun run typecheck:*"),
            ("pnpm typecheck", "pnpm typecheck", "pnpm run build"),
            ("npx tsc -p .", "npx tsc", "bun run lint:*"),
            (
                "./node_modules/.bin/eslint .",
                "./node_modules/.bin/eslint",
                "npm test",
            ),
            ("cargo nextest run -p x", "cargo nextest run", "cargo test"),
            (".venv/bin/pytest -q", ".venv/bin/pytest", "ruff check"),
            ("uv run pytest", "uv run pytest", "pytest"),
            ("./gradlew test", "./gradlew test", "./gradlew build"),
            ("dotnet test", "dotnet test", "dotnet build"),
            ("flutter test", "flutter test", "dart analyze"),
            ("ctest", "ctest", "cmake --build"),
            ("make test", "make test", "make lint"),
            ("mise run verify", "mise run verify", "mise run test"),
            ("just ci", "just ci", "just build"),
        ] {
            let words = bundle(line);
            assert_eq!(words.first().map(String::as_str), Some(first), "{line}");
            assert!(
                words.iter().any(|word| word == another),
                "{line}: {words:?}"
            );
        }
    }

    #[test]
    fn other_commands_have_no_bundle() {
        for line in [
            "go get x",
            "go run .",
            "npm install",
            "npm run deploy",
            "make install",
            "just publish",
            "cargo publish",
            "cargo run",
            "bun x.ts",
            "node x.js",
            "git commit -m x",
            "python x.py",
            "rtk go test",
            "./test.sh",
            "bd show 1",
        ] {
            assert_eq!(bundle(line), Vec::<String>::new(), "{line}");
        }
    }

    /// A member that no family describes would cover options that start other programs.
    #[test]
    fn every_member_is_the_words_of_a_family() {
        let members =
            |toolchain: &'static ToolchainBundle| toolchain.tools().chain(toolchain.scripts_of(""));
        for member in TOOLCHAINS.iter().flat_map(members) {
            let command = member.replace('*', "a");
            let words = bundle(&format!("{command} x"));
            assert_eq!(words.first(), Some(&command), "{member}");
        }
    }
}
