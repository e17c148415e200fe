//! Certificates and tokens, made anew for each registry.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A certificate authority that no system trusts.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// With a key of its own.
    pub(crate) fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self {
            issuer: CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap(),
        }
    }

    /// Its own certificate, PEM.
    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Certificate and key of a server, PEM.
    pub(crate) fn server(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// Signs what docker-registry takes for a token.
pub(crate) struct TokenIssuer {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl TokenIssuer {
    /// Name of the issuer in tokens.
    pub(crate) const ISSUER: &str = "test-host";
    /// Name of the registry in tokens.
    pub(crate) const SERVICE: &str = "test-registry";

    /// With a key of its own.
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self {
            certificate: parameters.self_signed(&key).unwrap(),
            key,
        }
    }

    /// The certificate that tokens are checked against, PEM.
    pub(crate) fn certificate(&self) -> String {
        self.certificate.pem()
    }

    /// A token for pulling from one repository, which ends this many seconds from now; a negative number: ago.
    pub(crate) fn token(&self, repository: &str, seconds: i64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let now = i64::try_from(now).unwrap();
        let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [STANDARD.encode(self.certificate.der())]});
        let claims = json!({
            "iss": Self::ISSUER, "sub": "scanner", "aud": Self::SERVICE, "jti": uuid::Uuid::new_v4().to_string(),
            "nbf": now - 7200, "iat": now - 7200, "exp": now + seconds,
            "access": [{"type": "repository", "name": repository, "actions": ["pull"]}],
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let random = SystemRandom::new();
        let key = self.key.serialize_der();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random).unwrap();
        let signature = key.sign(&random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
