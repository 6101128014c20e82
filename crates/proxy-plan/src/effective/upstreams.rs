//! The settings of upstreams and their targets.

use super::EffectiveSetting;
use super::SettingValue;
use super::block::Block;
use proxy_model::registry::{health_check, upstreams};
use proxy_model::{
    ConnectionPool, HealthCheck, HealthCheckKind, Origin, Sources, Target, Upstream,
    UpstreamTimeouts, UpstreamTls,
};

/// The settings of one upstream, without those of its targets.
pub(crate) fn upstream(sources: &Sources, upstream: &Upstream) -> Vec<EffectiveSetting> {
    let Upstream {
        name,
        place: _,
        targets: _,
        load_balancing,
        health_check,
        tls,
        protocol,
        timeouts,
        connection_pool,
    } = upstream;
    let mut block = Block::named(sources, "upstreams.upstream", name);
    block.put(&upstreams::LOAD_BALANCING, [load_balancing]);
    block.put(&upstreams::PROTOCOL, [protocol]);
    if let Some(tls) = tls {
        let UpstreamTls {
            place: _,
            sni,
            ca_file,
            cert_file,
            key_file,
        } = tls;
        block.put(&upstreams::SNI, sni);
        block.put(&upstreams::CA_FILE, ca_file);
        block.put(&upstreams::CERT_FILE, cert_file);
        block.put(&upstreams::KEY_FILE, key_file);
    }
    let UpstreamTimeouts {
        connect,
        request,
        read,
        idle,
    } = timeouts;
    block.put(&upstreams::CONNECT, [connect]);
    block.put(&upstreams::REQUEST, [request]);
    block.put(&upstreams::READ, [read]);
    block.put(&upstreams::IDLE, [idle]);
    let ConnectionPool {
        max_connections,
        max_idle,
        idle_timeout,
    } = connection_pool;
    block.put(&upstreams::MAX_CONNECTIONS, max_connections);
    block.put(&upstreams::MAX_IDLE, max_idle);
    block.put(&upstreams::IDLE_TIMEOUT, [idle_timeout]);
    if let Some(check) = health_check {
        put_check(&mut block, check);
    }
    block.into_settings()
}

/// The settings of one upstream's targets.
pub(super) fn targets(sources: &Sources, upstream: &Upstream) -> Vec<EffectiveSetting> {
    let path = "upstreams.upstream.targets.target";
    let of_target = |target: &Target| {
        let Target {
            place: _,
            address,
            weight,
        } = target;
        let name = format!("{}/{}", upstream.name, address.value);
        let mut block = Block::named(sources, path, &name);
        block.put(&upstreams::ADDRESS, [address]);
        block.put(&upstreams::WEIGHT, [weight]);
        block.into_settings()
    };
    upstream.targets.iter().flat_map(of_target).collect()
}

fn put_check(block: &mut Block<'_>, check: &HealthCheck) {
    let HealthCheck {
        place: _,
        kind,
        interval,
        timeout,
        healthy_threshold,
        unhealthy_threshold,
    } = check;
    put_question(block, kind, check);
    block.put(&health_check::INTERVAL, [interval]);
    block.put(&health_check::TIMEOUT, [timeout]);
    block.put(&health_check::HEALTHY_THRESHOLD, [healthy_threshold]);
    block.put(&health_check::UNHEALTHY_THRESHOLD, [unhealthy_threshold]);
}

fn put_question(block: &mut Block<'_>, kind: &HealthCheckKind, check: &HealthCheck) {
    let name = match kind {
        HealthCheckKind::Http {
            path,
            expected_status,
            host,
        } => {
            block.put(&health_check::PATH, [path]);
            block.put(&health_check::EXPECTED_STATUS, [expected_status]);
            block.put(&health_check::HOST, host);
            "http"
        }
        HealthCheckKind::Tcp => "tcp",
        HealthCheckKind::Grpc { service } => {
            block.put(&health_check::SERVICE, service);
            "grpc"
        }
        HealthCheckKind::Inference {
            endpoint,
            expected_models,
        } => {
            block.put(&health_check::ENDPOINT, [endpoint]);
            block.put(&health_check::EXPECTED_MODELS, expected_models);
            "inference"
        }
    };
    let value = SettingValue::Text(name.to_owned());
    block.put_value(&health_check::TYPE, value, Origin::At(check.place));
}
