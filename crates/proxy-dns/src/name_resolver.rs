//! Resolution of names: once, and again when their answers expire.

use crate::client::{Client, LookUp};
use crate::error::LookUpError;
use crate::settings::ResolverSettings;
use proxy_model::TargetAddress;
use proxy_upstream::ResolvedAddress;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

/// Resolves names. Clones share a bound on concurrent look-ups, and the parsed system files.
#[derive(Clone)]
pub struct NameResolver(Arc<Client>);

/// The result of one look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Name that was looked up.
    pub name: TargetAddress,
    /// Addresses, or the error with which the known ones are kept.
    pub look_up: LookUp,
}

impl fmt::Debug for NameResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NameResolver")
            .field(self.settings())
            .finish()
    }
}

impl NameResolver {
    /// A resolver with these settings.
    #[must_use]
    pub fn new(settings: ResolverSettings) -> Self {
        Self(Arc::new(Client::new(settings)))
    }

    /// The settings of every look-up.
    #[must_use]
    pub fn settings(&self) -> &ResolverSettings {
        self.0.settings()
    }

    /// Resolves `names` concurrently; a name unanswered `within` this time has failed. Each look-up
    /// is a task that ends with this call, so that a panic fails one name only.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn look_up(&self, names: Vec<TargetAddress>, within: Duration) -> Vec<Answer> {
        let mut looking = JoinSet::new();
        for name in &names {
            let (client, name) = (Arc::clone(&self.0), name.clone());
            looking.spawn(async move {
                let look_up = client.look_up(&name, &[]).await;
                Answer { name, look_up }
            });
        }
        let mut answers = HashMap::new();
        let collecting = async {
            while let Some(ended) = looking.join_next().await {
                if let Ok(answer) = ended {
                    answers.insert(answer.name.clone(), answer);
                }
            }
        };
        // The rest is late.
        drop(tokio::time::timeout(within, collecting).await);
        let answers = names.into_iter().map(|name| {
            answers.remove(&name).unwrap_or(Answer {
                name,
                look_up: LookUp {
                    found: Err(LookUpError::TimedOut(within)),
                    rest: Duration::ZERO,
                    left_out: 0,
                },
            })
        });
        answers.collect()
    }

    /// Resolves `name` whenever its last answer expires, beginning with `first` or else at once,
    /// and sends each result, until the receiver of `answers` is dropped.
    pub async fn follow(self, name: TargetAddress, first: Option<LookUp>, answers: Sender<Answer>) {
        let rest = first.as_ref().map(|first| first.rest);
        let mut rest = rest.unwrap_or_default();
        let known = first.and_then(|first| first.found.ok());
        let mut known: Vec<ResolvedAddress> = known.unwrap_or_default();
        loop {
            tokio::time::sleep(rest).await;
            let look_up = self.0.look_up(&name, &known).await;
            rest = look_up.rest;
            if let Ok(found) = &look_up.found {
                known.clone_from(found);
            }
            let answer = Answer {
                name: name.clone(),
                look_up,
            };
            if answers.send(answer).await.is_err() {
                return;
            }
        }
    }
}
