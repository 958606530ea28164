//! Sends a script to both servers.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use futures::future::try_join;
use real_kubernetes::RealKubernetes;
use serde_json::{Value, json};

use super::compare::{Difference, differences};
use super::known;
use super::normal::Normal;
use super::script::{Read, Script, Step};
use crate::http::{Answer, Ask, Http, Watch};
use crate::servers::{Embedded, clients, real};

/// Values saved from earlier responses, and `ns`.
pub(crate) type Variables = BTreeMap<&'static str, String>;

/// Sends the requests to both servers. Fails if there is an unknown difference, or if a known one is gone.
pub(crate) async fn compare(script: Script) -> Result<()> {
    let embedded = Embedded::start().await?;
    let mut of_embedded = Side::new(embedded.http.clone(), script.topic).await?;
    let Some(real) = real().await? else {
        // One server suffices to check that the script itself is valid.
        of_embedded.answers(&script.steps).await?;
        return Ok(());
    };
    let mut of_real = Side::new(real, script.topic).await?;
    let answers = (of_real.answers(&script.steps), of_embedded.answers(&script.steps));
    let (of_real, of_embedded) = try_join(answers.0, answers.1).await?;
    judge(&script, of_real.iter().zip(&of_embedded));
    Ok(())
}

/// Does the same, but compacts both servers after a number of requests.
pub(crate) async fn compare_forgetting(script: Script, after: usize) -> Result<()> {
    let (before, then) = script.steps.split_at(after);
    let embedded = Embedded::start().await?;
    let mut side = Side::new(embedded.http.clone(), script.topic).await?;
    let mut of_embedded = side.answers(before).await?;
    embedded.server.store().compact(embedded.server.store().revision());
    of_embedded.extend(side.answers(then).await?);
    let Some(mut real) = RealKubernetes::start().await? else { return Ok(()) };
    let mut side = Side::new(clients(&real).await?, script.topic).await?;
    let mut of_real = side.answers(before).await?;
    // kube-apiserver has a watch cache of its own, which a restart clears.
    real.compact().await?;
    real.kill9()?;
    real.start_again().await?;
    side.http = clients(&real).await?;
    of_real.extend(side.answers(then).await?);
    judge(&script, of_real.iter().zip(&of_embedded));
    Ok(())
}

fn judge<'a>(script: &Script, answers: impl Iterator<Item = (&'a Value, &'a Value)>) {
    let pairs = script.steps.iter().zip(answers);
    let found = pairs.flat_map(|(step, (real, embedded))| differences(&step.id, real, embedded));
    let report = report(script.topic, &found.collect::<Vec<_>>());
    assert!(report.is_empty(), "\n{report}");
}

/// Returns one line per problem.
fn report(topic: &str, found: &[Difference]) -> String {
    let mut lines = String::new();
    for difference in found.iter().filter(|difference| !known::covers(difference)) {
        lines.push_str(&format!("{difference}\n"));
    }
    for (about, place) in known::stale(topic, found) {
        lines.push_str(&format!(
            "no longer different, take it out of `known`: {about}: {place:?}\n"
        ));
    }
    lines
}

/// One of the servers, and its responses.
struct Side {
    http: Http,
    variables: Variables,
    normal: Normal,
}

impl Side {
    async fn new(http: Http, topic: &str) -> Result<Self> {
        let namespace = format!("compared-{topic}");
        let mut scene = Ask::new("POST", "/api/v1/namespaces");
        scene.headers.push(("content-type", "application/json".to_owned()));
        scene.body = json!({"metadata": {"name": namespace}}).to_string();
        http.send(&scene).await?;
        let variables = Variables::from([("ns", namespace)]);
        Ok(Self { http, variables, normal: Normal::of_topic(topic) })
    }

    /// Returns the responses, in the form that is compared.
    async fn answers(&mut self, steps: &[Step]) -> Result<Vec<Value>> {
        let mut answers = Vec::with_capacity(steps.len());
        for step in steps {
            let ask = filled(&step.ask, &self.variables);
            self.normal.learn(&ask);
            let answer = answer(&self.http, &ask, step, &mut self.variables).await;
            let answer = answer.with_context(|| step.id.clone())?;
            answers.push(self.normal.form(answer, &self.variables));
        }
        Ok(answers)
    }
}

/// Returns a request with its variables replaced.
fn filled(ask: &Ask, variables: &Variables) -> Ask {
    let mut ask = ask.clone();
    for (name, value) in variables {
        let place = format!("<{name}>");
        ask.path = ask.path.replace(&place, value);
        ask.body = ask.body.replace(&place, value);
    }
    ask
}

async fn answer(http: &Http, ask: &Ask, step: &Step, variables: &mut Variables) -> Result<Value> {
    let answer = match step.read {
        Read::Whole => match http.send(ask).await {
            Err(error) if error.is::<kube::Error>() => {
                return Ok(json!({"code": "a broken connection"}));
            }
            answer => answer?,
        },
        Read::OnceThere(pointer) => {
            let there = |answer: &Answer| answer.json().pointer(pointer).is_some();
            http.send_until(ask, |answer| answer.code == 200 && there(answer)).await?
        }
        Read::OnceGone => http.send_until(ask, |answer| answer.code == 404).await?,
        Read::Events(_) | Read::UntilEnd => match http.follow(ask).await? {
            Err(answer) => answer,
            Ok(watch) => return told(watch, step.read).await,
        },
    };
    let body = answer.json();
    for (name, pointer) in &step.saves {
        let saved = body.pointer(pointer).and_then(Value::as_str);
        let saved = saved.with_context(|| format!("no {pointer} in {body}"))?;
        variables.insert(name, saved.to_owned());
    }
    Ok(json!({
        "code": answer.code,
        "type": answer.header("content-type"),
        "retry-after": answer.header("retry-after"),
        "warnings": answer.all("warning"),
        "allow": answer.header("allow"),
        "body": body,
    }))
}

/// Returns the events of a watch.
async fn told(mut watch: Watch, read: Read) -> Result<Value> {
    let mut events = Vec::new();
    let mut end = "open";
    loop {
        if matches!(read, Read::Events(count) if events.len() == count) {
            break;
        }
        let Some(event) = watch.next().await? else {
            end = "ended";
            break;
        };
        events.push(json!({"type": event.kind, "object": event.object}));
    }
    Ok(json!({"code": 200, "watch": end, "events": events}))
}
