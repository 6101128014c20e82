//! Session ticket keys, shared by all workers and rotated.

use crate::error::TlsError;
use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

const NAME_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// Number of earlier keys that are still accepted.
const OLD_KEYS: u32 = 2;
/// Maximum size of a session, in bytes. Sessions contain no client certificate.
const MAX_SESSION_BYTES: usize = 4096;
const MAX_ROTATION: Duration = Duration::from_hours(48);
const MIN_ROTATION: Duration = Duration::from_mins(1);

/// Keys that encrypt TLS sessions into tickets: the current one, and two older ones for decryption
/// only. [RFC 5077, RFC 8446 §4.6.1]
///
/// All listeners without client certificates share one instance, which survives reloads, so that
/// clients can resume on every worker and after every reload. The keys are random, excluded from
/// `Debug`, and wiped on drop.
pub struct TicketKeys {
    every: Duration,
    ring: ArcSwap<Ring>,
}

impl TicketKeys {
    /// Creates keys for rotation by [`rotate`](Self::rotate) in an interval of 1 minute to 2 days.
    /// A ticket is valid for two to three intervals.
    ///
    /// # Errors
    /// [`TlsError::TicketPace`] for another interval; [`TlsError::NoRandomness`] if the operating
    /// system's random generator fails.
    pub fn new(every: Duration, now: SystemTime) -> Result<Arc<Self>, TlsError> {
        if !(MIN_ROTATION..=MAX_ROTATION).contains(&every) {
            return Err(TlsError::TicketPace(every));
        }
        let current = Arc::new(TicketKey::random(now)?);
        let ring = Ring {
            current,
            old: Vec::new(),
        };
        Ok(Arc::new(Self {
            every,
            ring: ArcSwap::from_pointee(ring),
        }))
    }

    /// Replaces the current key if that is due, and drops keys that are too old; returns true if it
    /// did. Call it from a single thread, about once a second.
    ///
    /// # Errors
    /// [`TlsError::NoRandomness`]; the old keys stay in use.
    pub fn rotate(&self, now: SystemTime) -> Result<bool, TlsError> {
        let ring = self.ring.load();
        if ring.current.is_younger_than(self.every, now) {
            return Ok(false);
        }
        let kept = self.every * (OLD_KEYS + 1);
        let old = std::iter::once(&ring.current)
            .chain(&ring.old)
            .filter(|key| key.is_younger_than(kept, now))
            .take(OLD_KEYS as usize)
            .cloned()
            .collect();
        let current = Arc::new(TicketKey::random(now)?);
        self.ring.store(Arc::new(Ring { current, old }));
        Ok(true)
    }
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.every.as_secs()).map_or(u32::MAX, |every| every * OLD_KEYS)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        if MAX_SESSION_BYTES < plain.len() {
            return None;
        }
        self.ring.load().current.seal(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, sealed) = ticket.split_at_checked(NAME_BYTES)?;
        let ring = self.ring.load();
        std::iter::once(&ring.current)
            .chain(&ring.old)
            .find(|key| key.name == name)?
            .open(sealed)
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

struct Ring {
    current: Arc<TicketKey>,
    /// Earlier keys, newest first.
    old: Vec<Arc<TicketKey>>,
}

/// A ticket key. A ticket consists of the key's name, a nonce, and the encrypted session with its
/// tag. Uses AES-GCM-SIV, because nonces are random and a busy server generates billions of them
/// per key. [RFC 8452]
struct TicketKey {
    name: [u8; NAME_BYTES],
    key: RandomizedNonceKey,
    made_at: SystemTime,
}

impl TicketKey {
    fn random(made_at: SystemTime) -> Result<Self, TlsError> {
        let mut name = [0; NAME_BYTES];
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        rand::fill(&mut name).map_err(|_| TlsError::NoRandomness)?;
        rand::fill(&mut *secret).map_err(|_| TlsError::NoRandomness)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, &*secret)
            .map_err(|_| TlsError::NoRandomness)?;
        Ok(Self { name, key, made_at })
    }

    /// Returns true if the key is younger than `age`; false also if the clock was set back to
    /// before its creation.
    fn is_younger_than(&self, age: Duration, now: SystemTime) -> bool {
        now.duration_since(self.made_at).is_ok_and(|old| old < age)
    }

    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        const HEAD_BYTES: usize = NAME_BYTES + NONCE_LEN;
        let tag_bytes = AES_256_GCM_SIV.tag_len();
        let mut ticket = Vec::with_capacity(HEAD_BYTES + plain.len() + tag_bytes);
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(&[0; NONCE_LEN]);
        ticket.extend_from_slice(plain);
        let body = ticket.get_mut(HEAD_BYTES..)?;
        let (nonce, tag) = self
            .key
            .seal_in_place_separate_tag(Aad::empty(), body)
            .ok()?;
        let place = ticket.get_mut(NAME_BYTES..HEAD_BYTES)?;
        place.copy_from_slice(nonce.as_ref());
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut session = body.to_vec();
        let opened = self
            .key
            .open_in_place(Nonce::from(nonce), Aad::empty(), &mut session)
            .ok()?
            .len();
        session.truncate(opened);
        Some(session)
    }
}
