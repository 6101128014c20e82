//! Values for the audit log: readable JSON without secrets.

use control_domain::{
    ApiKey, Bundle, Certificate, Drift, EnrolmentToken, Invitation, Labels, LinkedIdentity,
    ManagedCertificate, Membership, Node, Org, OrgSecurity, PolicyRules, Project, ProjectRole,
    Rollout, Scope, Service, SigningKey, SsoConnection, SsoSettings, Target, Upstream, UpstreamTls,
    Webhook, WebhookEvent,
};
use control_store::AuditChange;
use serde_json::{Value, json};

/// Maximum size of a recorded value; a longer one is left out, because an upstream may have
/// thousands of targets.
const MAX_BYTES: usize = 16 * 1024;

/// A value with a representation in the audit log.
pub(crate) trait Audited {
    fn audited(&self) -> Value;
}

/// Change for a created value.
pub(crate) fn created(value: &impl Audited) -> AuditChange {
    AuditChange {
        before: None,
        after: Some(text(&value.audited())),
    }
}

/// Change from `before` to `value`.
pub(crate) fn changed(before: &Value, value: &impl Audited) -> AuditChange {
    AuditChange {
        before: Some(text(before)),
        after: Some(text(&value.audited())),
    }
}

/// Change for a deleted value.
pub(crate) fn deleted(value: &impl Audited) -> AuditChange {
    AuditChange {
        before: Some(text(&value.audited())),
        after: None,
    }
}

/// Change for a command that alters no stored value: `what` describes its effect.
pub(crate) fn done(what: &Value) -> AuditChange {
    AuditChange {
        before: None,
        after: Some(text(what)),
    }
}

fn text(value: &Value) -> String {
    let text = value.to_string();
    if MAX_BYTES < text.len() {
        return json!({"omitted_bytes": text.len()}).to_string();
    }
    text
}

impl Audited for Org {
    fn audited(&self) -> Value {
        json!({"name": self.name.as_str()})
    }
}

impl Audited for Project {
    fn audited(&self) -> Value {
        let weaker = self.policy.weaker.as_ref();
        json!({
            "name": self.name.as_str(),
            "policy": rules(&self.policy.rules),
            "weaker_policy": weaker.map(|weaker| rules(&weaker.rules)),
        })
    }
}

fn rules(rules: &PolicyRules) -> Value {
    let PolicyRules {
        approve,
        refuse_warnings,
        freezes,
    } = rules;
    json!({
        "approve": approve.name(),
        "refuse_warnings": refuse_warnings,
        "freeze": freezes.texts(),
    })
}

impl Audited for SsoConnection {
    fn audited(&self) -> Value {
        let mapping: serde_json::Map<String, Value> = self
            .settings
            .group_mapping()
            .entries()
            .map(|(group, role)| (group.to_owned(), role.into()))
            .collect();
        let (provider, client) = match &self.settings {
            SsoSettings::Oidc(settings) => (Some(&settings.issuer), &settings.client_id),
            SsoSettings::Saml(settings) => {
                let named = settings.idp_entity_id.as_ref();
                (
                    named.or(settings.idp_metadata_url.as_ref()),
                    &settings.sp_entity_id,
                )
            }
        };
        json!({
            "protocol": self.settings.protocol(),
            "provider": provider,
            "client": client,
            "group_mapping": mapping,
        })
    }
}

impl Audited for LinkedIdentity {
    fn audited(&self) -> Value {
        json!({"issuer": self.issuer, "subject": self.subject})
    }
}

impl Audited for OrgSecurity {
    fn audited(&self) -> Value {
        json!({"second_factor": self.second_factor})
    }
}

impl Audited for ProjectRole {
    fn audited(&self) -> Value {
        json!({"role": self.role.name()})
    }
}

impl Audited for Membership {
    fn audited(&self) -> Value {
        json!({"role": self.role.name()})
    }
}

impl Audited for Invitation {
    fn audited(&self) -> Value {
        json!({"email": self.email.as_str(), "role": self.role.name()})
    }
}

impl Audited for ApiKey {
    fn audited(&self) -> Value {
        let scopes: Vec<&str> = self.scopes.iter().copied().map(Scope::name).collect();
        json!({
            "name": self.name.as_str(),
            "scopes": scopes,
            "expires_at": self.expires_at,
            "revoked_at": self.revoked_at,
        })
    }
}

impl Audited for EnrolmentToken {
    fn audited(&self) -> Value {
        json!({
            "name": self.name.as_str(),
            "max_uses": self.max_uses,
            "labels": self.labels.pairs(),
            "expires_at": self.expires_at,
            "revoked_at": self.revoked_at,
        })
    }
}

impl Audited for Node {
    fn audited(&self) -> Value {
        let requested = self.requested_labels.as_ref();
        json!({
            "name": self.name.as_str(),
            "labels": self.labels.pairs(),
            "requested_labels": requested.map(Labels::pairs),
        })
    }
}

impl Audited for Bundle {
    fn audited(&self) -> Value {
        let digest = self.archive.as_ref().map(|archive| archive.digest.as_str());
        json!({"name": self.name.as_str(), "state": self.state.name(), "digest": digest})
    }
}

impl Audited for Rollout {
    fn audited(&self) -> Value {
        json!({
            "bundle": self.bundle,
            "state": self.state.name(),
            "nodes": self.nodes,
            "batch": self.batch.as_ref().map(|batch| batch.number),
            "needs_approval": self.strategy.needs_approval,
            "reason": self.reason,
        })
    }
}

impl Audited for Drift {
    fn audited(&self) -> Value {
        json!({
            "node": self.node,
            "state": self.state.name(),
            "desired": self.desired,
            "active": self.active,
        })
    }
}

fn settings(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

impl Audited for Upstream {
    fn audited(&self) -> Value {
        let target = |target: &Target| json!([target.address, target.weight]);
        let targets: Vec<Value> = self.targets.iter().map(target).collect();
        let tls = |tls: &UpstreamTls| json!({"server_name": tls.server_name});
        json!({
            "name": self.name.as_str(),
            "load_balancing": self.load_balancing.name(),
            "targets": targets,
            "tls": self.tls.as_ref().map(tls),
            "settings": settings(&self.settings),
        })
    }
}

impl Audited for Service {
    fn audited(&self) -> Value {
        json!({
            "name": self.name.as_str(),
            "host": self.host,
            "path_prefix": self.path_prefix,
            "priority": self.priority,
            "upstream": self.upstream,
            "certificate": self.certificate,
            "settings": settings(&self.settings),
        })
    }
}

impl Audited for Certificate {
    fn audited(&self) -> Value {
        json!({
            "name": self.name.as_str(),
            "hosts": self.facts.hosts,
            "not_after": self.facts.not_after,
            "fingerprint": self.facts.fingerprint,
            "node_labels": self.node_labels.pairs(),
        })
    }
}

impl Audited for ManagedCertificate {
    fn audited(&self) -> Value {
        json!({
            "name": self.name.as_str(),
            "hosts": self.hosts,
            "directory": self.directory,
            "email": self.email.as_str(),
            "key_type": self.key_type.name(),
            "node_labels": self.node_labels.pairs(),
        })
    }
}

impl Audited for Webhook {
    fn audited(&self) -> Value {
        let events = self.events.iter().copied().map(WebhookEvent::name);
        json!({
            "name": self.name.as_str(),
            "url": self.url,
            "events": events.collect::<Vec<_>>(),
            "enabled": self.enabled,
        })
    }
}

impl Audited for SigningKey {
    fn audited(&self) -> Value {
        json!({"kid": self.id, "state": self.state.name()})
    }
}
