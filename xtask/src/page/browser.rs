//! A headless browser, driven by the `DevTools` protocol over a pipe.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long the browser may take for an answer. A loaded machine takes its time.
const PATIENCE: Duration = Duration::from_secs(240);

/// The browser reads commands from descriptor 3 and writes answers to descriptor 4.
const PIPES: &str = r#"exec 3<&0 4>&1 0</dev/null 1>&2; exec "$@""#;

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,900",
    "--remote-debugging-pipe",
];

pub(crate) struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    /// Everything that the browser reported without being asked.
    events: Vec<Value>,
    profile: PathBuf,
    session: Option<String>,
    number: u64,
}

impl Browser {
    pub(crate) fn start(program: &Path, directory: &Path) -> Result<Self, String> {
        let profile = directory.join(format!("profile-{}", std::process::id()));
        let mut process = Command::new("sh")
            .args(["-c", PIPES, "sh"])
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        let commands = process.stdin.take().ok_or("the browser has no input")?;
        let out = process.stdout.take().ok_or("the browser has no output")?;
        let (tell, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let (events, session) = (Vec::new(), None);
        let mut browser = Self { process, commands, messages, events, profile, session, number: 0 };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Sends a command and waits for its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let sent = write!(self.commands, "{message}\0").and_then(|()| self.commands.flush());
        sent.map_err(|error| format!("the browser has ended: {error}"))?;
        loop {
            let answer = self.messages.recv_timeout(PATIENCE);
            let mut answer = answer.map_err(|error| format!("no answer to {method}: {error}"))?;
            if answer["id"] != self.number {
                self.events.push(answer);
            } else if answer["error"].is_null() {
                return Ok(answer["result"].take());
            } else {
                return Err(format!("{method}: {}", answer["error"]));
            }
        }
    }

    pub(crate) fn open(&mut self, url: &str) -> Result<(), String> {
        self.call("Page.navigate", &json!({"url": url})).map(drop)
    }

    /// Evaluates an expression in the page, and waits if it is a promise.
    pub(crate) fn eval(&mut self, expression: &str) -> Result<Value, String> {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &parameters)?;
        match &answer["exceptionDetails"] {
            Value::Null => Ok(answer["result"]["value"].take()),
            problem => Err(format!("{expression}: {problem}")),
        }
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn until(&mut self, condition: &str, limit: Duration) -> Result<(), String> {
        let waits = format!(
            "new Promise((done) => {{ const end = performance.now() + {};
              const look = () => {{ let met = false; try {{ met = !!({condition}); }} catch (_) {{}}
                if (met) done(true); else if (performance.now() > end) done(false); else setTimeout(look, 20); }};
              look(); }})",
            limit.as_millis()
        );
        if self.eval(&waits)? == true {
            return Ok(());
        }
        let shown = self.eval("document.body.innerText.slice(0, 3000)")?;
        let shown = shown.as_str().unwrap_or_default().to_owned();
        Err(format!("not within {limit:?}: {condition}\nthe page shows:\n{shown}"))
    }

    /// Returns a picture of the visible part of the page.
    pub(crate) fn screenshot(&mut self) -> Result<Vec<u8>, String> {
        self.picture(&json!({"format": "png"}))
    }

    /// Returns a picture of the page down to the end of a section.
    pub(crate) fn until_end_of(&mut self, heading: &str) -> Result<Vec<u8>, String> {
        let end = format!(
            "document.getElementById('{heading}').closest('section').getBoundingClientRect().bottom + scrollY"
        );
        let height = self.eval(&end)?.as_f64().unwrap_or_default() + 12.0;
        let width = self.eval("innerWidth")?;
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        self.picture(&json!({"format": "png", "captureBeyondViewport": true, "clip": clip}))
    }

    /// Returns a picture of the whole page.
    pub(crate) fn whole_page(&mut self) -> Result<Vec<u8>, String> {
        self.picture(&json!({"format": "png", "captureBeyondViewport": true}))
    }

    fn picture(&mut self, parameters: &Value) -> Result<Vec<u8>, String> {
        let answer = self.call("Page.captureScreenshot", parameters)?;
        decoded(answer["data"].as_str().unwrap_or_default())
    }

    /// Returns the addresses of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.of("Network.requestWillBeSent");
        sent.filter_map(|event| event["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    /// Returns everything that a console would show as a warning or an error.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let console = self.of("Runtime.consoleAPICalled");
        let console = console
            .filter(|event| matches!(event["type"].as_str(), Some("error" | "warning" | "assert")));
        let log = self.of("Log.entryAdded").map(|event| &event["entry"]);
        let log = log.filter(|entry| matches!(entry["level"].as_str(), Some("error" | "warning")));
        let all = console.chain(log).chain(self.of("Runtime.exceptionThrown"));
        all.map(ToString::to_string).collect()
    }

    fn of(&self, method: &str) -> impl Iterator<Item = &Value> {
        let of = move |event: &&Value| event["method"] == *method;
        self.events.iter().filter(of).map(|event| &event["params"])
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        // However it ends, its process and its files must not stay.
        let _ = self.call("Browser.close", &json!({}));
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// Decodes base64.
fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err("the picture is not base64".to_owned()),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decoded(text).unwrap(), bytes.as_bytes(), "{text}");
        }
        assert!(decoded("a b").is_err());
    }
}
