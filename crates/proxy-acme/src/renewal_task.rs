//! Task that obtains, stores and renews one certificate.

use crate::account::{self, blocking};
use crate::authority::RetryAfter;
use crate::certificate::StoredCertificate;
use crate::error::AcmeError;
use crate::order::{self, RequestedOrder};
use crate::renewal::{Window, earliest_order, renewal_time, retry_delay};
use crate::responder::Responder;
use crate::settings::AcmeSettings;
use crate::storage::{Storage, StorageLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::sleep;
use zeroize::Zeroizing;

/// Maximum sleep: the clock may jump, and another process may store a certificate.
const MAX_SLEEP: Duration = Duration::from_mins(10);
/// Delay between two attempts to lock.
const LOCK_RETRY: Duration = Duration::from_secs(2);
/// Delay before an issued certificate that could not be stored is stored again.
const STORE_RETRY: Duration = Duration::from_mins(1);
/// Default interval of requests for renewal information, if the authority does not specify one.
pub(crate) const WINDOW_INTERVAL: Duration = Duration::from_hours(6);
/// Minimum of an interval that the authority specifies.
pub(crate) const MIN_WINDOW_INTERVAL: Duration = Duration::from_mins(10);
/// Maximum of an interval that the authority specifies.
pub(crate) const MAX_WINDOW_INTERVAL: Duration = Duration::from_hours(24);

/// Event in the life of a certificate.
#[derive(Debug)]
pub enum Event<'a> {
    /// A stored certificate was found, from an earlier or another process.
    Stored {
        /// End of its validity.
        not_after: SystemTime,
        /// Time of its renewal.
        renew_at: SystemTime,
    },
    /// A certificate was issued and stored.
    Obtained {
        /// End of its validity.
        not_after: SystemTime,
        /// Time of its renewal.
        renew_at: SystemTime,
    },
    /// The stored certificate cannot be used. Its file was renamed, and another certificate is
    /// ordered.
    Damaged {
        /// New name of the file.
        file: &'a Path,
        /// Why it cannot be used.
        why: &'static str,
    },
    /// An order was started, or one with an unknown result is continued.
    Ordering,
    /// An attempt failed. A stored certificate stays in use.
    Failed {
        /// Settings of the attempt.
        settings: &'a AcmeSettings,
        /// Error of the attempt.
        error: &'a AcmeError,
        /// Number of consecutive failures.
        failures: u32,
        /// Time of the next attempt.
        retry_at: SystemTime,
        /// End of the stored certificate's validity; `None` without one.
        not_after: Option<SystemTime>,
    },
}

/// A certificate that was issued, and is not stored yet.
struct UnstoredCertificate {
    storage: Storage,
    pem: Arc<Zeroizing<Vec<u8>>>,
    certificate: StoredCertificate,
}

/// The contents of a certificate's file.
enum StoredFile {
    Missing,
    Certificate(StoredCertificate),
    /// The file cannot be used, for this reason.
    Damaged(&'static str),
}

/// State of the task.
struct RenewalTask<O> {
    responder: Arc<dyn Responder>,
    observe: O,
    now: fn() -> SystemTime,
    retry_after: RetryAfter,
    failures: u32,
    /// Earliest time of the next attempt; `None` for no restriction.
    retry_at: Option<SystemTime>,
    /// The certificate that was reported last.
    known: Option<StoredCertificate>,
    /// An order with an unknown result.
    requested: Option<RequestedOrder>,
    /// Kept until it is stored: another order would count against the authority's limits.
    unstored: Option<UnstoredCertificate>,
    /// The authority's renewal window for that certificate.
    window: Option<Window>,
    /// Time of the next request for the window.
    ask_window_at: Option<SystemTime>,
}

/// Stores and renews a certificate for `settings` until their channel closes. Changed settings
/// take effect at once, even during the wait after a failure. Calls `observe` for each event.
pub async fn maintain_certificate(
    mut settings: watch::Receiver<AcmeSettings>,
    responder: Arc<dyn Responder>,
    observe: impl FnMut(Event<'_>) + Send,
    now: fn() -> SystemTime,
) {
    let mut task = RenewalTask {
        responder,
        observe,
        now,
        retry_after: RetryAfter::default(),
        failures: 0,
        retry_at: None,
        known: None,
        requested: None,
        unstored: None,
        window: None,
        ask_window_at: None,
    };
    loop {
        let current = settings.borrow_and_update().clone();
        let pause = task.step(&current).await;
        tokio::select! {
            () = sleep(pause.min(MAX_SLEEP)) => {}
            changed = settings.changed() => {
                if changed.is_err() {
                    return;
                }
                task.failures = 0;
                task.retry_at = None;
            }
        }
    }
}

/// Renames the stored certificate of `settings` if it cannot be used, so that a server can start
/// without it while [`maintain_certificate`] obtains another one. Returns the new name, and why.
/// Blocking.
///
/// # Errors
/// The file cannot be read or renamed.
pub fn set_aside_damaged(
    settings: &AcmeSettings,
) -> Result<Option<(PathBuf, &'static str)>, AcmeError> {
    let storage = Storage::new(settings);
    if !matches!(read(&storage)?, StoredFile::Damaged(_)) {
        return Ok(None);
    }
    // Another process may replace the file; the lock is its right to do so.
    let Some(_lock) = storage.lock()? else {
        return Ok(None);
    };
    match read(&storage)? {
        StoredFile::Damaged(why) => Ok(Some((storage.set_aside_certificate()?, why))),
        StoredFile::Missing | StoredFile::Certificate(_) => Ok(None),
    }
}

impl<O: FnMut(Event<'_>) + Send> RenewalTask<O> {
    /// Executes the step that is due; returns the time until the next one.
    async fn step(&mut self, settings: &AcmeSettings) -> Duration {
        let storage = Storage::new(settings);
        let stored = match stored(&storage).await {
            Ok(stored) => stored.fitting(settings),
            Err(error) => {
                let left = self.retry_at.map(|at| at.duration_since((self.now)()));
                return match left {
                    Some(Ok(left)) => left,
                    Some(Err(_)) | None => self.fail(settings, &error),
                };
            }
        };
        self.notice(stored.as_ref());
        let due = self.due(stored.as_ref());
        let now = (self.now)();
        if now < due {
            self.ask_window(settings, &storage).await;
            let due = self.due(stored.as_ref());
            return due.duration_since(now).unwrap_or_default();
        }
        match self.try_renew(settings, &storage).await {
            Ok(Some(lock)) => {
                // The next step reads the stored certificate.
                drop(lock);
                Duration::ZERO
            }
            Ok(None) => LOCK_RETRY,
            Err(error) => self.fail(settings, &error),
        }
    }

    /// Reports the stored certificate, if it was not reported before.
    fn notice(&mut self, stored: Option<&StoredCertificate>) {
        if self.known.as_ref() == stored {
            return;
        }
        self.known = stored.cloned();
        self.window = None;
        self.ask_window_at = None;
        if let Some(stored) = stored {
            self.failures = 0;
            self.retry_at = None;
            self.requested = None;
            self.unstored = None;
            (self.observe)(Event::Stored {
                not_after: stored.validity.not_after,
                renew_at: renewal_time(stored.validity, None, stored.spread),
            });
        }
    }

    /// Time of the next attempt.
    fn due(&self, stored: Option<&StoredCertificate>) -> SystemTime {
        let renewal =
            stored.map(|stored| renewal_time(stored.validity, self.window, stored.spread));
        let renewal = renewal.unwrap_or(UNIX_EPOCH);
        self.retry_at.map_or(renewal, |retry| retry.max(renewal))
    }

    /// Fetches the renewal window of the stored certificate, if that is due. Ignores failures.
    async fn ask_window(&mut self, settings: &AcmeSettings, storage: &Storage) {
        let now = (self.now)();
        if self.ask_window_at.is_some_and(|at| now < at) {
            return;
        }
        let mut interval = WINDOW_INTERVAL;
        let id = self.known.as_ref().and_then(StoredCertificate::renewal_id);
        let account = account::open_stored(settings, storage, &self.retry_after).await;
        if let (Some(id), Ok(Some(account))) = (id, account)
            && let Ok((info, again)) = account.renewal_info(&id).await
        {
            interval = again.clamp(MIN_WINDOW_INTERVAL, MAX_WINDOW_INTERVAL);
            let window = info.suggested_window;
            let (start, end) = (window.start.unix_timestamp(), window.end.unix_timestamp());
            self.window = Some(Window {
                start: unix_time(start),
                end: unix_time(end),
            });
        }
        self.ask_window_at = now.checked_add(interval);
    }

    /// Obtains and stores a certificate; `None` if another process is doing so. Returns the lock as
    /// well, so that it is held until the certificate is stored.
    async fn try_renew(
        &mut self,
        settings: &AcmeSettings,
        storage: &Storage,
    ) -> Result<Option<StorageLock>, AcmeError> {
        let locked = storage.clone();
        let Some(lock) = blocking(move || locked.lock()).await? else {
            return Ok(None);
        };
        let stored = stored(storage).await?;
        if let StoredFile::Damaged(why) = stored {
            let of = storage.clone();
            let file = blocking(move || of.set_aside_certificate()).await?;
            (self.observe)(Event::Damaged { file: &file, why });
        }
        // Another process may have renewed the certificate while it held the lock.
        if stored.fitting(settings) != self.known {
            return Ok(Some(lock));
        }
        let unstored = self.unstored.take();
        let unstored = unstored.filter(|issued| issued.is_usable(settings, storage, (self.now)()));
        let issued = match unstored {
            Some(issued) => issued,
            None => self.order(settings, storage).await?,
        };
        self.store(issued).await?;
        Ok(Some(lock))
    }

    /// Obtains a certificate from the authority.
    async fn order(
        &mut self,
        settings: &AcmeSettings,
        storage: &Storage,
    ) -> Result<UnstoredCertificate, AcmeError> {
        let of = storage.clone();
        blocking(move || of.check_room()).await?;
        (self.observe)(Event::Ordering);
        let account = account::open(settings, storage, &self.retry_after).await?;
        let replaced = self
            .window
            .and(self.known.as_ref())
            .and_then(StoredCertificate::renewal_id);
        let pem = order::obtain(
            settings,
            &account,
            &self.responder,
            replaced,
            self.now,
            &mut self.requested,
        )
        .await?;
        Ok(UnstoredCertificate {
            storage: storage.clone(),
            certificate: StoredCertificate::parse(&pem)?,
            pem: Arc::new(pem),
        })
    }

    /// Stores an issued certificate; keeps it for the next attempt if that fails.
    async fn store(&mut self, issued: UnstoredCertificate) -> Result<(), AcmeError> {
        let (storage, pem) = (issued.storage.clone(), Arc::clone(&issued.pem));
        let written = blocking(move || storage.write_certificate(&pem)).await;
        if let Err(error) = written {
            self.unstored = Some(issued);
            return Err(error);
        }
        let obtained = issued.certificate;
        self.failures = 0;
        self.retry_at = Some(earliest_order(obtained.validity, (self.now)()));
        self.window = None;
        self.ask_window_at = None;
        (self.observe)(Event::Obtained {
            not_after: obtained.validity.not_after,
            renew_at: renewal_time(obtained.validity, None, obtained.spread),
        });
        self.known = Some(obtained);
        Ok(())
    }

    /// Reports a failure; returns the time until the next attempt.
    fn fail(&mut self, settings: &AcmeSettings, error: &AcmeError) -> Duration {
        let asked = error.retry_after().or(self.retry_after.take());
        self.failures = self.failures.saturating_add(1);
        let delay = match self.unstored {
            Some(_) => STORE_RETRY,
            None => retry_delay(self.failures, asked),
        };
        let retry_at = (self.now)() + delay;
        self.retry_at = Some(retry_at);
        (self.observe)(Event::Failed {
            settings,
            error,
            failures: self.failures,
            retry_at,
            not_after: self.known.as_ref().map(|known| known.validity.not_after),
        });
        delay
    }
}

impl UnstoredCertificate {
    /// Returns true if the certificate is for these settings, and not due for renewal.
    fn is_usable(&self, settings: &AcmeSettings, storage: &Storage, now: SystemTime) -> bool {
        let Self {
            storage: own,
            pem: _,
            certificate,
        } = self;
        let renew_at = renewal_time(certificate.validity, None, certificate.spread);
        own == storage && certificate.fits(settings) && now < renew_at
    }
}

impl StoredFile {
    /// The certificate; `None` unless it matches these settings.
    fn fitting(self, settings: &AcmeSettings) -> Option<StoredCertificate> {
        match self {
            Self::Certificate(stored) if stored.fits(settings) => Some(stored),
            Self::Certificate(_) | Self::Missing | Self::Damaged(_) => None,
        }
    }
}

/// Reads the stored certificate.
async fn stored(storage: &Storage) -> Result<StoredFile, AcmeError> {
    let storage = storage.clone();
    blocking(move || read(&storage)).await
}

fn read(storage: &Storage) -> Result<StoredFile, AcmeError> {
    let pem = storage.read_certificate()?.map(Zeroizing::new);
    let read = pem.map(|pem| StoredCertificate::from_file(&pem));
    Ok(match read {
        None => StoredFile::Missing,
        Some(Ok(stored)) => StoredFile::Certificate(stored),
        Some(Err(why)) => StoredFile::Damaged(why),
    })
}

pub(crate) fn unix_time(seconds: i64) -> SystemTime {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
