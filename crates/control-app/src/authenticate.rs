//! Authentication: a presented credential becomes an [`Actor`].

use crate::app::App;
use crate::error::Error;
use control_auth::Secret;
use control_domain::Actor;
use jiff::Timestamp;

/// A credential as a request carries it.
#[derive(Clone, Copy)]
pub enum Presented<'a> {
    /// `Authorization: Bearer`: an API key or a one-time token.
    Bearer(&'a str),
    /// The session cookie.
    Session(&'a str),
}

impl std::fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(…)",
            Self::Session(_) => "Session(…)",
        })
    }
}

impl Presented<'_> {
    fn secret(self) -> Secret {
        match self {
            Self::Bearer(text) | Self::Session(text) => Secret::presented(text),
        }
    }
}

impl App {
    /// The actor that the credential makes.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthenticated`] if it is unknown, revoked or expired: all look the same.
    pub async fn authenticate(
        &self,
        presented: Presented<'_>,
        now: Timestamp,
    ) -> Result<Actor, Error> {
        let hash = presented.secret().hash();
        let found = match presented {
            Presented::Bearer(_) => self.bearer(&hash, now).await,
            Presented::Session(_) => self.session_actor(&hash, now).await,
        };
        match &found {
            Ok(_) if self.known_credentials.get(&hash).is_none() => {
                self.known_credentials.insert(hash, ());
            }
            Err(Error::Unauthenticated) => {
                self.known_credentials.remove(&hash);
            }
            _ => {}
        }
        found
    }

    /// Whether this replica has seen the credential accepted.
    pub fn is_known(&self, presented: Presented<'_>) -> bool {
        let hash = presented.secret().hash();
        self.known_credentials.get(&hash).is_some()
    }

    async fn bearer(&self, hash: &str, now: Timestamp) -> Result<Actor, Error> {
        let mut tx = self.store.read().await?;
        let accepted = if let Some(key) = tx.api_key_by_secret(hash).await? {
            key.value.accept(now)
        } else if let Some(link) = tx.setup_link_by_secret(hash).await? {
            link.accept(now)
        } else {
            return Err(Error::Unauthenticated);
        };
        accepted.map_err(|_| Error::Unauthenticated)
    }
}
