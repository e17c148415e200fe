//! The rules for the fields of an OCI scan request. Pure.

use crate::oci::select::Selection;
use crate::oci::{Digest, Platform};
use crate::problem::Problem;
use assay_schemas::oci::{ALL_PLATFORMS, MAX_PLATFORMS, REQUIRED_PLATFORMS};
use assay_schemas::{Code, OciScanRequest};
use hyper::Uri;
use secrecy::SecretString;

/// What to pull and which platforms of it to scan.
#[derive(Debug)]
pub struct ImageReference {
    /// Scheme, host and optional path prefix.
    pub registry: Uri,
    /// Repository name.
    pub repository: String,
    /// The manifest or index.
    pub digest: Digest,
    /// Which images of it.
    pub selection: Selection,
    /// Token for staging only.
    pub token: SecretString,
}

/// Platform of a request that names none.
const DEFAULT_PLATFORM: &str = "linux/amd64";

/// Checks every field.
///
/// # Errors
/// [`Code::OciRegistryInvalid`] for a registry URL that is no URL, [`Code::OciRequestInvalid`] for everything else.
pub fn image_reference(request: OciScanRequest) -> Result<ImageReference, Problem> {
    let invalid = |what: &str| Problem::new(Code::OciRequestInvalid, what.to_owned());
    if request.api_version.as_deref() != Some("v1") {
        return Err(invalid("apiVersion must be v1"));
    }
    let registry = registry(request.registry_url.as_deref().unwrap_or(""))?;
    let repository = request.repository.unwrap_or_default();
    if !is_repository(&repository) {
        return Err(invalid("repository is not a repository name"));
    }
    let digest = Digest::parse(request.manifest_digest.as_deref().unwrap_or(""))
        .ok_or_else(|| invalid("manifestDigest is not sha256: and 64 lower-case hexadecimal digits"))?;
    let required = request.required_platforms.unwrap_or_default();
    let selection = match request.platform_policy.as_deref() {
        None | Some(REQUIRED_PLATFORMS) => Selection::Required(platforms(&required)?),
        Some(ALL_PLATFORMS) if required.is_empty() => Selection::All,
        Some(ALL_PLATFORMS) => {
            return Err(invalid("all platforms and required platforms exclude each other"));
        }
        Some(_) => return Err(invalid("platformPolicy is neither REQUIRED_SET nor ALL")),
    };
    let token = request.scoped_bearer_token.unwrap_or_default();
    if token.trim().is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(invalid("scopedBearerToken is missing or not a token"));
    }
    Ok(ImageReference {
        registry,
        repository,
        digest,
        selection,
        token: token.into(),
    })
}

fn registry(text: &str) -> Result<Uri, Problem> {
    let invalid = |what: &str| Problem::new(Code::OciRequestInvalid, what.to_owned());
    if text.trim().is_empty() {
        return Err(invalid("registryUrl is missing"));
    }
    let uri: Uri = text.parse().map_err(|error| {
        Problem::new(Code::OciRegistryInvalid, "registryUrl is not a URL").caused_by(error)
    })?;
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    let has_userinfo = uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    match uri.scheme_str() {
        Some("http" | "https")
            if has_host && !has_userinfo && uri.query().is_none() && !text.contains('#') =>
        {
            Ok(uri)
        }
        _ => Err(invalid(
            "registryUrl must be http or https with a host and without user, query or fragment",
        )),
    }
}

fn is_repository(text: &str) -> bool {
    (1..=512).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-'))
        && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn platforms(requested: &[String]) -> Result<Vec<Platform>, Problem> {
    if requested.len() > MAX_PLATFORMS {
        let message = format!(
            "{} platforms are requested, at most {MAX_PLATFORMS} are possible",
            requested.len()
        );
        return Err(Problem::new(Code::OciRequestInvalid, message));
    }
    let mut distinct: Vec<Platform> = Vec::new();
    let default = [DEFAULT_PLATFORM.to_owned()];
    for text in if requested.is_empty() { &default } else { requested } {
        let Some(platform) = Platform::parse(text) else {
            return Err(Problem::new(
                Code::OciRequestInvalid,
                "a platform is not os/arch or os/arch/variant",
            ));
        };
        if !distinct.contains(&platform) {
            distinct.push(platform);
        }
    }
    Ok(distinct)
}

#[cfg(test)]
mod tests {
    use super::{Selection, image_reference};
    use assay_schemas::{Code, OciScanRequest};
    use serde_json::{Value, json};

    fn check(change: Value) -> Result<super::ImageReference, Code> {
        let mut request = json!({
            "apiVersion": "v1", "runId": "r", "registryUrl": "http://registry:5000/prefix",
            "repository": "Demo/app", "manifestDigest": format!("sha256:{}", "a".repeat(64)),
            "scopedBearerToken": "t", "requiredPlatforms": ["linux/arm64/v8", "linux/arm64/v8"],
        });
        let (Some(request_map), Value::Object(change)) = (request.as_object_mut(), change) else {
            unreachable!()
        };
        request_map.extend(change);
        let request: OciScanRequest = serde_json::from_value(request).unwrap();
        image_reference(request).map_err(|problem| problem.code)
    }

    #[test]
    fn a_good_request_passes_and_platforms_are_distinct() {
        let platforms = |change| {
            let Selection::Required(platforms) = check(change).unwrap().selection else {
                panic!("all platforms");
            };
            platforms.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(platforms(json!({})), ["linux/arm64/v8"]);
        assert_eq!(platforms(json!({"requiredPlatforms": []})), ["linux/amd64"]);
        let all = json!({"platformPolicy": "ALL", "requiredPlatforms": []});
        assert_eq!(check(all).unwrap().selection, Selection::All);
    }

    #[test]
    fn each_wrong_field_is_refused() {
        let cases = [
            json!({"apiVersion": "v2"}),
            json!({"registryUrl": null}),
            json!({"registryUrl": "ftp://registry"}),
            json!({"registryUrl": "http://registry/?a=b"}),
            json!({"registryUrl": "http://registry/#f"}),
            json!({"registryUrl": "http://user@registry/"}),
            json!({"registryUrl": "registry:5000"}),
            json!({"repository": "../x"}),
            json!({"repository": "a//b"}),
            json!({"repository": "a b"}),
            json!({"manifestDigest": "latest"}),
            json!({"manifestDigest": format!("sha512:{}", "0".repeat(128))}),
            json!({"manifestDigest": format!("sha256:{}", "A".repeat(64))}),
            json!({"requiredPlatforms": ["linux"]}),
            json!({"requiredPlatforms": ["Linux/amd64"]}),
            json!({"requiredPlatforms": vec!["linux/amd64"; 17]}),
            json!({"platformPolicy": "ALL"}),
            json!({"platformPolicy": "SOME"}),
            json!({"scopedBearerToken": " "}),
            json!({"scopedBearerToken": "a\r\nb"}),
        ];
        for change in cases {
            assert_eq!(
                check(change.clone()).err(),
                Some(Code::OciRequestInvalid),
                "{change}"
            );
        }
        assert_eq!(
            check(json!({"registryUrl": "http://a b"})).err(),
            Some(Code::OciRegistryInvalid)
        );
    }
}
