use super::super::record::Recording;
use super::*;

const REST: Duration = Duration::from_secs(2);

fn picture(parts: &[(u64, &str)]) -> String {
    let mut recording = Recording::default();
    for (millis, text) in parts {
        recording.push(Duration::from_millis(*millis), text.as_bytes());
    }
    draw(&Film::of(&recording, (40, 4), Duration::from_millis(50)), REST)
}

/// Parses our subset of XML as strictly as a browser does, and returns the names of the elements.
fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut seen) = (Vec::<String>::new(), Vec::new());
    let mut rest = xml;
    while let Some((text, tail)) = rest.split_once('<') {
        check_text(text);
        let (tag, after) = tail.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes what is open");
            continue;
        }
        let whole = tag.ends_with('/');
        let (name, attributes) =
            tag.trim_end_matches('/').split_once(' ').unwrap_or((tag.trim_end_matches('/'), ""));
        let mut attributes = attributes.trim();
        while let Some((attribute, tail)) = attributes.split_once("=\"") {
            assert!(
                attribute.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c)),
                "{attribute:?}"
            );
            let (value, tail) = tail.split_once('"').expect("a value ends");
            check_text(value);
            attributes = tail.trim_start();
        }
        assert_eq!(attributes, "", "in <{tag}>");
        seen.push(name.to_owned());
        if !whole {
            open.push(name.to_owned());
        }
    }
    assert_eq!((rest.trim(), open), ("", vec![]));
    seen
}

fn check_text(text: &str) {
    assert!(!text.contains(|c: char| c == '>' || (c.is_control() && c != '\n')), "{text:?}");
    for entity in text.split('&').skip(1) {
        let name = entity.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot"].contains(&name), "&{entity}");
    }
}

#[test]
fn it_is_xml_without_scripts_and_without_the_network() {
    let nasty = "<b class=\"x\">&amp; ]]> \u{ffff}\u{200b}é</b>\r\n\x1b[7;31m a \x1b[0m\x1b[48;5;20m & \x1b[0m";
    let picture = picture(&[(0, nasty), (100, "\r\nmore"), (300, "\x1b[2J\x1b[?25l")]);
    let names = elements(&picture);
    for name in &names {
        assert!(
            ["svg", "style", "rect", "circle", "defs", "g", "text", "tspan", "use"]
                .contains(&&**name),
            "{name}"
        );
    }
    assert!(picture.contains("&lt;b class=&quot;x&quot;&gt;&amp;amp; ]]&gt; \u{fffd}"));
    let addresses: Vec<_> = picture.match_indices("://").collect();
    assert_eq!(addresses.len(), 1, "only the namespace");
    assert!(!picture.contains("@import") && !picture.contains("url("));
}

#[test]
fn frames_follow_each_other_and_the_last_one_stays() {
    let picture = picture(&[(0, "a"), (500, "b"), (2000, "c")]);
    // 40 columns are 336 wide; 2 s plus the rest are 4 s.
    assert!(picture.contains(".film{animation:film 4s step-end infinite}"));
    assert!(picture.contains(
        "@keyframes film{0%{transform:translateX(0px)}12.5%{transform:translateX(-336px)}\
         50%{transform:translateX(-672px)}100%{transform:translateX(-672px)}}"
    ));
    assert!(picture.contains("<g class=\"film\" transform=\"translate(-672)\">"));
    assert!(picture.contains("prefers-reduced-motion"));
    assert!(picture.contains("<g transform=\"translate(672)\">"));
}

#[test]
fn rows_are_drawn_once_and_used_where_they_are() {
    let picture = picture(&[(0, "same\r\n"), (500, "same\r\n"), (1000, "other")]);
    assert_eq!(picture.matches(">same<").count(), 1);
    assert_eq!(picture.matches("<use href=\"#r0\"").count(), 1 + 2 + 2);
    assert!(picture.contains("<use href=\"#r0\" y=\"20\"/>"));
}

#[test]
fn columns_and_looks() {
    let picture = picture(&[(
        0,
        "NAME   AGE\r\n\x1b[1;32mok go\x1b[0m \x1b[38;2;1;2;3mx\x1b[0m\x1b[44m z\x1b[0m",
    )]);
    assert!(picture.contains("<tspan x=\"0\">NAME</tspan><tspan x=\"58.8\">AGE</tspan>"));
    assert!(picture.contains("<tspan x=\"0\" class=\"c2 b\">ok go</tspan>"));
    assert!(picture.contains("<tspan x=\"50.4\" fill=\"#010203\">x</tspan>"));
    assert!(picture.contains("<rect x=\"58.8\" width=\"16.8\" height=\"20\" fill=\"#58a6ff\"/>"));
}

#[test]
fn the_cursor_is_drawn_where_it_is() {
    assert!(picture(&[(0, "ab")]).contains("<rect x=\"16.8\" y=\"0\" width=\"8.4\" height=\"20\""));
    assert!(!picture(&[(0, "ab\x1b[?25l")]).contains("width=\"8.4\""));
}

#[test]
fn nothing_is_a_picture_too() {
    assert!(elements(&picture(&[])).len() > 5);
}
