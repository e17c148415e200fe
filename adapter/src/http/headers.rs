//! Header map to typed request heads, in the contract's order of checks.

use crate::problem::Problem;
use crate::runs::RunId;
use assay_schemas::{Code, RequestedLimits, ResourceLimits, headers as names};
use hyper::HeaderMap;
use std::str::FromStr;

/// The head of `POST /v1/catalog`, as far as it is checked before a slot is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogHead {
    /// Run id.
    pub run_id: RunId,
    /// As written; its form is checked inside the slot.
    pub expected_sha256: String,
    /// As written; its range is checked inside the slot.
    pub expected_size: i64,
    /// As written; `None` when absent.
    pub artifact_type: Option<String>,
    /// Requested limits with defaults filled in, validated, not yet capped.
    pub limits: ResourceLimits,
    /// Distribution that the host knows for a loose operating system package, as `id:version`.
    pub distribution: Option<String>,
}

/// The head of `POST /v1/match`, as far as it is checked before a slot is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchHead {
    /// Run id.
    pub run_id: RunId,
    /// As written; its form is checked inside the slot.
    pub sbom_sha256: String,
    /// Requested limits with defaults filled in, validated, not yet capped.
    pub limits: ResourceLimits,
}

impl CatalogHead {
    /// Parses the head.
    ///
    /// # Errors
    /// Missing or repeated headers and a size that is no number: [`Code::RequestInvalid`]; then
    /// [`Code::ApiUnsupported`], [`Code::HeaderInvalid`], [`Code::RequestInvalid`] for limits and
    /// [`Code::RunIdInvalid`], in this order.
    pub fn parse(headers: &HeaderMap, max_input_bytes: i64) -> Result<Self, Problem> {
        let version = required(headers, names::API_VERSION)?;
        let run_id = required(headers, names::RUN_ID)?;
        let expected_sha256 = required(headers, names::EXPECTED_SHA256)?.to_owned();
        let size = required(headers, names::EXPECTED_SIZE)?;
        let expected_size = size.trim().parse().map_err(|_| {
            Problem::new(
                Code::RequestInvalid,
                format!("{} is not a whole number", names::EXPECTED_SIZE),
            )
        })?;
        check_version(version)?;
        let limits = limits(headers, max_input_bytes)?;
        let run_id = RunId::parse(run_id)?;
        let artifact_type = optional(headers, names::ARTIFACT_TYPE, Code::RequestInvalid)?.map(str::to_owned);
        let distribution = optional(headers, names::DISTRIBUTION, Code::RequestInvalid)?.map(str::to_owned);
        Ok(Self {
            run_id,
            expected_sha256,
            expected_size,
            artifact_type,
            limits,
            distribution,
        })
    }
}

impl MatchHead {
    /// Parses the head.
    ///
    /// # Errors
    /// As [`CatalogHead::parse`].
    pub fn parse(headers: &HeaderMap, max_input_bytes: i64) -> Result<Self, Problem> {
        let version = required(headers, names::API_VERSION)?;
        let run_id = required(headers, names::RUN_ID)?;
        let sbom_sha256 = required(headers, names::SBOM_SHA256)?.to_owned();
        check_version(version)?;
        let limits = limits(headers, max_input_bytes)?;
        let run_id = RunId::parse(run_id)?;
        Ok(Self {
            run_id,
            sbom_sha256,
            limits,
        })
    }
}

/// The API version of a cancellation.
///
/// # Errors
/// [`Code::RequestInvalid`] when absent, [`Code::ApiUnsupported`] when unknown.
pub fn check_api_version(headers: &HeaderMap) -> Result<(), Problem> {
    check_version(required(headers, names::API_VERSION)?)
}

/// Lower-case form of a SHA-256 header value.
///
/// # Errors
/// [`Code::ExpectedSha256Invalid`].
pub fn sha256(text: &str) -> Result<String, Problem> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Problem::new(
        Code::ExpectedSha256Invalid,
        "the expected SHA-256 is not 64 hexadecimal digits",
    ))
}

fn check_version(version: &str) -> Result<(), Problem> {
    if version == names::API_VERSION_VALUE {
        return Ok(());
    }
    Err(Problem::new(
        Code::ApiUnsupported,
        "the only supported API version is v1",
    ))
}

fn required<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, Problem> {
    optional(headers, name, Code::RequestInvalid)?
        .ok_or_else(|| Problem::new(Code::RequestInvalid, format!("header {name} is required")))
}

/// The only value of a header. Absent is `None`; repeated or not visible ASCII is an error with `code`.
fn optional<'a>(headers: &'a HeaderMap, name: &'static str, code: Code) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Problem::new(code, format!("header {name} is repeated")));
    }
    value
        .to_str()
        .map(Some)
        .map_err(|_| Problem::new(code, format!("header {name} is not visible ASCII")))
}

fn limits(headers: &HeaderMap, max_input_bytes: i64) -> Result<ResourceLimits, Problem> {
    let requested = RequestedLimits {
        max_input_bytes: number(headers, names::MAX_INPUT_BYTES)?,
        max_archive_entries: number(headers, names::MAX_ARCHIVE_ENTRIES)?,
        max_uncompressed_bytes: number(headers, names::MAX_UNCOMPRESSED_BYTES)?,
        max_single_file_bytes: number(headers, names::MAX_SINGLE_FILE_BYTES)?,
        max_nested_depth: number(headers, names::MAX_NESTED_DEPTH)?,
        timeout_seconds: number(headers, names::TIMEOUT_SECONDS)?,
    };
    let limits = requested.or_defaults(max_input_bytes);
    limits
        .validate()
        .map_err(|error| Problem::new(Code::RequestInvalid, error.to_string()))?;
    Ok(limits)
}

fn number<T: FromStr>(headers: &HeaderMap, name: &'static str) -> Result<Option<T>, Problem> {
    let text = optional(headers, name, Code::HeaderInvalid)?
        .map(str::trim)
        .filter(|text| !text.is_empty());
    text.map(str::parse).transpose().map_err(|_| {
        Problem::new(
            Code::HeaderInvalid,
            format!("header {name} is not a number of its range"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{CatalogHead, MatchHead};
    use assay_schemas::Code;
    use hyper::HeaderMap;
    use hyper::header::{HeaderName, HeaderValue};

    const GOOD: &[(&str, &str)] = &[
        ("x-kkrepo-api-version", "v1"),
        ("x-kkrepo-run-id", "task:1"),
        ("x-kkrepo-expected-sha256", "00"),
        ("x-kkrepo-expected-size", "-5"),
    ];

    fn map(base: &[(&str, &str)], change: &[(&str, Option<&str>)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in base {
            headers.append(
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        for (name, value) in change {
            match value {
                Some(v) => headers.insert(
                    HeaderName::try_from(*name).unwrap(),
                    HeaderValue::from_str(v).unwrap(),
                ),
                None => headers.remove(*name),
            };
        }
        headers
    }

    fn code(change: &[(&str, Option<&str>)]) -> Option<Code> {
        CatalogHead::parse(&map(GOOD, change), 1 << 30)
            .err()
            .map(|problem| problem.code)
    }

    #[test]
    fn a_good_head_keeps_what_the_slot_will_check() {
        let head = CatalogHead::parse(&map(GOOD, &[]), 1 << 30).unwrap();
        assert_eq!((head.expected_sha256.as_str(), head.expected_size), ("00", -5));
        assert_eq!(head.limits.max_uncompressed_bytes, 2 << 30);
    }

    #[test]
    fn each_mistake_has_its_code() {
        let cases: &[(&str, Option<&str>, Code)] = &[
            ("x-kkrepo-api-version", None, Code::RequestInvalid),
            ("x-kkrepo-run-id", None, Code::RequestInvalid),
            ("x-kkrepo-expected-sha256", None, Code::RequestInvalid),
            ("x-kkrepo-expected-size", None, Code::RequestInvalid),
            ("x-kkrepo-expected-size", Some("many"), Code::RequestInvalid),
            ("x-kkrepo-api-version", Some("v2"), Code::ApiUnsupported),
            (
                "x-kkrepo-max-nested-depth",
                Some("2147483648"),
                Code::HeaderInvalid,
            ),
            ("x-kkrepo-max-input-bytes", Some("1e3"), Code::HeaderInvalid),
            ("x-kkrepo-max-input-bytes", Some("0"), Code::RequestInvalid),
            ("x-kkrepo-max-nested-depth", Some("-1"), Code::RequestInvalid),
            ("x-kkrepo-run-id", Some("a b"), Code::RunIdInvalid),
        ];
        for (name, value, want) in cases {
            assert_eq!(code(&[(*name, *value)]), Some(*want), "{name}: {value:?}");
        }
        assert_eq!(code(&[("x-kkrepo-timeout-seconds", Some(" "))]), None);
    }

    #[test]
    fn the_order_of_checks_is_the_contracts() {
        let wrong_version = ("x-kkrepo-api-version", Some("v2"));
        let wrong_limit = ("x-kkrepo-max-input-bytes", Some("x"));
        let wrong_run = ("x-kkrepo-run-id", Some("a b"));
        let no_size = ("x-kkrepo-expected-size", None);
        assert_eq!(
            code(&[wrong_run, wrong_limit, wrong_version, no_size]),
            Some(Code::RequestInvalid)
        );
        assert_eq!(
            code(&[wrong_run, wrong_limit, wrong_version]),
            Some(Code::ApiUnsupported)
        );
        assert_eq!(code(&[wrong_run, wrong_limit]), Some(Code::HeaderInvalid));
        assert_eq!(code(&[wrong_run]), Some(Code::RunIdInvalid));
    }

    #[test]
    fn repeated_headers_are_refused() {
        let twice = [GOOD, &[("x-kkrepo-run-id", "b")]].concat();
        let problem = CatalogHead::parse(&map(&twice, &[]), 1).unwrap_err();
        assert_eq!(problem.code, Code::RequestInvalid);
        let problem = MatchHead::parse(&map(GOOD, &[]), 1).unwrap_err();
        assert_eq!(problem.code, Code::RequestInvalid, "the SBOM hash is required");
    }
}
