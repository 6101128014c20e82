//! A verified answer of an identity provider, and the browser that it has to come by.

use control_auth::Secret;
use control_domain::{Actor, SsoPurpose, SsoRefusal, check_authentication};
use control_sso::AssertedUser;
use control_store::SsoPending;
use control_wire::OrgId;
use jiff::Timestamp;

/// Cookies that bind the provider's answer to the browser.
#[derive(Clone, Copy, Debug)]
pub struct SsoBrowser<'a> {
    /// The cookie of the beginning.
    pub browser: Option<&'a Secret>,
    /// The actor of the browser's session, if any.
    pub actor: Option<&'a Actor>,
}

/// The attempt of a verified answer.
pub(crate) struct Arrival {
    pub(crate) org: OrgId,
    pub(crate) asserted: AssertedUser,
    pub(crate) return_to: String,
    pub(crate) purpose: SsoPurpose,
    /// Start of the attempt; `None` if a proof of identity was compared with it, or no attempt was begun.
    pub(crate) begun_at: Option<Timestamp>,
}

impl Arrival {
    /// Checks that the provider authenticated the user for this attempt, if it is to prove the identity.
    pub(crate) fn check_proof(&self) -> Result<(), SsoRefusal> {
        match self.begun_at {
            Some(begun_at) if self.purpose.is_proof() => {
                check_authentication(&self.asserted, begun_at)
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks that the response arrives from the browser that began the sign-in.
pub(crate) fn check_browser<T>(
    pending: &SsoPending<T>,
    browser: SsoBrowser<'_>,
) -> Result<(), SsoRefusal> {
    let own = browser.browser.map(Secret::hash);
    let is_it = own.as_ref() == Some(&pending.browser_hash);
    is_it.then_some(()).ok_or(SsoRefusal::OtherBrowser)
}
