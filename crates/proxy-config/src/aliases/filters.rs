//! Aliases of filters: top-level blocks that routes refer to by name, each a policy or an agent of
//! the route here.

mod definition;

use super::alias::{Alias, Anchor, Change};
use super::replace::{Found, Mode, Outcome, insert_at};
use super::table;
use super::tree::Tree;
use definition::{Definition, Settings, definition};
use std::collections::HashMap;

/// Replaces the `filters` of routes by the settings they represent, and removes the block `filters`
/// when no route refers to it.
pub(super) fn replace<T: Tree>(root: &mut T, mode: Mode, found: &mut Vec<Found>) {
    let definitions = definitions(root);
    let mut is_needed = false;
    for index in 0..root.children().len() {
        let Some(routes) = root.child_mut(index).filter(|node| node.name() == "routes") else {
            continue;
        };
        for index in 0..routes.children().len() {
            if let Some(route) = routes.child_mut(index) {
                is_needed |= !replace_in_route(route, &definitions, mode, found);
            }
        }
    }
    if is_needed && mode == Mode::Text {
        return;
    }
    while let Some(index) = root.children().iter().position(|it| it.name() == "filters") {
        let Some(block) = root.remove_child(index) else {
            return;
        };
        found.extend(filter_aliases(Anchor::Top).map(|alias| Found {
            alias,
            name: "filters".into(),
            at: block.span(),
            outcome: Outcome::Replaced,
        }));
    }
}

/// The filters by name.
fn definitions<T: Tree>(root: &T) -> HashMap<String, Definition> {
    let blocks = root
        .children()
        .iter()
        .filter(|node| node.name() == "filters");
    let filters = blocks.flat_map(Tree::children);
    let filters = filters.filter(|node| node.name() == "filter");
    let named = filters.filter_map(|filter| {
        let arguments = filter.arguments();
        let name = arguments.first()?.as_text()?.to_owned();
        Some((name, definition(root, filter)))
    });
    named.collect()
}

/// Replaces the filters of a route; `false` if one of them cannot be replaced.
fn replace_in_route<T: Tree>(
    route: &mut T,
    definitions: &HashMap<String, Definition>,
    mode: Mode,
    found: &mut Vec<Found>,
) -> bool {
    let is_filters = |node: &T| node.name() == "filters";
    let Some(index) = route.children().iter().position(is_filters) else {
        return true;
    };
    let Some(filters) = route.children().get(index).cloned() else {
        return true;
    };
    let outcome = settings(&filters, definitions);
    let (is_replaced, result) = match outcome {
        Ok(settings) => {
            drop(route.remove_child(index));
            for (path, arguments) in settings {
                let name = path.rsplit('.').next().unwrap_or_default();
                insert_at(route, path, T::setting(name, arguments, &filters));
            }
            (true, Outcome::Replaced)
        }
        Err(remedy) => {
            if mode == Mode::Load {
                drop(route.remove_child(index));
            }
            (false, Outcome::Refused(remedy))
        }
    };
    found.extend(filter_aliases(Anchor::Route).map(|alias| Found {
        alias,
        name: "filters".into(),
        at: filters.span(),
        outcome: result.clone(),
    }));
    is_replaced
}

/// The settings of the filters in the argument list, with all agents joined into one.
fn settings<T: Tree>(
    filters: &T,
    definitions: &HashMap<String, Definition>,
) -> Result<Settings, &'static str> {
    let mut settings = Vec::new();
    let mut agents = Vec::new();
    for argument in filters.arguments() {
        let name = argument.as_text().unwrap_or_default();
        let definition = definitions.get(name);
        let definition = definition.ok_or("define the filter, or leave its name out")?;
        for (path, arguments) in definition.clone()? {
            if path == "agents" {
                agents.extend(arguments);
            } else {
                settings.push((path, arguments));
            }
        }
    }
    if !agents.is_empty() {
        settings.push(("agents", agents));
    }
    Ok(settings)
}

/// The rows of the table for `filters` at this place.
fn filter_aliases(anchor: Anchor) -> impl Iterator<Item = &'static Alias> {
    table::rows(anchor).filter(|alias| matches!(alias.change, Change::Spread(_)))
}
