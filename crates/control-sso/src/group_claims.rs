//! Names under which identity providers send groups.

/// Names of the attribute or claim that holds groups: OpenID providers, Okta and Keycloak; Active Directory; ADFS;
/// Entra ID.
pub(crate) const GROUPS: &[&str] = &[
    "groups",
    "roles",
    "memberOf",
    "http://schemas.xmlsoap.org/claims/Group",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/role",
];
