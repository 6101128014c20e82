//! The settings of an upstream.

use crate::effective::list::{List, named, path, plain, text};
use crate::health::{HealthCheck, HealthCheckKind, OutlierDetection};
use crate::registry::{
    health_check as check_spec, outlier_detection as outlier_spec, upstreams as spec,
};
use crate::secret::REDACTED;
use crate::upstream::{
    ConnectionPool, LoadBalancing, Sticky, Target, Upstream, UpstreamTimeouts, UpstreamTls,
};

pub(super) fn upstream(list: &mut List, upstream: &Upstream) {
    let Upstream {
        name: _,
        place: _,
        targets,
        load_balancing,
        slow_start,
        sticky,
        health_check,
        outlier_detection,
        tls,
        protocol,
        send_proxy,
        timeouts,
        connection_pool,
    } = upstream;
    for target in targets {
        let Target {
            place: _,
            address,
            weight,
            backup,
        } = target;
        list.within(&named("targets.target", &address.to_string()), |list| {
            list.put(&spec::ADDRESS, address, text);
            list.put(&spec::WEIGHT, weight, plain);
            list.put(&spec::BACKUP, backup, plain);
        });
    }
    list.put(&spec::LOAD_BALANCING, load_balancing, text);
    list.any_time(&spec::SLOW_START, slow_start.as_ref());
    let is_written = sticky.cookie.place().is_some() || sticky.secret.is_some();
    if **load_balancing == LoadBalancing::Sticky || is_written {
        list.within("sticky", |list| self::sticky(list, sticky));
    }
    if let Some(check) = health_check {
        list.within("health-check", |list| self::health_check(list, check));
    }
    if let Some(detection) = outlier_detection {
        list.within("outlier-detection", |list| outliers(list, detection));
    }
    if let Some(tls) = tls {
        list.within("tls", |list| self::tls(list, tls));
    }
    list.put(&spec::PROTOCOL, protocol, text);
    list.put_any(&spec::SEND_PROXY, send_proxy.as_ref(), text);
    list.within("timeouts", |list| times(list, timeouts));
    list.within("connection-pool", |list| pool(list, connection_pool));
}

fn health_check(list: &mut List, check: &HealthCheck) {
    let HealthCheck {
        place: _,
        kind,
        profile,
        interval,
        timeout,
        healthy_threshold,
        unhealthy_threshold,
    } = check;
    list.within("type", |list| match kind {
        HealthCheckKind::Http {
            path,
            expected_status,
            host,
        } => {
            list.put(&check_spec::PATH, path, text);
            list.put(&check_spec::EXPECTED_STATUS, expected_status, text);
            list.put_any(&check_spec::HOST, host.as_ref(), text);
        }
        HealthCheckKind::Tcp => {}
        HealthCheckKind::Grpc { service } => {
            list.put_any(&check_spec::SERVICE, service.as_ref(), text);
        }
        HealthCheckKind::Inference {
            endpoint,
            expected_models,
        } => {
            list.put(&check_spec::ENDPOINT, endpoint, text);
            list.put_all(&check_spec::EXPECTED_MODELS, expected_models, text);
        }
    });
    list.put(&check_spec::PROFILE, profile, |profile| {
        profile.name().into()
    });
    list.time(&check_spec::INTERVAL, interval);
    list.time(&check_spec::TIMEOUT, timeout);
    list.put(&check_spec::HEALTHY_THRESHOLD, healthy_threshold, plain);
    list.put(&check_spec::UNHEALTHY_THRESHOLD, unhealthy_threshold, plain);
}

fn outliers(list: &mut List, detection: &OutlierDetection) {
    let OutlierDetection {
        place: _,
        consecutive_failures,
        failure_percent,
        min_requests,
        interval,
        base_ejection,
        max_ejection,
        max_ejected_percent,
    } = detection;
    list.put(
        &outlier_spec::CONSECUTIVE_FAILURES,
        consecutive_failures,
        plain,
    );
    list.put_any(
        &outlier_spec::FAILURE_PERCENT,
        failure_percent.as_ref(),
        plain,
    );
    list.put(&outlier_spec::MIN_REQUESTS, min_requests, plain);
    list.time(&outlier_spec::INTERVAL, interval);
    list.time(&outlier_spec::BASE_EJECTION, base_ejection);
    list.time(&outlier_spec::MAX_EJECTION, max_ejection);
    list.put(
        &outlier_spec::MAX_EJECTED_PERCENT,
        max_ejected_percent,
        plain,
    );
}

fn tls(list: &mut List, tls: &UpstreamTls) {
    let UpstreamTls {
        place: _,
        sni,
        ca_file,
        cert_file,
        key_file,
        verify,
        pins,
    } = tls;
    list.put_any(&spec::SNI, sni.as_ref(), text);
    list.put_any(&spec::CA_FILE, ca_file.as_ref(), path);
    list.put_any(&spec::CERT_FILE, cert_file.as_ref(), path);
    list.put_any(&spec::KEY_FILE, key_file.as_ref(), path);
    list.put(&spec::VERIFY, verify, plain);
    list.put_all(&spec::PIN, pins, text);
}

fn sticky(list: &mut List, sticky: &Sticky) {
    let Sticky { cookie, secret } = sticky;
    list.put(&spec::STICKY_COOKIE, cookie, text);
    list.put_any(&spec::STICKY_SECRET, secret.as_ref(), |_| REDACTED.into());
}

fn times(list: &mut List, timeouts: &UpstreamTimeouts) {
    let UpstreamTimeouts {
        connect,
        request,
        read,
        idle,
    } = timeouts;
    list.time(&spec::CONNECT, connect);
    list.time(&spec::REQUEST, request);
    list.time(&spec::READ, read);
    list.time(&spec::IDLE, idle);
}

fn pool(list: &mut List, pool: &ConnectionPool) {
    let ConnectionPool {
        max_connections,
        max_idle,
        idle_timeout,
        max_lifetime,
    } = pool;
    list.put_any(&spec::MAX_CONNECTIONS, max_connections.as_ref(), plain);
    list.put_any(&spec::MAX_IDLE, max_idle.as_ref(), plain);
    list.time(&spec::IDLE_TIMEOUT, idle_timeout);
    list.any_time(&spec::MAX_LIFETIME, max_lifetime.as_ref());
}
