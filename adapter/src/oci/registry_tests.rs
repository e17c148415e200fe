use super::Registries;
use crate::config::OciConfig;
use crate::oci::address::AddressPolicy;
use crate::oci::digest::Digest;
use crate::oci::document::Blob;
use crate::oci::endpoint::EndpointPolicy;
use crate::run::RunContext;
use assay_schemas::Code;
use secrecy::SecretString;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const CONTENT: &[u8] = b"hello, layer";

/// Answers every connection with these bytes and gives the heads of its requests.
async fn scripted(answer: Vec<u8>, stays_open: bool) -> (u16, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heads, seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match socket.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let _ = heads.send(String::from_utf8(head).unwrap());
            let _ = socket.write_all(&answer).await;
            if stays_open {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
        }
    });
    (port, seen)
}

fn registries(denied: &str) -> Registries {
    Registries::new(&OciConfig {
        policy: EndpointPolicy {
            plain_http: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
            addresses: AddressPolicy::parse(denied).unwrap(),
        },
        ca_file: None,
        parallel_fetches: 1,
    })
}

fn blob() -> Blob {
    Blob {
        media_type: "m".to_owned(),
        digest: Digest::of(CONTENT),
        size: CONTENT.len() as u64,
    }
}

/// What comes of a layer and of a config when the registry answers like this.
async fn fetch(answer: Vec<u8>, stays_open: bool, timeout: Duration) -> [Result<(), Code>; 2] {
    let (port, mut seen) = scripted(answer, stays_open).await;
    let url = format!("http://127.0.0.1:{port}/prefix").parse().unwrap();
    let run = RunContext::with_timeout(timeout);
    let registry = registries("")
        .repository(&url, "team/app", &SecretString::from("s3cret"), &run)
        .unwrap();
    assert!(!format!("{registry:?}").contains("s3cret"));
    let mut file = tempfile::tempfile().unwrap();
    let (spool, _) = crate::spool::growing();
    let stored = match registry.download(&blob()).await {
        Ok(download) => download.store(&blob(), file.try_clone().unwrap(), spool).await,
        Err(error) => Err(error),
    };
    if stored.is_ok() {
        use std::io::{Read as _, Seek as _};
        let mut content = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content, CONTENT);
    }
    let document = registry.config(&blob()).await;
    if let Ok(document) = &document {
        assert_eq!(document, CONTENT);
    }
    let head = seen.recv().await.unwrap();
    let path = format!(
        "GET /v2/prefix/team/app/blobs/{} HTTP/1.1\r\n",
        Digest::of(CONTENT)
    );
    assert!(head.starts_with(&path), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("\r\nauthorization: bearer s3cret\r\n"), "{head}");
    assert!(head.contains("\r\naccept-encoding: identity\r\n"), "{head}");
    for error in [stored.as_ref().err(), document.as_ref().err()]
        .into_iter()
        .flatten()
    {
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
    [
        stored.map_err(|error| error.code()),
        document.map(drop).map_err(|error| error.code()),
    ]
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat()
}

#[tokio::test]
async fn content_is_believed_only_when_all_of_it_is_right() {
    let chunked = |body: &str| answer("200 OK\r\nTransfer-Encoding: chunked", body.as_bytes());
    let cases = [
        (answer("200 OK\r\nContent-Length: 12", CONTENT), Ok(())),
        (chunked("c\r\nhello, layer\r\n0\r\n\r\n"), Ok(())),
        (answer("200 OK\r\nConnection: close", CONTENT), Ok(())),
        // Another length, announced or not.
        (
            answer("200 OK\r\nContent-Length: 13", b"hello, layer!"),
            Err(Code::OciBlobSizeMismatch),
        ),
        (
            answer("200 OK\r\nContent-Length: 5", b"hello"),
            Err(Code::OciBlobSizeMismatch),
        ),
        (
            chunked("d\r\nhello, layer!\r\n0\r\n\r\n"),
            Err(Code::OciBlobSizeMismatch),
        ),
        (chunked("5\r\nhello\r\n0\r\n\r\n"), Err(Code::OciBlobSizeMismatch)),
        (
            answer("200 OK\r\nConnection: close", b"hello, layer!"),
            Err(Code::OciBlobSizeMismatch),
        ),
        // A connection that broke says nothing about the content.
        (
            answer("200 OK\r\nContent-Length: 12", b"hello"),
            Err(Code::OciRegistryIo),
        ),
        (chunked("c\r\nhello"), Err(Code::OciRegistryIo)),
        (
            answer("200 OK\r\nConnection: close", b"hello"),
            Err(Code::OciRegistryIo),
        ),
        (Vec::new(), Err(Code::OciRegistryIo)),
        // Other content of the right length.
        (
            answer("200 OK\r\nContent-Length: 12", b"hello, liar!"),
            Err(Code::OciBlobDigestMismatch),
        ),
        (
            answer("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12", CONTENT),
            Err(Code::OciRegistryResponseInvalid),
        ),
        (
            answer("200 OK\r\nContent-Length: twelve", CONTENT),
            Err(Code::OciRegistryResponseInvalid),
        ),
        (
            b"SSH-2.0-registry\r\n\r\n".to_vec(),
            Err(Code::OciRegistryResponseInvalid),
        ),
    ];
    for (answer, want) in cases {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let got = fetch(answer, false, Duration::from_secs(20)).await;
        assert_eq!(got, [want, want], "{shown}");
    }
}

#[tokio::test]
async fn every_other_status_is_an_error_and_no_redirection_is_followed() {
    let elsewhere = "Location: http://127.0.0.1:1/x\r\nContent-Length: 0";
    for (status, want) in [
        ("401 Unauthorized", Code::OciRegistryAuthFailed),
        ("403 Forbidden", Code::OciRegistryAuthFailed),
        ("404 Not Found", Code::OciRegistryContentMissing),
        ("204 No Content", Code::OciRegistryResponseInvalid),
        ("206 Partial Content", Code::OciRegistryResponseInvalid),
        ("301 Moved Permanently", Code::OciRegistryScanFailed),
        ("307 Temporary Redirect", Code::OciRegistryScanFailed),
        ("429 Too Many Requests", Code::OciRegistryScanFailed),
        ("500 Internal Server Error", Code::OciRegistryScanFailed),
    ] {
        let got = fetch(
            answer(&format!("{status}\r\n{elsewhere}"), b""),
            false,
            Duration::from_secs(20),
        )
        .await;
        assert_eq!(got, [Err(want), Err(want)], "{status}");
    }
}

#[tokio::test]
async fn silence_ends_with_the_deadline_of_the_run() {
    for silent in [
        Vec::new(),
        answer("200 OK\r\nContent-Length: 12", b""),
        answer("200 OK\r\nContent-Length: 12", b"hello"),
    ] {
        let got = fetch(silent, true, Duration::from_secs(3)).await;
        assert_eq!(got[0], Err(Code::Timeout));
    }
}

#[tokio::test]
async fn a_root_is_bounded_and_a_name_is_checked_by_its_address() {
    let run = RunContext::with_timeout(Duration::from_secs(20));
    let token = SecretString::from("t");
    for (head, limit, want) in [
        ("200 OK\r\nContent-Length: 12", 12, Ok(CONTENT.to_vec())),
        ("200 OK\r\nContent-Length: 12", 11, Err(Code::OciInputTooLarge)),
        ("200 OK\r\nConnection: close", 11, Err(Code::OciManifestTooLarge)),
    ] {
        let (port, _seen) = scripted(answer(head, CONTENT), false).await;
        let url = format!("http://localhost:{port}").parse().unwrap();
        let registry = registries("").repository(&url, "app", &token, &run).unwrap();
        let got = registry.root(&Digest::of(CONTENT), limit).await;
        assert_eq!(got.map_err(|error| error.code()), want, "{head} {limit}");
        let denied = registries("127.0.0.0/8,::1")
            .repository(&url, "app", &token, &run)
            .unwrap();
        let got = denied.root(&Digest::of(CONTENT), limit).await;
        assert_eq!(got.map_err(|error| error.code()), Err(Code::OciRegistryInvalid));
    }
}
