use serde_json::json;

#[test]
fn the_definitions_the_model_is_sent() {
    for tool in haft_tools::all() {
        let spec = tool.spec();
        insta::assert_json_snapshot!(
            spec.name.clone(),
            json!({
                "name": spec.name,
                "description": spec.description.lines().collect::<Vec<_>>(),
                "input_schema": spec.input_schema,
            })
        );
    }
}
