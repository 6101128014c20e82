//! Invitations: one-time links for new users.

use crate::app::{App, taken};
use crate::call::Call;
use crate::error::Error;
use control_auth::{Password, Secret};
use control_domain::{Access, Invitation, Membership, NewUser, Refusal, Role, Tenant, User};
use control_store::{Page, Transaction};
use control_wire::{InvitationId, OrgId, UserId};

/// What an accepted invitation made.
#[derive(Debug)]
pub struct Joined {
    /// The new user.
    pub user: User,
    /// The membership in the organization that invited.
    pub membership: Membership,
    /// A session of the user; its secret is for the cookie.
    pub session: Secret,
}

impl App {
    /// Invites a user without an account yet; gives the link's secret, which is shown once.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn create_invitation(
        &self,
        call: &Call,
        org: OrgId,
        (email, role): (&str, Role),
    ) -> Result<(Invitation, Secret), Error> {
        let id = InvitationId::new(call.now, self.random_id());
        let invitation = Invitation::create(&call.actor, org, id, (email, role), call.now)?;
        let mut tx = self.store.begin().await?;
        if tx.user_by_email(&invitation.email).await?.is_some() {
            let exists = Refusal::invalid("email", "is a user's; add the member instead");
            return Err(exists.into());
        }
        let secret = self.new_secret();
        tx.replace_invitation(&invitation, &secret.hash()).await?;
        let tenant = invitation.tenant();
        self.commit(tx, call, "invitation.created", tenant, id.0)
            .await?;
        Ok((invitation, secret))
    }

    /// The invitations of an organization that were not accepted yet.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn invitations(
        &self,
        call: &Call,
        org: OrgId,
        page: Page,
    ) -> Result<Vec<Invitation>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        Ok(self.store.read().await?.invitations(org, page).await?)
    }

    /// One invitation that was not accepted yet.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn invitation(
        &self,
        call: &Call,
        org: OrgId,
        id: InvitationId,
    ) -> Result<Invitation, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        find(&mut self.store.read().await?, (org, id)).await
    }

    /// Withdraws an invitation.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn delete_invitation(
        &self,
        call: &Call,
        org: OrgId,
        id: InvitationId,
    ) -> Result<(), Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, (org, id)).await?;
        found.delete(&call.actor)?;
        tx.delete_invitation(id).await?;
        let tenant = found.tenant();
        self.commit(tx, call, "invitation.deleted", tenant, id.0)
            .await
    }

    /// The bearer of the link becomes a user and a member.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn accept_invitation(
        &self,
        call: &Call,
        name: String,
        password: Password,
    ) -> Result<Joined, Error> {
        call.actor.holds(Access::Invitee)?;
        let id = InvitationId(call.actor.id());
        let read = self.store.read().await?.invitation(id).await?;
        let email = read.ok_or(Error::Unauthenticated)?.email.to_string();
        let new = NewUser {
            email,
            name,
            password,
        };
        new.check()?;
        let hash = self.hash_password(&new).await?;
        let mut tx = self.store.begin().await?;
        // The link is gone with the first use: of two at once, one finds it spent.
        let invitation = tx.invitation(id).await?;
        let invitation = invitation.ok_or(Error::Unauthenticated)?;
        let spent = tx.delete_invitation(id).await;
        spent.map_err(|_| Error::Unauthenticated)?;
        let user = UserId::new(call.now, self.random_id());
        let user = User::join(&call.actor, user, &new, hash, call.now)?;
        tx.insert_user(&user).await.map_err(taken("email"))?;
        let membership = Membership {
            org: invitation.org,
            user: user.id,
            role: invitation.role,
            created_at: call.now,
        };
        tx.insert_membership(membership).await?;
        let (_, session) = self.start_session(&mut tx, &user, call.now).await?;
        let tenant = invitation.tenant();
        self.commit(tx, call, "invitation.accepted", tenant, user.id.0)
            .await?;
        Ok(Joined {
            user,
            membership,
            session,
        })
    }
}

/// An invitation of another organization looks like one that does not exist.
async fn find(tx: &mut Transaction, (org, id): (OrgId, InvitationId)) -> Result<Invitation, Error> {
    let found = tx.invitation(id).await?;
    let found = found.filter(|invitation| invitation.org == org);
    Ok(found.ok_or(Refusal::NotFound)?)
}
