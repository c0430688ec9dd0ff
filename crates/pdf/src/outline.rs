//! The outline of a document: its headings with their pages.

use std::collections::{HashMap, HashSet};

use hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, ObjRef, Object, ObjectIdentifier, String as PdfString},
};

use crate::{
    OutlineEntry,
    child_answer::{HEADINGS, LEVELS, TITLE_CHARS},
    read::one_line,
    text::string_text,
    tree::{self, ListedPage},
};

/// The maximum number of entries that are read from a list of named destinations.
const NAMES: usize = 100_000;

/// Returns the entries of the outline, up to the limits; empty if the outline contains a cycle.
pub(crate) fn headings(document: &Pdf, pages: &[ListedPage<'_>]) -> Vec<OutlineEntry> {
    let Some(catalog) = tree::catalog(document) else {
        return Vec::new();
    };
    let Some(root) = catalog.get::<Dict<'_>>("Outlines") else {
        return Vec::new();
    };
    let numbers: HashMap<ObjectIdentifier, u32> = (1..)
        .zip(pages)
        .filter_map(|(number, page)| Some((page.id?, number)))
        .collect();
    let places = OutlineDestinations {
        named: named_destinations(document, &catalog),
        numbers,
        page_count: pages.len(),
    };
    let mut headings = Vec::new();
    let mut seen = HashSet::new();
    // The stack of entries to visit; the next one is at the end.
    let mut open = vec![(root.get_ref("First"), 0)];
    while let Some((reference, level)) = open.pop() {
        let Some(id) = reference.map(ObjectIdentifier::from) else {
            continue;
        };
        if !seen.insert(id) {
            return Vec::new();
        }
        let Some(item) = document.xref().get::<Dict<'_>>(id) else {
            continue;
        };
        if headings.len() < HEADINGS && level <= LEVELS {
            let title = item.get::<PdfString<'_>>("Title");
            let title = title.map(|title| string_text(title.as_bytes()));
            headings.push(OutlineEntry {
                title: one_line(&title.unwrap_or_default(), TITLE_CHARS),
                level,
                page: places.page_of(&item),
            });
        }
        open.push((item.get_ref("Next"), level));
        open.push((item.get_ref("First"), level + 1));
    }
    headings
}

struct OutlineDestinations<'a> {
    named: HashMap<Vec<u8>, Object<'a>>,
    numbers: HashMap<ObjectIdentifier, u32>,
    page_count: usize,
}

impl OutlineDestinations<'_> {
    fn page_of(&self, item: &Dict<'_>) -> Option<u32> {
        let goal = item.get::<Object<'_>>("Dest").or_else(|| {
            let action = item.get::<Dict<'_>>("A")?;
            action.get::<Object<'_>>("D")
        })?;
        self.page_at(&goal, 0)
    }

    fn page_at(&self, goal: &Object<'_>, hops: usize) -> Option<u32> {
        match goal {
            _ if hops > 4 => None,
            Object::Array(place) => self.page_in(place),
            Object::Dict(dict) => self.page_at(&dict.get::<Object<'_>>("D")?, hops + 1),
            Object::Name(name) => self.page_at(self.named.get(name.as_ref())?, hops + 1),
            Object::String(name) => self.page_at(self.named.get(name.as_bytes())?, hops + 1),
            _ => None,
        }
    }

    fn page_in(&self, place: &Array<'_>) -> Option<u32> {
        match place.raw_iter().next()? {
            MaybeRef::Ref(page) => self.numbers.get(&page.into()).copied(),
            // Some programs write the number of the page, from 0.
            MaybeRef::NotRef(object) => {
                let index = usize::try_from(object.into_i32()?).ok()?;
                (index < self.page_count).then(|| index as u32 + 1)
            }
        }
    }
}

/// Returns the named destinations: from a dictionary in old files, from a name tree in newer ones.
fn named_destinations<'a>(document: &'a Pdf, catalog: &Dict<'a>) -> HashMap<Vec<u8>, Object<'a>> {
    let mut named = HashMap::new();
    if let Some(old) = catalog.get::<Dict<'_>>("Dests") {
        for name in old.keys() {
            if let Some(goal) = old.get::<Object<'_>>(&name) {
                named.insert(name.as_ref().to_vec(), goal);
            }
        }
    }
    let names = catalog.get::<Dict<'_>>("Names");
    let root = names.and_then(|names| names.get::<Dict<'_>>("Dests"));
    let mut seen: HashSet<ObjRef> = HashSet::new();
    let mut open: Vec<Dict<'_>> = root.into_iter().collect();
    while let Some(node) = open.pop() {
        if named.len() > NAMES || seen.len() > NAMES {
            break;
        }
        let list = node.get::<Array<'_>>("Names").unwrap_or_default();
        let mut list = list.iter::<Object<'_>>();
        while let (Some(Object::String(name)), Some(goal)) = (list.next(), list.next()) {
            named.insert(name.as_bytes().to_vec(), goal);
        }
        let kids = node.get::<Array<'_>>("Kids").unwrap_or_default();
        open.extend(kids.raw_iter().filter_map(|kid| match kid {
            MaybeRef::Ref(reference) if seen.insert(reference) => {
                document.xref().get::<Dict<'_>>(reference.into())
            }
            MaybeRef::Ref(_) => None,
            MaybeRef::NotRef(object) => object.into_dict(),
        }));
    }
    named
}
