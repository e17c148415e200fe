//! Image scans: real registries, images of all kinds, and a proxy that spoils answers.

mod proxy;
mod registry;
mod scan;
mod tls;
