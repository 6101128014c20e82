//! Sessions of users.

use crate::app::App;
use crate::error::Error;
use control_auth::Secret;
use control_domain::{Actor, Session, User};
use control_store::Transaction;
use control_wire::SessionId;
use jiff::Timestamp;

impl App {
    /// Starts a session; gives its secret, for the cookie.
    pub(crate) async fn start_session(
        &self,
        tx: &mut Transaction,
        user: &User,
        now: Timestamp,
    ) -> Result<(Session, Secret), Error> {
        let secret = self.new_secret();
        let session = Session::start(SessionId::new(now, self.random_id()), user.id, now);
        tx.insert_session(session, &secret.hash()).await?;
        Ok((session, secret))
    }

    /// The user behind a session's secret, with the roles of this moment.
    pub(crate) async fn session_actor(&self, hash: &str, now: Timestamp) -> Result<Actor, Error> {
        let mut tx = self.store.read().await?;
        let found = tx.session_by_secret(hash).await?;
        let session = found.ok_or(Error::Unauthenticated)?;
        let user = tx.user(session.user).await?;
        let user = user.ok_or(Error::Unauthenticated)?.value;
        let roles = tx.roles(user.id).await?;
        drop(tx);
        let actor = session.accept(&user, roles, now);
        let actor = actor.map_err(|_| Error::Unauthenticated)?;
        if session.is_seen_late(now) {
            let mut tx = self.store.begin().await?;
            tx.see_session(session.id, now).await?;
            tx.commit().await?;
        }
        Ok(actor)
    }
}
