//! The certificates that registries are checked against.

use super::error::OciError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The system's certificates, and those of a file beside them.
pub(crate) fn client_config(extra: Option<&Path>) -> Result<ClientConfig, OciError> {
    let mut roots = RootCertStore::empty();
    // A host without certificates can still trust those of the file.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        let unreadable = |error| OciError::Trust(io::Error::other(error));
        let mut count = 0;
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            let certificate = certificate.map_err(unreadable)?;
            roots
                .add(certificate)
                .map_err(|error| OciError::Trust(io::Error::other(error)))?;
            count += 1;
        }
        if count == 0 {
            return Err(OciError::Trust(io::Error::other("the file holds no certificate")));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OciError::Trust(io::Error::other(error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::client_config;

    #[test]
    fn a_file_without_certificates_is_a_mistake() {
        assert!(client_config(None).is_ok());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(client_config(Some(file.path())).is_err());
        std::fs::write(
            file.path(),
            "-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
        assert!(client_config(Some(file.path())).is_err());
        assert!(client_config(Some(&file.path().with_extension("absent"))).is_err());
    }
}
