//! Set-up of a new installation by a one-time link, so that there is no default password.

use crate::account::session::NewSession;
use crate::app::audit_event::AuditEvent;
use crate::app::{App, taken};
use crate::audit::value::{created, done};
use crate::call::Call;
use crate::error::Error;
use control_auth::Secret;
use control_domain::{
    Access, Actor, ApiKey, Membership, Name, NewApiKey, NewUser, Org, Project, Refusal, Role,
    SetupLink, SignInMethod, Tenant, User,
};
use control_store::Transaction;
use control_wire::{ApiKeyId, ProjectId, UserId};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Input of the set-up, and of `controld admin create`.
#[derive(Clone, Debug)]
pub struct NewInstallation {
    /// Name of the organization; `controld admin create` joins an existing one of this name.
    pub org_name: String,
    /// Name of the first project; `None` creates none.
    pub project_name: Option<String>,
    /// The first administrator, with a password.
    pub admin: NewUser,
    /// Name of a first API key with full access; `None` creates none.
    pub api_key_name: Option<String>,
}

/// Result of a set-up; the secrets are shown once.
#[derive(Debug)]
pub struct Installation {
    /// The first organization.
    pub org: Org,
    /// Project of the organization; `None` if none was requested.
    pub project: Option<Project>,
    /// The administrator.
    pub user: User,
    /// A session of the administrator.
    pub session: NewSession,
    /// The first API key with its secret; `None` if none was requested.
    pub api_key: Option<(ApiKey, Secret)>,
}

impl App {
    /// Returns true while the installation has no user: a set-up link is required.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn awaits_set_up(&self) -> Result<bool, Error> {
        let mut tx = self.store.read().await?;
        Ok(tx.has_no_users().await?)
    }

    /// Creates a set-up link, replacing earlier ones; returns its secret, or `None` once there is a
    /// user.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn bootstrap(&self, now: Timestamp) -> Result<Option<Secret>, Error> {
        let mut tx = self.store.begin().await?;
        // The lock orders this with a user's creation on another replica: either the user is
        // visible here, or its creation ends this link.
        tx.lock_audit().await?;
        if !tx.has_no_users().await? {
            return Ok(None);
        }
        let link = SetupLink {
            id: Uuid::from_bytes(self.environment.random()),
            created_at: now,
        };
        let secret = self.new_secret();
        tx.replace_setup_link(link, &secret.hash()).await?;
        let event = AuditEvent {
            action: "setup_link.created",
            tenant: None,
            subject: link.id,
        };
        self.record(&mut tx, &Call::system(now), event).await?;
        tx.commit().await?;
        Ok(Some(secret))
    }

    /// Creates the first organization and its administrator; requires the set-up link.
    pub async fn set_up(&self, call: &Call, new: &NewInstallation) -> Result<Installation, Error> {
        call.actor.holds(Access::SetUp)?;
        new.admin.check(&new.org_name)?;
        let hash = self.hash_password(&new.admin.password).await?;
        let mut tx = self.store.begin().await?;
        // The lock orders this with another creation of a user, which is either visible here or
        // later.
        tx.lock_audit().await?;
        if !tx.has_no_users().await? {
            return Err(Error::Unauthenticated);
        }
        // The link is deleted at its first use: of two concurrent uses, one fails.
        tx.spend_setup_link(call.actor.id())
            .await
            .map_err(|_| Error::Unauthenticated)?;
        let org = self.insert_org(&mut tx, call, &new.org_name).await?;
        let user = UserId::new(call.now, self.random_id());
        let user = User::create_admin(&call.actor, user, &new.admin, hash, call.now)?;
        self.install(tx, call, new, org, user).await
    }

    /// Name of the installation's only organization; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] if there are several organizations.
    pub async fn only_org_name(&self) -> Result<Option<String>, Error> {
        let names = self.store.read().await?.first_org_names(2).await?;
        let mut names = names.into_iter();
        match (names.next(), names.next()) {
            (_, Some(_)) => {
                let reason = "has to be given: there are several organizations";
                Err(Refusal::invalid("org_name", reason).into())
            }
            (only, None) => Ok(only),
        }
    }

    /// Creates an administrator on the command line, and the organization if it does not exist.
    pub async fn create_admin(
        &self,
        call: &Call,
        new: &NewInstallation,
    ) -> Result<Installation, Error> {
        call.actor.holds(Access::System)?;
        new.admin.check(&new.org_name)?;
        let hash = self.hash_password(&new.admin.password).await?;
        let mut tx = self.store.begin().await?;
        // Either this ends another replica's set-up link, or that replica sees the new user.
        tx.lock_audit().await?;
        let name = Name::parse("org_name", &new.org_name)?;
        let org = match tx.org_by_name(&name).await? {
            Some(found) => found.value,
            None => self.insert_org(&mut tx, call, &new.org_name).await?,
        };
        let user = UserId::new(call.now, self.random_id());
        let user = User::create_admin(&call.actor, user, &new.admin, hash, call.now)?;
        self.install(tx, call, new, org, user).await
    }

    async fn install(
        &self,
        mut tx: Transaction,
        call: &Call,
        new: &NewInstallation,
        org: Org,
        user: User,
    ) -> Result<Installation, Error> {
        tx.insert_user(&user).await.map_err(taken("email"))?;
        tx.delete_setup_links().await?;
        let membership = Membership {
            org: org.id,
            user: user.id,
            role: Role::Admin,
            created_at: call.now,
        };
        tx.insert_membership(membership).await?;
        let (visit, method) = (call.visit(), SignInMethod::Password);
        let started = self
            .start_session(&mut tx, user.id, &visit, visit.origin(method))
            .await?;
        let rights = tx.rights(user.id).await?;
        let admin = started.session.accept(&user, rights, call.now)?;
        let project = match &new.project_name {
            Some(name) => Some(
                self.first_project(&mut tx, &admin, call.now, &org, name)
                    .await?,
            ),
            None => None,
        };
        let api_key = match &new.api_key_name {
            Some(name) => Some(
                self.first_key(&mut tx, &admin, call.now, &org, name)
                    .await?,
            ),
            None => None,
        };
        self.record_installation(&mut tx, call, &org, project.as_ref(), api_key.as_ref())
            .await?;
        let created = json!({"email": user.email.as_str(), "name": user.name.as_str()});
        tx.note_change(done(&created));
        self.commit(tx, call, "admin.created", org.tenant(), user.id.0)
            .await?;
        Ok(Installation {
            org,
            project,
            user,
            session: started,
            api_key,
        })
    }

    /// Writes an audit entry for each value created with the administrator.
    async fn record_installation(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: &Org,
        project: Option<&Project>,
        key: Option<&(ApiKey, Secret)>,
    ) -> Result<(), Error> {
        if org.created_at == call.now {
            tx.note_change(created(org));
            let (action, tenant, subject) = ("org.created", Some(org.tenant()), org.id.0);
            let event = AuditEvent {
                action,
                tenant,
                subject,
            };
            self.record(tx, call, event).await?;
        }
        if let Some(project) = project {
            tx.note_change(created(project));
            let event = AuditEvent {
                action: "project.created",
                tenant: Some(project.tenant()),
                subject: project.id.0,
            };
            self.record(tx, call, event).await?;
        }
        if let Some((key, _)) = key {
            tx.note_change(created(key));
            let event = AuditEvent {
                action: "api_key.created",
                tenant: Some(key.tenant),
                subject: key.id.0,
            };
            self.record(tx, call, event).await?;
        }
        Ok(())
    }

    async fn first_project(
        &self,
        tx: &mut Transaction,
        admin: &Actor,
        now: Timestamp,
        org: &Org,
        name: &str,
    ) -> Result<Project, Error> {
        let id = ProjectId::new(now, self.random_id());
        let project = Project::create(admin, org.id, id, name, now)?;
        let inserted = tx.insert_project(&project).await;
        inserted.map_err(taken("project_name"))?;
        Ok(project)
    }

    async fn first_key(
        &self,
        tx: &mut Transaction,
        admin: &Actor,
        now: Timestamp,
        org: &Org,
        name: &str,
    ) -> Result<(ApiKey, Secret), Error> {
        let id = ApiKeyId::new(now, self.random_id());
        let new = NewApiKey {
            name: name.to_owned(),
            scopes: BTreeSet::new(),
            expires_at: None,
        };
        let tenant = Tenant::org(org.id);
        let key = ApiKey::create(admin, tenant, id, new, now)?;
        let secret = self.new_secret();
        tx.insert_api_key(&key, &secret.hash()).await?;
        Ok((key, secret))
    }
}
