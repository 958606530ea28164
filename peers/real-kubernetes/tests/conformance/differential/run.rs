//! Sends a script to both servers.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use futures::future::try_join;
use serde_json::{Value, json};

use super::compare::{Difference, differences};
use super::known;
use super::normal::Normal;
use super::script::{Read, Script, Step};
use crate::http::{Ask, Http, Watch};
use crate::servers::{Embedded, real};

/// What was saved of earlier answers, and `ns`.
pub(crate) type Variables = BTreeMap<&'static str, String>;

/// Sends the requests to both servers, and fails where the answers differ and that is not known, or is known and not so.
pub(crate) async fn compare(script: Script) -> Result<()> {
    let embedded = Embedded::start().await?;
    let Some(real) = real().await? else {
        // Whether the script itself makes sense can be seen on one server.
        answers(&embedded.http, &script).await?;
        return Ok(());
    };
    let (of_real, of_embedded) =
        try_join(answers(&real, &script), answers(&embedded.http, &script)).await?;
    let mut found = Vec::new();
    for (step, (real, embedded)) in script.steps.iter().zip(of_real.iter().zip(&of_embedded)) {
        found.extend(differences(&step.id, real, embedded));
    }
    let report = report(script.topic, &found);
    assert!(report.is_empty(), "\n{report}");
    Ok(())
}

/// The lines that say what is wrong; none if nothing is.
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

/// What a server answers, in the form in which answers are compared.
async fn answers(http: &Http, script: &Script) -> Result<Vec<Value>> {
    let namespace = format!("compared-{}", script.topic);
    let mut scene = Ask::new("POST", "/api/v1/namespaces");
    scene.headers.push(("content-type", "application/json".to_owned()));
    scene.body = json!({"metadata": {"name": namespace}}).to_string();
    http.send(&scene).await?;
    let mut variables = Variables::from([("ns", namespace)]);
    let mut normal = Normal::default();
    let mut answers = Vec::with_capacity(script.steps.len());
    for step in &script.steps {
        let ask = filled(&step.ask, &variables);
        normal.learn(&ask);
        let answer = answer(http, &ask, step, &mut variables).await;
        let answer = answer.with_context(|| step.id.clone())?;
        answers.push(normal.form(answer, &variables));
    }
    Ok(answers)
}

/// A request with variables in their places.
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
        Read::OnceThere => http.send_until(ask, |answer| answer.code == 200).await?,
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
        "body": body,
    }))
}

/// What a watch says.
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
