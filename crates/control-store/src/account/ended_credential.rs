//! Ends credentials that a user created when the user loses the necessary rights in an
//! organization.

use crate::error::StoreError;
use crate::row::{id, optional_id};
use crate::statement::{Statement, sql};
use crate::store::Transaction;
use control_domain::{Role, Tenant};
use control_wire::{OrgId, ProjectId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

/// A credential that ended because its creator lost the right to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedCredential {
    /// Action of the audit entry, such as `api_key.revoked`.
    pub action: &'static str,
    /// Tenant with the audit log that records the end.
    pub tenant: Tenant,
    /// Identifier of the credential.
    pub subject: Uuid,
}

impl Transaction {
    /// Ends credentials that `user` created and that need more than the user's new `role`; `None`
    /// if the user leaves the organization. A remaining member's API keys are kept, because their
    /// rights never exceed the member's.
    pub async fn end_credentials(
        &mut self,
        org: OrgId,
        user: UserId,
        role: Option<Role>,
        now: Timestamp,
    ) -> Result<Vec<EndedCredential>, StoreError> {
        let keys = "UPDATE api_keys SET revoked_at = $3, version = version + 1
                    WHERE org_id = $1 AND made_by = $2 AND revoked_at IS NULL
                      AND (expires_at IS NULL OR expires_at > $3)
                    RETURNING id, project_id";
        let invitations = "DELETE FROM invitations WHERE org_id = $1 AND made_by = $2
                           RETURNING id, CAST(NULL AS TEXT) AS project_id";
        let tokens = "UPDATE enrolment_tokens SET revoked_at = $3, version = version + 1
                      WHERE org_id = $1 AND made_by = $2 AND revoked_at IS NULL
                        AND expires_at > $3 AND uses < max_uses
                        AND NOT EXISTS (SELECT 1 FROM project_roles r
                          WHERE r.project_id = enrolment_tokens.project_id AND r.user_id = $2)
                      RETURNING id, project_id";
        let resets = "DELETE FROM password_resets WHERE org_id = $1 AND made_by = $2";
        let mut ended = Vec::new();
        if role.is_none() {
            let keys = sql(keys).bind(org).bind(user).bind(now);
            ended.extend(self.ended(keys, "api_key.revoked", org).await?);
        }
        if role < Some(Role::Operator) {
            let tokens = sql(tokens).bind(org).bind(user).bind(now);
            let action = "enrolment_token.revoked";
            ended.extend(self.ended(tokens, action, org).await?);
        }
        if role < Some(Role::Admin) {
            let invitations = sql(invitations).bind(org).bind(user);
            let action = "invitation.deleted";
            ended.extend(self.ended(invitations, action, org).await?);
            sql(resets).bind(org).bind(user).run(self).await?;
        }
        Ok(ended)
    }

    /// Ends the enrolment tokens that `user` created for the project.
    pub async fn end_project_tokens(
        &mut self,
        project: ProjectId,
        user: UserId,
        org: OrgId,
        now: Timestamp,
    ) -> Result<Vec<EndedCredential>, StoreError> {
        let tokens = "UPDATE enrolment_tokens SET revoked_at = $3, version = version + 1
                      WHERE project_id = $1 AND made_by = $2 AND revoked_at IS NULL
                        AND expires_at > $3 AND uses < max_uses
                      RETURNING id, project_id";
        let tokens = sql(tokens).bind(project).bind(user).bind(now);
        self.ended(tokens, "enrolment_token.revoked", org).await
    }

    /// Ends every API key, enrolment token, invitation, password reset and sign-in in progress of
    /// the installation.
    pub async fn end_every_credential(
        &mut self,
        now: Timestamp,
    ) -> Result<Vec<EndedCredential>, StoreError> {
        for delete in [
            "DELETE FROM password_resets",
            "DELETE FROM sign_in_attempts",
            "DELETE FROM sign_in_tickets",
        ] {
            sql(delete).run(self).await?;
        }
        let keys = "UPDATE api_keys SET revoked_at = $1, version = version + 1
                    WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)
                    RETURNING id, org_id, project_id";
        let tokens = "UPDATE enrolment_tokens SET revoked_at = $1, version = version + 1
                      WHERE revoked_at IS NULL AND expires_at > $1 AND uses < max_uses
                      RETURNING id, org_id, project_id";
        let invitations =
            "DELETE FROM invitations RETURNING id, org_id, CAST(NULL AS TEXT) AS project_id";
        let mut ended = Vec::new();
        for (action, statement) in [
            ("api_key.revoked", sql(keys).bind(now)),
            ("enrolment_token.revoked", sql(tokens).bind(now)),
            ("invitation.deleted", sql(invitations)),
        ] {
            for row in statement.rows(self).await? {
                ended.push(EndedCredential {
                    action,
                    tenant: Tenant {
                        org: id(&row, "org_id")?,
                        project: optional_id(&row, "project_id")?,
                    },
                    subject: id(&row, "id")?,
                });
            }
        }
        Ok(ended)
    }

    async fn ended(
        &mut self,
        statement: Statement,
        action: &'static str,
        org: OrgId,
    ) -> Result<Vec<EndedCredential>, StoreError> {
        let rows = statement.rows(self).await?;
        let ended = rows.iter().map(|row| {
            Ok(EndedCredential {
                action,
                tenant: Tenant {
                    org,
                    project: optional_id(row, "project_id")?,
                },
                subject: id(row, "id")?,
            })
        });
        ended.collect()
    }
}
