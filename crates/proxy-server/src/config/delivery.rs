//! Configurations that arrive while the process runs, from a control plane.
//!
//! The client of the control plane has a separate thread. The control loop applies deliveries one
//! by one as reloads; workers only see the new plan.

use crate::config::live_tests::LiveTests;
use crate::observe::events::ANSWER;
use proxy_model::ControlPlane;
use proxy_pipeline::ChallengeTokens;
use proxy_telemetry::Registry;
use proxy_tls::HeldCertificate;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use zeroize::Zeroizing;

/// A bundle on disk, with the certificates that are only in memory.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The files on the disk.
    pub files: Arc<BundleFiles>,
    /// Certificates with their private keys, held in memory.
    pub keys: PrivateKeys,
}

/// The files of a bundle on the disk.
#[derive(Clone, Debug)]
pub struct BundleFiles {
    /// The file that the bundle's configuration begins with.
    pub entry_file: PathBuf,
    /// Run before each load: the files may have been changed since.
    pub check: BundleCheck,
}

/// A check that the files of a bundle are unchanged since delivery; the reason names one that is
/// not.
#[derive(Clone)]
pub struct BundleCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

/// Private keys in PEM, each with its chain, by the key's path in the configuration.
#[derive(Clone, Debug, Default)]
pub struct PrivateKeys {
    files: BTreeSet<PathBuf>,
    keys: BTreeMap<PathBuf, HeldCertificate>,
}

/// The sending end of the channel of deliveries to the control loop.
#[derive(Clone, Debug)]
pub struct Deliveries {
    sender: mpsc::Sender<Pending>,
    registry: Arc<Registry>,
    challenges: ChallengeTokens,
}

/// A delivery, and the receiver of its result.
#[derive(Debug)]
pub(crate) struct Pending {
    /// `None` for the node's own configuration without a bundle.
    pub(crate) delivery: Option<Delivery>,
    /// Sends the live tests to a separate server before the delivery is applied.
    pub(crate) is_rehearsed: bool,
    pub(crate) answer: oneshot::Sender<Result<LiveTests, Vec<String>>>,
}

/// The receiving end of [`Deliveries`].
#[derive(Debug)]
pub(crate) struct Inbox(mpsc::Receiver<Pending>);

/// Prepares the client of the control plane from its block of the configuration. May read the disk,
/// and wait for the network for a short time.
pub type Follow = fn(&ControlPlane, Deliveries) -> Follower;

/// Starts a client, given the result of applying its first bundle; `None` without one.
pub type StartClient = dyn FnOnce(Option<Result<(), Vec<String>>>) -> Stop + Send;

/// Ends the client when it is dropped.
pub type Stop = Box<dyn Send>;

/// A client of the control plane that is about to run.
pub struct Follower {
    /// The bundle to start with, if the client has one.
    pub first: Option<Delivery>,
    /// Starts the client with the result of its first bundle. Dropping the returned value ends the
    /// client.
    pub start: Box<StartClient>,
}

impl BundleCheck {
    /// A check that reads the disk.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn run(&self) -> Result<(), String> {
        let Self(check) = self;
        check()
    }
}

impl Deliveries {
    /// `challenges` are the tokens with which the process's listeners answer validations.
    pub(crate) fn new(registry: Arc<Registry>, challenges: ChallengeTokens) -> (Self, Inbox) {
        // The client waits for each result before its next delivery, so one place is enough.
        let (sender, receiver) = mpsc::channel(1);
        let own = Self {
            sender,
            registry,
            challenges,
        };
        (own, Inbox(receiver))
    }

    /// Tokens with which the listeners answer validations by HTTP-01.
    pub fn challenges(&self) -> &ChallengeTokens {
        &self.challenges
    }

    /// Applies a bundle completely, or changes nothing; `None` applies the node's own
    /// configuration. Returns the live tests of the configuration.
    ///
    /// # Errors
    ///
    /// Every reason, as a text.
    pub async fn apply(&self, delivery: Option<Delivery>) -> Result<LiveTests, Vec<String>> {
        self.send(delivery, false).await
    }

    /// Like [`Self::apply`], for a bundle with live tests that pass on a second server next to the
    /// serving one. If a test fails, no client is served by the bundle.
    ///
    /// # Errors
    ///
    /// Every reason, as a text.
    pub async fn rehearse_and_apply(&self, delivery: Delivery) -> Result<LiveTests, Vec<String>> {
        self.send(Some(delivery), true).await
    }

    async fn send(
        &self,
        delivery: Option<Delivery>,
        is_rehearsed: bool,
    ) -> Result<LiveTests, Vec<String>> {
        let (answer, answered) = oneshot::channel();
        let ending = || vec!["the process is about to end".to_owned()];
        let pending = Pending {
            delivery,
            is_rehearsed,
            answer,
        };
        self.sender.send(pending).await.map_err(|_| ending())?;
        answered.await.unwrap_or_else(|_| Err(ending()))
    }

    /// The metrics of the process.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Inbox {
    /// The next delivery; pending if there is none.
    pub(crate) async fn next(&mut self) -> Pending {
        match self.0.recv().await {
            Some(pending) => pending,
            None => std::future::pending().await,
        }
    }
}

impl PrivateKeys {
    /// Holds the key for the file at `path`; its chain is served instead of the file's.
    pub fn insert(&mut self, path: PathBuf, chain_pem: &str, key_pem: Zeroizing<String>) {
        self.files.insert(path.clone());
        let held = HeldCertificate {
            chain_pem: chain_pem.into(),
            key_pem: Arc::new(key_pem),
        };
        self.keys.insert(path, held);
    }

    /// The paths of all keys.
    pub(crate) fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }

    pub(crate) fn get(&self, path: &Path) -> Option<HeldCertificate> {
        self.keys.get(path).cloned()
    }
}

/// Warns if a reload changes the `control-plane` block. The client keeps the block of the start,
/// because its identity and its folder belong to it.
pub(crate) fn compare(at_start: Option<&ControlPlane>, now: Option<&ControlPlane>) {
    let is_same = match (at_start, now) {
        (Some(at_start), Some(now)) => at_start.says_the_same(now),
        (at_start, now) => at_start.is_none() && now.is_none(),
    };
    if !is_same {
        let warning = "control-plane has changed: it takes effect at the next start";
        tracing::warn!(target: ANSWER, warning, "configuration");
    }
}

impl fmt::Debug for BundleCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BundleCheck(…)")
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}
