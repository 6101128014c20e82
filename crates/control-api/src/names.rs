//! The interface's own names of what the domain enumerates.

use control_domain::{
    ApiKeyState, ApprovalRule, BatchState, BundleState, CertificateState, DriftResolution,
    DriftState, EnrolmentTokenState, LoadBalancing, NodeState, OnFailure, Role, RolloutState,
    Scope, SignInMethod, SigningKeyState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Declares the interface's enum beside the domain's. A variant that one lacks does not compile.
///
/// The names are taken as `tt`: a `literal` reaches the derive of the schema in a group that it cannot
/// read, and the description would have the variants' names.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident of $domain:ident { $($variant:ident = $name:tt),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub(crate) enum $type {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl From<$domain> for $type {
            fn from(value: $domain) -> Self {
                match value {
                    $($domain::$variant => Self::$variant,)*
                }
            }
        }

        impl From<$type> for $domain {
            fn from(value: $type) -> Self {
                match value {
                    $($type::$variant => Self::$variant,)*
                }
            }
        }
    };
}

names! {
    /// One right of an API key.
    ScopeName of Scope {
        NodesRead = "nodes:read",
        NodesWrite = "nodes:write",
        BundlesRead = "bundles:read",
        BundlesWrite = "bundles:write",
        RolloutsRead = "rollouts:read",
        RolloutsWrite = "rollouts:write",
        ServicesRead = "services:read",
        ServicesWrite = "services:write",
        ApiKeysAdmin = "api_keys:admin",
    }
}

names! {
    /// How the user proved its identity.
    SignInMethodName of SignInMethod {
        Password = "password",
        PasswordTotp = "password+totp",
        PasswordRecovery = "password+recovery_code",
        Oidc = "oidc",
        Saml = "saml",
        OidcTotp = "oidc+totp",
        SamlTotp = "saml+totp",
    }
}

names! {
    /// Rights of a user in an organization or a project.
    RoleName of Role {
        Reader = "reader",
        Operator = "operator",
        Admin = "admin",
    }
}

names! {
    /// When a second person has to approve another bundle.
    ApprovalRuleName of ApprovalRule {
        None = "none",
        Risky = "risky",
        All = "all",
    }
}

names! {
    /// Whether an API key is accepted.
    ApiKeyStateName of ApiKeyState {
        Active = "active",
        Expired = "expired",
        Revoked = "revoked",
        Deleted = "deleted",
    }
}

names! {
    /// Whether an enrolment token admits nodes.
    EnrolmentTokenStateName of EnrolmentTokenState {
        Active = "active",
        UsedUp = "used_up",
        Expired = "expired",
        Revoked = "revoked",
    }
}

names! {
    /// How far a bundle has come.
    BundleStateName of BundleState {
        Draft = "draft",
        Validated = "validated",
        Rejected = "rejected",
        Signed = "signed",
        Revoked = "revoked",
    }
}

names! {
    /// Whether a node is there.
    NodeStateName of NodeState {
        Enrolled = "enrolled",
        Online = "online",
        Offline = "offline",
        Deleted = "deleted",
    }
}

names! {
    /// Whether clients accept a certificate.
    CertificateStateName of CertificateState {
        Pending = "pending",
        Valid = "valid",
        Expired = "expired",
    }
}

names! {
    /// Uses of a signing key.
    SigningKeyStateName of SigningKeyState {
        Standby = "standby",
        Active = "active",
        Retired = "retired",
        Deactivated = "deactivated",
    }
}

names! {
    /// How the next target is chosen.
    LoadBalancingName of LoadBalancing {
        RoundRobin = "round_robin",
        LeastConnections = "least_connections",
        Weighted = "weighted",
        IpHash = "ip_hash",
    }
}

names! {
    /// How far a rollout has come.
    RolloutStateName of RolloutState {
        Planned = "planned",
        AwaitingApproval = "awaiting_approval",
        Running = "running",
        Paused = "paused",
        Completed = "completed",
        Failed = "failed",
        RollingBack = "rolling_back",
        RolledBack = "rolled_back",
        Cancelled = "cancelled",
    }
}

names! {
    /// How far a batch has come.
    BatchStateName of BatchState {
        Open = "open",
        Switched = "switched",
        Passed = "passed",
        Failed = "failed",
    }
}

names! {
    /// Reaction to a batch that does not pass.
    OnFailureName of OnFailure {
        Pause = "pause",
        RollBack = "roll_back",
    }
}

names! {
    /// Whether a drift goes on.
    DriftStateName of DriftState {
        Open = "open",
        Resolved = "resolved",
    }
}

names! {
    /// How a drift ended.
    DriftResolutionName of DriftResolution {
        Automatic = "automatic",
        Manual = "manual",
        Rollout = "rollout",
    }
}

/// Another name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenameRequest {
    #[schema(min_length = 1, max_length = 100)]
    pub(crate) name: String,
}
