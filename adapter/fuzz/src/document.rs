//! Parsers of documents: manifests, SBOMs, reports and heads of requests.

use super::heap::bounded;
use assay_adapter::http::headers::{CatalogHead, MatchHead, check_api_version};
use assay_adapter::http::router;
use assay_adapter::recognition::identity::Coordinates;
use assay_adapter::recognition::manifest::{self, ManifestError};
use assay_adapter::sbom::{cyclonedx, report};
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeMap;

/// A manifest parser that needs nothing else.
type Parser = fn(&[u8]) -> Result<Coordinates, ManifestError>;

/// All manifest parsers on the same bytes.
pub(super) fn manifests(bytes: &[u8]) {
    bounded(|| {
        let simple: [Parser; 14] = [
            manifest::npm,
            manifest::python,
            manifest::cargo,
            manifest::nuget,
            manifest::gem,
            manifest::helm,
            manifest::pom,
            manifest::pom_properties,
            manifest::composer,
            manifest::dart,
            manifest::ansible,
            |bytes| manifest::debian(bytes, None).map(|(coordinates, _)| coordinates),
            |bytes| manifest::alpine(bytes, None).map(|package| package.coordinates),
            |bytes| manifest::go_module(std::str::from_utf8(bytes).unwrap_or_default()),
        ];
        for parse in simple {
            named(parse(bytes));
        }
        if let Ok(facts) = manifest::conda_index(bytes) {
            named(facts.coordinates());
        }
        let _ = manifest::conda_metadata(bytes);
    });
}

fn named(coordinates: Result<Coordinates, ManifestError>) {
    match coordinates {
        Err(error) => assert!(error.to_string().len() < 200, "{error}"),
        Ok(coordinates) => {
            assert!(!coordinates.name.is_empty() && !coordinates.version.is_empty());
            if let Ok(purl) = coordinates.purl() {
                assert!(
                    purl.starts_with("pkg:") && !purl.contains(char::is_control),
                    "{purl:?}"
                );
            }
        }
    }
}

/// What a client sends to be matched, and what an engine made.
pub(super) fn sbom(bytes: &[u8]) {
    bounded(|| {
        let facts = cyclonedx::inspect(bytes);
        let read = cyclonedx::read(bytes);
        if let (Ok(facts), Ok((version, _))) = (&facts, &read) {
            assert_eq!(&facts.spec_version, version);
        }
        let renamed = BTreeMap::from([("a".to_owned(), "b!/c".to_owned())]);
        let origin = cyclonedx::Origin {
            input_sha256: "00",
            engine_version: "1",
            renamed: &renamed,
        };
        if let Ok(done) = cyclonedx::normalize(bytes, &[], &origin) {
            let again = cyclonedx::read(&done.document);
            assert!(again.is_ok(), "what we write cannot be read: {again:?}");
        }
    });
}

/// Grype's report: normalising it twice changes nothing more.
pub(super) fn report(bytes: &[u8]) {
    bounded(|| {
        let no_platforms = BTreeMap::new().into_iter().collect();
        if let Ok(done) = report::normalize(bytes, &no_platforms) {
            let again = report::normalize(&done.document, &no_platforms);
            assert_eq!(again.as_ref(), Ok(&done), "normalising is not idempotent");
        }
    });
}

/// A request line with headers, as the HTTP library hands them over.
pub(super) fn head(bytes: &[u8]) {
    bounded(|| {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        if request.parse(bytes).is_err() {
            return;
        }
        let path = router::normalize(request.path.unwrap_or("/"));
        assert_eq!(
            path,
            router::normalize(&path.replace('%', "%25")),
            "the path is not in its final form"
        );
        let method = Method::from_bytes(request.method.unwrap_or("GET").as_bytes()).unwrap_or_default();
        if let router::Route::Found(_) = router::route(&method, &path) {
            assert!(
                router::is_guarded(&path) || path.starts_with("/actuator/"),
                "{path}"
            );
        }
        let mut map = HeaderMap::new();
        for header in request.headers.iter() {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(header.value)) {
                map.append(name, value);
            }
        }
        let _ = check_api_version(&map);
        let _ = MatchHead::parse(&map, 1 << 30);
        if let Ok(head) = CatalogHead::parse(&map, 1 << 30) {
            let _ = assay_adapter::http::headers::sha256(&head.expected_sha256);
        }
    });
}
