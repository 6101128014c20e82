//! The tokens of pending HTTP-01 challenges. [RFC 8555 §8.3]

use arc_swap::ArcSwap;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The key authorizations of pending challenges, by token. Written by the control thread, read by every
/// worker; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ChallengeTokens(Arc<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    /// True if there is any: read for each request.
    any: AtomicBool,
    by_token: ArcSwap<HashMap<Box<str>, Bytes>>,
}

impl ChallengeTokens {
    /// Answers requests for `token` with `key_authorization`.
    pub fn publish(&self, token: &str, key_authorization: &str) {
        let answer = Bytes::copy_from_slice(key_authorization.as_bytes());
        self.change(|by_token| {
            by_token.insert(token.into(), answer);
        });
    }

    /// Ends that.
    pub fn withdraw(&self, token: &str) {
        self.change(|by_token| {
            by_token.remove(token);
        });
    }

    /// Changes the tokens; called by the control thread only.
    fn change(&self, change: impl FnOnce(&mut HashMap<Box<str>, Bytes>)) {
        let mut by_token = HashMap::clone(&self.0.by_token.load());
        change(&mut by_token);
        let any = !by_token.is_empty();
        self.0.by_token.store(Arc::new(by_token));
        self.0.any.store(any, Ordering::Release);
    }

    /// Returns true if a challenge is pending.
    pub(crate) fn any(&self) -> bool {
        self.0.any.load(Ordering::Acquire)
    }

    /// The answer to requests for `token`, if its challenge is pending.
    pub(crate) fn answer(&self, token: &str) -> Option<Bytes> {
        self.0.by_token.load().get(token).cloned()
    }
}
