//! Code as text, in the way that rustfmt would have it on one line.

use quote::ToTokens;
use syn::Attribute;

/// Returns code on one line.
pub(crate) fn text(code: &impl ToTokens) -> String {
    let mut text = code.to_token_stream().to_string().replace('\n', " ");
    // Lifetimes are joined to what follows as little as possible; the rest is how tokens are written.
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        (" : ", ": "),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", "&"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" !", "!"),
        ("? ", "?"),
    ] {
        text = text.replace(from, to);
    }
    for (from, to) in [
        (",)", ")"),
        (",>", ">"),
        ("->", " -> "),
        ("= >", "=>"),
        (">where", "> where"),
        (")where", ") where"),
        ("impl<", "impl<"),
        (">for ", "> for "),
    ] {
        text = text.replace(from, to);
    }
    // Words before `(`, `<` and `&` that are no names.
    for word in ["dyn", "impl", "for", "as", "mut", "where"] {
        text = text.replace(&format!(" {word}("), &format!(" {word} ("));
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the attributes that users see: features, and `non_exhaustive`.
pub(crate) fn marks(attributes: &[Attribute]) -> String {
    let mut marks = String::new();
    for attribute in attributes {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("non_exhaustive") {
            marks += &format!("{} ", text(attribute));
        }
    }
    marks
}

/// Returns whether the documentation does not show an item.
pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("doc") && text(attribute).contains("hidden"))
}
