//! The HTTP client for other crates: sends JSON and receives a short text.

use bytes::Bytes;
use haft_contract::{BoxFuture, CancellationToken, HttpClient, HttpPost, HttpTextResponse};
use reqwest::{
    Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};

use super::{Http, body::ResponseBody, host_and_port};

/// The maximum length of a response in bytes.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

impl HttpClient for Http {
    fn post(&self, request: HttpPost) -> BoxFuture<'_, Result<HttpTextResponse, String>> {
        Box::pin(self.send_json(request))
    }
}

impl Http {
    async fn send_json(&self, request: HttpPost) -> Result<HttpTextResponse, String> {
        let url = Url::parse(&request.url).map_err(|error| format!("{}: {error}", request.url))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "{}: only http and https are supported",
                request.url
            ));
        }
        let headers = headers(&request.headers)?;
        // A caller that stops waiting drops the request.
        let never = CancellationToken::new();
        let body = Bytes::from(request.body);
        let sent = async {
            match request.addresses.is_empty() {
                true => self.post(&url, headers, body, &never).await,
                false => self.post_to(&url, headers, body, &request.addresses).await,
            }
        };
        let response = sent.await.map_err(|error| error.message)?;
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|to| to.to_str().ok()).map(str::to_owned);
        let stream = Box::pin(response.bytes_stream());
        let mut body = ResponseBody::new(stream, self.options(), never);
        let bytes = body.all(MAX_LENGTH).await;
        let bytes =
            bytes.map_err(|error| format!("the answer of {}: {error}", host_and_port(&url)))?;
        if bytes.len() == MAX_LENGTH {
            let place = host_and_port(&url);
            return Err(format!(
                "the answer of {place} is longer than {MAX_LENGTH} bytes"
            ));
        }
        Ok(HttpTextResponse {
            status,
            location,
            body: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

/// Returns the headers. Values may be secrets, so error messages do not contain them.
fn headers(written: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in written {
        let unusable = || format!("the header {name:?} has characters that cannot be sent");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
