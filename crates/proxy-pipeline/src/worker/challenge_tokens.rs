//! The tokens of pending HTTP-01 challenges. [RFC 8555 §8.3]

use arc_swap::ArcSwap;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The key authorizations of pending challenges, by token. Written by the control thread and by the
/// client of the control plane, read by every worker; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ChallengeTokens(Arc<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    /// Number of tokens: read for each request.
    count: AtomicUsize,
    by_token: ArcSwap<ByToken>,
}

type ByToken = HashMap<Box<str>, Bytes>;

impl ChallengeTokens {
    /// Answers requests for `token` with `key_authorization`.
    pub fn publish(&self, token: &str, key_authorization: &str) {
        let answer = Bytes::copy_from_slice(key_authorization.as_bytes());
        let before = self.0.by_token.rcu(|current| {
            let mut next = ByToken::clone(current);
            next.insert(token.into(), answer.clone());
            next
        });
        if !before.contains_key(token) {
            self.0.count.fetch_add(1, Ordering::Release);
        }
    }

    /// Stops answering requests for `token`.
    pub fn withdraw(&self, token: &str) {
        let before = self.0.by_token.rcu(|current| {
            let mut next = ByToken::clone(current);
            next.remove(token);
            next
        });
        if before.contains_key(token) {
            self.0.count.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns true if a challenge is pending.
    pub(crate) fn any(&self) -> bool {
        self.0.count.load(Ordering::Acquire) > 0
    }

    /// The answer to requests for `token`, if its challenge is pending.
    pub(crate) fn answer(&self, token: &str) -> Option<Bytes> {
        self.0.by_token.load().get(token).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_two_writers_do_not_end_each_other() {
        let tokens = ChallengeTokens::default();
        assert!(!tokens.any());
        tokens.publish("own", "own.key");
        tokens.publish("fleet", "fleet.key");
        tokens.publish("fleet", "fleet.key");
        tokens.withdraw("own");
        tokens.withdraw("own");
        assert!(tokens.any());
        assert_eq!(tokens.answer("fleet").unwrap(), "fleet.key");
        assert_eq!(tokens.answer("own"), None);
        tokens.withdraw("fleet");
        assert!(!tokens.any());
    }
}
