//! A verified response of an identity provider, and the browser that must present it.

use control_auth::Secret;
use control_domain::{Actor, SsoPurpose, SsoRefusal, check_authentication};
use control_sso::AssertedUser;
use control_store::SsoPending;
use control_wire::OrgId;
use jiff::Timestamp;

/// Cookies of the browser that presents the provider's response.
#[derive(Clone, Copy, Debug)]
pub struct SsoBrowser<'a> {
    /// Secret of the cookie that was set when the sign-in began.
    pub browser: Option<&'a Secret>,
    /// Actor of the browser's session, if it has one.
    pub actor: Option<&'a Actor>,
}

/// A verified response with the attempt that it answers.
pub(crate) struct Arrival {
    pub(crate) org: OrgId,
    pub(crate) asserted: AssertedUser,
    pub(crate) return_to: String,
    pub(crate) purpose: SsoPurpose,
    /// True if no browser asked for the response.
    pub(crate) is_unsolicited: bool,
    /// Start of the attempt; `None` for an unsolicited response, or if the proof of identity was
    /// compared with the attempt already.
    pub(crate) begun_at: Option<Timestamp>,
}

impl Arrival {
    /// Checks, if the response must prove the identity, that the provider authenticated the user
    /// after the attempt began.
    pub(crate) fn check_proof(&self) -> Result<(), SsoRefusal> {
        match self.begun_at {
            Some(begun_at) if self.purpose.is_proof() => {
                check_authentication(&self.asserted, begun_at)
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks that the response is presented by the browser that began the sign-in.
pub(crate) fn check_browser<T>(
    pending: &SsoPending<T>,
    browser: SsoBrowser<'_>,
) -> Result<(), SsoRefusal> {
    let own = browser.browser.map(Secret::hash);
    let is_it = own.as_ref() == Some(&pending.browser_hash);
    is_it.then_some(()).ok_or(SsoRefusal::OtherBrowser)
}
