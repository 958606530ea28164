//! The parts of the README that a new user copies.

/// Returns the dependencies of the library's program.
pub(super) fn dependencies(readme: &str) -> Result<String, String> {
    block(readme, "toml")
}

/// Returns the library's program.
pub(super) fn program(readme: &str) -> Result<String, String> {
    block(readme, "rust")
}

/// Returns the first block in a language.
fn block(readme: &str, language: &str) -> Result<String, String> {
    let fence = format!("```{language}");
    let mut lines = readme.lines().skip_while(|line| **line != *fence);
    lines.next().ok_or_else(|| format!("README.md has no block that starts with {fence}"))?;
    let block: Vec<&str> = lines.take_while(|line| *line != "```").collect();
    Ok(block.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_block_of_a_language_is_found() {
        let readme = "text\n```sh\ncargo\n```\n```toml\na = 1\n\nb = 2\n```\n```toml\nc = 3\n```\n";
        assert_eq!(dependencies(readme).unwrap(), "a = 1\n\nb = 2\n");
        assert!(program(readme).unwrap_err().contains("```rust"));
    }
}
