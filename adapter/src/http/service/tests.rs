//! What clients are told when an operation has a defect. None is known, so these operations are made to fail.

use super::{BodyInCustody, scan};
use crate::app::App;
use crate::config::{Config, Layer, resolve};
use crate::http::headers::{CatalogHead, MatchHead};
use crate::http::respond::Answer;
use crate::operation::Answered;
use crate::problem::Problem;
use crate::scanner::Surroundings;
use assay_schemas::vectors::{Given, Vector, directory, load_all};
use assay_schemas::{CatalogResponse, MatchResponse};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An application in which nothing but its parts exists; no engine, no database.
fn app() -> Arc<App> {
    let config = Config::from_resolved(&resolve(&[] as &[Layer]).unwrap()).unwrap();
    Arc::new(App::new(config, Surroundings::default()))
}

/// Reads its input as the real operation does, and then fails in a way that nobody foresaw.
async fn defective<H, T>(_: Arc<App>, _: H, mut body: BodyInCustody) -> Result<Answered<T>, Problem> {
    use http_body_util::BodyExt as _;
    while let Some(Ok(_)) = body.frame().await {}
    panic!("on purpose")
}

/// The service's way from request to answer, with defective operations.
async fn answer(app: Arc<App>, request: Request<Incoming>) -> Answer {
    if request.uri().path() == "/v1/catalog" {
        let head = CatalogHead::parse(request.headers(), i64::MAX);
        scan(&app, head, None, request, defective::<_, CatalogResponse>).await
    } else {
        let head = MatchHead::parse(request.headers(), i64::MAX);
        scan(&app, head, None, request, defective::<_, MatchResponse>).await
    }
}

/// Sends the vector's request over a real connection; the whole answer as it came.
async fn exchange(app: Arc<App>, vector: &Vector) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(move |request| {
            let answer = answer(Arc::clone(&app), request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
            .await
            .unwrap();
    });
    let request = &vector.request;
    let body = request.body_bytes().unwrap();
    let mut bytes = format!("{} {} HTTP/1.1\r\nHost: a\r\n", request.method, request.path);
    for header in &request.headers {
        write!(bytes, "{header}\r\n").unwrap();
    }
    write!(bytes, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(bytes.as_bytes()).await.unwrap();
    client.write_all(&body).await.unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).await.unwrap();
    server.await.unwrap();
    reply
}

#[tokio::test]
async fn a_defect_is_reported_as_such_and_ends_only_its_run() {
    let app = app();
    let mut vectors = load_all(directory()).unwrap();
    vectors.retain(|vector| vector.given == Given::HandlerDefect);
    assert_eq!(vectors.len(), 2, "one for each endpoint");
    for vector in vectors {
        let reply = exchange(Arc::clone(&app), &vector).await;
        let end = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(reply[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let header = |name: &str| {
            head.lines().skip(1).find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        let differences = vector.expect.differences(status, header, &reply[end + 4..]);
        assert_eq!(differences, Vec::<String>::new(), "{}", vector.name);
        let body = String::from_utf8_lossy(&reply[end + 4..]);
        assert!(
            !body.contains("on purpose"),
            "the inside of the adapter is nobody's business: {body}"
        );
    }
    assert_eq!(app.runs.count(), 0);
}
