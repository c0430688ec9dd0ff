//! What the official test suite of JSON Schema (`tests/it/json_schema_suite.rs`) does not ask.

use serde_json::{Value, json};

use super::*;

/// A schema, values that have its shape, and values that do not.
fn hold(cases: &[(Value, &[Value], &[Value])]) {
    for (schema, right, wrong) in cases {
        let validator = SchemaValidator::new(schema).unwrap_or_else(|e| panic!("{schema}: {e}"));
        for value in *right {
            let problems = validator.problems(value);
            assert!(problems.is_empty(), "{schema} on {value}: {problems:?}");
            assert!(validator.is_valid(value), "{schema} on {value}");
        }
        for value in *wrong {
            assert!(!validator.is_valid(value), "{schema} on {value}");
            assert!(!validator.problems(value).is_empty(), "{schema} on {value}");
        }
    }
}

#[test]
fn each_keyword_binds_what_it_speaks_of_and_nothing_else() {
    hold(&[
        (json!(true), &[json!(1)], &[]),
        (json!(false), &[], &[json!(1)]),
        (
            json!({"type": "integer"}),
            &[json!(1), json!(1.0)],
            &[json!(1.5), json!("1")],
        ),
        (
            json!({"type": ["string", "null"]}),
            &[json!("a"), json!(null)],
            &[json!(0)],
        ),
        (
            json!({"enum": [1, {"a": [2]}]}),
            &[json!(1.0), json!({"a": [2.0]})],
            &[json!(2)],
        ),
        (
            json!({"const": null}),
            &[json!(null)],
            &[json!(0), json!(false)],
        ),
        (
            json!({"minimum": 1, "exclusiveMaximum": 3}),
            &[json!(1), json!("x")],
            &[json!(0.9), json!(3)],
        ),
        (
            json!({"maximum": 3, "exclusiveMinimum": 1}),
            &[json!(3)],
            &[json!(1), json!(4)],
        ),
        (
            json!({"multipleOf": 0.01}),
            &[json!(19.99)],
            &[json!(0.001)],
        ),
        (
            json!({"minLength": 2, "maxLength": 3}),
            &[json!("äö"), json!(1)],
            &[json!("a"), json!("abcd")],
        ),
        (
            json!({"pattern": "^a+$"}),
            &[json!("aa"), json!(1)],
            &[json!("ab")],
        ),
        (
            json!({"minItems": 1, "maxItems": 2}),
            &[json!([1])],
            &[json!([]), json!([1, 2, 3])],
        ),
        (
            json!({"uniqueItems": true}),
            &[json!([1, true])],
            &[json!([1, 1.0])],
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
            &[json!([]), json!(["a", 1])],
            &[json!([1]), json!(["a", "b"])],
        ),
        (
            json!({"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3}),
            &[json!([1, 2, "a"])],
            &[json!([1]), json!([1, 2, 3, 4])],
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "patternProperties": {"^x": {"type": "integer"}},
                   "additionalProperties": {"type": "boolean"}}),
            &[json!({"a": "", "xy": 1, "b": true})],
            &[json!({"a": 1}), json!({"xy": "1"}), json!({"b": 1})],
        ),
        (
            json!({"required": ["a", "b"]}),
            &[json!({"a": 1, "b": 2})],
            &[json!({"a": 1})],
        ),
        (
            json!({"minProperties": 1, "maxProperties": 1}),
            &[json!({"a": 1})],
            &[json!({})],
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            &[json!({"a": 1})],
            &[json!({"ab": 1})],
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            &[json!({"b": 1})],
            &[json!({"a": 1})],
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
            &[json!({}), json!({"a": 1, "b": 1})],
            &[json!({"a": 1})],
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
            &[json!(1)],
            &[json!(0), json!(3)],
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"minimum": 2}]}),
            &[json!("a"), json!(2)],
            &[json!(1)],
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"maximum": 2}]}),
            &[json!(0), json!(3)],
            &[json!(1.5)],
        ),
        (
            json!({"not": {"type": "null"}}),
            &[json!(0)],
            &[json!(null)],
        ),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "null"}}),
            &[json!("a"), json!(null)],
            &[json!(""), json!(1)],
        ),
        // Since 2019-09 a format only describes.
        (json!({"format": "date"}), &[json!("tomorrow")], &[]),
    ]);
}

#[test]
fn references_lead_to_pointers_anchors_resources_and_meta_schemas() {
    hold(&[
        (
            json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "string"}}}),
            &[json!("a")],
            &[json!(1)],
        ),
        (
            json!({"properties": {"next": {"$ref": "#"}}, "additionalProperties": false}),
            &[json!({"next": {"next": {}}})],
            &[json!({"next": {"last": {}}})],
        ),
        (
            json!({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "string"}}}),
            &[json!("a")],
            &[json!(1)],
        ),
        (
            json!({"$id": "http://x.test/root", "$ref": "item", "$defs": {
                "x": {"$id": "item", "$ref": "#/$defs/y", "$defs": {"y": {"type": "string"}}}}}),
            &[json!("a")],
            &[json!(1)],
        ),
        // A list of strings, by a list of whatever the outermost resource says.
        (
            json!({"$id": "http://x.test/strings", "$ref": "list", "$defs": {
                "string": {"$dynamicAnchor": "item", "type": "string"},
                "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"},
                         "$defs": {"any": {"$dynamicAnchor": "item"}}}}}),
            &[json!(["a"])],
            &[json!([1])],
        ),
        (
            json!({"$ref": "http://json-schema.org/draft-07/schema#"}),
            &[json!({"type": "string", "$ref": "elsewhere"}), json!(true)],
            &[json!({"type": "text"}), json!({"minLength": -1}), json!(1)],
        ),
        // A schema that refers to nothing but itself accepts nothing, and ends.
        (json!({"$ref": "#"}), &[], &[json!(1)]),
    ]);
}

#[test]
fn what_no_schema_looked_at_can_be_forbidden() {
    hold(&[
        (
            json!({"allOf": [{"properties": {"a": true}}], "anyOf": [{"required": ["b"], "properties": {"b": true}}, true],
                   "unevaluatedProperties": false}),
            &[json!({"a": 1}), json!({"a": 1, "b": 2})],
            &[json!({"c": 1})],
        ),
        (
            json!({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": {"type": "null"}}),
            &[json!([1, "a", null])],
            &[json!([1, "a", 2])],
        ),
    ]);
}

#[test]
fn older_drafts_are_read_as_they_were_written() {
    let four = "http://json-schema.org/draft-04/schema#";
    let seven = "http://json-schema.org/draft-07/schema#";
    hold(&[
        (
            json!({"$schema": four, "minimum": 1, "exclusiveMinimum": true, "maximum": 2}),
            &[json!(2)],
            &[json!(1)],
        ),
        (
            json!({"$schema": four, "type": "integer"}),
            &[json!(1)],
            &[json!(1.0)],
        ),
        (
            json!({"$schema": four, "items": [{"type": "string"}], "additionalItems": false}),
            &[json!(["a"])],
            &[json!(["a", 1])],
        ),
        (
            json!({"$schema": four, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "additionalProperties": true}),
            &[json!({"a": 1, "b": 1})],
            &[json!({"a": 1}), json!({"c": 1})],
        ),
        // What stands beside a reference does not count.
        (
            json!({"$schema": seven, "definitions": {"a": {"type": "string"}},
                   "properties": {"x": {"$ref": "#/definitions/a", "maxLength": 1}}}),
            &[json!({"x": "long"})],
            &[json!({"x": 1})],
        ),
        (
            json!({"$schema": seven, "contentEncoding": "base64", "contentMediaType": "application/json"}),
            &[json!("e30="), json!(1)],
            &[json!("e30"), json!("eA==")],
        ),
    ]);
    let formats: [(&str, &[&str], &[&str]); 15] = [
        (
            "date",
            &["2024-02-29"],
            &["2023-02-29", "2024-1-01", "20240101"],
        ),
        (
            "time",
            &["08:30:06Z", "23:59:60Z", "01:29:60.5+01:30"],
            &["08:30:06", "24:00:00Z", "12:00:60Z"],
        ),
        (
            "date-time",
            &["1985-04-12T23:20:50.52Z"],
            &["1985-04-12 23:20:50Z", "1985-13-12T23:20:50Z"],
        ),
        (
            "email",
            &["a.b+c@x.test", "\"a b\"@x.test", "a@[127.0.0.1]"],
            &["a", "a..b@x.test", "a@", "a@[x]"],
        ),
        (
            "hostname",
            &["a-b.test", "xn--4gbwdl.xn--wgbh1c"],
            &["-a", "a_b", "a..b", ""],
        ),
        (
            "ipv4",
            &["127.0.0.1"],
            &["127.0.0.01", "1.2.3", "256.1.1.1"],
        ),
        (
            "ipv6",
            &["::1", "::ffff:1.2.3.4"],
            &["1::2::3", "::g", "fe80::1%eth0"],
        ),
        (
            "uri",
            &["http://a.test:80/b?c#d", "urn:x:y", "http://[::1]/"],
            &["/b", "http://a b", "http://[x]/", "a\\b"],
        ),
        ("uri-reference", &["../a#b", ""], &["a b", "%zz", "1a:b"]),
        ("iri", &["http://ä.test/ö"], &["ö", "http://a b"]),
        ("iri-reference", &["ö"], &["a\\b"]),
        (
            "uri-template",
            &["/a/{b}{?c*,d:3}"],
            &["/a/{b", "/a/b}", "{a b}", "{a:0}"],
        ),
        ("json-pointer", &["", "/a~1b/0"], &["a", "/a~2"]),
        ("relative-json-pointer", &["0#", "2/a"], &["/a", "01/a", ""]),
        ("regex", &["^a(?=b)"], &["(", "\\Z"]),
    ];
    for (format, right, wrong) in formats {
        let schema = json!({"$schema": seven, "format": format});
        let values = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect::<Vec<_>>();
        hold(&[(schema, &values(right), &values(wrong))]);
    }
}

#[test]
fn a_schema_that_is_none_is_refused_with_the_place() {
    let four = "http://json-schema.org/draft-04/schema#";
    let told: Vec<_> = [
        json!("x"),
        json!({"type": "text"}),
        json!({"type": ["string", "string"]}),
        json!({"properties": {"a/b": {"minLength": -1}}}),
        json!({"properties": []}),
        json!({"anyOf": []}),
        json!({"items": {"not": 1}}),
        json!({"required": ["a", "a"]}),
        json!({"pattern": "("}),
        json!({"multipleOf": 0}),
        json!({"uniqueItems": 1}),
        json!({"enum": 1}),
        json!({"$ref": "#/$defs/a"}),
        json!({"$ref": "https://elsewhere.test/a"}),
        json!({"$defs": {"a": {"maximum": "1"}}}),
        json!({"$schema": four, "not": true}),
        json!({"$schema": four, "required": []}),
    ]
    .iter()
    .map(|schema| match SchemaValidator::new(schema) {
        Ok(_) => panic!("{schema}"),
        Err(error) => error.to_string(),
    })
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn problems_say_where_and_why() {
    let schema = json!({
        "properties": {
            "a": {"type": ["integer", "null"], "minimum": 3},
            "b": {"type": "array", "items": {"enum": ["x", 1]}, "uniqueItems": true, "maxItems": 2},
            "c": {"anyOf": [{"type": "string"}, {"type": "object"}]},
            "d": {"pattern": "^\\d+$", "maxLength": 2},
            "e/f": {"oneOf": [true, true]},
            "g": false,
            "h": {"contains": {"const": 1}},
        },
        "required": ["a", "z"],
        "propertyNames": {"maxLength": 3},
        "additionalProperties": false,
    });
    let validator = SchemaValidator::new(&schema).unwrap();
    let value = json!({
        "a": 1, "b": ["x", "y", "x"], "c": 1, "d": "abc", "e/f": 1, "g": null, "h": [2], "long": 1,
    });
    let told: Vec<_> = validator
        .problems(&value)
        .iter()
        .map(ToString::to_string)
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

/// A schema of another program may be as costly as that program likes.
#[test]
fn a_schema_that_is_too_costly_to_check_fails_soon_and_says_so() {
    let chain = |step: &dyn Fn(String) -> Value| {
        let mut defs = serde_json::Map::new();
        for number in 0..20_000 {
            let next = step(format!("#/$defs/d{}", number + 1));
            defs.insert(format!("d{number}"), next);
        }
        defs.insert("d20000".to_owned(), json!(true));
        json!({"$defs": defs, "$ref": "#/$defs/d0"})
    };
    let mut nested = json!(1);
    for _ in 0..120 {
        nested = json!({"a": nested});
    }
    let loops = json!({
        "$defs": {"x": {"allOf": [{"$ref": "#/$defs/y"}]}, "y": {"properties": {"a": {"$ref": "#/$defs/x"}}}},
        "$ref": "#/$defs/x",
    });
    let mut inverted = doubling("allOf");
    inverted["not"] = json!({"$ref": inverted["$ref"].take()});
    inverted.as_object_mut().unwrap().shift_remove("$ref");
    let costly = [
        (chain(&|next| json!({"$ref": next})), json!("x")),
        (chain(&|next| json!({"not": {"$ref": next}})), json!("x")),
        (
            chain(&|next| json!({"anyOf": [{"$ref": next}, {"$ref": next}]})),
            json!("x"),
        ),
        (doubling("allOf"), json!("x")),
        (doubling("oneOf"), json!("x")),
        (inverted, json!("x")),
        (loops, nested),
        (
            json!({"uniqueItems": true}),
            (0..20_000).map(|number| json!([number])).collect(),
        ),
        (
            json!({"items": {"enum": (0..2_000).collect::<Vec<_>>()}}),
            (0..2_000).collect(),
        ),
    ];
    for (schema, value) in costly {
        let validator = SchemaValidator::new(&schema).unwrap();
        assert!(!validator.is_valid(&value));
        let problems = validator.problems(&value);
        let last = problems.last().unwrap().to_string();
        assert!(last.contains("too many steps"), "{last}");
        assert!(problems.len() < 1_000, "{}", problems.len());
    }
}

/// Each step leads to the next one twice.
fn doubling(keyword: &str) -> Value {
    let mut defs = serde_json::Map::new();
    for number in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        defs.insert(format!("d{number}"), json!({keyword: [next, next]}));
    }
    defs.insert("d40".to_owned(), json!(true));
    json!({"$defs": defs, "$ref": "#/$defs/d0"})
}

#[test]
fn many_different_items_and_names_are_checked_in_little_time() {
    let names: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
    hold(&[(
        json!({"uniqueItems": true}),
        &[json!(names), json!((0..100_000).collect::<Vec<_>>())],
        &[
            json!([1, 2, 1.0]),
            json!([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}]),
        ],
    )]);
    assert!(SchemaValidator::new(&json!({"required": names})).is_ok());
}
