//! One task for each name that is to be resolved.

use crate::client::{Client, LookUp};
use crate::error::LookUpError;
use crate::settings::ResolverSettings;
use proxy_model::TargetAddress;
use proxy_plan::ResolvedAddress;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Results that may wait for the receiver; then look-ups wait.
const WAITING_ANSWERS: usize = 64;

/// Resolves names again when their answers expire, each in a task of its own. Dropped, it resolves no
/// more.
pub struct NameResolver {
    client: Arc<Client>,
    tasks: HashMap<TargetAddress, AbortOnDropHandle<()>>,
    answers: Sender<Answer>,
}

/// The result of one look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The name.
    pub name: TargetAddress,
    /// What came of it.
    pub look_up: LookUp,
}

impl fmt::Debug for NameResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tasks.keys();
        f.debug_set().entries(names).finish()
    }
}

impl NameResolver {
    /// A resolver without names, and the receiver of its answers.
    #[must_use]
    pub fn new(settings: ResolverSettings) -> (Self, Receiver<Answer>) {
        let (answers, receiver) = channel(WAITING_ANSWERS);
        let resolver = Self {
            client: Arc::new(Client::new(settings)),
            tasks: HashMap::new(),
            answers,
        };
        (resolver, receiver)
    }

    /// The names that are resolved.
    pub fn names(&self) -> impl Iterator<Item = &TargetAddress> {
        self.tasks.keys()
    }

    /// Looks `names` up under `settings`, all side by side; those without an answer `within` this time
    /// have failed. Changes nothing.
    pub async fn look_up(
        settings: ResolverSettings,
        names: Vec<TargetAddress>,
        within: Duration,
    ) -> Vec<Answer> {
        let client = Arc::new(Client::new(settings));
        let mut looking = JoinSet::new();
        for name in &names {
            let (client, name) = (Arc::clone(&client), name.clone());
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

    /// Resolves `names` from now on, and no other names, under `settings`. A name that was resolved before
    /// goes on; one in `first` begins with that answer, another one at once.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn arrange(
        &mut self,
        settings: ResolverSettings,
        names: impl Iterator<Item = TargetAddress>,
        first: &[Answer],
    ) {
        let mut before = std::mem::take(&mut self.tasks);
        if *self.client.settings() != settings {
            self.client = Arc::new(Client::new(settings));
            before.clear();
        }
        for name in names {
            let task = before.remove(&name).unwrap_or_else(|| {
                let first = first.iter().find(|answer| answer.name == name);
                self.start(name.clone(), first)
            });
            self.tasks.insert(name, task);
        }
    }

    fn start(&self, name: TargetAddress, first: Option<&Answer>) -> AbortOnDropHandle<()> {
        let (client, answers) = (Arc::clone(&self.client), self.answers.clone());
        let first = first.map(|answer| answer.look_up.clone());
        AbortOnDropHandle::new(tokio::spawn(follow(client, name, first, answers)))
    }
}

async fn follow(
    client: Arc<Client>,
    name: TargetAddress,
    first: Option<LookUp>,
    answers: Sender<Answer>,
) {
    let rest = first.as_ref().map(|first| first.rest);
    let mut rest = rest.unwrap_or_default();
    let known = first.and_then(|first| first.found.ok());
    let mut known: Vec<ResolvedAddress> = known.unwrap_or_default();
    loop {
        tokio::time::sleep(rest).await;
        let look_up = client.look_up(&name, &known).await;
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
