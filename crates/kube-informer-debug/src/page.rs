//! The page as a service: its settings, and its responses.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use kube_informer::controller::ControllerHandle;
use kube_informer::workqueue::Task;
use kube_informer::{SharedInformer, SharedInformerFactory, WorkQueue};
use serde::Serialize;
use serde_json::json;
use tower_service::Service;

use crate::admission::{Admission, Refusal, random_token};
use crate::body::Body;
use crate::document::document;
use crate::objects::{Objects, Query};
use crate::pulse::Pulse;
use crate::readings::Sources;
use crate::timeline::MarkKind;

/// The debug page of a factory: a [`tower`](tower_service) service. Cheap to clone.
///
/// See the [crate documentation](crate).
#[derive(Clone)]
pub struct DebugPage(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    admission: Admission,
    objects: Objects,
    buttons: Vec<Button>,
    pulse: Arc<Pulse>,
}

/// Configures a [`DebugPage`].
#[must_use = "nothing is made until build"]
pub struct Builder {
    sources: Sources,
    title: String,
    token: Option<Box<str>>,
    hosts: Vec<String>,
    history: bool,
    objects: bool,
    secrets: bool,
    buttons: Vec<Button>,
}

struct Button {
    label: String,
    explanation: String,
    press: Box<dyn Fn() + Send + Sync>,
}

impl DebugPage {
    /// Creates the page of a factory with the default settings: without objects, without a history, with a random
    /// token, for requests to a loopback address.
    pub fn new(factory: &SharedInformerFactory) -> Self {
        Self::builder(factory).build()
    }

    /// Configures the page of a factory, which includes informers that the factory makes later. The page does not keep
    /// the factory running.
    pub fn builder(factory: &SharedInformerFactory) -> Builder {
        let builder = Builder {
            sources: Sources::default(),
            title: "informers".to_owned(),
            token: Some(random_token()),
            hosts: Vec::new(),
            history: false,
            objects: false,
            secrets: false,
            buttons: Vec::new(),
        };
        builder.factory(factory)
    }

    /// Returns the end of the page's URL, with the token: `/?token=…`. It follows the address of the server and the
    /// path that the service is mounted at.
    pub fn path_and_token(&self) -> String {
        match &self.0.admission.token {
            Some(token) => {
                let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
                format!("/?token={token}")
            }
            None => "/".to_owned(),
        }
    }
}

impl Builder {
    /// Adds a factory.
    pub fn factory(mut self, factory: &SharedInformerFactory) -> Self {
        self.sources.factories.push(factory.downgrade());
        self
    }

    /// Adds an informer that belongs to no factory. The page keeps it running.
    pub fn informer<K: 'static>(mut self, informer: &SharedInformer<K>) -> Self {
        self.sources.informers.push(informer.clone().cast());
        self
    }

    /// Adds a work queue. The queue of a controller comes with the controller.
    pub fn queue<T: Task>(mut self, queue: &WorkQueue<T>) -> Self {
        self.sources.queue(queue);
        self
    }

    /// Adds a controller and its queue.
    pub fn controller(mut self, controller: &ControllerHandle) -> Self {
        self.sources.controller(controller);
        self
    }

    /// Sets the title of the page. The default is `informers`.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Records the last events, and the last ten minutes, even while no page is open. Off by default.
    ///
    /// Each informer then has one more handler, which keeps up to a thousand events, and a task reads the state of the
    /// informers once a second. The task starts with [`build`](Self::build), or with the first request if that is called
    /// outside of a Tokio runtime.
    pub fn history(mut self, on: bool) -> Self {
        self.history = on;
        self
    }

    /// Shows the content of objects, and what updates change. Off by default: the page then shows names, versions,
    /// labels and owners only. Values of Secrets stay hidden either way.
    pub fn show_objects(mut self, on: bool) -> Self {
        self.objects = on;
        self
    }

    /// Shows the values of Secrets too, if objects are shown. Off by default.
    pub fn show_secrets(mut self, on: bool) -> Self {
        self.secrets = on;
        self
    }

    /// Sets the token that the URL must contain, instead of a random one. An empty one is replaced by a random one.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into().into());
        self
    }

    /// Accepts requests without a token, for programs that authenticate them in another way.
    pub fn without_token(mut self) -> Self {
        self.token = None;
        self
    }

    /// Accepts requests to this host name too, without a port. By default only `localhost` and loopback addresses are
    /// accepted, so that no name of another site can point to the page.
    pub fn host(mut self, name: impl AsRef<str>) -> Self {
        self.hosts.push(name.as_ref().to_ascii_lowercase());
        self
    }

    /// Adds a button that calls a function, for demonstrations: it may break the server, for instance. The function must
    /// not block.
    pub fn button(
        mut self,
        label: impl Into<String>,
        explanation: impl Into<String>,
        press: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (label, explanation) = (label.into(), explanation.into());
        self.buttons.push(Button { label, explanation, press: Box::new(press) });
        self
    }

    /// Makes the page.
    pub fn build(self) -> DebugPage {
        let buttons = self.buttons.iter();
        let about = json!({
            "title": self.title,
            "objects": self.objects,
            "history": self.history,
            "buttons": buttons.map(|b| json!({"label": b.label, "explanation": b.explanation})).collect::<Vec<_>>(),
        });
        let pulse = Arc::new(Pulse::new(self.sources, self.objects, self.history, about));
        pulse.start();
        DebugPage(Arc::new(Shared {
            // An empty token would protect nothing.
            admission: Admission {
                token: self
                    .token
                    .map(|token| if token.is_empty() { random_token() } else { token }),
                hosts: self.hosts,
            },
            objects: Objects { shown: self.objects, secrets: self.secrets },
            buttons: self.buttons,
            pulse,
        }))
    }
}

impl Shared {
    fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        if let Err(Refusal(status, text)) = self.admission.check(request) {
            return text_response(status, text);
        }
        // Works at any path that the service is mounted at, whether or not the router removes it.
        let path = request.uri().path();
        let last = path.rsplit('/').next().unwrap_or_default();
        let query = Query::of(request.uri().query());
        match (request.method(), last) {
            (&Method::GET, "stream") => self.stream(),
            (&Method::GET, "event") => found(self.objects.event(&self.pulse, &query)),
            (&Method::GET, "object") => found(self.objects.object(&self.pulse, &query)),
            (&Method::GET, "failed") => found(Objects::failed(&self.pulse, &query)),
            (&Method::POST, "press") => self.press(&query),
            (_, "stream" | "event" | "object" | "failed" | "press") => {
                text_response(StatusCode::METHOD_NOT_ALLOWED, "This method is not allowed here.")
            }
            (&Method::GET, _) => html_response(),
            _ => text_response(StatusCode::METHOD_NOT_ALLOWED, "Only GET is allowed here."),
        }
    }

    fn stream(&self) -> Response<Body> {
        let Some((first, messages, reader)) = self.pulse.open() else {
            let text = "Too many pages are open: close one.";
            return text_response(StatusCode::SERVICE_UNAVAILABLE, text);
        };
        response(StatusCode::OK, "text/event-stream", Body::messages(first, messages, reader))
    }

    fn press(&self, query: &Query) -> Response<Body> {
        let label = query.get("button").unwrap_or_default();
        let Some(button) = self.buttons.iter().find(|button| button.label == label) else {
            return text_response(StatusCode::NOT_FOUND, "There is no such button.");
        };
        self.pulse.mark(MarkKind::Button, button.label.clone());
        (button.press)();
        found(Some(json!({"pressed": button.label})))
    }
}

impl<B> Service<Request<B>> for DebugPage {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.0.answer(&request)))
    }
}

fn html_response() -> Response<Body> {
    let (html, policy) = document();
    let mut response = response(StatusCode::OK, "text/html; charset=utf-8", Body::whole(html));
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn found(value: Option<impl Serialize>) -> Response<Body> {
    match value.and_then(|value| serde_json::to_vec(&value).ok()) {
        Some(json) => response(StatusCode::OK, "application/json", Body::whole(json)),
        None => text_response(StatusCode::NOT_FOUND, "It is not there, or no longer."),
    }
}

fn text_response(status: StatusCode, text: &'static str) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", Body::whole(text))
}

fn response(status: StatusCode, content: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        // The URL contains the token.
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

impl fmt::Debug for DebugPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret.
        f.debug_struct("DebugPage").finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("title", &self.title).finish_non_exhaustive()
    }
}
