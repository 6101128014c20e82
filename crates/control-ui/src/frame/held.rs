//! The entered values of a form that was not executed, to be sent again.

use crate::frame::form::{Form, Input};
use crate::request::fields::Fields;
use askama::Template;
use askama::filters::HtmlSafe;

/// Secret fields, never shown again, with their labels.
const SECRETS: [(&str, &str); 4] = [
    ("password", "Password"),
    ("client_secret", "Client secret"),
    ("private_key_pem", "Private key"),
    ("code", "Code"),
];
/// Fields with the proof of identity. They are dropped, because the page asks for another proof.
pub(crate) const PROOF_FIELDS: [&str; 2] = ["proof_code", "proof_password"];
/// The secret field with several lines.
const KEY: &str = "private_key_pem";
/// Fields that the page fills itself.
const UNTYPED: [&str; 8] = [
    "return",
    "token",
    "secret",
    "client_secret_id",
    "version",
    "do",
    "org",
    "email",
];
/// Maximum height of a text area, in lines.
const MAX_ROWS: usize = 12;

/// A form that was not executed. Keeps the entered values except secrets, which must be entered
/// again.
#[derive(Clone, Debug)]
pub(crate) struct HeldForm {
    /// Path that the form is sent to.
    pub(crate) action: String,
    csrf: String,
    kept: Vec<(String, String)>,
    secrets: Vec<(&'static str, &'static str)>,
    blank: Form,
}

/// Hidden fields, and controls for the secrets.
#[derive(Debug, Template)]
#[template(path = "held_controls.html")]
pub(crate) struct HeldControls<'a> {
    held: &'a HeldForm,
    secrets: Vec<Input<'a>>,
    has_token: bool,
}

/// The entered values as text to read and copy.
#[derive(Debug, Template)]
#[template(path = "held_values.html")]
pub(crate) struct HeldValues<'a> {
    values: Vec<TypedValue<'a>>,
}

#[derive(Debug)]
struct TypedValue<'a> {
    name: &'a str,
    value: &'a str,
    /// Height in lines; 1 for a text field.
    rows: usize,
}

impl HtmlSafe for HeldControls<'_> {}
impl HtmlSafe for HeldValues<'_> {}

impl HeldForm {
    /// A form with these fields, for `action` and the CSRF token `csrf`.
    pub(crate) fn new(action: &str, csrf: &str, fields: &Fields) -> Self {
        let is_left_out = |name: &str| {
            PROOF_FIELDS.contains(&name) || SECRETS.iter().any(|(own, _)| *own == name)
        };
        let kept = fields.iter().filter(|(name, _)| !is_left_out(name));
        let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = |name: &str| {
            fields
                .iter()
                .any(|(own, value)| own == name && !value.is_empty())
        };
        Self {
            action: action.to_owned(),
            csrf: csrf.to_owned(),
            kept: kept.collect(),
            secrets: SECRETS
                .into_iter()
                .filter(|(name, _)| given(name))
                .collect(),
            blank: Form::new("", Fields::default()),
        }
    }

    /// Returns true if the user entered nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.kept.iter().all(|(_, value)| value.is_empty())
    }

    /// Returns true if the form had secrets, which were dropped.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// Fields for a separate form.
    pub(crate) fn controls(&self) -> HeldControls<'_> {
        HeldControls {
            held: self,
            secrets: self.secret_inputs(),
            has_token: true,
        }
    }

    /// Fields for a form that already has a CSRF token.
    pub(crate) fn further_controls(&self) -> HeldControls<'_> {
        HeldControls {
            held: self,
            secrets: self.secret_inputs(),
            has_token: false,
        }
    }

    fn secret_inputs(&self) -> Vec<Input<'_>> {
        let inputs = self.secrets.iter().map(|(name, label)| match *name {
            KEY => self.blank.lines(name, label, 6),
            name => self.blank.password(name, label),
        });
        let inputs = inputs.map(|input| input.hint("Secrets are not kept: type it again."));
        inputs.collect()
    }

    /// The entered values, for a form that is shown again.
    pub(crate) fn values(&self) -> HeldValues<'_> {
        let typed = self
            .kept
            .iter()
            .filter(|(name, value)| !value.is_empty() && !UNTYPED.contains(&name.as_str()));
        let values = typed.map(|(name, value)| TypedValue {
            name,
            value,
            rows: value.lines().count().clamp(1, MAX_ROWS),
        });
        HeldValues {
            values: values.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_form_has_everything_but_its_secrets() {
        let fields = Fields::parse(
            b"csrf=old&name=%3Cb%3E&text=a%0D%0Ab&scope=x&scope=y&client_secret=hush&code=&proof_password=hush",
        );
        let held = HeldForm::new("/projects", "new", &fields);
        let controls = held.controls().to_string();
        for part in [
            "name=\"csrf\" value=\"new\"",
            "name=\"name\" value=\"&#60;b&#62;\"",
            "name=\"scope\" value=\"x\"",
            "name=\"scope\" value=\"y\"",
            "id=\"client_secret\"",
        ] {
            assert!(controls.contains(part), "{part} in {controls}");
        }
        for part in ["old", "hush", "id=\"code\""] {
            assert!(!controls.contains(part), "{part} in {controls}");
        }
        assert!(!held.further_controls().to_string().contains("csrf"));
        let values = held.values().to_string();
        assert!(values.contains("rows=\"2\""), "{values}");
        assert!(!held.is_empty());
        assert!(HeldForm::new("/", "new", &Fields::parse(b"csrf=old&name=")).is_empty());
    }
}
