//! Invitations: one-time links by which persons become members.

use crate::account::session::{NewSession, own_session};
use crate::app::{App, taken};
use crate::audit::value::{created, deleted};
use crate::call::Call;
use crate::error::Error;
use control_auth::{Password, Secret};
use control_domain::{
    Access, Email, Invitation, Membership, NewUser, Refusal, Role, SignInMethod, Tenant, User,
};
use control_store::{ListFilter, Member, Page, Transaction, Versioned};
use control_wire::{InvitationId, OrgId, SessionId, UserId};

/// Data for the new account, entered by the bearer of an invitation.
#[derive(Debug)]
pub struct NewAccount {
    /// The address to sign in with; `None` takes the invitation's. Needed if another account
    /// already has that address.
    pub email: Option<String>,
    /// The user's name.
    pub name: String,
    /// 12 to 256 characters.
    pub password: Password,
}

/// The account and session of an accepted invitation.
#[derive(Debug)]
pub struct Joined {
    /// The user that the invitation created.
    pub user: User,
    /// The membership in the organization that invited.
    pub membership: Membership,
    /// A session of the user.
    pub session: NewSession,
}

/// An invitation with the name of its organization, for the bearer of its link.
#[derive(Debug)]
pub struct OwnInvitation {
    /// The invitation that the token opens.
    pub invitation: Invitation,
    /// The organization to join.
    pub org_name: String,
}

impl App {
    /// Invites a person; returns the link's secret, which is shown once. Inviting the address of a
    /// removed member readmits the member. The response does not reveal whether an account with the
    /// address exists.
    pub async fn create_invitation(
        &self,
        call: &Call,
        org: OrgId,
        email: &str,
        role: Role,
    ) -> Result<(Invitation, Secret), Error> {
        let id = InvitationId::new(call.now, self.random_id());
        let invitation = Invitation::create(&call.actor, org, id, email, role, call.now)?;
        let mut tx = self.store.begin().await?;
        if let Some(user) = refuse_member(&mut tx, org, &invitation.email).await? {
            self.readmit_invited(&mut tx, call, org, user).await?;
        }
        let secret = self.new_secret();
        tx.replace_invitation(&invitation, &secret.hash()).await?;
        let tenant = invitation.tenant();
        tx.note_change(created(&invitation));
        self.commit(tx, call, "invitation.created", tenant, id.0)
            .await?;
        Ok((invitation, secret))
    }

    /// The pending invitations of an organization.
    pub async fn invitations(
        &self,
        call: &Call,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Invitation>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        Ok(self
            .store
            .read()
            .await?
            .invitations(org, filter, page)
            .await?)
    }

    /// One pending invitation.
    pub async fn invitation(
        &self,
        call: &Call,
        org: OrgId,
        id: InvitationId,
    ) -> Result<Invitation, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        find(&mut self.store.read().await?, org, id).await
    }

    /// Withdraws an invitation.
    pub async fn delete_invitation(
        &self,
        call: &Call,
        org: OrgId,
        id: InvitationId,
    ) -> Result<(), Error> {
        call.actor.require(Access::CONTROL, Tenant::org(org))?;
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, org, id).await?;
        found.check_delete(&call.actor)?;
        // An invitation is never changed.
        call.expect_version(1)?;
        tx.delete_invitation(id).await?;
        let tenant = found.tenant();
        tx.note_change(deleted(&found));
        self.commit(tx, call, "invitation.deleted", tenant, id.0)
            .await
    }

    /// Creates the user and the membership for the bearer of the link.
    pub async fn accept_invitation(
        &self,
        call: &Call,
        account: NewAccount,
    ) -> Result<Joined, Error> {
        let OwnInvitation {
            invitation: Invitation {
                id, email: invited, ..
            },
            org_name,
        } = self.own_invitation(call).await?;
        let NewAccount {
            email,
            name,
            password,
        } = account;
        let new = NewUser {
            email: email.unwrap_or_else(|| invited.to_string()),
            name,
            password,
        };
        new.check(&org_name)?;
        let hash = self.hash_password(&new.password).await?;
        let mut tx = self.store.begin().await?;
        let invitation = tx.invitation(id).await?;
        let invitation = invitation.ok_or(Error::Unauthenticated)?;
        // The link is deleted at its first use: of two concurrent uses, one fails.
        let spent = tx.delete_invitation(id).await;
        spent.map_err(|_| Error::Unauthenticated)?;
        let user = UserId::new(call.now, self.random_id());
        let user = User::join(&call.actor, user, &new, hash, call.now)?;
        tx.insert_user(&user).await.map_err(taken("email"))?;
        let membership = invitation.membership(user.id, call.now);
        tx.insert_membership(membership).await?;
        let (visit, method) = (call.visit(), SignInMethod::Password);
        let session = self
            .start_session(&mut tx, user.id, &visit, visit.origin(method))
            .await?;
        let tenant = invitation.tenant();
        tx.note_change(created(&membership));
        self.commit(tx, call, "invitation.accepted", tenant, user.id.0)
            .await?;
        Ok(Joined {
            user,
            membership,
            session,
        })
    }

    /// The invitation of the link that authenticated the call.
    pub async fn own_invitation(&self, call: &Call) -> Result<OwnInvitation, Error> {
        call.actor.holds(Access::Invitee)?;
        let id = InvitationId(call.actor.id());
        let mut tx = self.store.read().await?;
        let invitation = tx.invitation(id).await?.ok_or(Error::Unauthenticated)?;
        let org = tx.org(invitation.org).await?;
        let org = org.ok_or(Error::Unauthenticated)?;
        Ok(OwnInvitation {
            invitation,
            org_name: org.value.name.to_string(),
        })
    }

    /// A signed-in user accepts the invitation with this secret, regardless of the address it was
    /// made for.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Invalid`] for a secret without a valid invitation, and for a user with neither a password nor
    /// a second factor; [`Refusal::NotFresh`] if the user has one and the session has not proven it.
    pub async fn join_organization(
        &self,
        call: &Call,
        secret: &Secret,
    ) -> Result<Versioned<Member>, Error> {
        call.actor.require_account_owner()?;
        let (user, session) = own_session(call)?;
        let unknown = || Refusal::invalid("secret", "is of no invitation that is valid");
        let mut tx = self.store.begin().await?;
        check_own_proof(&mut tx, user, session).await?;
        let invitation = tx.invitation_by_secret(&secret.hash()).await?;
        let invitation = invitation.ok_or_else(unknown)?;
        invitation.accept(call.now).map_err(|_| unknown())?;
        let spent = tx.delete_invitation(invitation.id).await;
        spent.map_err(|_| unknown())?;
        let membership = invitation.membership(user, call.now);
        let inserted = tx.insert_membership(membership).await;
        inserted.map_err(taken("membership"))?;
        let member = tx.member(membership.org, user).await?;
        let member = member.ok_or(Refusal::NotFound)?;
        let tenant = invitation.tenant();
        tx.note_change(created(&membership));
        self.commit(tx, call, "invitation.accepted", tenant, user.0)
            .await?;
        Ok(member)
    }
}

/// Refuses a session that only an identity provider vouched for. An administrator of the user's
/// organization may have set its password or second factor, and could use them to enter the
/// organization that is joined. Without either, no sign-in of the user would reach it.
async fn check_own_proof(
    tx: &mut Transaction,
    user: UserId,
    session: SessionId,
) -> Result<(), Error> {
    let session = tx.session(session).await?.ok_or(Refusal::Ended)?;
    if !session.origin.method.is_vouched_only() {
        return Ok(());
    }
    let found = tx.user(user).await?.ok_or(Refusal::NotFound)?;
    let totp = tx.totp(user).await?;
    let has_totp = totp.is_some_and(|totp| totp.confirmed_at.is_some());
    if found.value.password.is_some() || has_totp {
        return Err(Refusal::NotFresh.into());
    }
    let reason = "needs an account with a password or a second factor, since single sign-on reaches \
                  its own organization alone: set a second factor up in the profile, or ask an \
                  administrator for a link that sets a password";
    Err(Refusal::invalid("secret", reason).into())
}

/// The user with the address, `None` without one; refuses the address of a member. Administrators
/// see their members' addresses, so the refusal reveals nothing new.
async fn refuse_member(
    tx: &mut Transaction,
    org: OrgId,
    email: &Email,
) -> Result<Option<UserId>, Error> {
    let Some(user) = tx.user_by_email(email).await? else {
        return Ok(None);
    };
    let user = user.value.id;
    match tx.member(org, user).await? {
        Some(_) => Err(Refusal::Taken("membership").into()),
        None => Ok(Some(user)),
    }
}

/// An invitation of another organization is indistinguishable from a missing one.
async fn find(tx: &mut Transaction, org: OrgId, id: InvitationId) -> Result<Invitation, Error> {
    let found = tx.invitation(id).await?;
    let found = found.filter(|invitation| invitation.org == org);
    Ok(found.ok_or(Refusal::NotFound)?)
}
