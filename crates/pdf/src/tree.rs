//! The pages of a document in order, from its page tree.

use std::collections::HashSet;

use hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Object, ObjectIdentifier},
};

/// A page that a document lists.
pub(crate) struct ListedPage<'a> {
    /// The id of the page's object, if it is an indirect object.
    pub(crate) id: Option<ObjectIdentifier>,
    /// The page's dictionary. `None` if it is missing in the file.
    pub(crate) dict: Option<Dict<'a>>,
    /// The resources that the content refers to by name.
    pub(crate) resources: Dict<'a>,
    /// The rotation of the page in clockwise quarter turns.
    pub(crate) quarters: i32,
}

/// The attributes that pages inherit from their parent node.
#[derive(Clone, Default)]
struct InheritedAttributes<'a> {
    resources: Dict<'a>,
    rotation: i32,
}

/// Returns the catalog, the root of the document.
pub(crate) fn catalog(document: &Pdf) -> Option<Dict<'_>> {
    let xref = document.xref();
    xref.get::<Dict<'_>>(xref.root_id())
}

/// Returns all pages. Returns an error if the tree contains a cycle.
pub(crate) fn pages(document: &Pdf) -> Result<Vec<ListedPage<'_>>, String> {
    let xref = document.xref();
    let root = catalog(document).and_then(|catalog| catalog.get::<Dict<'_>>("Pages"));
    let Some(root) = root.filter(|root| root.contains_key("Kids")) else {
        return Ok(stray_pages(document));
    };
    let mut branches: HashSet<ObjectIdentifier> = root.obj_id().into_iter().collect();
    let mut pages = Vec::new();
    // The stack of nodes to visit; the next one is at the end.
    let mut open = kids(&root, &InheritedAttributes::default());
    while let Some((kid, inherited)) = open.pop() {
        let (id, dict) = match kid {
            MaybeRef::Ref(reference) => {
                let id = ObjectIdentifier::from(reference);
                (Some(id), xref.get::<Dict<'_>>(id))
            }
            MaybeRef::NotRef(object) => (None, object.into_dict()),
        };
        match dict {
            Some(branch) if branch.contains_key("Kids") => {
                if id.is_some_and(|id| !branches.insert(id)) {
                    return Err("its list of pages contains itself".to_owned());
                }
                open.extend(kids(&branch, &inherited));
            }
            dict => pages.push(listed(id, dict, inherited)),
        }
    }
    Ok(pages)
}

fn kids<'a>(
    branch: &Dict<'a>,
    inherited: &InheritedAttributes<'a>,
) -> Vec<(MaybeRef<Object<'a>>, InheritedAttributes<'a>)> {
    let inherited = inherited.with(branch);
    let array = branch.get::<Array<'_>>("Kids").unwrap_or_default();
    let mut kids: Vec<_> = array
        .raw_iter()
        .map(|kid| (kid, inherited.clone()))
        .collect();
    kids.reverse();
    kids
}

impl<'a> InheritedAttributes<'a> {
    fn with(&self, node: &Dict<'a>) -> Self {
        let resources = node.get::<Dict<'_>>("Resources");
        Self {
            resources: resources.unwrap_or_else(|| self.resources.clone()),
            rotation: node.get::<i32>("Rotate").unwrap_or(self.rotation),
        }
    }
}

fn listed<'a>(
    id: Option<ObjectIdentifier>,
    dict: Option<Dict<'a>>,
    inherited: InheritedAttributes<'a>,
) -> ListedPage<'a> {
    let own = match &dict {
        Some(dict) => inherited.with(dict),
        None => inherited,
    };
    ListedPage {
        id,
        dict,
        resources: own.resources,
        quarters: own.rotation.rem_euclid(360) / 90,
    }
}

/// Returns all pages in the file, in file order, for a document without a page tree.
fn stray_pages(document: &Pdf) -> Vec<ListedPage<'_>> {
    document
        .pages()
        .iter()
        .map(|page| {
            let dict = page.raw().clone();
            listed(dict.obj_id(), Some(dict), InheritedAttributes::default())
        })
        .collect()
}
