//! The `system` block.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, MachinePart, Repeatable, Unset};
use super::table::{block, integer, settings, text, time, time_from};
use super::text::Text;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const DNS_PORT: u16 = 53;
const MIN_TTL: Duration = Duration::from_secs(1);
const MAX_TTL: Duration = Duration::from_hours(24);

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let bare = text
        .parse::<IpAddr>()
        .map(|ip| SocketAddr::new(ip, DNS_PORT));
    bare.or_else(|_| text.parse::<SocketAddr>()).map_err(|_| {
        "a name server is written as an IP address, with a port if it is not 53".to_owned()
    })
}

settings! {
    /// Number of worker threads. 0 starts one for each core available to the process.
    WORKER_THREADS: Integer<u32>, DefaultValue<u32> = integer("system.worker-threads", 0, 1_024, "threads")
        .or(0)
        .also(&[""])
        .enforced("proxy-server", "every_worker_gives_every_target_its_turn");
    /// Grace period for requests in flight at shutdown, and for streams after a reload that removed
    /// their route or target. 0 ends them at once.
    GRACEFUL_SHUTDOWN_TIMEOUT: Time, DefaultValue<Duration> = time_from(
        "system.graceful-shutdown-timeout-secs",
        Duration::ZERO,
        Duration::from_hours(24),
    )
    .or(Duration::from_secs(30))
    .enforced("proxy-server", "requests_are_cut_when_the_shutdown_timeout_is_over");
    /// Resolution of targets with DNS names. `/etc/hosts` has precedence.
    DNS: Block, Unset = block("system.dns")
        .optional("each setting has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Name servers, queried in order, by UDP and, for long answers, by TCP.
    NAME_SERVERS: Text<SocketAddr>, Repeatable =
        text("system.dns.name-servers", "an IP address", "10.0.0.53", name_server)
            .many()
            .names(MachinePart::PeerAddress)
            .enforced("proxy-dns", "each_address_of_a_name_is_a_target_of_its_own");
    /// Maximum time of a look-up, over all name servers.
    DNS_TIMEOUT: Time, DefaultValue<Duration> =
        time("system.dns.timeout-secs", Duration::from_mins(1))
            .or(Duration::from_secs(5))
            .enforced("proxy-dns", "queries_to_a_silent_name_server_time_out");
    /// Minimum time between two look-ups of a name, also after a failed one.
    MIN_TTL_SECS: Time, DefaultValue<Duration> = time_from("system.dns.min-ttl-secs", MIN_TTL, MAX_TTL)
        .or(Duration::from_secs(5))
        .enforced("proxy-dns", "names_are_looked_up_again_by_their_ttl_within_bounds");
    /// Maximum time between two look-ups of a name, regardless of its records' TTL. A greater
    /// `min-ttl-secs` has precedence.
    MAX_TTL_SECS: Time, DefaultValue<Duration> = time_from("system.dns.max-ttl-secs", MIN_TTL, MAX_TTL)
        .or(Duration::from_mins(5))
        .enforced("proxy-dns", "names_are_looked_up_again_by_their_ttl_within_bounds");
}
