//! Compiles a schema into nodes, and reports what is wrong with it.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::{
    Bound, Counted, Keyword, Leftover, Node, NodeId, Others, SchemaError, SchemaValidator, Types,
    draft::{Draft, Holds, escaped},
    format::StringFormat,
    index::{Index, Target},
    number, pattern,
};

pub(super) struct Compiler<'s> {
    index: Index<'s>,
    nodes: Vec<Node>,
    /// The node of each schema, by its memory address.
    made: HashMap<*const Value, NodeId>,
    /// References are followed; not set if only the structure of a schema is checked.
    follow: bool,
}

/// The current location in the schema.
#[derive(Clone, Copy)]
struct Here<'a> {
    pointer: &'a str,
    resource: usize,
    draft: Draft,
}

impl Here<'_> {
    fn error(self, keyword: &str, problem: impl Into<String>) -> SchemaError {
        SchemaError {
            pointer: match keyword {
                "" => self.pointer.to_owned(),
                keyword => format!("{}/{}", self.pointer, escaped(keyword)),
            },
            problem: problem.into(),
        }
    }
}

impl<'s> Compiler<'s> {
    pub(super) fn whole(schema: &'s Value) -> Result<SchemaValidator, SchemaError> {
        let draft = schema
            .as_object()
            .map_or(Draft::Of2020, |map| Draft::of(map, Draft::Of2020));
        let mut compiler = Self::new(schema, draft, true);
        let root = compiler.node(schema, 0, "#")?;
        let mut dynamic = HashMap::new();
        for resource in 0..compiler.index.resources.len() {
            for (anchor, schema) in compiler.index.resources[resource].dynamic.clone() {
                let id = compiler.node(schema, resource, "#")?;
                dynamic.insert((resource, anchor), id);
            }
        }
        Ok(SchemaValidator {
            nodes: compiler.nodes,
            root,
            dynamic,
        })
    }

    /// Checks whether a value is a valid schema of a draft, without following its references.
    pub(super) fn is_schema(value: &'s Value, draft: Draft) -> Result<(), SchemaError> {
        Self::new(value, draft, false).node(value, 0, "#").map(drop)
    }

    fn new(schema: &'s Value, draft: Draft, follow: bool) -> Self {
        Self {
            index: Index::new(schema, draft),
            nodes: Vec::new(),
            made: HashMap::new(),
            follow,
        }
    }

    fn node(
        &mut self,
        schema: &'s Value,
        around: usize,
        pointer: &str,
    ) -> Result<NodeId, SchemaError> {
        if let Some(id) = self.made.get(&std::ptr::from_ref(schema)) {
            return Ok(*id);
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.made.insert(schema, id);
        let resource = self.index.owner(schema, around);
        let here = Here {
            pointer,
            resource,
            draft: self.index.resources[resource].draft,
        };
        let mut node = Node {
            resource,
            ..Node::default()
        };
        match schema {
            Value::Bool(allowed) if here.draft > Draft::Four => {
                if !allowed {
                    node.keywords.push(Keyword::Never);
                }
            }
            Value::Object(keywords) => self.keywords(keywords, here, &mut node)?,
            other => {
                let wanted = if here.draft == Draft::Four {
                    "an object"
                } else {
                    "an object or a boolean"
                };
                return Err(here.error("", format!("a schema is {wanted}, not {other}")));
            }
        }
        self.nodes[id] = node;
        Ok(id)
    }

    fn keywords(
        &mut self,
        keywords: &'s Map<String, Value>,
        here: Here<'_>,
        node: &mut Node,
    ) -> Result<(), SchemaError> {
        // Every nested schema must be valid, even if nothing refers to it.
        let alone = here.draft.reference_alone() && keywords.contains_key("$ref");
        for (keyword, value) in keywords {
            if here.draft.holds(keyword).is_some() {
                holder(keyword, value, here)?;
            }
        }
        for (way, schema) in here.draft.within(keywords) {
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
        here: Here<'_>,
        node: &mut Node,
    ) -> Result<(), SchemaError> {
        let draft = here.draft;
        let made = match keyword {
            "$ref" => self.reference(text(keyword, value, here)?, here, keyword)?,
            "$dynamicRef" if draft == Draft::Of2020 => {
                self.reference(text(keyword, value, here)?, here, keyword)?
            }
            "$recursiveRef" if draft == Draft::Of2019 => {
                self.reference(text(keyword, value, here)?, here, keyword)?
            }
            "type" => Some(Keyword::Types(types(value, here)?)),
            "enum" => Some(Keyword::OneOfValues(list(keyword, value, here)?.clone())),
            "const" if draft >= Draft::Six => Some(Keyword::Equal(value.clone())),
            "multipleOf" => {
                let unit = limit(keyword, value, here)?;
                if unit.as_f64().is_none_or(|unit| unit <= 0.0) {
                    return Err(here.error(keyword, "it must be more than 0"));
                }
                Some(Keyword::MultipleOf(unit.clone()))
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                bound(keyword, value, all, here)?
            }
            "minLength" | "maxLength" => Some(size(keyword, value, Counted::Characters, here)?),
            "minItems" | "maxItems" => Some(size(keyword, value, Counted::Items, here)?),
            "minProperties" | "maxProperties" => {
                Some(size(keyword, value, Counted::Properties, here)?)
            }
            "pattern" => {
                let written = text(keyword, value, here)?;
                let regex = pattern::compiled(written).map_err(|why| here.error(keyword, why))?;
                Some(Keyword::Pattern(regex, written.to_owned()))
            }
            "format" => {
                StringFormat::binding(text(keyword, value, here)?, draft).map(Keyword::Format)
            }
            "contentEncoding" | "contentMediaType" => content(keyword, value, all, here)?,
            "uniqueItems" => flag(keyword, value, here)?.then_some(Keyword::Unique),
            "required" => Some(Keyword::Required(names(keyword, value, here)?)),
            "allOf" => Some(Keyword::AllOf(self.list(value, here)?)),
            "anyOf" => Some(Keyword::AnyOf(self.list(value, here)?)),
            "oneOf" => Some(Keyword::OneOf(self.list(value, here)?)),
            "not" => Some(Keyword::Not(self.node(value, here.resource, "#")?)),
            "if" if draft >= Draft::Seven => Some(Keyword::If {
                condition: self.node(value, here.resource, "#")?,
                then: self.optional(all.get("then"), here)?,
                otherwise: self.optional(all.get("else"), here)?,
            }),
            "propertyNames" if draft >= Draft::Six => {
                Some(Keyword::Names(self.node(value, here.resource, "#")?))
            }
            "contains" if draft >= Draft::Six => Some(self.contains(value, all, here)?),
            "minContains" | "maxContains" if draft >= Draft::Of2019 => {
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
            "unevaluatedItems" if draft >= Draft::Of2019 => {
                let id = self.node(value, here.resource, "#")?;
                node.leftovers.push(Leftover::Items(id));
                None
            }
            "unevaluatedProperties" if draft >= Draft::Of2019 => {
                let others = self.others(value, here)?;
                node.leftovers.push(Leftover::Properties(others));
                None
            }
            "id" if draft == Draft::Four => words(keyword, value, here)?,
            "$id" if draft > Draft::Four => words(keyword, value, here)?,
            "$schema" | "title" | "description" => words(keyword, value, here)?,
            "$anchor" if draft >= Draft::Of2019 => words(keyword, value, here)?,
            "$dynamicAnchor" if draft == Draft::Of2020 => words(keyword, value, here)?,
            _ => None,
        };
        node.keywords.extend(made);
        Ok(())
    }

    fn reference(
        &mut self,
        reference: &str,
        here: Here<'_>,
        keyword: &str,
    ) -> Result<Option<Keyword>, SchemaError> {
        if !self.follow {
            return Ok(None);
        }
        let target = self
            .index
            .target(reference, here.resource)
            .map_err(|why| here.error(keyword, why))?;
        let (schema, resource, dynamic) = match target {
            Target::Meta(draft) => return Ok(Some(Keyword::IsSchema(draft))),
            Target::Schema {
                schema,
                resource,
                dynamic,
            } => (schema, resource, dynamic),
        };
        let id = self.node(schema, resource, reference)?;
        let recursive =
            keyword == "$recursiveRef" && self.index.resources[resource].dynamic.contains_key("");
        Ok(Some(match (keyword, dynamic) {
            ("$recursiveRef", _) if recursive => Keyword::DynamicReference {
                otherwise: id,
                anchor: String::new(),
            },
            ("$dynamicRef", Some(anchor)) => Keyword::DynamicReference {
                otherwise: id,
                anchor,
            },
            _ => Keyword::Reference(id),
        }))
    }

    fn optional(
        &mut self,
        schema: Option<&'s Value>,
        here: Here<'_>,
    ) -> Result<Option<NodeId>, SchemaError> {
        schema
            .map(|schema| self.node(schema, here.resource, "#"))
            .transpose()
    }

    /// Compiles a list of schemas whose structure was checked before.
    fn list(&mut self, value: &'s Value, here: Here<'_>) -> Result<Vec<NodeId>, SchemaError> {
        let schemas = value.as_array().map(Vec::as_slice).unwrap_or_default();
        schemas
            .iter()
            .map(|schema| self.node(schema, here.resource, "#"))
            .collect()
    }

    fn others(&mut self, value: &'s Value, here: Here<'_>) -> Result<Others, SchemaError> {
        Ok(match value {
            Value::Bool(false) => Others::Forbidden,
            schema => Others::Fitting(self.node(schema, here.resource, "#")?),
        })
    }

    fn properties(
        &mut self,
        all: &'s Map<String, Value>,
        here: Here<'_>,
    ) -> Result<Option<Keyword>, SchemaError> {
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
            Some(Value::Bool(true)) if here.draft == Draft::Four => None,
            Some(value) => Some(self.others(value, here)?),
            None => None,
        };
        Ok(Some(Keyword::Properties {
            named,
            patterns,
            others,
        }))
    }

    fn items(
        &mut self,
        keyword: &str,
        all: &'s Map<String, Value>,
        here: Here<'_>,
    ) -> Result<Option<Keyword>, SchemaError> {
        let (first, others) = if here.draft == Draft::Of2020 {
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
            Some(Value::Bool(true)) if here.draft == Draft::Four => None,
            Some(schema @ Value::Bool(false)) if here.draft == Draft::Four => {
                Some(self.never(schema, here))
            }
            others => self.optional(others, here)?,
        };
        Ok(Some(Keyword::Items { first, others }))
    }

    /// Compiles `additionalItems: false` in draft 4, where `false` is not a schema.
    fn never(&mut self, schema: &'s Value, here: Here<'_>) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node {
            resource: here.resource,
            keywords: vec![Keyword::Never],
            leftovers: Vec::new(),
        });
        self.made.insert(schema, id);
        id
    }

    fn contains(
        &mut self,
        value: &'s Value,
        all: &Map<String, Value>,
        here: Here<'_>,
    ) -> Result<Keyword, SchemaError> {
        let limit = |keyword: &str| match all.get(keyword) {
            Some(value) if here.draft >= Draft::Of2019 => count(keyword, value, here).map(Some),
            _ => Ok(None),
        };
        Ok(Keyword::Contains {
            item: self.node(value, here.resource, "#")?,
            least: limit("minContains")?.unwrap_or(1),
            most: limit("maxContains")?,
            marks: here.draft == Draft::Of2020,
        })
    }

    fn dependent(
        &mut self,
        keyword: &str,
        value: &'s Value,
        here: Here<'_>,
        node: &mut Node,
    ) -> Result<(), SchemaError> {
        if keyword != "dependencies" && here.draft < Draft::Of2019 {
            return Ok(());
        }
        let map = value
            .as_object()
            .ok_or_else(|| here.error(keyword, "it must be an object"))?;
        for (name, needed) in map {
            node.keywords.push(match needed {
                Value::Array(_) if keyword != "dependentSchemas" => {
                    Keyword::Dependent(name.clone(), names(keyword, needed, here)?)
                }
                schema if keyword != "dependentRequired" => {
                    Keyword::DependentSchema(name.clone(), self.node(schema, here.resource, "#")?)
                }
                _ => return Err(here.error(keyword, "it must hold lists of names")),
            });
        }
        Ok(())
    }
}

/// Returns whether a value is a flag. Draft 4 has no schemas `true` and `false`, but allows
/// booleans in these places.
fn flag_in_four(keyword: &str, value: &Value, draft: Draft) -> bool {
    draft == Draft::Four
        && value.is_boolean()
        && matches!(keyword, "additionalItems" | "additionalProperties")
}

/// Checks whether the value of a keyword that contains schemas has the right type.
fn holder(keyword: &str, value: &Value, here: Here<'_>) -> Result<(), SchemaError> {
    let fits = match here.draft.holds(keyword) {
        // If a single value is not a schema, compiling it reports the problem.
        None | Some(Holds::Schema | Holds::SchemaOrList) => true,
        Some(Holds::List) => value.as_array().is_some_and(|list| !list.is_empty()),
        Some(Holds::Map | Holds::MapOrNames) => value.is_object(),
    };
    if fits {
        return Ok(());
    }
    let wanted = match here.draft.holds(keyword) {
        Some(Holds::List) => "it must be a list of schemas with at least one",
        _ => "it must be an object",
    };
    Err(here.error(keyword, wanted))
}

fn text<'v>(keyword: &str, value: &'v Value, here: Here<'_>) -> Result<&'v str, SchemaError> {
    value
        .as_str()
        .ok_or_else(|| here.error(keyword, format!("it must be a string, not {value}")))
}

/// Checks a keyword that only needs to be a string.
fn words(keyword: &str, value: &Value, here: Here<'_>) -> Result<Option<Keyword>, SchemaError> {
    text(keyword, value, here).map(|_| None)
}

fn flag(keyword: &str, value: &Value, here: Here<'_>) -> Result<bool, SchemaError> {
    value
        .as_bool()
        .ok_or_else(|| here.error(keyword, format!("it must be true or false, not {value}")))
}

fn count(keyword: &str, value: &Value, here: Here<'_>) -> Result<u64, SchemaError> {
    number::count(value)
        .ok_or_else(|| here.error(keyword, format!("it must be a whole number, not {value}")))
}

fn list<'v>(
    keyword: &str,
    value: &'v Value,
    here: Here<'_>,
) -> Result<&'v Vec<Value>, SchemaError> {
    value
        .as_array()
        .ok_or_else(|| here.error(keyword, format!("it must be a list, not {value}")))
}

/// Returns a list of names without duplicates.
fn names(keyword: &str, value: &Value, here: Here<'_>) -> Result<Vec<String>, SchemaError> {
    let mut names = Vec::new();
    for name in list(keyword, value, here)? {
        let name = text(keyword, name, here)?.to_owned();
        if names.contains(&name) {
            return Err(here.error(keyword, format!("`{name}` is there twice")));
        }
        names.push(name);
    }
    if names.is_empty() && here.draft == Draft::Four {
        return Err(here.error(keyword, "it must not be empty"));
    }
    Ok(names)
}

fn limit<'v>(keyword: &str, value: &'v Value, here: Here<'_>) -> Result<&'v Number, SchemaError> {
    value
        .as_number()
        .ok_or_else(|| here.error(keyword, format!("it must be a number, not {value}")))
}

fn bound(
    keyword: &str,
    value: &Value,
    all: &Map<String, Value>,
    here: Here<'_>,
) -> Result<Option<Keyword>, SchemaError> {
    // In draft 4 `exclusiveMinimum` is a flag next to `minimum`.
    let exclusive = |name: &str| {
        here.draft == Draft::Four && all.get(name).and_then(Value::as_bool) == Some(true)
    };
    let kind = match keyword {
        "minimum" if exclusive("exclusiveMinimum") => Bound::MoreThan,
        "minimum" => Bound::Least,
        "maximum" if exclusive("exclusiveMaximum") => Bound::LessThan,
        "maximum" => Bound::Most,
        flagged if here.draft == Draft::Four => {
            flag(flagged, value, here)?;
            return Ok(None);
        }
        "exclusiveMinimum" => Bound::MoreThan,
        _ => Bound::LessThan,
    };
    Ok(Some(Keyword::Bound(
        kind,
        limit(keyword, value, here)?.clone(),
    )))
}

fn size(keyword: &str, value: &Value, of: Counted, here: Here<'_>) -> Result<Keyword, SchemaError> {
    let limit = count(keyword, value, here)?;
    let least = keyword.starts_with("min");
    Ok(Keyword::Size {
        of,
        least: least.then_some(limit),
        most: (!least).then_some(limit),
    })
}

/// Compiles both content keywords together, at the first of them.
fn content(
    keyword: &str,
    value: &Value,
    all: &Map<String, Value>,
    here: Here<'_>,
) -> Result<Option<Keyword>, SchemaError> {
    text(keyword, value, here)?;
    let second = keyword == "contentMediaType" && all.contains_key("contentEncoding");
    if !matches!(here.draft, Draft::Six | Draft::Seven) || second {
        return Ok(None);
    }
    let says =
        |keyword: &str, wanted: &str| all.get(keyword).and_then(Value::as_str) == Some(wanted);
    Ok(Some(Keyword::Content {
        base64: says("contentEncoding", "base64"),
        json: says("contentMediaType", "application/json"),
    }))
}

fn types(value: &Value, here: Here<'_>) -> Result<Types, SchemaError> {
    let names = match value {
        Value::String(_) => vec![value.clone()],
        Value::Array(names) if !names.is_empty() => names.clone(),
        _ => return Err(here.error("type", format!("it must be a type or several, not {value}"))),
    };
    let mut types = Types {
        whole_floats: here.draft > Draft::Four,
        ..Types::default()
    };
    for name in &names {
        let allowed = match name.as_str() {
            Some("null") => &mut types.null,
            Some("boolean") => &mut types.boolean,
            Some("object") => &mut types.object,
            Some("array") => &mut types.array,
            Some("number") => &mut types.number,
            Some("integer") => &mut types.integer,
            Some("string") => &mut types.string,
            _ => return Err(here.error("type", format!("{name} is no type"))),
        };
        if std::mem::replace(allowed, true) {
            return Err(here.error("type", format!("{name} is there twice")));
        }
    }
    Ok(types)
}
