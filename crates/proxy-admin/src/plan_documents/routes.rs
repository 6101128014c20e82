//! Route descriptions for `/admin/routes`.

use proxy_model::{Model, Part, Route, Service, effective_in};
use proxy_plan::Plan;
use serde_json::{Map, Value, json};

/// Describes the routes of `plan`, in matching order.
pub(super) fn in_matching_order(plan: &Plan) -> impl Iterator<Item = Value> {
    let model = plan.model();
    // Documents of routes without listeners.
    let all: Vec<&str> = model
        .listeners
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let all = Value::from(all);
    let order = plan.router().matching_order().into_iter();
    order.filter_map(move |index| {
        let route = model.routes.get(index)?;
        let bound = route.listeners.iter().map(|name| name.value.as_str());
        let bound: Vec<&str> = bound.collect();
        let listeners = if bound.is_empty() {
            all.clone()
        } else {
            bound.into()
        };
        Some(element(model, route, &listeners))
    })
}

fn element(model: &Model, route: &Route, listeners: &Value) -> Value {
    let mut matches = Map::new();
    let mut policies = Map::new();
    let mut others = Map::new();
    let (mut redirect, mut response) = (Map::new(), Map::new());
    for setting in effective_in(model, Part::Route(route)) {
        let name = setting.name();
        let value = setting.value;
        if let Some(condition) = name.strip_prefix("matches.") {
            add(&mut matches, condition, value);
        } else if let Some(policy) = name.strip_prefix("policies.") {
            put(&mut policies, policy, value);
        } else if let Some(part) = name.strip_prefix("redirect.") {
            redirect.insert(part.to_owned(), value);
        } else if let Some(part) = name.strip_prefix("respond.") {
            response.insert(part.to_owned(), value);
        } else if name.contains('.') || name == "agents" {
            put(&mut policies, name, value);
        } else {
            others.insert(name.to_owned(), value);
        }
    }
    let service_type = match &route.service {
        Service::Upstream(_) | Service::Redirect(_) | Service::Respond(_) => {
            others.get("service-type").cloned()
        }
        Service::Builtin(_) => Some("builtin".into()),
        Service::Static(_) => Some("static".into()),
    };
    json!({
        "id": route.id,
        "priority": *route.priority,
        "listeners": listeners,
        "matches": matches,
        "upstream": others.get("upstream"),
        "service_type": service_type,
        "builtin_handler": others.get("builtin-handler"),
        "redirect": (!redirect.is_empty()).then_some(redirect),
        "respond": (!response.is_empty()).then_some(response),
        "policies": policies,
        "source": {
            "file": model.sources.name(route.place.file),
            "line": route.place.line,
        },
    })
}

/// Adds a value. A repeatable setting becomes a list even with one value.
fn put(object: &mut Map<String, Value>, name: &str, value: Value) {
    const LISTS: [&str; 5] = ["agents", "allow", "allow-file", "deny", "deny-file"];
    if LISTS.contains(&name) || name.contains("-headers.") {
        add(object, name, value);
    } else {
        object.insert(name.to_owned(), value);
    }
}

fn add(object: &mut Map<String, Value>, name: &str, value: Value) {
    let list = object
        .entry(name)
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(value);
    }
}
