//! Capabilities and health.

use super::readiness::readiness;
use crate::app::App;
use assay_schemas::version::{
    ADAPTER_NAME, ADAPTER_VERSION, API_VERSION, OPERATIONS, TARGET_CLASSIFICATIONS,
};
use assay_schemas::{Capabilities, Readiness};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The static description of this adapter.
pub fn capabilities(app: &App) -> Capabilities {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Capabilities {
        api_version: API_VERSION.to_owned(),
        adapter_name: ADAPTER_NAME.to_owned(),
        adapter_version: ADAPTER_VERSION.to_owned(),
        operations: owned(OPERATIONS),
        target_classifications: owned(TARGET_CLASSIFICATIONS),
        max_input_bytes: app.config.ceiling.max_input_bytes,
        max_output_bytes: app.config.ceiling.max_output_bytes,
        capability_digest: app.capability_digest.clone(),
    }
}

/// Health in the words of the health endpoints.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<Value>,
}

impl Health {
    /// Whether the endpoint answers 200.
    pub fn is_up(&self) -> bool {
        self.status == "UP"
    }
}

/// Whether the process lives: as long as it answers.
pub const fn liveness() -> Health {
    Health {
        status: "UP",
        components: None,
    }
}

/// Whether scans can be accepted.
pub async fn health_readiness(app: &Arc<App>) -> Health {
    Health {
        status: status_word(readiness(app).await.as_ref()),
        components: None,
    }
}

/// The overview, with the scanner as its only component.
pub async fn health(app: &Arc<App>) -> Health {
    let readiness = readiness(app).await;
    let status = status_word(&readiness);
    let scanner = json!({
        "status": status,
        "details": {
            "status": readiness.status,
            "engine": readiness.engine_name,
            "engineVersion": readiness.engine_version,
            "databaseRevision": readiness.vulnerability_database_revision,
            "databaseUpdatedAt": readiness.vulnerability_database_updated_at,
        },
    });
    Health {
        status,
        components: Some(json!({ "scanner": scanner })),
    }
}

fn status_word(readiness: &Readiness) -> &'static str {
    if readiness.ready { "UP" } else { "DEGRADED" }
}

/// Build facts.
pub async fn info(app: &Arc<App>) -> Value {
    let readiness = readiness(app).await;
    json!({
        "app": { "name": "assay-adapter", "version": env!("CARGO_PKG_VERSION") },
        "adapter": { "name": ADAPTER_NAME, "version": ADAPTER_VERSION, "capabilityDigest": app.capability_digest },
        "engines": readiness.details,
    })
}
