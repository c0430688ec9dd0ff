//! Checks that every tool must pass.

use std::sync::Arc;

use haft_contract::{CallContext, DynTool, Services, ToolAccess};
use serde_json::Value;

use crate::TempProject;

/// Checks a tool with inputs that it must accept (paths absolute, inside the project).
///
/// It checks that
/// - providers accept the definition,
/// - the schema has no references, and its objects are closed,
/// - an unknown parameter is rejected,
/// - effects are deterministic, and read-only if the tool's declared access is,
/// - every card has a title,
/// - a call that claims to be read-only changes no file,
/// - a cancelled call ends.
///
/// # Panics
/// At the first failed check, with its description.
pub async fn check_contract(
    tool: Arc<dyn DynTool>,
    services: Services,
    project: &TempProject,
    inputs: &[Value],
) {
    let spec = tool.spec();
    let name = spec.name.clone();
    assert!(!name.is_empty(), "a tool without a name");
    assert!(
        !spec.description.trim().is_empty(),
        "{name}: no description"
    );
    assert_eq!(
        spec.input_schema["type"], "object",
        "{name}: its input schema is not an object"
    );
    closed(&name, &spec.input_schema);
    assert!(!inputs.is_empty(), "{name}: no inputs to test it with");

    for input in inputs {
        let mut odd = input.clone();
        odd["no_such_parameter"] = Value::Bool(true);
        // A few tools accept any parameters, and their schemas declare it.
        let is_open = spec.input_schema["additionalProperties"] == true;
        assert_eq!(
            Arc::clone(&tool).bind(odd).is_ok(),
            is_open,
            "{name}: its schema and its parser disagree on unknown parameters"
        );

        let bound = Arc::clone(&tool)
            .bind(input.clone())
            .expect("a good input binds");
        let effects = bound.effects();
        assert_eq!(
            effects,
            bound.effects(),
            "{name}: effects differ without a reason"
        );
        if spec.profile.access == ToolAccess::Reads {
            assert!(
                effects.is_read_only(),
                "{name}: declared read-only, but its effects are not"
            );
        }
        assert!(
            !bound.render_use().title.is_empty(),
            "{name}: a card without a title"
        );

        let before = project.snapshot();
        let (mut cx, _updates) = CallContext::for_test(project.root());
        cx.services = services.clone();
        let result = bound.call(&cx).await;
        if effects.is_read_only() {
            assert_eq!(
                before,
                project.snapshot(),
                "{name}: read-only, but files changed"
            );
        }
        let card = match &result {
            Ok(output) => bound.render_result(output),
            Err(error) => bound.render_error(error),
        };
        assert!(!card.title.is_empty(), "{name}: a card without a title");

        // A call that is cancelled before it starts must end, with any result.
        let (mut cx, _updates) = CallContext::for_test(project.root());
        cx.services = services.clone();
        cx.cancel.cancel();
        let _ = bound.call(&cx).await;
    }
}

fn closed(name: &str, schema: &Value) {
    match schema {
        Value::Object(object) => {
            assert!(
                !object.contains_key("$ref"),
                "{name}: a reference in its schema"
            );
            assert!(
                !object.contains_key("$schema"),
                "{name}: a meta-schema in its schema"
            );
            if object.get("type").is_some_and(|kind| kind == "object") {
                let says = object.contains_key("additionalProperties");
                assert!(
                    says,
                    "{name}: an object schema without `additionalProperties`"
                );
            }
            object.values().for_each(|inner| closed(name, inner));
        }
        Value::Array(items) => items.iter().for_each(|inner| closed(name, inner)),
        _ => {}
    }
}
