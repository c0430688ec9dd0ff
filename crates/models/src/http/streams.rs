//! The HTTP client for other protocols over HTTP: GET, POST and DELETE, any header, streamed
//! responses.

use haft_contract::{
    BoxFuture, HttpBody, HttpEvent, HttpFailure, HttpMethod, HttpRequest, HttpResponse,
    HttpTransport,
};
use reqwest::{
    Method, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use super::{Http, root, unreachable};
use crate::{ErrorKind, sse::SseParser};

impl HttpTransport for Http {
    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>> {
        Box::pin(self.stream(request))
    }
}

impl Http {
    async fn stream(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let wrong = |message: String| HttpFailure {
            message,
            is_transient: false,
        };
        let url =
            Url::parse(&request.url).map_err(|error| wrong(format!("{}: {error}", request.url)))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!(
                "{}: only http and https are supported",
                request.url
            )));
        }
        let headers = headers(&request.headers).map_err(wrong)?;
        let method = match request.method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
            HttpMethod::Delete => Method::DELETE,
        };
        let client = self.client(&url).map_err(|error| wrong(error.message))?;
        let sent = client
            .request(method, url.clone())
            .headers(headers)
            .body(request.body)
            .send();
        let response = sent.await.map_err(|error| {
            let error = unreachable(&url, error);
            HttpFailure {
                is_transient: matches!(error.kind, ErrorKind::Refused | ErrorKind::Connection),
                message: error.message,
            }
        })?;
        Ok(response_of(response))
    }
}

/// Converts a response into the type of `haft-contract`.
pub(super) fn response_of(response: Response) -> HttpResponse {
    let headers = response.headers().iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    HttpResponse {
        status: response.status().as_u16(),
        headers: headers.collect(),
        body: Box::new(StreamedBody {
            response,
            parser: None,
            is_over: false,
        }),
    }
}

/// Returns the headers. Values may be secrets, so error messages do not contain them.
pub(super) fn headers(written: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let unusable = || format!("the header {name:?} has characters that cannot be sent");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

struct StreamedBody {
    response: Response,
    parser: Option<SseParser>,
    is_over: bool,
}

impl StreamedBody {
    async fn chunk(&mut self) -> Result<Option<bytes::Bytes>, String> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| format!("it was lost: {}", root(&error.without_url())))
    }
}

impl HttpBody for StreamedBody {
    fn bytes(&mut self, longest: usize) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let mut all = Vec::new();
            while let Some(chunk) = self.chunk().await? {
                if all.len() + chunk.len() > longest {
                    return Err(format!("it is longer than {longest} bytes"));
                }
                all.extend_from_slice(&chunk);
            }
            Ok(all)
        })
    }

    fn event(&mut self, longest: usize) -> BoxFuture<'_, Result<Option<HttpEvent>, String>> {
        Box::pin(async move {
            loop {
                let parser = self.parser.get_or_insert_with(|| SseParser::new(longest));
                let next = match self.is_over {
                    true => parser.finish(),
                    false => parser.next(),
                };
                if let Some(event) = next {
                    let event = event.map_err(|error| error.to_string())?;
                    return Ok(Some(HttpEvent {
                        id: parser.last_id().map(str::to_owned),
                        retry: parser.retry(),
                        name: event.name,
                        data: event.data,
                    }));
                }
                if self.is_over {
                    return Ok(None);
                }
                match self.chunk().await? {
                    Some(chunk) => {
                        if let Some(parser) = &mut self.parser {
                            parser.push(&chunk);
                        }
                    }
                    None => self.is_over = true,
                }
            }
        })
    }
}
