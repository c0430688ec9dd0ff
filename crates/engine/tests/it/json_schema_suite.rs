//! The official test suite of JSON Schema (github.com/json-schema-org/JSON-Schema-Test-Suite).

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use haft_engine::SchemaValidator;
use serde_json::Value;

/// What we leave out of the suite, and why.
const LEFT_OUT: [(&str, &str); 8] = [
    ("refRemote.json", "nothing is fetched"),
    ("cross-draft.json", "nothing is fetched"),
    (
        "vocabulary.json",
        "a meta-schema of one's own would have to be fetched",
    ),
    (
        "draft2019-09/optional/format/",
        "formats describe since that draft",
    ),
    (
        "draft2020-12/optional/format/",
        "formats describe since that draft",
    ),
    (
        "format-assertion.json",
        "a meta-schema of one's own would have to be fetched",
    ),
    ("format/idn-", "names in other scripts are not looked at"),
    (
        "draft7/optional/format/hostname.json",
        "nor what stands behind their Punycode",
    ),
];

/// Where the suite is: where `.ci/run` puts it, or in the folder that `JSON_SCHEMA_TEST_SUITE` names.
fn suite() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let named = env::var_os("JSON_SCHEMA_TEST_SUITE").map(PathBuf::from);
    let suite = named.unwrap_or_else(|| target.join("json-schema-suite/json"));
    if !suite.join("tests").is_dir() {
        haft_testkit::skip(&format!(
            "the official suite of JSON Schema: {} is absent; `.ci/run` fetches it",
            suite.display()
        ));
        return None;
    }
    Some(suite)
}

#[test]
fn the_official_suite_of_json_schema_holds() {
    let Some(suite) = suite() else {
        return;
    };
    let mut failures = Vec::new();
    let mut passed = 0;
    for (folder, uri) in [
        ("draft4", "http://json-schema.org/draft-04/schema#"),
        ("draft6", "http://json-schema.org/draft-06/schema#"),
        ("draft7", "http://json-schema.org/draft-07/schema#"),
        (
            "draft2019-09",
            "https://json-schema.org/draft/2019-09/schema",
        ),
        (
            "draft2020-12",
            "https://json-schema.org/draft/2020-12/schema",
        ),
    ] {
        for part in ["", "optional", "optional/format"] {
            let path = suite.join("tests").join(folder).join(part);
            for file in fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().path())
            {
                if file
                    .extension()
                    .is_some_and(|extension| extension == "json")
                {
                    let groups: Vec<Value> =
                        serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                    let file = file.strip_prefix(&suite).unwrap().display().to_string();
                    if LEFT_OUT.iter().any(|(left_out, _)| file.contains(left_out)) {
                        continue;
                    }
                    for group in groups {
                        run(&file, uri, &group, &mut passed, &mut failures);
                    }
                }
            }
        }
    }
    assert!(passed > 5_000, "only {passed} tests were found");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(file: &str, uri: &str, group: &Value, passed: &mut usize, failures: &mut Vec<String>) {
    let mut schema = group["schema"].clone();
    if let Value::Object(map) = &mut schema
        && !map.contains_key("$schema")
    {
        map.insert("$schema".to_owned(), uri.into());
    }
    let compiled = SchemaValidator::new(&schema);
    for test in group["tests"].as_array().unwrap() {
        let wrong = match &compiled {
            Ok(validator) if validator.is_valid(&test["data"]) == test["valid"] => {
                assert_eq!(validator.problems(&test["data"]).is_empty(), test["valid"]);
                *passed += 1;
                continue;
            }
            Ok(_) => "wrong".to_owned(),
            // Single tests elsewhere refer to the suite's own server.
            Err(error) if error.problem.contains("does not fetch schemas") => continue,
            Err(error) => error.to_string(),
        };
        failures.push(format!(
            "{file}: {}: {}: {wrong}",
            group["description"], test["description"]
        ));
    }
}
