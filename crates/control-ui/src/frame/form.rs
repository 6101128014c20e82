//! Forms: controls with the entered values, and faults at their fields.

use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::view::labels;
use crate::view::phrase::{field as field_words, sentence};
use askama::Template;
use askama::filters::HtmlSafe;
use control_app::Error;
use control_app::StoreError::{Conflict, Reference, Stale};
use control_domain::Refusal;
use std::collections::BTreeMap;

/// Maximum number of characters of a value that the notice of a conflict shows.
const MAX_VALUE_CHARS: usize = 200;
/// Hidden fields that say what the form's page showed. After a conflict they say what is stored.
const SHOWN: [&str; 2] = ["version", "client_secret_id"];

/// Faults of a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Field and reason. An empty field name means the form as a whole.
    list: Vec<(&'static str, String)>,
    /// Set if another request changed the resource after the form's page was shown.
    is_conflict: bool,
}

impl Faults {
    fn new(list: Vec<(&'static str, String)>) -> Self {
        Self {
            list,
            is_conflict: false,
        }
    }

    /// A fault of a single field.
    pub(crate) fn from_field(field: &'static str, reason: impl Into<String>) -> Self {
        Self::new(vec![(field, reason.into())])
    }

    /// The faults that the user can correct in the form.
    ///
    /// # Errors
    ///
    /// The [`Failure`] of an error that other input would not avoid.
    pub(crate) fn from_error(error: Error) -> Result<Self, Failure> {
        match error {
            Error::Refused(refusal @ (Refusal::Invalid { .. } | Refusal::InvalidFields(_))) => {
                Ok(Self::from_refusal(refusal))
            }
            Error::Refused(Refusal::Taken(field)) => Ok(Self::from_field(field, "is taken")),
            Error::Definition { field, reason } => Ok(Self::from_field(field, reason)),
            Error::Files(wrong) => Ok(Self::from_field("files", wrong.to_string())),
            Error::Certificate(wrong) => {
                let is_key = wrong.is_about_key();
                let field = if is_key {
                    "private_key_pem"
                } else {
                    "chain_pem"
                };
                Ok(Self::from_field(field, wrong.to_string()))
            }
            Error::Refused(
                refusal @ (Refusal::WrongState { .. }
                | Refusal::OwnApproval
                | Refusal::DependentPerson
                | Refusal::UnknownPerson
                | Refusal::NeedsApproval
                | Refusal::CertificateExchange
                | Refusal::UnknownWarnings
                | Refusal::Warnings(_)
                | Refusal::Frozen { .. }
                | Refusal::Held
                | Refusal::LastAdmin
                | Refusal::InUse(_)
                | Refusal::NoSigningKey),
            ) => Ok(Self::from_field("", refusal.to_string())),
            Error::Store(Conflict | Reference) => {
                let reason = "another request changed this at the same time: try again";
                Ok(Self::from_field("", reason))
            }
            Error::Store(Stale) | Error::Precondition => {
                let reason = "another request changed this in the meantime, and nothing was done: look at it \
                              before you try again";
                Ok(Self {
                    is_conflict: true,
                    ..Self::from_field("", reason)
                })
            }
            other @ (Error::Unauthenticated
            | Error::WrongSignIn
            | Error::TooManyAttempts { .. }
            | Error::TooManySignIns
            | Error::Refused(_)
            | Error::Store(_)
            | Error::Auth(_)
            | Error::Seal(_)
            | Error::Archive(_)
            | Error::Object(_)
            | Error::TooManyWaiters
            | Error::TooManyUploads
            | Error::TooManyBodies
            | Error::TooManyReportBytes { .. }
            | Error::SsoRefused
            | Error::SsoNotAuthenticated
            | Error::SsoEmailTaken
            | Error::SsoOtherSession
            | Error::Stopped) => Err(other.into()),
        }
    }

    /// The faults of a refusal, for values that a form contains.
    pub(crate) fn from_refusal(refusal: Refusal) -> Self {
        if let Refusal::Invalid { field, reason } = refusal {
            return Self::from_field(field, reason);
        }
        let Refusal::InvalidFields(fields) = refusal else {
            return Self::from_field("", refusal.to_string());
        };
        let fields = fields.into_iter();
        let faults = fields.map(|wrong| (wrong.field, wrong.reason.to_owned()));
        Self::new(faults.collect())
    }

    /// Renames a field from its name in the API to the form's.
    pub(crate) fn renamed(self, field: &str, name: &'static str) -> Self {
        let faults = self.list.into_iter();
        let faults = faults.map(|(own, reason)| (if own == field { name } else { own }, reason));
        Self {
            list: faults.collect(),
            ..self
        }
    }

    /// The fault as a status line, for forms without fields.
    pub(crate) fn note(&self) -> Note {
        let reasons = self.list.iter().map(|(field, reason)| match *field {
            "" => sentence(reason),
            field => sentence(&format!("{} {reason}", field_words(field))),
        });
        Note::bad(reasons.collect::<Vec<_>>().join(" "))
    }

    /// Returns true if there are no faults.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Field and reason of each fault, in the order of the form.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.list.iter()
    }

    fn reason(&self, field: &str) -> Option<&str> {
        let mut own = self.list.iter().filter(|(name, _)| *name == field);
        own.next().map(|(_, reason)| reason.as_str())
    }

    /// Field that gets the focus.
    fn first(&self) -> Option<&'static str> {
        self.list.first().map(|(field, _)| *field)
    }
}

/// Parses the field `labels`, pairs such as `region:fra`.
pub(crate) fn labels(fields: &Fields) -> Result<BTreeMap<String, String>, Faults> {
    labels::read(fields.get("labels")).map_err(|pair| {
        let reason = format!("has {pair:?}, which is not name:value");
        Faults::from_field("labels", reason)
    })
}

/// A form with the entered values and their faults.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    csrf: String,
    /// With `version` if the form replaces a resource.
    fields: Fields,
    faults: Faults,
    differences: Vec<Difference>,
}

/// A field with a stored value other than the entered one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Difference {
    field: String,
    stored: String,
    entered: String,
}

/// Top of a form: hidden CSRF token and version, and list of faults.
#[derive(Debug, Template)]
#[template(path = "form_head.html")]
pub(crate) struct FormHead<'a> {
    csrf: &'a str,
    /// Version of the resource that the form replaces; empty for other forms.
    version: &'a str,
    faults: &'a Faults,
    differences: &'a [Difference],
}

/// A text field with label, hint and fault.
#[derive(Debug, Template)]
#[template(path = "input.html")]
pub(crate) struct Input<'a> {
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    value: &'a str,
    fault: Option<&'a str>,
    hint: &'static str,
    autocomplete: &'static str,
    rows: u32,
    is_mono: bool,
    is_optional: bool,
    has_focus: bool,
}

/// A select field with its label.
#[derive(Debug, Template)]
#[template(path = "choice.html")]
pub(crate) struct Choice<'a> {
    name: &'static str,
    label: &'static str,
    value: &'a str,
    options: Vec<(String, String)>,
    fault: Option<&'a str>,
    hint: &'static str,
    has_focus: bool,
}

/// A checkbox with its label.
#[derive(Debug, Template)]
#[template(path = "tick.html")]
pub(crate) struct Tick {
    name: &'static str,
    value: String,
    label: String,
    hint: String,
    is_ticked: bool,
}

/// Reason of a fault with the label of its field, unless the reason has a subject of its own.
fn with_label(label: &str, reason: &str) -> String {
    let has_subject = ["the ", "you "]
        .iter()
        .any(|start| reason.starts_with(start));
    if has_subject {
        return reason.to_owned();
    }
    format!("{label} {reason}")
}

impl HtmlSafe for FormHead<'_> {}
impl HtmlSafe for Input<'_> {}
impl HtmlSafe for Choice<'_> {}
impl HtmlSafe for Tick {}

impl Form {
    /// A form with these values, before it is sent.
    pub(crate) fn new(csrf: &str, fields: Fields) -> Self {
        Self {
            csrf: csrf.to_owned(),
            fields,
            faults: Faults::default(),
            differences: Vec::new(),
        }
    }

    /// A form that was refused, with its faults. It keeps its version, so that it does not replace a
    /// change that its user has not seen.
    pub(crate) fn refused(csrf: &str, fields: Fields, faults: Faults) -> Self {
        Self {
            csrf: csrf.to_owned(),
            fields,
            faults,
            differences: Vec::new(),
        }
    }

    /// After a conflict, offers the version of `stored` and shows its values beside the entered ones.
    /// `names` are those of identifiers.
    pub(crate) fn beside(self, stored: &Fields, names: &[(String, String)]) -> Self {
        if !self.faults.is_conflict {
            return self;
        }
        let word = |value: &str| {
            let name = names.iter().find(|(id, _)| !id.is_empty() && id == value);
            let text = name.map_or(value, |(_, name)| name);
            let text = text.trim().replace("\r\n", "\n").replace('\n', ", ");
            let mut short: String = text.chars().take(MAX_VALUE_CHARS).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            short
        };
        let fields = stored.iter().filter(|(name, _)| *name != "version");
        let pairs = fields.map(|(name, value)| Difference {
            field: name.to_owned(),
            stored: word(value),
            entered: word(self.fields.get(name)),
        });
        let differences = pairs.filter(|pair| pair.stored != pair.entered).collect();
        let shown = SHOWN
            .iter()
            .filter_map(|name| Some((*name, stored.given(name)?)));
        let fields = shown.fold(self.fields, |fields, (name, value)| {
            fields.with(name, value)
        });
        Self {
            fields,
            differences,
            ..self
        }
    }

    /// Top of the form.
    pub(crate) fn head(&self) -> FormHead<'_> {
        FormHead {
            csrf: &self.csrf,
            version: self.fields.get("version"),
            faults: &self.faults,
            differences: &self.differences,
        }
    }

    /// A text field.
    pub(crate) fn text(&self, name: &'static str, label: &'static str) -> Input<'_> {
        Input {
            name,
            label,
            kind: "text",
            value: self.fields.get(name),
            fault: self.faults.reason(name),
            hint: "",
            autocomplete: "off",
            rows: 0,
            is_mono: false,
            is_optional: false,
            has_focus: self.faults.first() == Some(name),
        }
    }

    /// A password field; the server never fills it.
    pub(crate) fn password(&self, name: &'static str, label: &'static str) -> Input<'_> {
        Input {
            kind: "password",
            value: "",
            autocomplete: "new-password",
            ..self.text(name, label)
        }
    }

    /// A text area.
    pub(crate) fn lines(&self, name: &'static str, label: &'static str, rows: u32) -> Input<'_> {
        Input {
            rows,
            is_mono: true,
            ..self.text(name, label)
        }
    }

    /// A select field; options are pairs of value and label.
    pub(crate) fn choice(
        &self,
        name: &'static str,
        label: &'static str,
        options: &[(String, String)],
    ) -> Choice<'_> {
        let value = self.fields.get(name);
        let mut options = options.to_vec();
        // The list may lack the value, and the browser would then silently send the first option.
        if !value.is_empty() && options.iter().all(|(own, _)| own != value) {
            options.push((value.to_owned(), value.to_owned()));
        }
        Choice {
            name,
            label,
            value,
            options,
            fault: self.faults.reason(name),
            hint: "",
            has_focus: self.faults.first() == Some(name),
        }
    }

    /// A checkbox; several may share a name.
    pub(crate) fn tick(&self, name: &'static str, value: &str, label: &str) -> Tick {
        let mut given = self.fields.all(name);
        Tick {
            name,
            value: value.to_owned(),
            label: label.to_owned(),
            hint: String::new(),
            is_ticked: given.any(|sent| sent == value),
        }
    }

    /// Value of a field, for use outside the form.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.fields.get(name)
    }
}

impl Input<'_> {
    /// Adds a hint below the field.
    pub(crate) fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// Sets the input type.
    pub(crate) fn kind(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    /// Sets the `autocomplete` attribute.
    pub(crate) fn autocomplete(self, autocomplete: &'static str) -> Self {
        Self {
            autocomplete,
            ..self
        }
    }

    /// Permits an empty field.
    pub(crate) fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// Uses a monospaced font, as for configurations.
    pub(crate) fn mono(self) -> Self {
        Self {
            is_mono: true,
            ..self
        }
    }

    /// Focuses the field when the page is shown, unless a field has a fault.
    pub(crate) fn focus(self) -> Self {
        Self {
            has_focus: true,
            ..self
        }
    }
}

impl Choice<'_> {
    /// Adds a hint below the field.
    pub(crate) fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

impl Tick {
    /// Adds a hint below the field.
    pub(crate) fn hint(self, hint: &str) -> Self {
        Self {
            hint: hint.to_owned(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_gets_the_label_as_its_subject_unless_it_has_one() {
        assert_eq!(with_label("Your name", "is empty"), "Your name is empty");
        let whole = "the password is wrong";
        assert_eq!(with_label("Password", whole), whole);
    }

    #[test]
    fn a_choice_keeps_its_value_where_the_list_ends_before_it() {
        let options = [("a", "A"), ("b", "B")].map(|(id, name)| (id.to_owned(), name.to_owned()));
        let choice = |value| {
            let form = Form::new("token", Fields::filled(&[("one", value)]));
            form.choice("one", "One", &options).to_string()
        };
        assert!(choice("z").contains("<option value=\"z\" selected>"));
        assert_eq!(choice("b").matches("<option").count(), 2);
        assert_eq!(choice("").matches("<option").count(), 2);
    }

    #[test]
    fn a_refused_form_is_shown_again_filled_with_the_cursor_in_its_first_wrong_field() {
        let fields = Fields::filled(&[("name", "<b>"), ("password", "secret")]);
        let faults = Faults::from_field("name", "is taken");
        let form = Form::refused("token", fields, faults);
        let input = form.text("name", "Name").to_string();
        for part in [
            "value=\"&#60;b&#62;\"",
            "aria-invalid=\"true\"",
            "autofocus",
            "Name is taken.",
        ] {
            assert!(input.contains(part), "{part} in {input}");
        }
        assert!(form.head().to_string().contains("href=\"#name\""));
        assert!(
            !form
                .password("password", "Password")
                .to_string()
                .contains("secret")
        );
    }

    #[test]
    fn only_a_conflict_offers_the_stored_version_with_both_values() {
        let typed = Fields::filled(&[("version", "3"), ("name", "shop"), ("upstream", "7")]);
        let stored = Fields::filled(&[("version", "5"), ("name", "store"), ("upstream", "7")]);
        let head = |faults: Faults| {
            let form = Form::refused("token", typed.clone(), faults);
            form.beside(&stored, &[]).head().to_string()
        };
        let refused = head(Faults::from_field("name", "is taken"));
        assert!(
            refused.contains("name=\"version\" value=\"3\""),
            "{refused}"
        );
        assert!(!refused.contains("store"), "{refused}");
        for error in [Error::Precondition, Error::Store(Stale)] {
            let conflict = head(Faults::from_error(error).unwrap());
            for part in ["name=\"version\" value=\"5\"", "store", "shop"] {
                assert!(conflict.contains(part), "{part} in {conflict}");
            }
            assert!(!conflict.contains("Upstream"), "{conflict}");
        }
    }
}
