//! Authentication: a presented credential becomes an [`Actor`].

use crate::app::App;
use crate::audit::record::EndedUse;
use crate::error::Error;
use crate::metric;
use crate::node::session::first_second;
use control_auth::{Secret, UnverifiedToken};
use control_domain::{Actor, NodeCredential, Tenant};
use control_wire::NodeId;
use jiff::Timestamp;
use metrics::counter;
use std::net::IpAddr;

/// A credential as a request carries it.
#[derive(Clone, Copy)]
pub enum Presented<'a> {
    /// `Authorization: Bearer`: an API key, a node's token or a one-time token.
    Bearer(&'a str),
    /// `X-Service-Node-Key`
    NodeKey(&'a str),
    /// The session cookie.
    Session(&'a str),
    /// The session cookie of a request that only keeps a page live: it does not extend the session,
    /// or an open tab would never expire.
    LiveSession(&'a str),
}

impl std::fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(…)",
            Self::NodeKey(_) => "NodeKey(…)",
            Self::Session(_) => "Session(…)",
            Self::LiveSession(_) => "LiveSession(…)",
        })
    }
}

impl Presented<'_> {
    fn secret(self) -> Secret {
        match self {
            Self::Bearer(text)
            | Self::NodeKey(text)
            | Self::Session(text)
            | Self::LiveSession(text) => Secret::presented(text),
        }
    }
}

const API_KEY: &str = "api_key";
const ENROLMENT_TOKEN: &str = "enrolment_token";
const SETUP_LINK: &str = "setup_link";
const INVITATION: &str = "invitation";

impl App {
    /// Authenticates the request: resolves the credential to its actor.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthenticated`] if it is unknown, revoked or expired; the three are
    /// indistinguishable.
    pub async fn authenticate(
        &self,
        presented: Presented<'_>,
        client_ip: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Actor, Error> {
        let hash = presented.secret().hash();
        let found = match presented {
            Presented::Bearer(text) if UnverifiedToken::has_token_shape(text) => {
                self.node_by_token(text, now).await
            }
            Presented::Bearer(_) => self.bearer(&hash, client_ip, now).await,
            Presented::NodeKey(_) => self.node_by_key(&hash).await,
            Presented::Session(_) => self.session_actor(&hash, now).await,
            Presented::LiveSession(_) => self.live_actor(&hash, now).await,
        };
        match &found {
            Ok(_) if self.known_credentials.get(&hash).is_none() => {
                self.known_credentials.insert(hash, ());
            }
            Err(Error::Unauthenticated) => {
                counter!(metric::AUTHENTICATION_FAILURES).increment(1);
                self.known_credentials.remove(&hash);
            }
            _ => {}
        }
        found
    }

    /// Returns true if this replica has accepted the credential recently. Known credentials bypass
    /// the per-address lockout.
    pub fn is_known(&self, presented: Presented<'_>) -> bool {
        let hash = presented.secret().hash();
        self.known_credentials.get(&hash).is_some()
    }

    async fn bearer(
        &self,
        hash: &str,
        client_ip: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Actor, Error> {
        let mut tx = self.store.read().await?;
        let (name, tenant, found) = if let Some(key) = tx.api_key_by_secret(hash).await? {
            let (id, tenant) = (key.value.id.0, Some(key.value.tenant));
            let name = key.value.name.to_string();
            (name, tenant, (API_KEY, id, key.value.accept(now)))
        } else if let Some(token) = tx.enrolment_token_by_secret(hash).await? {
            let token = token.value;
            let found = (ENROLMENT_TOKEN, token.id.0, token.accept(now));
            (token.name.to_string(), Some(token.tenant), found)
        } else if let Some(link) = tx.setup_link_by_secret(hash).await? {
            let found = (SETUP_LINK, link.id, link.accept(now));
            ("set-up link".to_owned(), None, found)
        } else if let Some(invitation) = tx.invitation_by_secret(hash).await? {
            let found = (INVITATION, invitation.id.0, invitation.accept(now));
            let name = invitation.email.to_string();
            (name, Some(invitation.tenant()), found)
        } else {
            return Err(Error::Unauthenticated);
        };
        drop(tx);
        let (kind, id, accepted) = found;
        if accepted.is_err() {
            let used = EndedUse {
                kind,
                id,
                name: &name,
                tenant,
            };
            self.note_ended_use(used, client_ip, now).await;
        }
        accepted.map_err(|_| Error::Unauthenticated)
    }

    /// The node with this key. The first use of a rotated key activates it and ends the old one.
    async fn node_by_key(&self, hash: &str) -> Result<Actor, Error> {
        let mut tx = self.store.read().await?;
        let mut found = tx.node_by_key(hash).await?;
        if found.is_none() && tx.is_next_node_key(hash).await? {
            drop(tx);
            let mut tx = self.store.begin().await?;
            tx.replace_node_key(hash).await?;
            found = tx.node_by_key(hash).await?;
            tx.commit().await?;
        }
        let (id, tenant) = found.ok_or(Error::Unauthenticated)?;
        Ok(node(id, tenant, NodeCredential::Key))
    }

    /// Every claim is compared with the node's row in the database.
    async fn node_by_token(&self, text: &str, now: Timestamp) -> Result<Actor, Error> {
        let refused = |_| Error::Unauthenticated;
        let token = UnverifiedToken::parse(text).map_err(refused)?;
        let (id, kid) = (token.claims().sub, token.claims().kid);
        let issuer = self.store.read().await?.token_issuer(id, kid).await?;
        let issuer = issuer.ok_or(Error::Unauthenticated)?;
        let claims = token.verify(&issuer.public_key, now).map_err(refused)?;
        let own = Tenant::project(claims.org, claims.prj) == issuer.tenant;
        if !own || claims.issued_at() < first_second(issuer.tokens_since) {
            return Err(Error::Unauthenticated);
        }
        Ok(node(id, issuer.tenant, NodeCredential::Token))
    }
}

fn node(id: NodeId, tenant: Tenant, by: NodeCredential) -> Actor {
    Actor::Node { id, tenant, by }
}
