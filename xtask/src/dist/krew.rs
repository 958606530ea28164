//! The manifest with which `kubectl krew` installs the tool as a plugin.

use super::TOOL;

/// An archive of a release.
#[derive(Debug)]
pub(super) struct Archive {
    /// The platform, as Rust names it.
    pub(super) target: String,
    pub(super) file: String,
    pub(super) sha256: String,
}

/// Platforms, and how Go and krew name them.
const PLATFORMS: [(&str, &str, &str); 4] = [
    ("aarch64-apple-darwin", "darwin", "arm64"),
    ("aarch64-unknown-linux-gnu", "linux", "arm64"),
    ("x86_64-apple-darwin", "darwin", "amd64"),
    ("x86_64-unknown-linux-gnu", "linux", "amd64"),
];

/// Returns the manifest of a release that is published at `address`.
pub(super) fn manifest(
    version: &str,
    address: &str,
    archives: &[Archive],
) -> Result<String, String> {
    let mut text = format!(
        "\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: informer
spec:
  version: v{version}
  homepage: {address}
  shortDescription: Watch resources the way a controller does
  description: |
    Shows what is added, updated and deleted, as an informer sees it: through
    outages of the API server, with kubectl's columns, diffs of every update,
    and conditions to wait for. Finds the objects that change most, reads from
    a cache with indexes, and checks whether informers would work on a cluster
    and what they would cost.
  platforms:
"
    );
    for archive in archives {
        let known = PLATFORMS.iter().find(|(target, ..)| *target == archive.target);
        let Some((_, os, arch)) = known else {
            return Err(format!(
                "krew's name for {} is not known: add it to PLATFORMS",
                archive.target
            ));
        };
        let Archive { file, sha256, .. } = archive;
        let inside = file.strip_suffix(".tar.gz").unwrap_or(file);
        text += &format!(
            "  - selector:
      matchLabels:
        os: {os}
        arch: {arch}
    uri: {address}/releases/download/v{version}/{file}
    sha256: {sha256}
    files:
    - from: {inside}/{TOOL}
      to: .
    - from: {inside}/LICENSE
      to: .
    bin: {TOOL}
"
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(target: &str) -> Archive {
        let file = format!("kubectl-informer-1.2.3-{target}.tar.gz");
        Archive { target: target.to_owned(), file, sha256: "0a".repeat(32) }
    }

    #[test]
    fn platforms_have_addresses_and_checksums() {
        let archives = [archive("x86_64-unknown-linux-gnu"), archive("aarch64-apple-darwin")];
        let text = manifest("1.2.3", "https://example.org/x", &archives).unwrap();
        let linux = "        os: linux\n        arch: amd64\n    uri: https://example.org/x/releases/download/v1.2.3/\
            kubectl-informer-1.2.3-x86_64-unknown-linux-gnu.tar.gz\n    sha256: 0a0a";
        assert!(text.contains(linux), "{text}");
        assert!(text.contains("        os: darwin\n        arch: arm64\n"), "{text}");
        let program = "    - from: kubectl-informer-1.2.3-aarch64-apple-darwin/kubectl-informer\n      to: .\n";
        assert!(text.contains(program), "{text}");
    }

    #[test]
    fn platforms_that_krew_does_not_know_are_an_error() {
        let problem = manifest("1.2.3", "https://example.org/x", &[archive("mips")]).unwrap_err();
        assert!(problem.contains("mips"), "{problem}");
    }
}
