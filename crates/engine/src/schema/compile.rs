//! Compiles a schema into nodes, and reports errors in the schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    AdditionalRule, NodeId, SchemaError, SchemaKeyword, SchemaNode, SchemaValidator, SizeUnit,
    UnevaluatedKeyword,
    draft::SchemaDraft,
    format::StringFormat,
    index::{ReferenceTarget, ResourceIndex},
    keyword_values::{
        SchemaPlace, bound, check_string, content, count, flag, flag_in_four, holder, limit, list,
        names, size, text, types,
    },
    pattern,
};

pub(super) struct SchemaCompiler<'s> {
    index: ResourceIndex<'s>,
    nodes: Vec<SchemaNode>,
    /// The node of each schema, by its memory address.
    made: HashMap<*const Value, NodeId>,
    /// The targets of references whose nodes are still empty. They are not compiled recursively,
    /// because a chain of references could be as long as the schema.
    waiting: Vec<WaitingSchema<'s>>,
    /// Whether references are followed. They are not if only a value is checked to be a schema.
    follow: bool,
}

struct WaitingSchema<'s> {
    id: NodeId,
    schema: &'s Value,
    resource: usize,
    pointer: String,
}

impl<'s> SchemaCompiler<'s> {
    pub(super) fn compile(schema: &'s Value) -> Result<SchemaValidator, SchemaError> {
        let draft = schema.as_object().map_or(SchemaDraft::Of2020, |map| {
            SchemaDraft::from_schema(map, SchemaDraft::Of2020)
        });
        let mut compiler = Self::new(schema, draft, true);
        let root = compiler.node(schema, 0, "#")?;
        compiler.fill_waiting()?;
        let mut dynamic = HashMap::new();
        for resource in 0..compiler.index.resources.len() {
            for (anchor, schema) in compiler.index.resources[resource].dynamic.clone() {
                let id = compiler.node(schema, resource, "#")?;
                dynamic.insert((resource, anchor), id);
            }
        }
        compiler.fill_waiting()?;
        Ok(SchemaValidator {
            nodes: compiler.nodes,
            root,
            dynamic,
        })
    }

    /// Checks whether a value is a valid schema of a draft, without following its references.
    pub(super) fn is_schema(value: &'s Value, draft: SchemaDraft) -> Result<(), SchemaError> {
        Self::new(value, draft, false).node(value, 0, "#").map(drop)
    }

    fn new(schema: &'s Value, draft: SchemaDraft, follow: bool) -> Self {
        Self {
            index: ResourceIndex::new(schema, draft),
            nodes: Vec::new(),
            made: HashMap::new(),
            waiting: Vec::new(),
            follow,
        }
    }

    fn node(
        &mut self,
        schema: &'s Value,
        around: usize,
        pointer: &str,
    ) -> Result<NodeId, SchemaError> {
        let (id, is_new) = self.reserve(schema);
        if is_new {
            self.fill(id, schema, around, pointer)?;
        }
        Ok(id)
    }

    /// Returns the node of a schema, and whether this call has created it.
    fn reserve(&mut self, schema: &'s Value) -> (NodeId, bool) {
        if let Some(id) = self.made.get(&std::ptr::from_ref(schema)) {
            return (*id, false);
        }
        let id = self.nodes.len();
        self.nodes.push(SchemaNode::default());
        self.made.insert(schema, id);
        (id, true)
    }

    fn fill_waiting(&mut self) -> Result<(), SchemaError> {
        while let Some(next) = self.waiting.pop() {
            self.fill(next.id, next.schema, next.resource, &next.pointer)?;
        }
        Ok(())
    }

    fn fill(
        &mut self,
        id: NodeId,
        schema: &'s Value,
        around: usize,
        pointer: &str,
    ) -> Result<(), SchemaError> {
        let resource = self.index.owner(schema, around);
        let here = SchemaPlace {
            pointer,
            resource,
            draft: self.index.resources[resource].draft,
        };
        let mut node = SchemaNode {
            resource,
            ..SchemaNode::default()
        };
        match schema {
            Value::Bool(allowed) if here.draft > SchemaDraft::Four => {
                if !allowed {
                    node.keywords.push(SchemaKeyword::Never);
                }
            }
            Value::Object(keywords) => self.keywords(keywords, here, &mut node)?,
            other => {
                let wanted = if here.draft == SchemaDraft::Four {
                    "an object"
                } else {
                    "an object or a boolean"
                };
                return Err(here.error("", format!("a schema is {wanted}, not {other}")));
            }
        }
        self.nodes[id] = node;
        Ok(())
    }

    fn keywords(
        &mut self,
        keywords: &'s Map<String, Value>,
        here: SchemaPlace<'_>,
        node: &mut SchemaNode,
    ) -> Result<(), SchemaError> {
        // Every nested schema must be valid, even if nothing refers to it.
        let alone = here.draft.reference_alone() && keywords.contains_key("$ref");
        for (keyword, value) in keywords {
            if here.draft.holds(keyword).is_some() {
                holder(keyword, value, here)?;
            }
        }
        for (way, schema) in here.draft.subschemas(keywords) {
            if flag_in_four(&way, schema, here.draft) {
                continue;
            }
            self.node(schema, here.resource, &format!("{}/{way}", here.pointer))?;
        }
        for (keyword, value) in keywords {
            if !alone || keyword == "$ref" {
                self.keyword(keyword, value, keywords, here, node)?;
            }
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'s Value,
        all: &'s Map<String, Value>,
        here: SchemaPlace<'_>,
        node: &mut SchemaNode,
    ) -> Result<(), SchemaError> {
        let draft = here.draft;
        let made = match keyword {
            "$ref" => self.reference(text(keyword, value, here)?, here, keyword)?,
            "$dynamicRef" if draft == SchemaDraft::Of2020 => {
                self.reference(text(keyword, value, here)?, here, keyword)?
            }
            "$recursiveRef" if draft == SchemaDraft::Of2019 => {
                self.reference(text(keyword, value, here)?, here, keyword)?
            }
            "type" => Some(SchemaKeyword::Types(types(value, here)?)),
            "enum" => Some(SchemaKeyword::OneOfValues(
                list(keyword, value, here)?.clone(),
            )),
            "const" if draft >= SchemaDraft::Six => Some(SchemaKeyword::Equal(value.clone())),
            "multipleOf" => {
                let unit = limit(keyword, value, here)?;
                if unit.as_f64().is_none_or(|unit| unit <= 0.0) {
                    return Err(here.error(keyword, "it must be more than 0"));
                }
                Some(SchemaKeyword::MultipleOf(unit.clone()))
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                bound(keyword, value, all, here)?
            }
            "minLength" | "maxLength" => Some(size(keyword, value, SizeUnit::Characters, here)?),
            "minItems" | "maxItems" => Some(size(keyword, value, SizeUnit::Items, here)?),
            "minProperties" | "maxProperties" => {
                Some(size(keyword, value, SizeUnit::Properties, here)?)
            }
            "pattern" => {
                let written = text(keyword, value, here)?;
                let regex = pattern::compiled(written).map_err(|why| here.error(keyword, why))?;
                Some(SchemaKeyword::Pattern(regex, written.to_owned()))
            }
            "format" => {
                StringFormat::binding(text(keyword, value, here)?, draft).map(SchemaKeyword::Format)
            }
            "contentEncoding" | "contentMediaType" => content(keyword, value, all, here)?,
            "uniqueItems" => flag(keyword, value, here)?.then_some(SchemaKeyword::Unique),
            "required" => Some(SchemaKeyword::Required(names(keyword, value, here)?)),
            "allOf" => Some(SchemaKeyword::AllOf(self.list(value, here)?)),
            "anyOf" => Some(SchemaKeyword::AnyOf(self.list(value, here)?)),
            "oneOf" => Some(SchemaKeyword::OneOf(self.list(value, here)?)),
            "not" => Some(SchemaKeyword::Not(self.node(value, here.resource, "#")?)),
            "if" if draft >= SchemaDraft::Seven => Some(SchemaKeyword::If {
                condition: self.node(value, here.resource, "#")?,
                then: self.optional(all.get("then"), here)?,
                otherwise: self.optional(all.get("else"), here)?,
            }),
            "propertyNames" if draft >= SchemaDraft::Six => Some(SchemaKeyword::Names(self.node(
                value,
                here.resource,
                "#",
            )?)),
            "contains" if draft >= SchemaDraft::Six => Some(self.contains(value, all, here)?),
            "minContains" | "maxContains" if draft >= SchemaDraft::Of2019 => {
                count(keyword, value, here)?;
                None
            }
            "dependencies" | "dependentSchemas" | "dependentRequired" => {
                self.dependent(keyword, value, here, node)?;
                None
            }
            "properties" => self.properties(all, here)?,
            // Without `properties`, the first of the other keywords represents all three.
            "patternProperties" if !all.contains_key("properties") => self.properties(all, here)?,
            "additionalProperties"
                if !all.contains_key("properties") && !all.contains_key("patternProperties") =>
            {
                self.properties(all, here)?
            }
            "items" | "prefixItems" => self.items(keyword, all, here)?,
            "unevaluatedItems" if draft >= SchemaDraft::Of2019 => {
                let id = self.node(value, here.resource, "#")?;
                node.leftovers.push(UnevaluatedKeyword::Items(id));
                None
            }
            "unevaluatedProperties" if draft >= SchemaDraft::Of2019 => {
                let others = self.others(value, here)?;
                node.leftovers.push(UnevaluatedKeyword::Properties(others));
                None
            }
            "id" if draft == SchemaDraft::Four => check_string(keyword, value, here)?,
            "$id" if draft > SchemaDraft::Four => check_string(keyword, value, here)?,
            "$schema" | "title" | "description" => check_string(keyword, value, here)?,
            "$anchor" if draft >= SchemaDraft::Of2019 => check_string(keyword, value, here)?,
            "$dynamicAnchor" if draft == SchemaDraft::Of2020 => check_string(keyword, value, here)?,
            _ => None,
        };
        node.keywords.extend(made);
        Ok(())
    }

    fn reference(
        &mut self,
        reference: &str,
        here: SchemaPlace<'_>,
        keyword: &str,
    ) -> Result<Option<SchemaKeyword>, SchemaError> {
        if !self.follow {
            return Ok(None);
        }
        let target = self
            .index
            .target(reference, here.resource)
            .map_err(|why| here.error(keyword, why))?;
        let (schema, resource, dynamic) = match target {
            ReferenceTarget::Meta(draft) => return Ok(Some(SchemaKeyword::IsSchema(draft))),
            ReferenceTarget::Schema {
                schema,
                resource,
                dynamic,
            } => (schema, resource, dynamic),
        };
        let (id, is_new) = self.reserve(schema);
        if is_new {
            self.waiting.push(WaitingSchema {
                id,
                schema,
                resource,
                pointer: reference.to_owned(),
            });
        }
        let recursive =
            keyword == "$recursiveRef" && self.index.resources[resource].dynamic.contains_key("");
        Ok(Some(match (keyword, dynamic) {
            ("$recursiveRef", _) if recursive => SchemaKeyword::DynamicReference {
                otherwise: id,
                anchor: String::new(),
            },
            ("$dynamicRef", Some(anchor)) => SchemaKeyword::DynamicReference {
                otherwise: id,
                anchor,
            },
            _ => SchemaKeyword::Reference(id),
        }))
    }

    fn optional(
        &mut self,
        schema: Option<&'s Value>,
        here: SchemaPlace<'_>,
    ) -> Result<Option<NodeId>, SchemaError> {
        schema
            .map(|schema| self.node(schema, here.resource, "#"))
            .transpose()
    }

    /// Returns the nodes of a list of schemas. The caller has checked that they are schemas.
    fn list(
        &mut self,
        value: &'s Value,
        here: SchemaPlace<'_>,
    ) -> Result<Vec<NodeId>, SchemaError> {
        let schemas = value.as_array().map(Vec::as_slice).unwrap_or_default();
        schemas
            .iter()
            .map(|schema| self.node(schema, here.resource, "#"))
            .collect()
    }

    fn others(
        &mut self,
        value: &'s Value,
        here: SchemaPlace<'_>,
    ) -> Result<AdditionalRule, SchemaError> {
        Ok(match value {
            Value::Bool(false) => AdditionalRule::Forbidden,
            schema => AdditionalRule::Fitting(self.node(schema, here.resource, "#")?),
        })
    }

    fn properties(
        &mut self,
        all: &'s Map<String, Value>,
        here: SchemaPlace<'_>,
    ) -> Result<Option<SchemaKeyword>, SchemaError> {
        let map = |keyword: &str| all.get(keyword).and_then(Value::as_object);
        let mut named = HashMap::new();
        for (name, schema) in map("properties").into_iter().flatten() {
            named.insert(name.clone(), self.node(schema, here.resource, "#")?);
        }
        let mut patterns = Vec::new();
        for (written, schema) in map("patternProperties").into_iter().flatten() {
            let regex =
                pattern::compiled(written).map_err(|why| here.error("patternProperties", why))?;
            patterns.push((regex, self.node(schema, here.resource, "#")?));
        }
        let others = match all.get("additionalProperties") {
            // In draft 4 only these keywords may be booleans.
            Some(Value::Bool(true)) if here.draft == SchemaDraft::Four => None,
            Some(value) => Some(self.others(value, here)?),
            None => None,
        };
        Ok(Some(SchemaKeyword::Properties {
            named,
            patterns,
            others,
        }))
    }

    fn items(
        &mut self,
        keyword: &str,
        all: &'s Map<String, Value>,
        here: SchemaPlace<'_>,
    ) -> Result<Option<SchemaKeyword>, SchemaError> {
        let (first, others) = if here.draft == SchemaDraft::Of2020 {
            if keyword == "items" && all.contains_key("prefixItems") {
                return Ok(None);
            }
            let first = match all.get("prefixItems") {
                Some(schemas) => self.list(schemas, here)?,
                None => Vec::new(),
            };
            (first, all.get("items"))
        } else if keyword == "prefixItems" {
            return Ok(None);
        } else {
            match all.get("items") {
                Some(schemas @ Value::Array(_)) => {
                    (self.list(schemas, here)?, all.get("additionalItems"))
                }
                others => (Vec::new(), others),
            }
        };
        let others = match others {
            Some(Value::Bool(true)) if here.draft == SchemaDraft::Four => None,
            Some(schema @ Value::Bool(false)) if here.draft == SchemaDraft::Four => {
                Some(self.never(schema, here))
            }
            others => self.optional(others, here)?,
        };
        Ok(Some(SchemaKeyword::Items { first, others }))
    }

    /// Creates the node for `additionalItems: false` in draft 4, which has no schema `false`.
    fn never(&mut self, schema: &'s Value, here: SchemaPlace<'_>) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(SchemaNode {
            resource: here.resource,
            keywords: vec![SchemaKeyword::Never],
            leftovers: Vec::new(),
        });
        self.made.insert(schema, id);
        id
    }

    fn contains(
        &mut self,
        value: &'s Value,
        all: &Map<String, Value>,
        here: SchemaPlace<'_>,
    ) -> Result<SchemaKeyword, SchemaError> {
        let limit = |keyword: &str| match all.get(keyword) {
            Some(value) if here.draft >= SchemaDraft::Of2019 => {
                count(keyword, value, here).map(Some)
            }
            _ => Ok(None),
        };
        Ok(SchemaKeyword::Contains {
            item: self.node(value, here.resource, "#")?,
            least: limit("minContains")?.unwrap_or(1),
            most: limit("maxContains")?,
            marks: here.draft == SchemaDraft::Of2020,
        })
    }

    fn dependent(
        &mut self,
        keyword: &str,
        value: &'s Value,
        here: SchemaPlace<'_>,
        node: &mut SchemaNode,
    ) -> Result<(), SchemaError> {
        if keyword != "dependencies" && here.draft < SchemaDraft::Of2019 {
            return Ok(());
        }
        let map = value
            .as_object()
            .ok_or_else(|| here.error(keyword, "it must be an object"))?;
        for (name, needed) in map {
            node.keywords.push(match needed {
                Value::Array(_) if keyword != "dependentSchemas" => {
                    SchemaKeyword::Dependent(name.clone(), names(keyword, needed, here)?)
                }
                schema if keyword != "dependentRequired" => SchemaKeyword::DependentSchema(
                    name.clone(),
                    self.node(schema, here.resource, "#")?,
                ),
                _ => return Err(here.error(keyword, "it must hold lists of names")),
            });
        }
        Ok(())
    }
}
