//! The application: state shared by all handlers.

pub(crate) mod acme;
pub(crate) mod audit_event;
pub(crate) mod changes;
pub(crate) mod idempotency;
pub(crate) mod metric_answers;
pub(crate) mod named_tenant;
pub(crate) mod order_signals;
pub(crate) mod outage;
pub(crate) mod outbound;
pub(crate) mod permits;
pub(crate) mod quota;
pub(crate) mod rate_limit;
pub(crate) mod refusal_windows;
pub(crate) mod report_budget;
pub(crate) mod sso_site;
pub(crate) mod write_queue;

use crate::app::acme::authorities::AcmeAuthorities;
use crate::app::acme::plain_hosts::{HostCount, PlainHosts};
use crate::app::audit_event::AuditEvent;
use crate::app::changes::Changes;
use crate::app::metric_answers::MetricAnswers;
use crate::app::order_signals::OrderSignals;
use crate::app::outage::Outage;
use crate::app::outbound::{Outbound, OutboundError, is_refused};
use crate::app::permits::{
    AdmittedBody, BodyKind, BodyPermit, BodyPermits, BudgetLimits, FairPermits, HeavyPermits,
    MAX_SMALL_BYTES, PasswordPermits,
};
use crate::app::rate_limit::{Allowance, RateLimiter};
use crate::app::refusal_windows::RefusalWindows;
use crate::app::report_budget::{ReportBudget, SizedReport};
use crate::app::sso_site::{SsoDocuments, SsoSite};
use crate::app::write_queue::WriteQueue;
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use control_auth::{AuditKey, Sealer, Secret};
use control_domain::{Access, Actor, HeartbeatInterval, Quotas, Refusal, Retention, Tenant};
use control_sso::WebUrl;
use control_store::{ConnectionCounts, Objects, Rate, Store, StoreError, Transaction};
use control_wire::{BundleId, CertificateId, NodeId, OrgId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use metrics::{counter, gauge};
use quick_cache::sync::Cache;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;
use uuid::Uuid;

/// Maximum number of recently accepted credentials, which bypass the per-address lockout.
const KNOWN_CREDENTIALS: usize = 100_000;
/// Maximum number of ended credentials with a remembered last use.
const ENDED_USES: usize = 10_000;
/// Expected number of cached bundles, for [`MAX_CACHED_HOSTS`].
const EXPECTED_BUNDLES: usize = 100;
/// Maximum number of cached hosts of all bundles, each of about 100 bytes.
const MAX_CACHED_HOSTS: u64 = 100_000;
/// Maximum number of concurrent tasks on configurations and archives: each may take 200 MiB and a
/// second.
const HEAVY_TASKS: usize = 2;
/// Queries to metrics servers of this replica.
const METRIC_QUERIES: BudgetLimits = BudgetLimits {
    all: 32,
    each: 8,
    reserve: 0,
};
/// Maximum number of large bodies parsed concurrently: each takes some milliseconds.
const PARSED_BODIES: usize = 2;

/// Time for which a failed write is reported: some writes may fail while smaller ones still fit.
const WRITE_FAILURE_MEMORY_MILLIS: i64 = 5_000;
/// Maximum difference between this replica's clock and the database's; beyond it the replica does
/// not serve, because leases, rate limits and expiries are shared.
const MAX_CLOCK_OFFSET: SignedDuration = SignedDuration::from_secs(5);

/// State of one replica. Other replicas share only the database and the object store.
#[derive(Debug)]
pub struct App {
    pub(crate) store: Store,
    pub(crate) objects: Objects,
    pub(crate) sealer: Sealer,
    pub(crate) environment: Environment,
    pub(crate) limiter: RateLimiter,
    pub(crate) known_credentials: Cache<String, ()>,
    /// Time of the last record for each use of an ended credential.
    pub(crate) ended_uses: Cache<Uuid, Timestamp>,
    pub(crate) audit_key: OnceLock<AuditKey>,
    /// Time of the last record for each refused certificate.
    pub(crate) refused_certificates: Cache<(NodeId, CertificateId), Timestamp>,
    pub(crate) writes: WriteQueue,
    pub(crate) orders: OrderSignals,
    pub(crate) heavy_permits: HeavyPermits,
    /// Set while the clock differs from the database's by more than [`MAX_CLOCK_OFFSET`].
    is_clock_wrong: AtomicBool,
    /// Time of the last failed write of this replica, in milliseconds since 1970; 0 for none.
    write_failed_at: AtomicI64,
    uploads: BodyPermits,
    bodies: BodyPermits,
    pub(crate) parsers: HeavyPermits,
    reports: ReportBudget,
    pub(crate) passwords: PasswordPermits,
    pub(crate) refused_sign_ins: RefusalWindows,
    /// Held while an archive is inspected for its certificates, so that nodes that reconnect
    /// together share one read.
    pub(crate) listing: Mutex<()>,
    pub(crate) sso_documents: SsoDocuments,
    pub(crate) metric_answers: MetricAnswers,
    /// Queries to metrics servers in progress: a silent server holds a socket for ten seconds.
    pub(crate) metric_queries: FairPermits,
    pub(crate) outage: Outage,
    /// Cache: hosts that a bundle serves without TLS, for validation of managed certificates.
    pub(crate) plain_hosts: Cache<BundleId, Arc<PlainHosts>, HostCount>,
    /// Certificate authorities that tenants may choose from; must be equal on all replicas.
    pub acme: AcmeAuthorities,
    /// The URL of this installation, as identity providers and browsers use it.
    pub sso_site: SsoSite,
    /// Wakes live pages.
    pub changes: Changes,
    /// Heartbeat interval sent to nodes; must be equal on all replicas.
    pub heartbeat_interval: HeartbeatInterval,
    /// Quotas of each organization; must be equal on all replicas.
    pub quotas: Quotas,
    /// Retention of ended values; must be equal on all replicas.
    pub retention: Retention,
}

/// Clock and random generator, replaceable in tests.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// Clock of all commands and jobs.
    pub now: fn() -> Timestamp,
    /// Fills a slice with random bytes.
    pub fill: fn(&mut [u8]),
}

impl Environment {
    /// Returns `N` random bytes.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.fill)(&mut bytes);
        bytes
    }
}

impl App {
    /// Creates the application on open stores.
    pub fn new(store: Store, objects: Objects, sealer: Sealer, environment: Environment) -> Self {
        Self {
            writes: WriteQueue::new(store.clone()),
            store,
            objects,
            sealer,
            environment,
            limiter: RateLimiter::default(),
            known_credentials: Cache::new(KNOWN_CREDENTIALS),
            ended_uses: Cache::new(ENDED_USES),
            audit_key: OnceLock::new(),
            refused_certificates: Cache::new(ENDED_USES),
            orders: OrderSignals::default(),
            heavy_permits: HeavyPermits::new(HEAVY_TASKS),
            is_clock_wrong: AtomicBool::new(false),
            write_failed_at: AtomicI64::new(i64::MIN),
            uploads: BodyPermits::new(BodyKind::Upload),
            bodies: BodyPermits::new(BodyKind::Other),
            parsers: HeavyPermits::new(PARSED_BODIES),
            reports: ReportBudget::default(),
            passwords: PasswordPermits::default(),
            refused_sign_ins: RefusalWindows::default(),
            listing: Mutex::new(()),
            sso_documents: SsoDocuments::default(),
            metric_answers: MetricAnswers::default(),
            metric_queries: FairPermits::new(METRIC_QUERIES),
            outage: Outage::default(),
            plain_hosts: Cache::with_weighter(EXPECTED_BUNDLES, MAX_CACHED_HOSTS, HostCount),
            acme: AcmeAuthorities::default(),
            sso_site: SsoSite::default(),
            changes: Changes::default(),
            heartbeat_interval: HeartbeatInterval::default(),
            quotas: Quotas::default(),
            retention: Retention::default(),
        }
    }

    /// The clock's time in full precision, for measuring durations.
    pub fn precise_now(&self) -> Timestamp {
        (self.environment.now)()
    }

    /// The current time in whole milliseconds, the precision of stored times.
    pub fn now(&self) -> Timestamp {
        let millis = (self.environment.now)().as_millisecond();
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
    }

    /// Random part of a new identifier.
    pub(crate) fn random_id(&self) -> [u8; 10] {
        self.environment.random()
    }

    /// A new random secret.
    pub(crate) fn new_secret(&self) -> Secret {
        Secret::new(self.environment.random())
    }

    /// Runs work on a whole configuration outside the serving threads: few tasks at a time, one per
    /// organization.
    pub(crate) async fn heavy<T: Send + 'static>(
        &self,
        org: OrgId,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.heavy_permits.run(org.0, task).await
    }

    /// Runs the parser of a large body outside the serving threads: few at a time, one per
    /// organization. Parsing an upload takes the organization's permit for work on configurations.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the program stops in the meantime.
    pub async fn parse<T: Send + 'static>(
        &self,
        body: Option<&AdmittedBody>,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let permits = match body.map(|body| body.kind) {
            Some(BodyKind::Upload) => &self.heavy_permits,
            Some(BodyKind::Other) | None => &self.parsers,
        };
        permits
            .run(body.map_or(Uuid::nil(), |body| body.org), task)
            .await
    }

    /// Acquires a permit for a body of up to `bytes` that is not an upload, to be held until the
    /// response is sent; `None` for a small body.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyBodies`] if none is free in time.
    pub async fn body_permit(
        &self,
        actor: &Actor,
        bytes: usize,
    ) -> Result<Option<BodyPermit>, Error> {
        if bytes <= MAX_SMALL_BYTES {
            return Ok(None);
        }
        let bodies = &self.bodies;
        let taken = bodies.acquire(actor.share_owner(), actor.id(), bytes).await;
        Ok(Some(taken?))
    }

    /// Charges the bytes of a node's report to the budgets of the node and of its organization;
    /// free for other actors.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyReportBytes`] if one of the two budgets is used up.
    pub fn take_report_bytes(
        &self,
        actor: &Actor,
        bytes: u64,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Actor::Node { id, tenant, .. } = actor else {
            return Ok(());
        };
        let report = SizedReport {
            node: *id,
            org: tenant.org,
            max_nodes: self.quotas.nodes,
            bytes,
        };
        self.reports.take(report, self.heartbeat_interval, now)
    }

    /// Acquires a permit for an upload of up to `bytes` to `project`, shared with its organization
    /// and with the user that `actor` acts for; hold it until the bundle is stored.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyUploads`] if none is free in time; [`Error::Refused`] if the actor may
    /// create no bundle there.
    pub async fn upload_permit(
        &self,
        actor: &Actor,
        access: Access,
        project: ProjectId,
        bytes: usize,
    ) -> Result<BodyPermit, Error> {
        let tenant = tenant(&mut self.store.read().await?, project).await?;
        actor.require(access, tenant)?;
        let uploads = &self.uploads;
        uploads
            .acquire(tenant.org.0, actor.quota_owner(), bytes)
            .await
    }

    /// HTTP client for addresses that users configure, created at the first use.
    pub(crate) fn outbound(&self) -> Result<&Outbound, OutboundError> {
        if let Some(outbound) = self.sso_documents.outbound.get() {
            return Ok(outbound);
        }
        let made = Outbound::new(self.sso_site.private_addresses)?;
        Ok(self.sso_documents.outbound.get_or_init(|| made))
    }

    /// Refuses a URL that contains a private address. Host names are resolved and checked at each
    /// request instead.
    pub(crate) fn check_address(&self, field: &'static str, url: &str) -> Result<(), Error> {
        let url = WebUrl::parse(url).ok_or(Refusal::invalid(field, "is not a URL"))?;
        if is_refused(&url, self.sso_site.private_addresses) {
            let reason = "has a private address, or no https: the installation does not allow it";
            return Err(Refusal::invalid(field, reason).into());
        }
        Ok(())
    }

    /// Returns true if this replica must not serve: the times that it writes would be wrong.
    pub fn is_clock_wrong(&self) -> bool {
        self.is_clock_wrong.load(Ordering::Relaxed)
    }

    /// Compares the clock with the database's, if replicas share it; logs when the offset becomes
    /// too large, and when it is acceptable again.
    async fn check_clock(&self, tx: &mut Transaction) -> Result<(), Error> {
        let asked = self.precise_now();
        let Some(shared) = tx.database_time().await? else {
            return Ok(());
        };
        let answered = self.precise_now();
        // The database read its clock between the two local readings; its distance from that
        // interval is the offset.
        let ahead = asked.duration_since(shared).max(SignedDuration::ZERO);
        let behind = shared.duration_since(answered).max(SignedDuration::ZERO);
        let offset = ahead.max(behind);
        gauge!(metric::CLOCK_OFFSET).set(ahead.as_secs_f64() - behind.as_secs_f64());
        let is_wrong = MAX_CLOCK_OFFSET < offset;
        if self.is_clock_wrong.swap(is_wrong, Ordering::Relaxed) != is_wrong {
            let secs = offset.as_secs();
            if is_wrong {
                tracing::error!(
                    secs,
                    "the clock differs from the database's: this replica leaves"
                );
            } else {
                tracing::info!("the clock is right again");
            }
        }
        Ok(())
    }

    /// Checks that the database answers and accepts writes.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if it does not answer, or a write has failed within the last 5 seconds.
    pub async fn ready(&self) -> Result<(), Error> {
        self.store.ping().await?;
        if self.is_unwritable() {
            return Err(StoreError::Unwritable.into());
        }
        Ok(())
    }

    /// Returns true if a write has failed within the last 5 seconds. The scheduler's lease is
    /// written every second, so a failure is noticed soon.
    pub(crate) fn is_unwritable(&self) -> bool {
        let failed_at = self.write_failed_at.load(Ordering::Relaxed);
        let age = self.now().as_millisecond().saturating_sub(failed_at);
        (0..WRITE_FAILURE_MEMORY_MILLIS).contains(&age)
    }

    /// Records the result of a write, for [`App::ready`].
    pub(crate) fn note_write<T>(&self, done: &Result<T, StoreError>) {
        if matches!(done, Err(StoreError::Unavailable(_))) {
            let now = self.now().as_millisecond();
            self.write_failed_at.store(now, Ordering::Relaxed);
        }
    }

    /// Takes a token of the bucket `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn take_token(
        &self,
        name: &str,
        rate: Rate,
        now: Timestamp,
    ) -> Result<Allowance, Error> {
        self.limiter.take(&self.writes, name, rate, now).await
    }

    /// The refusal for a bucket that is known to be empty, without a database query.
    pub fn known_refusal(&self, name: &str, rate: Rate, now: Timestamp) -> Option<Allowance> {
        let is_empty = self.limiter.is_empty(name, rate, now);
        is_empty.then(|| self.limiter.refusal(name, rate, now))
    }

    /// Writes the audit log, commits, and wakes long polls.
    ///
    /// `action` is the noun and the verb, such as `project.created`.
    pub(crate) async fn commit(
        &self,
        mut tx: Transaction,
        call: &Call,
        action: &str,
        tenant: Tenant,
        subject: Uuid,
    ) -> Result<(), Error> {
        if let Some(reservation) = call.reservation {
            tx.commit_reply(reservation, Some(tenant)).await?;
        }
        let event = AuditEvent {
            action,
            tenant: Some(tenant),
            subject,
        };
        let head = self.record(&mut tx, call, event).await?;
        let committed = tx.commit().await;
        self.note_write(&committed);
        committed?;
        self.changes.publish(head, [tenant.org]);
        Ok(())
    }

    /// Updates the gauges of the database.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts fit")]
    fn measure(&self, head: Option<i64>) {
        let ConnectionCounts { idle, used } = self.store.connections();
        gauge!(metric::DATABASE_CONNECTIONS, "state" => "idle").set(f64::from(idle));
        gauge!(metric::DATABASE_CONNECTIONS, "state" => "used").set(f64::from(used));
        counter!(metric::ROWS_WRITTEN).absolute(self.store.rows_written());
        let is_up = head.is_some() && !self.is_unwritable();
        gauge!(metric::DATABASE_UP).set(f64::from(u8::from(is_up)));
        if let Some(head) = head {
            gauge!(metric::AUDIT_ENTRIES).set(head as f64);
        }
    }

    /// Wakes live pages and long polls for changes of other replicas; call it every second.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn relay(&self) -> Result<(), Error> {
        let mut tx = match self.store.read().await {
            Ok(tx) => tx,
            Err(error) => {
                self.measure(None);
                return Err(error.into());
            }
        };
        let head = tx.audit_head().await;
        self.measure(head.as_ref().ok().copied());
        let head = head?;
        self.check_clock(&mut tx).await?;
        let changed = match self.changes.relayed() {
            Some(seen) if seen < head => tx.orgs_changed_after(seen).await?,
            _ => Vec::new(),
        };
        self.changes.relay(head, changed);
        self.announce_newer_orders(&mut tx, head).await
    }

    /// Number of the first entry of the audit log that breaks the chain; `None` if it is intact.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the log cannot be read.
    pub async fn verify_audit(&self) -> Result<Option<i64>, Error> {
        let found = self.inspect_audit().await?;
        let unkeyed = (!found.is_intact()).then_some(1);
        Ok(found.fault.or(unkeyed))
    }

    /// Ends current and later long polls and live pages, when the program stops.
    pub fn end_waits(&self) {
        self.changes.close();
        self.orders.close();
    }

    /// Backs up a SQLite database into a new file while it is in use.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be created, or the database is not SQLite.
    pub async fn back_up(&self, file: &str) -> Result<(), Error> {
        Ok(self.store.back_up(file).await?)
    }

    /// Ends long polls, writes the gathered request counts, and closes the database.
    pub async fn close(&self) {
        self.end_waits();
        if let Err(error) = self.writes.traffic.write_all(&self.store).await {
            tracing::warn!(%error, "requests of the last minutes were not written");
        }
        self.store.close().await;
    }
}

/// Tenant of the project; [`Refusal::NotFound`] if the project does not exist.
pub(crate) async fn tenant(tx: &mut Transaction, project: ProjectId) -> Result<Tenant, Error> {
    let found = tx.project(project).await?.ok_or(Refusal::NotFound)?;
    Ok(found.value.tenant())
}

/// Maps a unique-key conflict to a refusal of the named field.
pub(crate) fn taken(field: &'static str) -> impl Fn(StoreError) -> Error {
    move |error| {
        if matches!(error, StoreError::Conflict) {
            return Refusal::Taken(field).into();
        }
        error.into()
    }
}
