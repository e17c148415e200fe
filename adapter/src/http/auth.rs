//! The credential check.

use assay_schemas::headers::CREDENTIAL;
use hyper::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

/// Whether the request carries exactly one credential and it is one of the accepted ones.
///
/// Digests are compared, so neither content nor length of a secret shows in the time it takes.
pub fn is_authorized(headers: &HeaderMap, accepted: &[SecretString]) -> bool {
    let mut values = headers.get_all(CREDENTIAL).iter();
    let (Some(given), None) = (values.next(), values.next()) else {
        return false;
    };
    let given = Sha256::digest(given.as_bytes());
    let matches = accepted.iter().fold(Choice::from(0), |found, secret| {
        found
            | given
                .as_slice()
                .ct_eq(Sha256::digest(secret.expose_secret().as_bytes()).as_slice())
    });
    matches.into()
}

#[cfg(test)]
mod tests {
    use super::is_authorized;
    use hyper::HeaderMap;
    use secrecy::SecretString;

    fn headers(values: &[&str]) -> HeaderMap {
        values
            .iter()
            .map(|v| ("x-kkrepo-scanner-credential".parse().unwrap(), v.parse().unwrap()))
            .collect()
    }

    #[test]
    fn exactly_one_right_credential_passes() {
        let accepted = [SecretString::from("new"), SecretString::from("old")];
        assert!(is_authorized(&headers(&["new"]), &accepted));
        assert!(is_authorized(&headers(&["old"]), &accepted));
        for wrong in [&[][..], &[""], &["ne"], &["NEW"], &["new", "new"], &["x", "new"]] {
            assert!(!is_authorized(&headers(wrong), &accepted), "{wrong:?}");
        }
        assert!(!is_authorized(&headers(&["new"]), &[]));
        assert!(!is_authorized(&headers(&[""]), &[]));
    }
}
