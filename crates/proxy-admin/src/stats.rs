//! The JSON document of `/admin/stats`: counts, memory and cache.

use crate::cache;
use crate::state::AdminState;
use proxy_telemetry::{MemoryUse, Process};
use serde_json::Value;

pub(crate) fn document(state: &AdminState) -> Value {
    let memory = &state.sources.memory;
    let memory = MemoryUse {
        rss_bytes: Process::read().resident_bytes,
        limit_bytes: memory.max_bytes(),
        shedding: memory.is_shedding(),
    };
    let mut document = state.sources.registry.snapshot().stats(memory);
    if let Value::Object(members) = &mut document {
        members.insert("cache".to_owned(), cache::document(state));
    }
    document
}
