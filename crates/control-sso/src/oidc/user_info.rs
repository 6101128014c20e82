//! Claims of the user-info endpoint (OpenID Connect Core, section 5.3).

use super::error::OidcError;
use super::id_token::IdToken;
use crate::group_claims::GROUPS;
use serde_json::{Map, Value};

/// Adds the endpoint's claims to the token's, which take precedence. If the token has groups, the
/// endpoint's are ignored whatever their claim's name, because its response is not signed.
///
/// # Errors
///
/// [`OidcError::UserInfoSubject`] if the response belongs to another user, or
/// [`OidcError::Malformed`].
pub fn add_user_info(token: &mut IdToken, json: &[u8]) -> Result<(), OidcError> {
    let info: Map<String, Value> =
        serde_json::from_slice(json).map_err(|_| OidcError::Malformed("the user info"))?;
    if info.get("sub").and_then(Value::as_str) != Some(&token.subject) {
        return Err(OidcError::UserInfoSubject);
    }
    let has_groups = GROUPS.iter().any(|name| token.claims.contains_key(*name));
    for (name, value) in info {
        if has_groups && GROUPS.contains(&name.as_str()) {
            continue;
        }
        token.claims.entry(name).or_insert(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn user_info_is_of_the_same_user_and_adds_only() {
        let mut token = IdToken {
            issuer: "https://idp.test".to_owned(),
            subject: "1".to_owned(),
            claims: json!({"sub": "1", "email": "a@b.test"})
                .as_object()
                .unwrap()
                .clone(),
        };
        let add = |token: &mut IdToken, text: &str| add_user_info(token, text.as_bytes());
        let other = add(&mut token, r#"{"sub":"2","groups":["admins"]}"#);
        assert_eq!(other, Err(OidcError::UserInfoSubject));
        assert_eq!(
            add(&mut token, r#"{"groups":[]}"#),
            Err(OidcError::UserInfoSubject)
        );
        assert_eq!(
            add(&mut token, "a.b.c"),
            Err(OidcError::Malformed("the user info"))
        );
        assert!(!token.claims.contains_key("groups"));
        add(
            &mut token,
            r#"{"sub":"1","email":"c@d.test","groups":["ops"]}"#,
        )
        .unwrap();
        assert_eq!(token.claims["email"], "a@b.test");
        assert_eq!(token.claims["groups"], json!(["ops"]));
        add(&mut token, r#"{"sub":"1","roles":["admins"]}"#).unwrap();
        assert!(!token.claims.contains_key("roles"));
    }
}
