//! The entry for the protocol's registry says what the workspace says.

use std::{fs, path::Path};

use serde_json::Value;

#[test]
fn the_entry_for_the_registry_is_of_this_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/acp");
    let entry: Value =
        serde_json::from_slice(&fs::read(folder.join("agent.json")).unwrap()).unwrap();
    assert_eq!(entry["id"], "haft");
    assert_eq!(entry["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(entry["license"], env!("CARGO_PKG_LICENSE"));
    assert!(!entry["description"].as_str().unwrap().is_empty());
    // Nothing can be downloaded yet: a made-up address would be worse than none.
    for missing in ["distribution", "license_url"] {
        assert!(
            entry.get(missing).is_none(),
            "{missing}: also in packaging/acp/README.md"
        );
    }
    let icon = fs::read_to_string(folder.join("icon.svg")).unwrap();
    assert!(icon.contains("width=\"16\" height=\"16\""), "{icon}");
    assert!(!icon.contains('#'), "only currentColor: {icon}");
}
