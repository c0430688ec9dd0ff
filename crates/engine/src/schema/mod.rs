//! JSON Schema: does a value have the shape that a schema asks for, and if not, where and why not.
//!
//! Drafts 4, 6, 7, 2019-09 and 2020-12, by a schema's `$schema` (without one: 2020-12). A schema is
//! compiled into `Node`s once; references lead from node to node. Nothing is ever fetched: a
//! reference that leaves the schema is refused, save those to the drafts' own meta-schemas. As the
//! drafts have it, `format` and `contentEncoding` bind up to draft 7 and only describe after that.
//!
//! It is our own because the library that did this was a ninth of the work of building the product.
//! The tests hold it to the official test suite of JSON Schema.

mod check;
mod compile;
mod draft;
mod format;
mod index;
mod notes;
mod number;
mod pattern;
#[cfg(test)]
mod tests;
mod uri;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

use fancy_regex::Regex;
use serde_json::{Number, Value};

use self::{compile::Compiler, draft::Draft, format::StringFormat};

/// A schema, compiled.
#[derive(Debug)]
pub struct SchemaValidator {
    nodes: Vec<Node>,
    root: NodeId,
    /// Where `$dynamicRef` may lead, by resource and anchor; `$recursiveRef` has the empty one.
    dynamic: HashMap<(usize, String), NodeId>,
}

impl SchemaValidator {
    /// Compiles a schema, or says what is wrong with it.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        Compiler::whole(schema)
    }

    /// Whether the value has the shape.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.check_all(value, None)
    }

    /// Everything that is wrong with the value, in the order of the schema.
    pub fn problems<'v>(&self, value: &'v Value) -> Vec<SchemaProblem<'v>> {
        let mut problems = Vec::new();
        self.check_all(value, Some(&mut problems));
        problems
    }
}

/// Why a schema is none.
#[derive(Debug, thiserror::Error)]
#[error("at `{pointer}`: {problem}")]
pub struct SchemaError {
    /// Where in the schema, as a JSON pointer with `#` before it.
    pub pointer: String,
    /// What is wrong there.
    pub problem: String,
}

/// One thing that is wrong with a value.
#[derive(Debug)]
pub struct SchemaProblem<'v> {
    /// Where in the value, as a JSON pointer.
    pub pointer: String,
    /// What stands there.
    pub value: &'v Value,
    /// What is wrong with it.
    pub kind: SchemaProblemKind,
}

/// What is wrong with a value.
#[derive(Debug, PartialEq)]
pub enum SchemaProblemKind {
    /// A property is missing.
    Missing(String),
    /// Properties that the schema does not know, and it allows no others.
    Unexpected(Vec<String>),
    /// Anything else, in words.
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

/// One schema within the schema.
#[derive(Debug, Default)]
struct Node {
    /// The resource (a part with an `$id` of its own) that it belongs to.
    resource: usize,
    keywords: Vec<Keyword>,
    /// These look at what the others left: they come last.
    leftovers: Vec<Leftover>,
}

#[derive(Debug)]
enum Keyword {
    /// The schema `false`.
    Never,
    Types(Types),
    OneOfValues(Vec<Value>),
    Equal(Value),
    Bound(Bound, Number),
    MultipleOf(Number),
    Size {
        of: Counted,
        least: Option<u64>,
        most: Option<u64>,
    },
    /// With the words it was written in.
    Pattern(Regex, String),
    Format(StringFormat),
    Content {
        base64: bool,
        json: bool,
    },
    Reference(NodeId),
    /// The outermost resource on the way here that has this anchor decides.
    DynamicReference {
        otherwise: NodeId,
        anchor: String,
    },
    /// The value must be a schema itself: a reference to a meta-schema.
    IsSchema(Draft),
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
        others: Option<Others>,
    },
    Required(Vec<String>),
    Names(NodeId),
    /// Where the first is there, the others must be.
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
        /// Since 2020-12, an item that is contained counts as looked at.
        marks: bool,
    },
    Unique,
}

#[derive(Debug)]
enum Others {
    Forbidden,
    Fitting(NodeId),
}

#[derive(Debug)]
enum Leftover {
    Items(NodeId),
    Properties(Others),
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    Least,
    Most,
    MoreThan,
    LessThan,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    Characters,
    Items,
    Properties,
}

#[derive(Debug, Default)]
struct Types {
    null: bool,
    boolean: bool,
    object: bool,
    array: bool,
    number: bool,
    /// Since draft 6, 1.0 is an integer too.
    integer: bool,
    whole_floats: bool,
    string: bool,
}

impl Types {
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

    /// As people write it.
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
