//! Checks a value against the nodes of a schema.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::{
    AdditionalRule, NodeId, NumericBound, SchemaKeyword, SchemaNode, SchemaProblemKind,
    SchemaValidator, SizeUnit, UnevaluatedKeyword,
    check_context::{
        CheckContext, CheckEffort, DynamicScope, EvaluatedParts, InstanceLocation, MAX_DEPTH,
        PathSegment, PathStep, ProblemSink, shown,
    },
    compile::SchemaCompiler,
    number, pattern,
    unique::repeated,
};

/// The number of steps that a pattern match costs.
const PATTERN_STEPS: usize = 20;

const TOO_COSTLY: &str = "the schema needs too many steps to check it, or nests too deeply";

impl SchemaValidator {
    pub(super) fn check_all<'v>(&self, value: &'v Value, problems: ProblemSink<'_, 'v>) -> bool {
        let effort = CheckEffort::new();
        let at = InstanceLocation {
            path: None,
            scope: None,
            depth: 0,
            effort: &effort,
        };
        let mut notes = CheckContext {
            problems,
            seen: None,
        };
        let valid = self.check(self.root, value, at, &mut notes);
        if effort.is_exhausted() {
            // A failure inside a `not` or an alternative is not reported, and may look like success.
            return notes.fail_with_text(at, value, || TOO_COSTLY.to_owned());
        }
        valid
    }

    fn check<'v>(
        &self,
        id: NodeId,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        if at.depth == MAX_DEPTH {
            at.effort.exhaust();
        }
        if !at.effort.spend(1) {
            return false;
        }
        let at = InstanceLocation {
            depth: at.depth + 1,
            ..at
        };
        let node = &self.nodes[id];
        if at.scope.is_none_or(|scope| scope.resource != node.resource) {
            let scope = DynamicScope {
                up: at.scope,
                resource: node.resource,
                node: NodeId::MAX,
                value,
            };
            let at = InstanceLocation {
                scope: Some(&scope),
                ..at
            };
            return self.keywords(node, value, at, notes);
        }
        self.keywords(node, value, at, notes)
    }

    fn keywords<'v>(
        &self,
        node: &SchemaNode,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        if node.leftovers.is_empty() {
            return self.each_keyword(node, value, at, notes);
        }
        let mut seen = EvaluatedParts::default();
        let mut own = CheckContext {
            problems: notes.problems.as_deref_mut(),
            seen: Some(&mut seen),
        };
        let mut valid = self.each_keyword(node, value, at, &mut own);
        for leftover in &node.leftovers {
            valid &= self.leftover(leftover, value, at, notes, &mut seen);
        }
        if let Some(outer) = &mut notes.seen {
            outer.add(seen);
        }
        valid
    }

    fn each_keyword<'v>(
        &self,
        node: &SchemaNode,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        let mut valid = true;
        for keyword in &node.keywords {
            valid &= self.keyword(keyword, value, at, notes);
            if !valid && notes.problems.is_none() {
                return false;
            }
        }
        valid
    }

    fn keyword<'v>(
        &self,
        keyword: &SchemaKeyword,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        match (keyword, value) {
            (SchemaKeyword::Never, _) => {
                notes.fail_with_text(at, value, || "no value is allowed here".to_owned())
            }
            (SchemaKeyword::Types(types), _) => {
                types.allow(value)
                    || notes.fail_with_text(at, value, || {
                        format!("{} is not of type {}", shown(value), types.names())
                    })
            }
            (SchemaKeyword::OneOfValues(values), _) => {
                if !at.effort.spend(values.len()) {
                    return false;
                }
                values
                    .iter()
                    .any(|allowed| number::json_equal(allowed, value))
                    || notes.fail_with_text(at, value, || {
                        let values: Vec<_> = values.iter().map(Value::to_string).collect();
                        format!("{} is not one of {}", shown(value), values.join(", "))
                    })
            }
            (SchemaKeyword::Equal(wanted), _) => {
                number::json_equal(wanted, value)
                    || notes
                        .fail_with_text(at, value, || format!("{} is not {wanted}", shown(value)))
            }
            (SchemaKeyword::Bound(bound, limit), Value::Number(number)) => {
                let order = number::compare(number, limit);
                let (fits, words) = match bound {
                    NumericBound::Least => (order != Ordering::Less, "less than"),
                    NumericBound::Most => (order != Ordering::Greater, "more than"),
                    NumericBound::MoreThan => (order == Ordering::Greater, "not more than"),
                    NumericBound::LessThan => (order == Ordering::Less, "not less than"),
                };
                fits || notes.fail_with_text(at, value, || format!("{value} is {words} {limit}"))
            }
            (SchemaKeyword::MultipleOf(unit), Value::Number(number)) => {
                number::is_multiple(number, unit)
                    || notes.fail_with_text(at, value, || {
                        format!("{value} is not a multiple of {unit}")
                    })
            }
            (SchemaKeyword::Size { of, least, most }, _) => {
                let (size, unit) = match (of, value) {
                    (SizeUnit::Characters, Value::String(text)) => {
                        (text.chars().count(), "characters")
                    }
                    (SizeUnit::Items, Value::Array(items)) => (items.len(), "items"),
                    (SizeUnit::Properties, Value::Object(map)) => (map.len(), "properties"),
                    _ => return true,
                };
                let count = size as u64;
                if let Some(least) = least.filter(|least| count < *least) {
                    return notes.fail_with_text(at, value, || {
                        format!("{} has fewer than {least} {unit}", shown(value))
                    });
                }
                if let Some(most) = most.filter(|most| count > *most) {
                    return notes.fail_with_text(at, value, || {
                        format!("{} has more than {most} {unit}", shown(value))
                    });
                }
                true
            }
            (SchemaKeyword::Pattern(regex, written), Value::String(text)) => {
                if !at.effort.spend(PATTERN_STEPS) {
                    return false;
                }
                pattern::matches(regex, text)
                    || notes.fail_with_text(at, value, || {
                        format!("{} does not match {written}", shown(value))
                    })
            }
            (SchemaKeyword::Format(format), Value::String(text)) => {
                format.fits(text)
                    || notes.fail_with_text(at, value, || {
                        format!("{} is not {}", shown(value), format.description())
                    })
            }
            (SchemaKeyword::Content { base64, json }, Value::String(text)) => {
                content_fits(text, *base64, *json)
                    || notes.fail_with_text(at, value, || {
                        format!("{} does not hold what it should", shown(value))
                    })
            }
            (SchemaKeyword::Reference(target), _) => self.reference(*target, value, at, notes),
            (SchemaKeyword::DynamicReference { otherwise, anchor }, _) => {
                let mut target = *otherwise;
                let mut scope = at.scope;
                while let Some(here) = scope {
                    if let Some(found) = self.dynamic.get(&(here.resource, anchor.clone())) {
                        target = *found;
                    }
                    scope = here.up;
                }
                self.reference(target, value, at, notes)
            }
            (SchemaKeyword::IsSchema(draft), _) => match SchemaCompiler::is_schema(value, *draft) {
                Ok(()) => true,
                Err(error) => {
                    notes.fail_with_text(at, value, || format!("it is not a schema: {error}"))
                }
            },
            (
                SchemaKeyword::AllOf(_)
                | SchemaKeyword::AnyOf(_)
                | SchemaKeyword::OneOf(_)
                | SchemaKeyword::Not(_)
                | SchemaKeyword::If { .. },
                _,
            ) => self.combined(keyword, value, at, notes),
            (_, Value::Object(map)) => self.object(keyword, map, value, at, notes),
            (_, Value::Array(items)) => self.array(keyword, items, value, at, notes),
            _ => true,
        }
    }

    fn reference<'v>(
        &self,
        target: NodeId,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        let mut scope = at.scope;
        while let Some(here) = scope {
            if here.node == target && std::ptr::eq(here.value, value) {
                return notes.fail_with_text(at, value, || {
                    "the schema refers to itself without end".to_owned()
                });
            }
            scope = here.up;
        }
        let scope = DynamicScope {
            up: at.scope,
            resource: self.nodes[target].resource,
            node: target,
            value,
        };
        let at = InstanceLocation {
            scope: Some(&scope),
            ..at
        };
        self.check(target, value, at, notes)
    }

    /// Returns whether a schema accepts the value. If it does, the parts that it evaluated are
    /// recorded.
    fn accepts<'v>(
        &self,
        id: NodeId,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        let mut seen = notes.seen.is_some().then(EvaluatedParts::default);
        let mut own = CheckContext {
            problems: None,
            seen: seen.as_mut(),
        };
        let valid = self.check(id, value, at, &mut own);
        if let (true, Some(outer), Some(seen)) = (valid, &mut notes.seen, seen) {
            outer.add(seen);
        }
        valid
    }

    fn combined<'v>(
        &self,
        keyword: &SchemaKeyword,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        match keyword {
            SchemaKeyword::AllOf(all) => {
                let mut valid = true;
                for id in all {
                    valid &= self.check(*id, value, at, notes);
                }
                valid
            }
            SchemaKeyword::AnyOf(any) => {
                let mut valid = false;
                for id in any {
                    valid |= self.accepts(*id, value, at, notes);
                    if valid && notes.seen.is_none() {
                        return true;
                    }
                }
                valid
                    || notes.fail_with_text(at, value, || {
                        format!("{} matches none of the allowed schemas", shown(value))
                    })
            }
            SchemaKeyword::OneOf(one) => {
                let fitting = one
                    .iter()
                    .filter(|id| self.accepts(**id, value, at, notes))
                    .count();
                match fitting {
                    1 => true,
                    0 => notes.fail_with_text(at, value, || {
                        format!("{} matches none of the allowed schemas", shown(value))
                    }),
                    several => notes.fail_with_text(at, value, || {
                        format!(
                            "{} matches {several} of the allowed schemas, not one",
                            shown(value)
                        )
                    }),
                }
            }
            SchemaKeyword::Not(not) => {
                let mut own = CheckContext {
                    problems: None,
                    seen: None,
                };
                !self.check(*not, value, at, &mut own)
                    || notes.fail_with_text(at, value, || {
                        format!("{} has a shape that is not allowed", shown(value))
                    })
            }
            SchemaKeyword::If {
                condition,
                then,
                otherwise,
            } => {
                let branch = if self.accepts(*condition, value, at, notes) {
                    then
                } else {
                    otherwise
                };
                branch.is_none_or(|id| self.check(id, value, at, notes))
            }
            _ => true,
        }
    }

    fn object<'v>(
        &self,
        keyword: &SchemaKeyword,
        map: &'v Map<String, Value>,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        let mut valid = true;
        match keyword {
            SchemaKeyword::Properties {
                named,
                patterns,
                others,
            } => {
                let mut unexpected = Vec::new();
                for (name, inner) in map {
                    let matching = patterns
                        .iter()
                        .filter(|(regex, _)| pattern::matches(regex, name))
                        .map(|(_, id)| id);
                    let mut known = false;
                    for id in named.get(name).into_iter().chain(matching) {
                        known = true;
                        valid &= self.property(*id, name, inner, at, notes);
                    }
                    match others {
                        _ if known => {}
                        Some(AdditionalRule::Forbidden) => unexpected.push(name.clone()),
                        Some(AdditionalRule::Fitting(id)) => {
                            valid &= self.property(*id, name, inner, at, notes);
                        }
                        None => continue,
                    }
                    notes.mark_property(name);
                }
                if !unexpected.is_empty() {
                    valid = notes.fail(at, value, || SchemaProblemKind::Unexpected(unexpected));
                }
            }
            SchemaKeyword::Required(names) => {
                for name in names.iter().filter(|name| !map.contains_key(*name)) {
                    valid = notes.fail(at, value, || SchemaProblemKind::Missing(name.clone()));
                }
            }
            SchemaKeyword::Names(id) => {
                for name in map.keys() {
                    let mut own = CheckContext {
                        problems: None,
                        seen: None,
                    };
                    if !self.check(*id, &Value::String(name.clone()), at, &mut own) {
                        valid = notes.fail_with_text(at, value, || {
                            format!("no property may be called `{name}`")
                        });
                    }
                }
            }
            SchemaKeyword::Dependent(name, required) if map.contains_key(name) => {
                for wanted in required.iter().filter(|wanted| !map.contains_key(*wanted)) {
                    valid = notes.fail(at, value, || SchemaProblemKind::Missing(wanted.clone()));
                }
            }
            SchemaKeyword::DependentSchema(name, id) if map.contains_key(name) => {
                valid = self.check(*id, value, at, notes);
            }
            _ => {}
        }
        valid
    }

    fn property<'v>(
        &self,
        id: NodeId,
        name: &str,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        self.part(id, PathSegment::Name(name), value, at, notes)
    }

    fn part<'v>(
        &self,
        id: NodeId,
        part: PathSegment<'_>,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        let step = PathStep { up: at.path, part };
        let at = InstanceLocation {
            path: Some(&step),
            ..at
        };
        self.check(id, value, at, &mut notes.inner())
    }

    fn array<'v>(
        &self,
        keyword: &SchemaKeyword,
        items: &'v [Value],
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
    ) -> bool {
        let mut valid = true;
        match keyword {
            SchemaKeyword::Items { first, others } => {
                for (index, item) in items.iter().enumerate() {
                    let Some(id) = first.get(index).or(others.as_ref()) else {
                        break;
                    };
                    valid &= self.part(*id, PathSegment::Item(index), item, at, notes);
                }
                if let Some(seen) = &mut notes.seen {
                    let count = if others.is_some() {
                        items.len()
                    } else {
                        first.len()
                    };
                    seen.first_items = seen.first_items.max(count);
                }
            }
            SchemaKeyword::Contains {
                item: id,
                least,
                most,
                marks,
            } => {
                let mut found = 0;
                for (index, item) in items.iter().enumerate() {
                    let mut own = CheckContext {
                        problems: None,
                        seen: None,
                    };
                    if self.check(*id, item, at, &mut own) {
                        found += 1;
                        if *marks && let Some(seen) = &mut notes.seen {
                            seen.items.insert(index);
                        }
                    }
                }
                if found < *least || most.is_some_and(|most| found > most) {
                    valid = notes.fail_with_text(at, value, || {
                        let most = most.map_or_else(String::new, |most| format!(" and at most {most}"));
                        format!("{found} items match the `contains` schema, but there must be at least {least}{most}")
                    });
                }
            }
            SchemaKeyword::Unique => {
                if let Some(item) = repeated(items, at) {
                    valid = notes
                        .fail_with_text(at, value, || format!("{} is there twice", shown(item)));
                }
            }
            _ => {}
        }
        valid
    }

    fn leftover<'v>(
        &self,
        leftover: &UnevaluatedKeyword,
        value: &'v Value,
        at: InstanceLocation<'_>,
        notes: &mut CheckContext<'_, 'v>,
        seen: &mut EvaluatedParts<'v>,
    ) -> bool {
        let mut valid = true;
        match (leftover, value) {
            (UnevaluatedKeyword::Items(id), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate().skip(seen.first_items) {
                    if !seen.items.contains(&index) {
                        valid &= self.part(*id, PathSegment::Item(index), item, at, notes);
                    }
                }
                seen.first_items = items.len();
            }
            (UnevaluatedKeyword::Properties(others), Value::Object(map)) if !seen.all_names => {
                let mut unexpected = Vec::new();
                for (name, inner) in map {
                    if seen.names.contains(name.as_str()) {
                        continue;
                    }
                    match others {
                        AdditionalRule::Forbidden => unexpected.push(name.clone()),
                        AdditionalRule::Fitting(id) => {
                            valid &= self.property(*id, name, inner, at, notes);
                        }
                    }
                }
                if !unexpected.is_empty() {
                    valid = notes.fail(at, value, || SchemaProblemKind::Unexpected(unexpected));
                }
                seen.all_names = true;
            }
            _ => {}
        }
        valid
    }
}

fn content_fits(text: &str, base64: bool, json: bool) -> bool {
    let bytes = if base64 {
        match data_encoding::BASE64.decode(text.as_bytes()) {
            Ok(bytes) => bytes,
            Err(_) => return false,
        }
    } else {
        text.as_bytes().to_vec()
    };
    !json || serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok()
}
