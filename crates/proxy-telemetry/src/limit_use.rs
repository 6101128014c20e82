//! The limits of the `limits` block, of routes and of upstreams, and their use.

use serde_json::{Value, json};
use std::fmt;

/// Declares [`LimitSetting`]: one row for each setting.
macro_rules! limit_settings {
    ($($variant:ident $path:literal;)+) => {
        /// A setting that can be reached: of the `limits` block, or of each route or upstream.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the reference of settings has a row for each")]
        pub enum LimitSetting {
            $($variant,)+
        }

        impl LimitSetting {
            /// Every setting, in the order of [`Self::index`].
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The path of the setting, as in records.
            #[must_use]
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$variant => $path,)+
                }
            }
        }
    };
}

limit_settings! {
    MaxHeaderSize "limits.max-header-size-bytes";
    MaxHeaderCount "limits.max-header-count";
    MaxHeaderName "limits.max-header-name-bytes";
    MaxHeaderValue "limits.max-header-value-bytes";
    MaxBodySize "limits.max-body-size-bytes";
    MaxBodyBuffer "limits.max-body-buffer-bytes";
    MaxBodyInspection "limits.max-body-inspection-bytes";
    MaxDecompressionRatio "limits.max-decompression-ratio";
    MaxDecompressedSize "limits.max-decompressed-size-bytes";
    MaxConnectionsPerClient "limits.max-connections-per-client";
    MaxConnectionsPerRoute "limits.max-connections-per-route";
    MaxTotalConnections "limits.max-total-connections";
    MaxIdleConnectionsPerUpstream "limits.max-idle-connections-per-upstream";
    MaxInFlightRequests "limits.max-in-flight-requests";
    MaxInFlightRequestsPerWorker "limits.max-in-flight-requests-per-worker";
    MaxQueuedRequests "limits.max-queued-requests";
    MaxAgentQueueDepth "limits.max-agent-queue-depth";
    MaxAgentBody "limits.max-agent-body-bytes";
    MaxAgentResponse "limits.max-agent-response-bytes";
    MaxRequestsPerSecondGlobal "limits.max-requests-per-second-global";
    MaxRequestsPerSecondPerClient "limits.max-requests-per-second-per-client";
    MaxRequestsPerSecondPerRoute "limits.max-requests-per-second-per-route";
    MaxMemory "limits.max-memory-bytes";
    MaxMemoryPercent "limits.max-memory-percent";
    RouteRateLimit "routes.route.policies.rate-limit";
    RouteBodySize "routes.route.policies.max-body-size";
    PoolConnections "upstreams.upstream.connection-pool.max-connections";
}

impl LimitSetting {
    /// Position in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name within the `limits` block, a route's policies or an upstream.
    #[must_use]
    pub fn name(self) -> &'static str {
        let path = self.path();
        let blocks = ["limits.", "routes.route.policies.", "upstreams.upstream."];
        let mut names = blocks.iter().filter_map(|block| path.strip_prefix(block));
        names.next().unwrap_or(path)
    }

    /// The setting with this path; `None` for one that is not listed.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|setting| setting.path() == path)
    }
}

/// A quantity that is limited, in the unit of its setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A number, or bytes.
    Count(u64),
    /// A ratio or a percentage.
    Decimal(f64),
}

/// The use of one limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitUse {
    /// Name and unit in the configuration.
    pub setting: LimitSetting,
    /// Current use. For a limit on each client, route, worker, agent or target: the largest use of
    /// one. `None` for a limit on each single request, for a rate, and for a setting of routes or
    /// upstreams.
    pub current: Option<Quantity>,
    /// The maximum; `None` if unlimited, and for a setting of routes or upstreams, which have a
    /// value each.
    pub maximum: Option<Quantity>,
}

impl Quantity {
    pub(crate) fn json(self) -> Value {
        match self {
            Self::Count(count) => json!(count),
            Self::Decimal(number) => json!(number),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Decimal(number) => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_found_by_its_path_and_is_at_its_index() {
        for (index, setting) in LimitSetting::ALL.iter().enumerate() {
            assert_eq!(setting.index(), index);
            assert_eq!(LimitSetting::from_path(setting.path()), Some(*setting));
            assert!(!setting.name().contains("limits."), "{}", setting.name());
        }
        let names = LimitSetting::ALL.iter().map(|setting| setting.name());
        let names: Vec<_> = names.rev().take(3).collect();
        let of_blocks = [
            "connection-pool.max-connections",
            "max-body-size",
            "rate-limit",
        ];
        assert_eq!(names, of_blocks);
        assert_eq!(
            LimitSetting::from_path("routes.route.policies.basic-auth.attempts"),
            None
        );
    }
}
