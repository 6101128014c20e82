//! The settings of listeners.

use super::block::Block;
use super::{EffectiveSetting, SettingValue};
use proxy_model::registry::{listener_tls, listeners};
use proxy_model::{Certificate, ClientAuth, Listener, ListenerTimeouts, ListenerTls, Model};

/// The settings of one listener.
pub(crate) fn listener(model: &Model, listener: &Listener) -> Vec<EffectiveSetting> {
    let Listener {
        name,
        place: _,
        address,
        protocol,
        default_route,
        trusted_proxies,
        path_policy,
        expose_reasons,
        h2c,
        proxy_protocol,
        max_concurrent_streams,
        backlog,
        timeouts,
        tls,
    } = listener;
    let mut block = Block::named(&model.sources, "listeners.listener", name);
    block.put(&listeners::ADDRESS, [address]);
    block.put(&listeners::PROTOCOL, [protocol]);
    if let Some(setting) = default_route
        && let Some(route) = model.route(setting.value)
    {
        let value = SettingValue::Text(route.id.clone());
        block.put_value(&listeners::DEFAULT_ROUTE, value, setting.origin);
    }
    block.put(&listeners::TRUSTED_PROXIES, trusted_proxies);
    block.put(&listeners::PATH_POLICY, [path_policy]);
    block.put(&listeners::EXPOSE_REASONS, [expose_reasons]);
    block.put(&listeners::H2C, [h2c]);
    block.put(&listeners::PROXY_PROTOCOL, [proxy_protocol]);
    block.put(&listeners::MAX_CONCURRENT_STREAMS, [max_concurrent_streams]);
    block.put(&listeners::BACKLOG, [backlog]);
    put_times(&mut block, timeouts);
    if let Some(tls) = tls {
        put_tls(&mut block, tls);
    }
    block.into_settings()
}

fn put_times(block: &mut Block<'_>, timeouts: &ListenerTimeouts) {
    let ListenerTimeouts {
        header,
        body_idle,
        write_idle,
        keep_alive,
        handshake,
    } = timeouts;
    block.put(&listeners::HEADER, [header]);
    block.put(&listeners::BODY_IDLE, [body_idle]);
    block.put(&listeners::WRITE_IDLE, [write_idle]);
    block.put(&listeners::KEEP_ALIVE, [keep_alive]);
    block.put(&listeners::HANDSHAKE, [handshake]);
}

fn put_tls(block: &mut Block<'_>, tls: &ListenerTls) {
    let ListenerTls {
        place: _,
        certificates,
        min_version,
        max_version,
        alpn,
        client_auth,
    } = tls;
    for certificate in certificates {
        let Certificate {
            cert_file,
            key_file,
            server_names,
        } = certificate;
        block.put(&listener_tls::CERTIFICATE_CERT_FILE, [cert_file]);
        block.put(&listener_tls::CERTIFICATE_KEY_FILE, [key_file]);
        block.put(&listener_tls::SERVER_NAME, server_names);
    }
    block.put(&listener_tls::MIN_VERSION, [min_version]);
    block.put(&listener_tls::MAX_VERSION, [max_version]);
    block.put(&listener_tls::ALPN, alpn);
    if let Some(ClientAuth { ca_file, mode }) = client_auth {
        block.put(&listener_tls::CLIENT_AUTH_CA_FILE, [ca_file]);
        block.put(&listener_tls::CLIENT_AUTH_MODE, [mode]);
    }
}
