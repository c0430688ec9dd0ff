//! The resources and anchors of a schema, and the resolution of references.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    draft::SchemaDraft,
    uri::{decoded, resolved, split},
};

/// The base URI of a schema that has none.
const NAMELESS: &str = "json-schema:///";

/// A part of a schema with its own URI.
#[derive(Debug)]
pub(super) struct SchemaResource<'s> {
    uri: String,
    pub(super) draft: SchemaDraft,
    root: &'s Value,
    anchors: HashMap<String, &'s Value>,
    /// The schemas with a `$dynamicAnchor`, by its name, and the one with `$recursiveAnchor`, under
    /// the empty name.
    pub(super) dynamic: HashMap<String, &'s Value>,
}

#[derive(Debug, Default)]
pub(super) struct ResourceIndex<'s> {
    pub(super) resources: Vec<SchemaResource<'s>>,
    by_uri: HashMap<String, usize>,
    /// The resource of each schema, by its memory address.
    owners: HashMap<*const Value, usize>,
}

/// The target of a reference.
#[derive(Debug)]
pub(super) enum ReferenceTarget<'s> {
    Schema {
        schema: &'s Value,
        resource: usize,
        /// The dynamic anchor that the reference names.
        dynamic: Option<String>,
    },
    Meta(SchemaDraft),
}

impl<'s> ResourceIndex<'s> {
    pub(super) fn new(schema: &'s Value, draft: SchemaDraft) -> Self {
        let mut index = Self::default();
        index.resource(NAMELESS.to_owned(), schema, draft);
        index.scan(schema, 0);
        index
    }

    fn resource(&mut self, uri: String, root: &'s Value, draft: SchemaDraft) -> usize {
        let number = self.resources.len();
        self.by_uri.entry(uri.clone()).or_insert(number);
        self.resources.push(SchemaResource {
            uri,
            draft,
            root,
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
        });
        number
    }

    fn scan(&mut self, schema: &'s Value, around: usize) {
        let mut owner = around;
        if let Value::Object(keywords) = schema {
            let mut draft = self.resources[around].draft;
            // A resource may use another draft, and then has its id in the form of that draft.
            let its_own = SchemaDraft::from_schema(keywords, draft);
            if let Some(id) = its_own.id(keywords) {
                let uri = resolved(&self.resources[around].uri, id);
                match split(&uri) {
                    // Up to draft 7, an id that is a fragment is an anchor.
                    (_, Some(anchor)) if !anchor.is_empty() && id.starts_with('#') => {
                        self.resources[owner]
                            .anchors
                            .insert(anchor.to_owned(), schema);
                    }
                    (address, _) => {
                        draft = its_own;
                        owner = self.resource(address.to_owned(), schema, draft);
                    }
                }
            }
            let resource = &mut self.resources[owner];
            if draft >= SchemaDraft::Of2019
                && let Some(anchor) = keywords.get("$anchor").and_then(Value::as_str)
            {
                resource.anchors.insert(anchor.to_owned(), schema);
            }
            if draft == SchemaDraft::Of2020
                && let Some(anchor) = keywords.get("$dynamicAnchor").and_then(Value::as_str)
            {
                resource.anchors.insert(anchor.to_owned(), schema);
                resource.dynamic.insert(anchor.to_owned(), schema);
            }
            if draft == SchemaDraft::Of2019
                && keywords.get("$recursiveAnchor") == Some(&Value::Bool(true))
            {
                resource.dynamic.insert(String::new(), schema);
            }
            for (_, inner) in draft.subschemas(keywords) {
                self.scan(inner, owner);
            }
        }
        self.owners.insert(schema, owner);
    }

    /// Returns the resource that a schema belongs to.
    pub(super) fn owner(&self, schema: &Value, around: usize) -> usize {
        self.owners
            .get(&std::ptr::from_ref(schema))
            .copied()
            .unwrap_or(around)
    }

    /// Resolves a reference in a resource.
    pub(super) fn target(
        &self,
        reference: &str,
        from: usize,
    ) -> Result<ReferenceTarget<'s>, String> {
        let uri = resolved(&self.resources[from].uri, reference);
        let (address, fragment) = split(&uri);
        let fragment = fragment.unwrap_or_default();
        let Some(&resource) = self.by_uri.get(address) else {
            return match SchemaDraft::from_uri(address) {
                Some(draft) if fragment.is_empty() => Ok(ReferenceTarget::Meta(draft)),
                _ => Err(format!(
                    "`{reference}` refers to another document, and haft does not fetch schemas"
                )),
            };
        };
        let nothing = || format!("`{reference}` leads nowhere");
        let fragment = decoded(fragment).ok_or_else(nothing)?;
        let found = &self.resources[resource];
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.pointer(&fragment, resource).ok_or_else(nothing);
        }
        let schema = *found.anchors.get(&fragment).ok_or_else(nothing)?;
        Ok(ReferenceTarget::Schema {
            schema,
            resource: self.owner(schema, resource),
            dynamic: found.dynamic.contains_key(&fragment).then_some(fragment),
        })
    }

    fn pointer(&self, pointer: &str, mut resource: usize) -> Option<ReferenceTarget<'s>> {
        let mut schema = self.resources[resource].root;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Object(map) => map.get(&part)?,
                Value::Array(list) => list.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
            resource = self.owner(schema, resource);
        }
        Some(ReferenceTarget::Schema {
            schema,
            resource,
            dynamic: None,
        })
    }
}
