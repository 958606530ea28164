//! The checks: what a person would look at.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::browser::Browser;
use super::server::Server;

/// The picture for the README.
pub(crate) const README: &str = "light.png";

/// How long the page may take for anything that needs no time of its own.
const SOON: Duration = Duration::from_secs(60);

/// A watch that has fallen silent is noticed after 75 seconds.
const SILENCE: Duration = Duration::from_secs(180);

/// An event must be seen within this time of its write, at best of several: the machine may be busy.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Faults of one informer, for its picture.
const TROUBLE: &str = "watch replicasets after-events=0 reset\nany replicasets status=503 always";

const LIVE: &str = "document.querySelector('#summary.ok')";

/// Values that would do harm if they were parsed as anything but text.
const HOSTILE: [(&str, &str); 4] = [
    ("html", "<img src=x onerror='window.harmed=1'><b>bold</b>"),
    ("script", "</pre></script><script>window.harmed=2</script>"),
    ("ansi", "\u{1b}[31mred\u{1b}[0m\u{7}"),
    ("rtl", "abc\u{202e}txt.exe"),
];

type Pictures = Vec<(&'static str, Vec<u8>)>;

pub(crate) fn run(browser: &mut Browser, server: &Server) -> Result<Pictures, String> {
    step("the page loads and shows the picture");
    size(browser, 1280, 900, false)?;
    theme(browser, "light")?;
    browser.open(&server.page)?;
    browser.until("document.querySelectorAll('#picture svg .lane').length >= 4", SOON)?;
    browser.until(LIVE, SOON)?;
    // Something happens in the demo about once a second.
    browser.until("document.querySelectorAll('#events > li').length >= 5", SOON)?;
    seen_in_time(browser, server)?;
    hostile(browser, server)?;
    breaks(browser)?;
    let pictures = pictures(browser, server)?;
    step("the console is clean, and no other host was asked");
    let complaints = browser.complaints();
    // A stream that the browser closes when the page goes away is no complaint.
    if !complaints.is_empty() {
        return Err(format!("the console has complaints:\n{}", complaints.join("\n")));
    }
    let origin = server.page.split("/?").next().unwrap_or_default();
    let own = |url: &String| {
        url.starts_with(&format!("{origin}/")) || url.starts_with("data:") || url == "about:blank"
    };
    match browser.requests().iter().find(|url| !own(url)) {
        Some(other) => Err(format!("another host was asked: {other}")),
        None => Ok(pictures),
    }
}

fn step(text: &str) {
    println!("page: {text}");
}

fn seen_in_time(browser: &mut Browser, server: &Server) -> Result<(), String> {
    step("an event is seen within a second of its write");
    let mut best = Duration::MAX;
    for number in 0..5 {
        let name = format!("seen-{number}");
        let begin = SystemTime::now();
        server.send("POST", PODS, &pod(&name, "seen", &json!({})))?;
        let row = format!(
            "[...document.querySelectorAll('#events .key')].some((key) => key.textContent === 'default/{name}')"
        );
        browser.until(&row, SOON)?;
        best = best.min(begin.elapsed().unwrap_or_default());
    }
    println!("page: the fastest of five was seen after {} ms", best.as_millis());
    if best > SEEN_WITHIN {
        return Err(format!("no event was seen within {SEEN_WITHIN:?}: the fastest took {best:?}"));
    }
    Ok(())
}

fn hostile(browser: &mut Browser, server: &Server) -> Result<(), String> {
    step("hostile values are shown as text");
    let annotations: Value = HOSTILE
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    server.send("POST", PODS, &pod("hostile", &"x".repeat(1 << 20), &annotations))?;
    browser.until("document.querySelector('#filters [name=name]').value = 'hostile'", SOON)?;
    browser.eval("document.querySelector('#filters').dispatchEvent(new Event('input'))")?;
    let changed =
        json!({"metadata": {"annotations": {"html": "<script>window.harmed=3</script>"}}});
    server.send("PATCH", &format!("{PODS}/hostile"), &changed)?;
    // The pod has other updates, and ours may come later: each row is opened once it is there.
    browser.until("(document.querySelectorAll('#events .event[aria-expanded=false]').forEach((row) => row.click()), [...document.querySelectorAll('.changes .new')].some((cell) => cell.textContent === '<script>window.harmed=3</script>'))", SOON)?;
    browser.eval("[...document.querySelectorAll('#events .detail button')].at(-1).click()")?;
    browser.until("document.querySelector('#object pre')", SOON)?;
    let text = browser.eval("document.querySelector('#object pre').textContent")?;
    let text = text.as_str().unwrap_or_default();
    for part in
        ["<b>bold</b>", "</pre></script>", "\\u001b[31m", "\\u202e", "(1048576 bytes in all)"]
    {
        // Control characters are escapes in JSON, and escapes are shown as they are.
        let found = part.replace("<b>bold</b>", "window.harmed=3");
        if !text.contains(&found) && !text.contains(part) {
            return Err(format!(
                "{part} is not shown as text in:\n{}",
                text.chars().take(3000).collect::<String>()
            ));
        }
    }
    let harmed = browser.eval("String(window.harmed) + document.querySelectorAll('main img, main script, dialog img, dialog script, dialog b').length")?;
    if harmed != "undefined0" {
        return Err(format!("a hostile value was parsed: {harmed}"));
    }
    browser.eval("document.querySelector('#close').click()")?;
    browser.eval("document.querySelector('#filters').reset()")?;
    browser.eval("document.querySelector('#filters').dispatchEvent(new Event('input'))")?;
    Ok(())
}

fn breaks(browser: &mut Browser) -> Result<(), String> {
    for (label, trouble, limit) in [
        ("Drop watches", "window.watches() > before", SOON),
        ("Compact", "window.marked('expired (410)')", SOON),
        ("500 storm", "window.marked('failed (5xx)') && window.troubled", SOON),
        ("Go away", "window.marked('were refused') && window.troubled", SOON),
        ("Silence", "window.marked('fell silent')", SILENCE),
    ] {
        step(&format!("{label}: the page shows the trouble, and the recovery"));
        browser.eval(
            "window.watches = () => [...document.querySelectorAll('#informers td[data-label=Watches]')].reduce((sum, cell) => sum + parseInt(cell.textContent), 0);
             window.marked = (text) => [...document.querySelectorAll('#marks li')].some((mark) => mark.textContent.includes(text));
             window.troubled = false;
             new MutationObserver(() => { window.troubled ||= !!document.querySelector('#summary.bad, #summary.busy'); })
               .observe(document.querySelector('#summary'), { attributes: true });
             window.before = window.watches()",
        )?;
        let pressed = browser.eval(&format!(
            "(() => {{ const button = [...document.querySelectorAll('#buttons button')].find((b) => b.textContent === '{label}'); if (button) button.click(); return !!button; }})()"
        ))?;
        if pressed != true {
            return Err(format!("there is no button {label}"));
        }
        browser.until(trouble, limit)?;
        browser.until(LIVE, SOON)?;
    }
    Ok(())
}

fn pictures(browser: &mut Browser, server: &Server) -> Result<Pictures, String> {
    step("pictures in light, dark and on a phone");
    browser.eval("scrollTo(0, 0)")?;
    size(browser, 1280, 1010, false)?;
    settle(browser)?;
    let whole = browser.whole_page()?;
    // One informer is in trouble, and the others are not.
    server.faults(Some(TROUBLE))?;
    browser.until("document.querySelector('#picture .box.bad')", SOON)?;
    // The list of what happened would make the file too large.
    browser.eval("document.querySelector('#marks').hidden = true")?;
    let light = browser.until_end_of("timeline-title")?;
    browser.eval("document.querySelector('#marks').hidden = false")?;
    server.faults(None)?;
    browser.until(LIVE, SILENCE)?;
    theme(browser, "dark")?;
    settle(browser)?;
    let dark = browser.whole_page()?;
    theme(browser, "light")?;
    size(browser, 390, 844, true)?;
    settle(browser)?;
    let wide = browser.eval("document.documentElement.scrollWidth")?;
    if wide.as_u64() > Some(390) {
        return Err(format!("the page is {wide} pixels wide on a phone of 390"));
    }
    let phone = browser.whole_page()?;
    Ok(vec![(README, light), ("light-whole.png", whole), ("dark.png", dark), ("phone.png", phone)])
}

/// Waits until the picture has been drawn for the current size.
fn settle(browser: &mut Browser) -> Result<(), String> {
    browser.until("document.querySelector('#picture svg').viewBox.baseVal.width <= document.querySelector('#picture').clientWidth", SOON)?;
    browser.until("document.querySelectorAll('#picture svg .lane').length > 0 && document.querySelector('#timeline svg').viewBox.baseVal.width <= innerWidth", SOON)
}

fn size(browser: &mut Browser, width: u32, height: u32, mobile: bool) -> Result<(), String> {
    let metrics =
        json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
    browser.call("Emulation.setDeviceMetricsOverride", &metrics).map(drop)
}

fn theme(browser: &mut Browser, name: &str) -> Result<(), String> {
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": name}]});
    browser.call("Emulation.setEmulatedMedia", &media).map(drop)
}

fn pod(name: &str, value: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "nginx", "env": [{"name": "VALUE", "value": value}]}]},
    })
}
