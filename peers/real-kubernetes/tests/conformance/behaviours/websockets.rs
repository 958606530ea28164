//! Watches over WebSocket.

use anyhow::{Context as _, Result, bail, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::on_both;
use crate::http::{Answer, Ask, WebSocket};
use crate::scene::{Scene, name};

on_both! {
    each_event_is_a_text_message,
    protobuf_events_are_binary_messages,
    one_subprotocol_is_accepted_and_changes_nothing,
    pings_are_answered,
    a_timeout_closes_the_socket,
    invalid_handshakes_are_refused,
    mistakes_get_ordinary_responses,
}

/// Returns the handshake of a watch, with some headers changed, or removed if they are empty.
fn handshake(path: &str, headers: &[(&'static str, &str)]) -> Ask {
    let usual = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("origin", "http://localhost"),
        ("accept", "*/*"),
    ];
    let mut ask = Ask::new("GET", path);
    for (name, value) in usual.iter().chain(headers) {
        ask.headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            ask.headers.push((*name, (*value).to_owned()));
        }
    }
    ask
}

async fn open(scene: &Scene, query: &str, headers: &[(&'static str, &str)]) -> Result<WebSocket> {
    let ask = handshake(&format!("{}?watch=1{query}", scene.maps), headers);
    match scene.http.upgrade(&ask).await? {
        Ok(socket) => Ok(socket),
        Err(answer) => bail!("{} {}", answer.code, answer.text),
    }
}

async fn refused(scene: &Scene, query: &str, headers: &[(&'static str, &str)]) -> Result<Answer> {
    let ask = handshake(&format!("{}?watch=1{query}", scene.maps), headers);
    let refused = scene.http.upgrade(&ask).await?.err();
    refused.with_context(|| format!("{query} {headers:?} is accepted"))
}

async fn text(socket: &mut WebSocket) -> Result<String> {
    match socket.next().await.context("a message")?? {
        Message::Text(text) => Ok(text.to_string()),
        other => bail!("{other:?} is no text"),
    }
}

async fn each_event_is_a_text_message(scene: Scene) -> Result<()> {
    let mut socket = open(&scene, "", &[]).await?;
    scene.create("a").await?;
    scene.create("b").await?;
    for wanted in ["a", "b"] {
        let text = text(&mut socket).await?;
        ensure!(text.ends_with('\n'), "{text}");
        let event: Value = serde_json::from_str(&text)?;
        assert_eq!((event["type"].as_str(), name(&event["object"])), (Some("ADDED"), wanted));
    }
    Ok(())
}

async fn protobuf_events_are_binary_messages(scene: Scene) -> Result<()> {
    let accept = ("accept", kube_schema::MEDIA_TYPE);
    let mut socket = open(&scene, "", &[accept]).await?;
    scene.create("a").await?;
    let Message::Binary(frame) = socket.next().await.context("a message")?? else {
        bail!("it is no binary message")
    };
    let frame = kube_schema::WatchFrame::parse(&frame)?;
    assert_eq!(frame.event_type, "ADDED");
    assert_eq!(name(&kube_schema::from_slice(frame.object)?), "a");
    Ok(())
}

async fn one_subprotocol_is_accepted_and_changes_nothing(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    for protocol in ["base64.binary.k8s.io", "binary.k8s.io", "any"] {
        let mut socket = open(&scene, "", &[("sec-websocket-protocol", protocol)]).await?;
        let event: Value = serde_json::from_str(&text(&mut socket).await?)?;
        assert_eq!(event["type"], "ADDED");
    }
    Ok(())
}

async fn pings_are_answered(scene: Scene) -> Result<()> {
    let mut socket = open(&scene, "", &[]).await?;
    socket.send(Message::text("ignored")).await?;
    socket.send(Message::Ping(Bytes::from_static(b"1"))).await?;
    let pong = socket.next().await.context("a message")??;
    assert_eq!(pong, Message::Pong(Bytes::from_static(b"1")));
    Ok(())
}

async fn a_timeout_closes_the_socket(scene: Scene) -> Result<()> {
    let mut socket = open(&scene, "&timeoutSeconds=1", &[]).await?;
    let Message::Close(Some(close)) = socket.next().await.context("a message")?? else {
        bail!("it is not closed")
    };
    assert_eq!(u16::from(close.code), 1000);
    Ok(())
}

async fn invalid_handshakes_are_refused(scene: Scene) -> Result<()> {
    for (header, value, code) in [
        ("sec-websocket-key", "", 400),
        ("sec-websocket-version", "8", 400),
        ("sec-websocket-protocol", "a, b", 400),
        ("origin", "", 403),
        ("origin", "null", 403),
    ] {
        let answer = refused(&scene, "", &[(header, value)]).await?;
        assert_eq!(answer.code, code, "{header}: {value}: {}", answer.text);
    }
    Ok(())
}

async fn mistakes_get_ordinary_responses(scene: Scene) -> Result<()> {
    refused(&scene, "&labelSelector=%3D", &[]).await?.failed(400, "BadRequest")?;
    refused(&scene, "", &[("accept", "text/html")]).await?.failed(406, "NotAcceptable")?;
    // Only watches are sent over WebSocket.
    let list = handshake(&scene.maps, &[]);
    let answer = scene.http.upgrade(&list).await?.err().context("a list is no WebSocket")?;
    assert_eq!(answer.code, 200);
    Ok(())
}
