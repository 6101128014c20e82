//! How the values of settings lose their types.

use super::SettingValue;
use super::secret::{shown_field, shown_parameter};
use http::Method;
use ipnet::IpNet;
use proxy_model::{
    AgentEncoding, Alpn, BindAddress, BuiltinHandler, ClientAuthMode, FailureMode, HeaderField,
    ListenerProtocol, LoadBalancing, LogLevel, LogTarget, PathPolicy, RateKey, RetryCause,
    ServiceForm, TargetAddress, TlsVersion, UpstreamProtocol,
};
use proxy_routing::{HeaderCondition, HostPattern, PathPattern, QueryCondition};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A value of a setting that can be shown.
pub(crate) trait Shown {
    /// The value without its type.
    fn shown(&self) -> SettingValue;
}

macro_rules! shown_as_text {
    ($($kind:ty),+ $(,)?) => {
        $(impl Shown for $kind {
            fn shown(&self) -> SettingValue {
                SettingValue::Text(self.to_string())
            }
        })+
    };
}

macro_rules! shown_as_number {
    ($($kind:ty),+) => {
        $(impl Shown for $kind {
            fn shown(&self) -> SettingValue {
                SettingValue::Whole((*self).into())
            }
        })+
    };
}

shown_as_number!(i32, u16, u32);
shown_as_text!(
    AgentEncoding,
    Alpn,
    BindAddress,
    BuiltinHandler,
    ClientAuthMode,
    FailureMode,
    HostPattern,
    IpNet,
    ListenerProtocol,
    LoadBalancing,
    LogLevel,
    LogTarget,
    Method,
    PathPolicy,
    RateKey,
    ServiceForm,
    String,
    TargetAddress,
    TlsVersion,
    UpstreamProtocol,
    http::HeaderName,
);

impl Shown for bool {
    fn shown(&self) -> SettingValue {
        SettingValue::Flag(*self)
    }
}

impl Shown for f64 {
    fn shown(&self) -> SettingValue {
        SettingValue::Decimal(*self)
    }
}

/// Settings of this type are sizes.
impl Shown for u64 {
    fn shown(&self) -> SettingValue {
        SettingValue::Size(*self)
    }
}

impl Shown for Duration {
    fn shown(&self) -> SettingValue {
        SettingValue::Time(*self)
    }
}

impl Shown for PathBuf {
    fn shown(&self) -> SettingValue {
        SettingValue::Text(self.display().to_string())
    }
}

impl Shown for Option<SocketAddr> {
    fn shown(&self) -> SettingValue {
        let address = self.map(|address| address.to_string());
        SettingValue::Text(address.unwrap_or_else(|| "off".to_owned()))
    }
}

impl Shown for Vec<RetryCause> {
    fn shown(&self) -> SettingValue {
        SettingValue::Words(self.iter().map(ToString::to_string).collect())
    }
}

impl Shown for PathPattern {
    fn shown(&self) -> SettingValue {
        SettingValue::Text(self.as_str().to_owned())
    }
}

impl Shown for HeaderField {
    fn shown(&self) -> SettingValue {
        SettingValue::Text(shown_field(&self.name, &self.value))
    }
}

impl Shown for HeaderCondition {
    fn shown(&self) -> SettingValue {
        let text = self.value().map_or_else(
            || self.name().to_string(),
            |value| shown_field(self.name(), value),
        );
        SettingValue::Text(text)
    }
}

impl Shown for QueryCondition {
    fn shown(&self) -> SettingValue {
        let text = self.value().map_or_else(
            || self.name().to_owned(),
            |value| shown_parameter(self.name(), value),
        );
        SettingValue::Text(text)
    }
}
