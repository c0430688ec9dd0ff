//! JSON Schema validation: checks whether a value matches a schema, and reports each mismatch with
//! its location.
//!
//! The supported drafts are 4, 6, 7, 2019-09 and 2020-12, selected by `$schema` (default: 2020-12).
//! A schema is compiled once into `SchemaNode`s, and references point from node to node. No schema is
//! ever fetched: a reference out of the schema is an error, except to the drafts' own meta-schemas.
//! As the drafts specify, `format` and `contentEncoding` are enforced up to draft 7, and only
//! describe values after that.
//!
//! We have our own implementation because the library we used before took a ninth of the build time
//! of the product. The tests run the official test suite of JSON Schema.

mod check;
mod check_context;
mod compile;
mod draft;
mod format;
mod index;
mod keyword_values;
mod number;
mod pattern;
#[cfg(test)]
mod tests;
mod unique;
mod uri;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

use fancy_regex::Regex;
use serde_json::{Number, Value};

use self::{compile::SchemaCompiler, draft::SchemaDraft, format::StringFormat};

/// A compiled schema.
#[derive(Debug)]
pub struct SchemaValidator {
    nodes: Vec<SchemaNode>,
    root: NodeId,
    /// The targets of `$dynamicRef`, by resource and anchor; those of `$recursiveRef` have an empty
    /// anchor.
    dynamic: HashMap<(usize, String), NodeId>,
}

impl SchemaValidator {
    /// Compiles a schema, or returns what is wrong with it.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        SchemaCompiler::compile(schema)
    }

    /// Returns whether the value matches the schema.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.check_all(value, None)
    }

    /// Returns all problems of the value, in the order of the schema.
    pub fn problems<'v>(&self, value: &'v Value) -> Vec<SchemaProblem<'v>> {
        let mut problems = Vec::new();
        self.check_all(value, Some(&mut problems));
        problems
    }
}

/// The reason why a schema is invalid.
#[derive(Debug, thiserror::Error)]
#[error("at `{pointer}`: {problem}")]
pub struct SchemaError {
    /// The location in the schema, as a JSON pointer prefixed with `#`.
    pub pointer: String,
    /// The problem.
    pub problem: String,
}

/// A problem with a value.
#[derive(Debug)]
pub struct SchemaProblem<'v> {
    /// The location in the value, as a JSON pointer.
    pub pointer: String,
    /// The value at this location.
    pub value: &'v Value,
    /// The kind of the problem.
    pub kind: SchemaProblemKind,
}

/// The kind of a problem with a value.
#[derive(Debug, PartialEq)]
pub enum SchemaProblemKind {
    /// A required property is missing.
    Missing(String),
    /// Properties that the schema does not allow.
    Unexpected(Vec<String>),
    /// Any other problem, as text.
    Other(String),
}

impl fmt::Display for SchemaProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "at `{}`: ", self.pointer)?;
        }
        match &self.kind {
            SchemaProblemKind::Missing(name) => write!(f, "`{name}` is missing"),
            SchemaProblemKind::Unexpected(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "{} must not be there", names.join(", "))
            }
            SchemaProblemKind::Other(words) => f.write_str(words),
        }
    }
}

type NodeId = usize;

/// A schema or subschema.
#[derive(Debug, Default)]
struct SchemaNode {
    /// The resource (a part with its own `$id`) that it belongs to.
    resource: usize,
    keywords: Vec<SchemaKeyword>,
    /// The `unevaluated…` keywords, which apply to what the others did not evaluate, and so come
    /// last.
    leftovers: Vec<UnevaluatedKeyword>,
}

#[derive(Debug)]
enum SchemaKeyword {
    /// The schema `false`.
    Never,
    Types(TypeSet),
    OneOfValues(Vec<Value>),
    Equal(Value),
    Bound(NumericBound, Number),
    MultipleOf(Number),
    Size {
        of: SizeUnit,
        least: Option<u64>,
        most: Option<u64>,
    },
    /// The compiled pattern, and its source text.
    Pattern(Regex, String),
    Format(StringFormat),
    Content {
        base64: bool,
        json: bool,
    },
    Reference(NodeId),
    /// The target is in the outermost resource on the dynamic path that has this anchor.
    DynamicReference {
        otherwise: NodeId,
        anchor: String,
    },
    /// A reference to a meta-schema: the value must be a schema itself.
    IsSchema(SchemaDraft),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    Properties {
        named: HashMap<String, NodeId>,
        patterns: Vec<(Regex, NodeId)>,
        others: Option<AdditionalRule>,
    },
    Required(Vec<String>),
    Names(NodeId),
    /// If the first property is present, the others must be too.
    Dependent(String, Vec<String>),
    DependentSchema(String, NodeId),
    Items {
        first: Vec<NodeId>,
        others: Option<NodeId>,
    },
    Contains {
        item: NodeId,
        least: u64,
        most: Option<u64>,
        /// Whether items that match are marked as evaluated (since draft 2020-12).
        marks: bool,
    },
    Unique,
}

#[derive(Debug)]
enum AdditionalRule {
    Forbidden,
    Fitting(NodeId),
}

#[derive(Debug)]
enum UnevaluatedKeyword {
    Items(NodeId),
    Properties(AdditionalRule),
}

#[derive(Debug, Clone, Copy)]
enum NumericBound {
    Least,
    Most,
    MoreThan,
    LessThan,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SizeUnit {
    Characters,
    Items,
    Properties,
}

#[derive(Debug, Default)]
struct TypeSet {
    null: bool,
    boolean: bool,
    object: bool,
    array: bool,
    number: bool,
    integer: bool,
    /// Whether 1.0 is an integer too (since draft 6).
    whole_floats: bool,
    string: bool,
}

impl TypeSet {
    fn allow(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::Object(_) => self.object,
            Value::Array(_) => self.array,
            Value::String(_) => self.string,
            Value::Number(number) => {
                self.number || self.integer && number::is_integer(number, self.whole_floats)
            }
        }
    }

    /// Returns the allowed types as text for error messages.
    fn names(&self) -> String {
        let names: BTreeSet<_> = [
            (self.null, "null"),
            (self.boolean, "boolean"),
            (self.object, "object"),
            (self.array, "array"),
            (self.number, "number"),
            (self.integer, "integer"),
            (self.string, "string"),
        ]
        .into_iter()
        .filter_map(|(allowed, name)| allowed.then_some(name))
        .collect();
        names.into_iter().collect::<Vec<_>>().join(" or ")
    }
}
