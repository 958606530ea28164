//! A private CA, and the server's certificate.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The server's certificate and key, and the CA with which clients verify them.
pub(super) struct Certificates {
    pub(super) ca_pem: String,
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivatePkcs8KeyDer<'static>,
}

impl Certificates {
    /// Generates keys and certificates for a server on `ip`. Only clients that are configured to
    /// trust the CA do so, and it signs nothing else, because its key is discarded here.
    ///
    /// The certificates are valid at any time, because a test's clock may be set to any.
    fn new(ip: IpAddr) -> Result<Self, rcgen::Error> {
        Self::signed(ip, CertificateParams::new(["localhost".to_owned()])?)
    }

    fn signed(ip: IpAddr, mut server: CertificateParams) -> Result<Self, rcgen::Error> {
        let mut authority = CertificateParams::new([])?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "embedded-apiserver-ca");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

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
        let certificate = server.signed_by(&key, &authority)?.der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { ca_pem: authority.pem(), certificate, key })
    }

    /// Returns whether a client that trusts the CA would currently accept the certificate for a
    /// server on `ip`.
    fn convince(&self, ip: IpAddr) -> bool {
        let verified = || {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(self.ca_pem.as_bytes()).ok()?).ok()?;
            let provider = Arc::new(ring::default_provider());
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let name = ServerName::IpAddress(ip.into());
            let now = UnixTime::now();
            verifier.ok()?.verify_server_cert(&self.certificate, &[], &name, &[], now).ok()
        };
        verified().is_some()
    }

    /// Fails if the key does not match the certificate.
    pub(super) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let chain = vec![self.certificate.clone()];
        let key = self.key.clone_key().into();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl Clone for Certificates {
    fn clone(&self) -> Self {
        let Self { ca_pem, certificate, key } = self;
        Self { ca_pem: ca_pem.clone(), certificate: certificate.clone(), key: key.clone_key() }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret.
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

/// Returns the certificates of a server on `ip`: the earlier ones if clients would accept them,
/// otherwise new ones.
pub(super) fn certificates(
    kept: Option<Certificates>,
    ip: IpAddr,
) -> io::Result<(Certificates, TlsAcceptor)> {
    if let Some(kept) = kept.filter(|kept| kept.convince(ip))
        && let Ok(acceptor) = kept.acceptor()
    {
        return Ok((kept, acceptor));
    }
    let new = Certificates::new(ip).map_err(io::Error::other)?;
    let acceptor = new.acceptor()?;
    Ok((new, acceptor))
}

#[cfg(test)]
mod tests {
    use rcgen::date_time_ymd;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    fn is_kept(kept: &Certificates, ip: IpAddr) -> bool {
        let (now, _) = certificates(Some(kept.clone()), ip).unwrap();
        assert!(now.convince(ip));
        now.ca_pem == kept.ca_pem
    }

    #[test]
    fn what_clients_would_take_is_kept() {
        let kept = Certificates::new(HERE).unwrap();
        assert!(is_kept(&kept, HERE));
        assert!(is_kept(&kept, Ipv6Addr::LOCALHOST.into()));
        assert!(!is_kept(&kept, ELSEWHERE));
        assert!(is_kept(&Certificates::new(ELSEWHERE).unwrap(), ELSEWHERE));
    }

    #[test]
    fn what_has_expired_or_is_not_valid_yet_is_not_kept() {
        let between = |from: i32, to: i32| {
            let mut server = CertificateParams::new([]).unwrap();
            server.not_before = date_time_ymd(from, 1, 1);
            server.not_after = date_time_ymd(to, 1, 1);
            Certificates::signed(HERE, server).unwrap()
        };
        assert!(is_kept(&between(2000, 3000), HERE));
        assert!(!is_kept(&between(2000, 2001), HERE));
        assert!(!is_kept(&between(2999, 3000), HERE));
    }

    #[test]
    fn what_does_not_belong_together_is_not_kept() {
        let [one, other] = [HERE, HERE].map(|ip| Certificates::new(ip).unwrap());
        let of_other = |change: fn(&mut Certificates, Certificates)| {
            let mut mixed = one.clone();
            change(&mut mixed, other.clone());
            is_kept(&mixed, HERE)
        };
        assert!(!of_other(|mixed, other| mixed.key = other.key));
        assert!(!of_other(|mixed, other| mixed.certificate = other.certificate));
        assert!(!of_other(|mixed, other| mixed.ca_pem = other.ca_pem));
        assert!(!of_other(|mixed, _| mixed.ca_pem = "no certificate".to_owned()));
        assert!(!of_other(|mixed, _| mixed.certificate = vec![0x30].into()));
        assert!(!of_other(|mixed, _| mixed.key = vec![0x30].into()));
    }
}
