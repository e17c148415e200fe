//! (method, path) to operation. Guard and router see the same normalised path.

use hyper::Method;
use percent_encoding::percent_decode_str;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// `GET /v1/capabilities`
    Capabilities,
    /// `GET /v1/readiness`
    Readiness,
    /// `POST /v1/catalog`
    Catalog,
    /// `POST /v1/match`
    Match,
    /// `POST /v1/oci/scan`
    OciScan,
    /// `POST /v1/runs/{runId}/cancel`, with the run id as it stands in the path.
    Cancel(String),
    /// `GET /actuator/health`
    Health,
    /// `GET /actuator/health/liveness`
    Liveness,
    /// `GET /actuator/health/readiness`
    HealthReadiness,
    /// `GET /actuator/info`
    Info,
    /// `GET /actuator/prometheus`
    Prometheus,
}

impl Operation {
    /// Name for metrics and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::Readiness => "readiness",
            Self::Catalog => "catalog",
            Self::Match => "match",
            Self::OciScan => "oci_scan",
            Self::Cancel(_) => "cancel",
            Self::Health | Self::Liveness | Self::HealthReadiness => "health",
            Self::Info => "info",
            Self::Prometheus => "prometheus",
        }
    }

    const fn allowed(&self) -> &'static str {
        match self {
            Self::Catalog | Self::Match | Self::OciScan | Self::Cancel(_) => "POST",
            _ => "GET, HEAD",
        }
    }
}

/// The verdict on a request line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Served.
    Found(Operation),
    /// No such path.
    NotFound,
    /// The path exists with these methods only.
    MethodNotAllowed(&'static str),
}

/// The path that guard and router look at: percent-decoded, path parameters cut, runs of slashes collapsed.
///
/// Dot segments are left alone: no route contains one.
pub fn normalize(raw: &str) -> String {
    let decoded = percent_decode_str(raw).decode_utf8_lossy();
    let mut path = String::with_capacity(decoded.len());
    for segment in decoded.split('/') {
        let name = segment.split(';').next().unwrap_or("");
        // An empty last segment keeps a trailing slash, which names another resource.
        if !name.is_empty() {
            path.push('/');
            path.push_str(name);
        }
    }
    if decoded.ends_with('/') || path.is_empty() {
        path.push('/');
    }
    path
}

/// Whether a normalised path needs the credential.
pub fn is_guarded(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}

/// Routes a normalised path.
pub fn route(method: &Method, path: &str) -> Route {
    let operation = match path {
        "/v1/capabilities" => Operation::Capabilities,
        "/v1/readiness" => Operation::Readiness,
        "/v1/catalog" => Operation::Catalog,
        "/v1/match" => Operation::Match,
        "/v1/oci/scan" => Operation::OciScan,
        "/actuator/health" => Operation::Health,
        "/actuator/health/liveness" => Operation::Liveness,
        "/actuator/health/readiness" => Operation::HealthReadiness,
        "/actuator/info" => Operation::Info,
        "/actuator/prometheus" => Operation::Prometheus,
        _ => match run_id_of_cancel(path) {
            Some(run_id) => Operation::Cancel(run_id.to_owned()),
            None => return Route::NotFound,
        },
    };
    let allowed = operation.allowed();
    if allowed.split(", ").any(|name| name == method.as_str()) {
        Route::Found(operation)
    } else {
        Route::MethodNotAllowed(allowed)
    }
}

fn run_id_of_cancel(path: &str) -> Option<&str> {
    let run_id = path.strip_prefix("/v1/runs/")?.strip_suffix("/cancel")?;
    (!run_id.is_empty() && !run_id.contains('/')).then_some(run_id)
}

#[cfg(test)]
mod tests {
    use super::{Operation, Route, is_guarded, normalize, route};
    use hyper::Method;

    #[test]
    fn guard_and_router_cannot_be_told_apart() {
        for raw in [
            "/v1/capabilities",
            "/v1;x=1/capabilities",
            "//v1//capabilities",
            "/%76%31/capabilities;a=b",
        ] {
            let path = normalize(raw);
            assert!(is_guarded(&path), "{raw}");
            assert_eq!(
                route(&Method::GET, &path),
                Route::Found(Operation::Capabilities),
                "{raw}"
            );
        }
        for raw in [
            "/v1/nope",
            "/v1",
            "/v1/",
            "/v1/..",
            "/%2Fv1/x",
            "/v1%2Fcapabilities",
        ] {
            assert!(is_guarded(&normalize(raw)), "{raw}");
        }
        for raw in ["/", "", "/actuator/health", "/v2/x", "/x/../v1/capabilities"] {
            assert!(!is_guarded(&normalize(raw)), "{raw}");
        }
    }

    #[test]
    fn a_trailing_slash_is_another_path() {
        assert_eq!(route(&Method::GET, &normalize("/v1/readiness/")), Route::NotFound);
        assert_eq!(
            route(&Method::GET, &normalize("/actuator/../v1/capabilities")),
            Route::NotFound
        );
    }

    #[test]
    fn methods_are_checked_after_the_path() {
        assert_eq!(
            route(&Method::GET, "/v1/catalog"),
            Route::MethodNotAllowed("POST")
        );
        assert_eq!(
            route(&Method::PUT, "/v1/readiness"),
            Route::MethodNotAllowed("GET, HEAD")
        );
        assert_eq!(
            route(&Method::HEAD, "/actuator/health"),
            Route::Found(Operation::Health)
        );
        assert_eq!(
            route(&Method::POST, "/v1/runs/a:b/cancel"),
            Route::Found(Operation::Cancel("a:b".into()))
        );
        assert_eq!(route(&Method::POST, "/v1/runs//cancel"), Route::NotFound);
    }
}
