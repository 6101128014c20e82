//! The list of effective settings.

use crate::listener::{Access, ErrorPage, NetworkFile};
use crate::place::{Origin, Setting};
use crate::registry::{PageStatuses, Required, Spec, Text, Unset};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An effective setting.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Path in the configuration: `routes.route["api"].policies.max-body-size`.
    pub path: String,
    /// Path of its row in the registry: `routes.route.policies.max-body-size`.
    pub row: &'static str,
    /// Value; times in seconds or milliseconds according to the name's suffix, sizes in bytes.
    /// Secrets are `"(redacted)"`.
    pub value: Value,
    /// Source location, or the default.
    pub origin: Origin,
}

impl EffectiveSetting {
    /// The path within its listener, route, upstream or agent, or else within its block:
    /// `policies.max-body-size`.
    pub fn name(&self) -> &'static str {
        let named = [
            "listeners.listener.",
            "routes.route.",
            "upstreams.upstream.",
            "agents.agent.",
        ];
        let mut rests = named.iter().map(|block| self.row.strip_prefix(block));
        let in_block = self.row.split_once('.').map_or(self.row, |(_, name)| name);
        rests.find_map(|rest| rest).unwrap_or(in_block)
    }
}

/// The list of effective settings, and the path of the current block.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) settings: Vec<EffectiveSetting>,
    block: String,
}

impl List {
    pub(super) fn within(&mut self, block: &str, write: impl FnOnce(&mut Self)) {
        let length = self.block.len();
        if length > 0 {
            self.block.push('.');
        }
        self.block.push_str(block);
        write(self);
        self.block.truncate(length);
    }

    pub(super) fn put<K, D, T>(
        &mut self,
        spec: &Spec<K, D>,
        setting: &Setting<T>,
        show: impl Fn(&T) -> Value,
    ) {
        self.settings.push(EffectiveSetting {
            path: format!("{}.{}", self.block, spec.name()),
            row: spec.path,
            value: show(&setting.value),
            origin: setting.origin,
        });
    }

    pub(super) fn put_any<K, D, T>(
        &mut self,
        spec: &Spec<K, D>,
        setting: Option<&Setting<T>>,
        show: impl Fn(&T) -> Value,
    ) {
        if let Some(setting) = setting {
            self.put(spec, setting, show);
        }
    }

    pub(super) fn put_all<K, D, T>(
        &mut self,
        spec: &Spec<K, D>,
        settings: &[Setting<T>],
        show: impl Fn(&T) -> Value,
    ) {
        for setting in settings {
            self.put(spec, setting, &show);
        }
    }

    /// Adds networks of clients, by the rows of networks and of files; admitted ones are first.
    pub(super) fn access<K, L, D>(
        &mut self,
        access: &Access,
        allow_row: &Spec<K, D>,
        deny_row: &Spec<K, D>,
        allow_file_row: &Spec<L, D>,
        deny_file_row: &Spec<L, D>,
    ) {
        let Access {
            allow,
            allow_files,
            deny,
            deny_files,
        } = access;
        let file = |file: &NetworkFile| path(&file.path);
        self.put_all(allow_row, allow, text);
        self.put_all(allow_file_row, allow_files, file);
        self.put_all(deny_row, deny, text);
        self.put_all(deny_file_row, deny_files, file);
    }

    /// Adds pages of errors, by the rows of status, file and text.
    pub(super) fn error_pages(
        &mut self,
        pages: &[ErrorPage],
        status_row: &Spec<PageStatuses, Required>,
        file_row: &Spec<Text<PathBuf>, Unset>,
        html_row: &Spec<Text<String>, Unset>,
    ) {
        for page in pages {
            let ErrorPage {
                place: _,
                statuses,
                file,
                html,
                template: _,
            } = page;
            self.within(&named("page", &statuses.to_string()), |list| {
                list.put(status_row, statuses, text);
                list.put_any(file_row, file.as_ref(), path);
                list.put_any(html_row, html.as_ref(), text);
            });
        }
    }

    pub(super) fn time<K, D>(&mut self, spec: &Spec<K, D>, setting: &Setting<Duration>) {
        let in_millis = spec.name().ends_with("-ms");
        self.put(spec, setting, |time| match in_millis {
            true => whole(time.as_millis()),
            false if time.subsec_nanos() == 0 => time.as_secs().into(),
            false => time.as_secs_f64().into(),
        });
    }

    pub(super) fn any_time<K, D>(
        &mut self,
        spec: &Spec<K, D>,
        setting: Option<&Setting<Duration>>,
    ) {
        if let Some(setting) = setting {
            self.time(spec, setting);
        }
    }
}

pub(super) fn named(block: &str, name: &str) -> String {
    format!("{block}[{name:?}]")
}

pub(super) fn text(value: &impl fmt::Display) -> Value {
    value.to_string().into()
}

pub(super) fn plain<T: Copy + Into<Value>>(value: &T) -> Value {
    (*value).into()
}

#[expect(clippy::ptr_arg, reason = "called with the values of settings")]
pub(super) fn path(value: &PathBuf) -> Value {
    value.to_string_lossy().into()
}

fn whole(number: u128) -> Value {
    u64::try_from(number).unwrap_or(u64::MAX).into()
}
