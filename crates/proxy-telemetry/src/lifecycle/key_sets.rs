//! State of the key sets that are fetched from issuers of tokens, for `/status`.

use super::time::timestamp;
use arc_swap::ArcSwap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// State of a key set that is fetched from an issuer of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedKeySet {
    /// Keys in use; 0 without any.
    pub keys: usize,
    /// The last fetch that succeeded.
    pub fetched_at: Option<SystemTime>,
    /// Cause of the failure of the last fetch; `None` if it succeeded.
    pub failure: Option<String>,
}

/// The key sets, by upstream and URL.
#[derive(Debug, Default)]
pub(super) struct KeySets(ArcSwap<BTreeMap<(String, String), FetchedKeySet>>);

impl KeySets {
    pub(super) fn set(&self, upstream: &str, url: &str, state: &FetchedKeySet) {
        self.0.rcu(|current| {
            let mut next = BTreeMap::clone(current);
            next.insert((upstream.to_owned(), url.to_owned()), state.clone());
            next
        });
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&str, &str) -> bool) {
        self.0.rcu(|current| {
            let mut next = BTreeMap::clone(current);
            next.retain(|(upstream, url), _| is_kept(upstream, url));
            next
        });
    }

    /// An element for each key set; `None` without any.
    pub(super) fn document(&self) -> Option<Value> {
        let sets = self.0.load();
        let elements = sets.iter().map(|((upstream, url), set)| {
            let FetchedKeySet {
                keys,
                fetched_at,
                failure,
            } = set;
            json!({
                "upstream": upstream,
                "url": url,
                "keys": keys,
                "fetched_at": fetched_at.map(timestamp),
                "failure": failure,
            })
        });
        let elements: Vec<Value> = elements.collect();
        (!elements.is_empty()).then(|| elements.into())
    }
}
