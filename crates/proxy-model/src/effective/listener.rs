//! The settings of a listener.

use crate::effective::list::{List, path, plain, text};
use crate::listener::{
    Acme, Certificate, ClientAuth, ExternalAccount, Listener, ListenerTimeouts, ListenerTls,
};
use crate::model::Model;
use crate::registry::listener_tls::acme as acme_spec;
use crate::registry::policies::{access as access_spec, error_pages as pages_spec};
use crate::registry::{listener_tls as tls_spec, listeners as spec};

pub(super) fn listener(list: &mut List, model: &Model, listener: &Listener) {
    let Listener {
        name: _,
        place: _,
        address,
        protocol,
        default_route,
        trusted_proxies,
        path_policy,
        via,
        expose_reasons,
        h2c,
        proxy_protocol,
        http3,
        alt_svc_max_age,
        alt_svc_port,
        max_concurrent_streams,
        max_stream_resets,
        max_connection_age,
        max_requests_per_connection,
        backlog,
        access,
        error_pages,
        timeouts,
        tls,
    } = listener;
    list.put(&spec::ADDRESS, address, text);
    list.put(&spec::PROTOCOL, protocol, text);
    list.put_any(&spec::DEFAULT_ROUTE, default_route.as_ref(), |index| {
        model.route(*index).map(|route| route.id.clone()).into()
    });
    list.put_all(&spec::TRUSTED_PROXIES, trusted_proxies, text);
    list.put(&spec::PATH_POLICY, path_policy, text);
    list.put(&spec::VIA, via, plain);
    list.put(&spec::EXPOSE_REASONS, expose_reasons, plain);
    list.put(&spec::H2C, h2c, plain);
    list.put(&spec::PROXY_PROTOCOL, proxy_protocol, plain);
    list.put(&spec::HTTP3, http3, plain);
    list.any_time(&spec::ALT_SVC_MAX_AGE, alt_svc_max_age.as_ref());
    list.put_any(&spec::ALT_SVC_PORT, alt_svc_port.as_ref(), plain);
    list.put(&spec::MAX_CONCURRENT_STREAMS, max_concurrent_streams, plain);
    list.put(&spec::MAX_STREAM_RESETS, max_stream_resets, plain);
    list.any_time(&spec::MAX_CONNECTION_AGE, max_connection_age.as_ref());
    let max_requests = max_requests_per_connection.as_ref();
    list.put_any(&spec::MAX_REQUESTS_PER_CONNECTION, max_requests, plain);
    list.put(&spec::BACKLOG, backlog, plain);
    list.access(
        access,
        &access_spec::LISTENER_ALLOW,
        &access_spec::LISTENER_DENY,
        &access_spec::LISTENER_ALLOW_FILE,
        &access_spec::LISTENER_DENY_FILE,
    );
    list.within("error-pages", |list| {
        list.error_pages(
            error_pages,
            &pages_spec::LISTENER_PAGE_STATUS,
            &pages_spec::LISTENER_PAGE_FILE,
            &pages_spec::LISTENER_PAGE_HTML,
        );
    });
    list.within("timeouts", |list| self::timeouts(list, timeouts));
    if let Some(tls) = tls {
        list.within("tls", |list| self::tls(list, tls));
    }
}

fn timeouts(list: &mut List, timeouts: &ListenerTimeouts) {
    let ListenerTimeouts {
        header,
        body_idle,
        write_idle,
        keep_alive,
        handshake,
    } = timeouts;
    list.time(&spec::HEADER, header);
    list.time(&spec::BODY_IDLE, body_idle);
    list.time(&spec::WRITE_IDLE, write_idle);
    list.time(&spec::KEEP_ALIVE, keep_alive);
    list.time(&spec::HANDSHAKE, handshake);
}

fn tls(list: &mut List, tls: &ListenerTls) {
    let ListenerTls {
        place: _,
        certificates,
        acme,
        min_version,
        max_version,
        alpn,
        client_auth,
    } = tls;
    for (index, certificate) in certificates.iter().enumerate() {
        let Certificate {
            cert_file,
            key_file,
            ocsp_file,
            server_names,
        } = certificate;
        list.within(&format!("certificate[{index}]"), |list| {
            list.put(&tls_spec::CERTIFICATE_CERT_FILE, cert_file, path);
            list.put(&tls_spec::CERTIFICATE_KEY_FILE, key_file, path);
            let ocsp_file = ocsp_file.as_ref();
            list.put_any(&tls_spec::CERTIFICATE_OCSP_FILE, ocsp_file, path);
            list.put_all(&tls_spec::SERVER_NAME, server_names, text);
        });
    }
    for (index, acme) in acme.iter().enumerate() {
        list.within(&format!("acme[{index}]"), |list| self::acme(list, acme));
    }
    list.put(&tls_spec::MIN_VERSION, min_version, text);
    list.put(&tls_spec::MAX_VERSION, max_version, text);
    list.put_all(&tls_spec::ALPN, alpn, text);
    if let Some(ClientAuth { ca_file, mode }) = client_auth {
        list.within("client-auth", |list| {
            list.put(&tls_spec::CLIENT_AUTH_CA_FILE, ca_file, path);
            list.put(&tls_spec::CLIENT_AUTH_MODE, mode, text);
        });
    }
}

fn acme(list: &mut List, acme: &Acme) {
    let Acme {
        place: _,
        hosts,
        directory,
        directory_ca_file,
        email,
        terms_agreed,
        challenge,
        dns_command,
        dns_command_timeout,
        eab,
        key_type,
        storage,
    } = acme;
    list.put_all(&acme_spec::HOSTS, hosts, text);
    list.put(&acme_spec::DIRECTORY, directory, text);
    let ca_file = directory_ca_file.as_ref();
    list.put_any(&acme_spec::DIRECTORY_CA_FILE, ca_file, path);
    list.put(&acme_spec::EMAIL, email, text);
    list.put(&acme_spec::TERMS_AGREED, terms_agreed, plain);
    list.put(&acme_spec::CHALLENGE, challenge, text);
    list.put_any(&acme_spec::DNS_COMMAND, dns_command.as_ref(), path);
    list.time(&acme_spec::DNS_COMMAND_TIMEOUT, dns_command_timeout);
    if let Some(ExternalAccount { key_id, key_file }) = eab {
        list.within("eab", |list| {
            list.put(&acme_spec::EAB_KEY_ID, key_id, text);
            list.put(&acme_spec::EAB_KEY_FILE, key_file, path);
        });
    }
    list.put(&acme_spec::KEY_TYPE, key_type, text);
    list.put(&acme_spec::STORAGE, storage, path);
}
