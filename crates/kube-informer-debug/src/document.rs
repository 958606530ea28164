//! The document: one file, with its style and its script inside.

use std::sync::OnceLock;

use crate::admission::random_token;

const HTML: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPTS: [&str; 5] = [
    include_str!("../assets/format.js"),
    include_str!("../assets/picture.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/page.js"),
];

/// Returns the document, and a policy that lets browsers run its script and no other.
pub(crate) fn document() -> (String, String) {
    static WHOLE: OnceLock<String> = OnceLock::new();
    let whole = WHOLE
        .get_or_init(|| HTML.replace("/*style*/", STYLE).replace("/*script*/", &SCRIPTS.concat()));
    let nonce = random_token();
    // With trusted types, a browser refuses to parse text as HTML, wherever a script would try that.
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    (whole.replace("{{nonce}}", &nonce), policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 150_000;

    #[test]
    fn it_is_small_and_asks_no_other_host() {
        let (html, _) = document();
        assert!(html.len() < BYTES_MAX, "{} bytes", html.len());
        let namespace = "http://www.w3.org/2000/svg";
        for start in ["http://", "https://", "//cdn", "@import", "url("] {
            assert!(!html.replace(namespace, "").contains(start), "{start}");
        }
    }

    #[test]
    fn text_is_never_parsed_as_html() {
        for way in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
        {
            assert!(!SCRIPTS.concat().contains(way), "{way}");
        }
        let attributes = HTML.split_whitespace().filter(|word| word.contains('='));
        let forbidden = |word: &&str| word.starts_with("on") || word.starts_with("style");
        assert_eq!(attributes.into_iter().find(forbidden), None, "the policy forbids it");
    }

    #[test]
    fn every_document_has_its_own_nonce() {
        let ((one, policy), (other, _)) = (document(), document());
        assert_ne!(one, other);
        assert!(!one.contains("{{nonce}}") && !policy.contains("unsafe"));
    }
}
