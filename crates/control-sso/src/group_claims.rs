//! Names of attributes and claims with groups.

/// Names of the attribute or claim with groups: of OpenID providers, Okta and Keycloak; Active
/// Directory; AD FS; Entra ID.
pub(crate) const GROUPS: &[&str] = &[
    "groups",
    "roles",
    "memberOf",
    "http://schemas.xmlsoap.org/claims/Group",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/role",
];
