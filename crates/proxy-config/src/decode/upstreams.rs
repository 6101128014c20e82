//! The `upstreams` block.

use super::block::Block;
use super::decoder::Decoder;
use super::health_check::{health_check, outlier_detection};
use super::policies::same_setting;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::upstreams as spec;
use proxy_model::{
    ConnectionPool, LoadBalancing, Place, Setting, Sticky, Target, Upstream, UpstreamProtocol,
    UpstreamTimeouts, UpstreamTls,
};
use std::collections::HashMap;

/// Maximum number of targets of one upstream.
const MAX_TARGETS: usize = 10_000;

pub(super) fn upstream<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Upstream> {
    let name = b.name(d);
    let targets = targets(d, b);
    let load_balancing = b.setting(d, &spec::LOAD_BALANCING);
    let slow_start = b.optional(d, &spec::SLOW_START);
    let sticky = sticky(d, b, &load_balancing);
    let health_check = health_check(d, b);
    let outlier_detection = outlier_detection(d, b);
    let tls = tls(d, b);
    let protocol = b.setting(d, &spec::PROTOCOL);
    let send_proxy = b.optional(d, &spec::SEND_PROXY);
    let header_place = send_proxy.as_ref().and_then(Setting::place);
    if *protocol == UpstreamProtocol::H2 {
        no_header_of_one_client(d, header_place);
    }
    let timeouts = timeouts(d, b);
    let connection_pool = connection_pool(d, b);
    Some(Upstream {
        name: name?.value,
        place: b.place(d),
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
    })
}

fn targets<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Target> {
    let inner = b.inner(d, &spec::TARGETS).unwrap_or_else(Block::empty);
    let blocks = inner.each(d, &spec::TARGET);
    inner.close(d);
    if blocks.is_empty() && !b.is_misread(spec::TARGET.path) && !b.is_misread(spec::TARGETS.path) {
        b.missing(d, "target");
    }
    if let Some(block) = blocks.get(MAX_TARGETS) {
        let place = block.place(d);
        d.fault(
            DiagnosticCode::OutOfRange,
            place,
            format!("an upstream has at most {MAX_TARGETS} targets"),
        );
    }
    let targets = blocks.into_iter().filter_map(|block| {
        let address = block.argument_or_setting(d, &spec::ADDRESS);
        let weight = block.setting(d, &spec::WEIGHT);
        let backup = block.setting(d, &spec::BACKUP);
        let place = block.place(d);
        block.close(d);
        Some(Target {
            place,
            address: address?,
            weight,
            backup,
        })
    });
    let targets: Vec<Target> = targets.collect();
    no_target_twice(d, &targets);
    not_only_backups(d, &targets);
    targets
}

/// Reports an upstream in which every target is a backup.
fn not_only_backups(d: &mut Decoder<'_, '_>, targets: &[Target]) {
    let first = targets.first().and_then(|target| target.backup.place());
    if let Some(place) = first.filter(|_| targets.iter().all(|target| *target.backup)) {
        let message = "every target is a backup, so none is backed up";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("leave `backup` out of those that serve first"));
    }
}

fn no_target_twice(d: &mut Decoder<'_, '_>, targets: &[Target]) {
    let mut seen = HashMap::new();
    for target in targets {
        let place = target.address.place().unwrap_or(target.place);
        if let Some(first) = seen.insert(&target.address.value, place) {
            let message = format!("target {} is there twice", target.address);
            let fault = Diagnostic::new(DiagnosticCode::DuplicateName, place, message);
            d.push(fault.label("again here").related(first, "first here"));
        }
    }
}

/// Reports a PROXY protocol header before connections that several clients share.
fn no_header_of_one_client(d: &mut Decoder<'_, '_>, place: Option<Place>) {
    if let Some(place) = place {
        let message = "`send-proxy` is for connections of one client, and those of `h2` are shared";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("leave it out: targets get the client's address in `X-Forwarded-For`"));
    }
}

fn tls<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<UpstreamTls> {
    let b = b.inner(d, &spec::TLS)?;
    let verify = b.setting(d, &spec::VERIFY);
    let has_pin = b.has(spec::PIN.path) || b.is_misread(spec::PIN.path);
    if !*verify {
        unverified(d, &b, verify.place().unwrap_or_else(|| b.place(d)), has_pin);
    }
    let has = [spec::CERT_FILE, spec::KEY_FILE].map(|spec| b.has(spec.path));
    match has {
        [true, false] => b.missing(d, spec::KEY_FILE.name()),
        [false, true] => b.missing(d, spec::CERT_FILE.name()),
        [true, true] | [false, false] => {}
    }
    let tls = UpstreamTls {
        place: b.place(d),
        sni: b.optional(d, &spec::SNI),
        ca_file: b.file(d, &spec::CA_FILE),
        cert_file: b.file(d, &spec::CERT_FILE),
        key_file: b.file(d, &spec::KEY_FILE),
        verify,
        pins: b.list(d, &spec::PIN),
    };
    b.close(d);
    Some(tls)
}

/// Reports `verify #false` without a pin, and with a `ca-file`, which would have no effect.
fn unverified<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>, place: Place, has_pin: bool) {
    if !has_pin {
        let message = "without `verify` any server can stand in for the targets";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.label("needs `pin-sha256`").help(
            "write the pin of each target's key, or trust its certificate: `ca-file \"target.pem\"`",
        ));
    }
    if let Some(file) = b.place_of(d, spec::CA_FILE.path) {
        let message = "`ca-file` has no effect under `verify #false`";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, file, message);
        d.push(fault.related(place, "certificates are not verified"));
    }
}

fn sticky<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    load_balancing: &Setting<LoadBalancing>,
) -> Sticky {
    let written = b.inner(d, &spec::STICKY);
    if let Some(block) = &written
        && **load_balancing != LoadBalancing::Sticky
    {
        let place = block.place(d);
        let message = format!(
            "`sticky` has no effect under `load-balancing \"{}\"`",
            load_balancing.name()
        );
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write `load-balancing \"sticky\"`, or remove the block"));
    }
    let b = written.unwrap_or_else(Block::empty);
    let sticky = Sticky {
        cookie: b.setting(d, &spec::STICKY_COOKIE),
        secret: b.optional(d, &spec::STICKY_SECRET),
    };
    b.close(d);
    sticky
}

fn timeouts<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> UpstreamTimeouts {
    let flat = b.optional(d, &spec::TIMEOUT);
    let b = b.inner(d, &spec::TIMEOUTS).unwrap_or_else(Block::empty);
    let request = b.setting(d, &spec::REQUEST);
    same_setting(d, flat.as_ref(), Some(&request));
    let timeouts = UpstreamTimeouts {
        connect: b.setting(d, &spec::CONNECT),
        request: flat.unwrap_or(request),
        read: b.setting(d, &spec::READ),
        idle: b.setting(d, &spec::IDLE),
    };
    b.close(d);
    timeouts
}

fn connection_pool<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> ConnectionPool {
    let b = b
        .inner(d, &spec::CONNECTION_POOL)
        .unwrap_or_else(Block::empty);
    let max_connections: Option<Setting<u32>> = b.optional(d, &spec::MAX_CONNECTIONS);
    let max_idle: Option<Setting<u32>> = b.optional(d, &spec::MAX_IDLE);
    if let Some((idle, most)) = max_idle.zip(max_connections)
        && *idle > *most
        && let Some(place) = idle.place()
    {
        d.fault(
            DiagnosticCode::Conflict,
            place,
            "`max-idle` is above `max-connections`",
        );
    }
    let pool = ConnectionPool {
        max_connections,
        max_idle,
        idle_timeout: b.setting(d, &spec::IDLE_TIMEOUT),
        max_lifetime: b.optional(d, &spec::MAX_LIFETIME),
    };
    b.close(d);
    pool
}
