//! JSON documents that depend only on the plan, serialized once per plan, at the first request.

mod routes;

use bytes::Bytes;
use proxy_model::effective;
use proxy_plan::{Plan, render};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct PlanDocuments {
    pub(crate) plan: Arc<Plan>,
    routes: OnceLock<Bytes>,
    config: OnceLock<Bytes>,
}

impl PlanDocuments {
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        Self {
            plan,
            routes: OnceLock::new(),
            config: OnceLock::new(),
        }
    }

    /// Returns the document of `/admin/routes`.
    pub(crate) fn routes(&self) -> Bytes {
        let written = self.routes.get_or_init(|| {
            let mut out = Vec::new();
            write_array(&mut out, routes::in_matching_order(&self.plan));
            out.into()
        });
        written.clone()
    }

    /// Returns the document of `/admin/config`.
    pub(crate) fn config(&self) -> Bytes {
        let written = self.config.get_or_init(|| {
            let model = self.plan.model();
            let settings = effective(model);
            let settings = settings
                .iter()
                .map(|one| render::setting(&model.sources, one));
            let generation = self.plan.generation();
            let mut out =
                format!("{{\"config_generation\":{generation},\"settings\":").into_bytes();
            write_array(&mut out, settings);
            out.push(b'}');
            out.into()
        });
        written.clone()
    }
}

/// Appends an array, member by member, so that not all of them are in memory as values.
fn write_array(out: &mut Vec<u8>, members: impl Iterator<Item = Value>) {
    out.push(b'[');
    for (position, member) in members.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.extend_from_slice(member.to_string().as_bytes());
    }
    out.push(b']');
}
