//! RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0).

use crate::web_url::WebUrl;

/// URL that ends the session at the provider. It contains the client identifier instead of the ID
/// token, which is not stored; the provider may therefore ask the user for confirmation.
pub fn logout_url(endpoint: &WebUrl, client_id: &str, return_to: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("client_id", client_id)
        .append_pair("post_logout_redirect_uri", return_to)
        .finish();
    endpoint.with_query(&query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logout_request_names_the_client_and_the_return_url() {
        let endpoint = WebUrl::parse("https://idp.test/logout").unwrap();
        let url = logout_url(&endpoint, "controld", "https://sp.test/sign-in");
        let expected = "https://idp.test/logout?client_id=controld\
                        &post_logout_redirect_uri=https%3A%2F%2Fsp.test%2Fsign-in";
        assert_eq!(url, expected);
    }
}
