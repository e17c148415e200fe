//! Image scans: real registries, images of all kinds, and a proxy that spoils answers.

mod access;
mod faults;
mod images;
mod proxy;
mod refusals;
mod registry;
mod scan;
mod selection;
mod tls;
