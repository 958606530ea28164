//! Keys and certificates of one run.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};

pub(crate) const CERTIFICATE: &str = "apiserver.crt";
pub(crate) const KEY: &str = "apiserver.key";
/// The key that signs and verifies the tokens of service accounts.
pub(crate) const ACCOUNTS_KEY: &str = "service-accounts.key";
pub(crate) const ACCOUNTS_PUBLIC_KEY: &str = "service-accounts.pub";

/// Writes the keys and certificates that the server needs into its directory, and returns the CA certificate for its
/// clients. The CA's own key is not kept.
pub(crate) fn write(directory: &Path) -> Result<String> {
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.distinguished_name.push(DnType::CommonName, "real-kubernetes-ca");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut server = CertificateParams::new(["localhost".to_owned()])?;
    server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    server.distinguished_name.push(DnType::CommonName, "real-kubernetes");
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;

    fs::write(directory.join(CERTIFICATE), certificate.pem())?;
    fs::write(directory.join(KEY), key.serialize_pem())?;
    let accounts = KeyPair::generate()?;
    fs::write(directory.join(ACCOUNTS_KEY), accounts.serialize_pem())?;
    fs::write(directory.join(ACCOUNTS_PUBLIC_KEY), accounts.public_key_pem())?;
    Ok(authority.pem())
}
