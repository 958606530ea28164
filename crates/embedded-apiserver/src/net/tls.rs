//! A certificate authority of its own, and the server's certificate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// What a server shows, and what its clients check that with.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    pub(super) ca_pem: String,
}

impl Identity {
    /// Makes keys and certificates for a server on `ip`. They are used by this listener alone: the
    /// keys never leave the process, and nothing trusts the authority that was not told to.
    ///
    /// Certificates are valid at any time, because a test's clock may show any.
    pub(super) fn new(ip: IpAddr) -> io::Result<Self> {
        let (chain, key, ca_pem) = certificates(ip).map_err(io::Error::other)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem })
    }
}

type Certificates = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String);

fn certificates(ip: IpAddr) -> Result<Certificates, rcgen::Error> {
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.distinguished_name.push(DnType::CommonName, "embedded-apiserver-ca");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut server = CertificateParams::new(["localhost".to_owned()])?;
    let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    server.subject_alt_names.extend(loopback.map(SanType::IpAddress));
    if !loopback.contains(&ip) {
        server.subject_alt_names.push(SanType::IpAddress(ip));
    }
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    server.distinguished_name.push(DnType::CommonName, "embedded-apiserver");
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;

    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    Ok((vec![certificate.der().clone()], key, authority.pem()))
}
