//! `cargo xtask dist`: the files of a release of the tool, for this platform.
//!
//! The archive has the program, its manual pages, completion scripts and the licence. Beside it are the checksums of
//! all archives of this version and, from the same, the manifest of the plugin for krew.

mod krew;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::krew::Archive;
use crate::real_kubernetes::{cargo, root, say};

const TOOL: &str = "kubectl-informer";

/// The directory of a release, also that of the profile `dist`.
const DIRECTORY: &str = "target/dist";

/// The directory of a trial.
const QUICK: &str = "target/dist-quick";

/// The address in a manifest that is not told any.
const ADDRESS: &str = "https://example.com/kube-informer";

/// Shells, and the file names that they expect.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "kubectl-informer.bash"),
    ("zsh", "_kubectl-informer"),
    ("fish", "kubectl-informer.fish"),
    ("kubectl", "kubectl_complete-informer"),
];

const USAGE: &str = "\
usage: cargo xtask dist [--address URL] [--manifest-only | --quick]

  builds the tool with the profile `dist`, and writes its archive, checksums and a manifest for krew into target/dist
  --address URL    the address of the repository, under which releases are published
  --manifest-only  writes the checksums and the manifest of the archives in target/dist, of any platform
  --quick          uses the profile `release` and target/dist-quick, to try this task";

#[derive(Debug, Default, PartialEq)]
struct Options {
    address: Option<String>,
    manifest_only: bool,
    quick: bool,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            match &**word {
                "--manifest-only" => options.manifest_only = true,
                "--quick" => options.quick = true,
                "--address" => {
                    let url = rest.next().filter(|url| url.starts_with("https://"));
                    let url = url.ok_or("--address wants a URL that starts with https://")?;
                    options.address = Some(url.trim_end_matches('/').to_owned());
                }
                _ => return Err(format!("there is no option {word:?}\n\n{USAGE}")),
            }
        }
        if options.manifest_only && options.quick {
            return Err(format!("--manifest-only makes no archive, --quick does\n\n{USAGE}"));
        }
        Ok(options)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|word| word == "help" || word == "--help") {
        println!("{USAGE}");
        return Ok(());
    }
    let options = Options::read(arguments)?;
    let directory = root().join(if options.quick { QUICK } else { DIRECTORY });
    fs::create_dir_all(&directory).map_err(|error| cannot("make", &directory, &error))?;
    if !options.manifest_only {
        let profile = if options.quick { "release" } else { "dist" };
        let package = ["--package", TOOL, "--profile", profile];
        cargo(&[&["build", "--locked"][..], &package].concat(), &[])?;
        archive(&root().join("target").join(profile).join(TOOL), &directory)?;
    }
    let archives = archives(&directory)?;
    let sums = archives.iter().map(|archive| format!("{}  {}\n", archive.sha256, archive.file));
    write(&directory.join("SHA256SUMS"), sums.collect::<String>().as_bytes())?;
    if options.address.is_none() {
        say(&format!("without --address, the manifest for krew has {ADDRESS}"));
    }
    let address = options.address.as_deref().unwrap_or(ADDRESS);
    let manifest = krew::manifest(env!("CARGO_PKG_VERSION"), address, &archives)?;
    write(&directory.join("informer.yaml"), manifest.as_bytes())?;
    say(&format!(
        "{} has {} archives, SHA256SUMS and informer.yaml",
        directory.display(),
        archives.len()
    ));
    Ok(())
}

/// Packs a built program, with everything that it can print about itself.
fn archive(program: &Path, directory: &Path) -> Result<(), String> {
    let name = format!("{TOOL}-{}-{}", env!("CARGO_PKG_VERSION"), host()?);
    let staged = directory.join(&name);
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(|error| cannot("remove", &staged, &error))?;
    }
    for part in ["completions", "man"] {
        let part = staged.join(part);
        fs::create_dir_all(&part).map_err(|error| cannot("make", &part, &error))?;
    }
    copy(program, &staged.join(TOOL))?;
    copy(&root().join("LICENSE"), &staged.join("LICENSE"))?;
    copy(&root().join("crates").join(TOOL).join("README.md"), &staged.join("README.md"))?;
    for (shell, file) in COMPLETIONS {
        let script = printed(program, &["completion", shell])?;
        write(&staged.join("completions").join(file), &script)?;
    }
    write(&staged.join("man").join(format!("{TOOL}.1")), &printed(program, &["man"])?)?;
    for command in commands(program)? {
        let page = printed(program, &["man", &command])?;
        write(&staged.join("man").join(format!("{TOOL}-{command}.1")), &page)?;
    }
    let file = directory.join(format!("{name}.tar.gz"));
    pack(directory, &name, &file)?;
    fs::remove_dir_all(&staged).map_err(|error| cannot("remove", &staged, &error))?;
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len()) / 1024;
    say(&format!("{}: {} KiB, the program {} KiB", file.display(), size(&file), size(program)));
    Ok(())
}

/// Returns the platform of the compiler, which is that of the programs that it builds.
pub(crate) fn host() -> Result<String, String> {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = rustc.arg("-vV").output().map_err(|error| format!("cannot run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("`rustc -vV` does not name its host")?.to_owned())
}

/// Returns the tool's commands, from its help.
fn commands(program: &Path) -> Result<Vec<String>, String> {
    let help = printed(program, &["--help"])?;
    let commands = listed(&String::from_utf8_lossy(&help));
    if commands.is_empty() {
        Err("the tool's help lists no commands".to_owned())
    } else {
        Ok(commands)
    }
}

fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  ") || line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Packs a directory. With GNU tar, the same files are the same archive.
fn pack(directory: &Path, name: &str, file: &Path) -> Result<(), String> {
    let version = Command::new("tar").arg("--version").output();
    let version = version.map_err(|error| format!("cannot run tar: {error}"))?;
    let mut tar = Command::new("tar");
    if String::from_utf8_lossy(&version.stdout).contains("GNU tar") {
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    }
    tar.arg("-czf").arg(file).arg("-C").arg(directory).arg(name);
    match tar.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{tar:?} ended with {status}")),
        Err(error) => Err(format!("cannot run tar: {error}")),
    }
}

/// Returns the archives of this version in a directory, with their checksums.
fn archives(directory: &Path) -> Result<Vec<Archive>, String> {
    let entries = fs::read_dir(directory).map_err(|error| cannot("read", directory, &error))?;
    let prefix = format!("{TOOL}-{}-", env!("CARGO_PKG_VERSION"));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut archives = Vec::new();
    for path in files {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(target) = file.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".tar.gz"))
        else {
            continue;
        };
        archives.push(Archive { target: target.to_owned(), sha256: sha256(&path)?, file });
    }
    if archives.is_empty() {
        return Err(format!("{} has no {prefix}*.tar.gz", directory.display()));
    }
    Ok(archives)
}

/// Returns a file's checksum, by whichever program there is.
fn sha256(path: &Path) -> Result<String, String> {
    for (program, arguments) in [("sha256sum", &[][..]), ("shasum", &["-a", "256"])] {
        let Ok(output) = Command::new(program).args(arguments).arg(path).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let sum = text.split_whitespace().next().unwrap_or_default();
        if output.status.success() && sum.len() == 64 {
            return Ok(sum.to_owned());
        }
    }
    Err(format!("cannot compute the checksum of {}: install sha256sum or shasum", path.display()))
}

fn printed(program: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| cannot("run", program, &error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} {}: {problem}", program.display(), arguments.join(" ")))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| cannot("copy", from, &error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options, String> {
        Options::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_checked() {
        let address = Some("https://example.org/x".to_owned());
        let expected = Options { address, manifest_only: true, quick: false };
        assert_eq!(read(&["--manifest-only", "--address", "https://example.org/x/"]), Ok(expected));
        assert!(read(&["--address"]).unwrap_err().contains("https://"));
        assert!(read(&["--address", "ftp://x"]).unwrap_err().contains("https://"));
        assert!(read(&["--manifest-only", "--quick"]).is_err());
        assert!(read(&["--slow"]).unwrap_err().contains("no option \"--slow\""));
    }

    /// A program that prints the words of its command line, in place of the tool.
    #[test]
    fn archive_has_the_program_its_pages_and_scripts() {
        let directory = env::temp_dir().join(format!("kube-informer-dist-{}", std::process::id()));
        // An earlier process with the same number may have failed, and left it behind.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let program = directory.join("program");
        let script =
            "#!/bin/sh\n[ \"$1\" = --help ] && printf 'Commands:\\n  watch  W\\n' || echo \"$@\"\n";
        // A shell writes it: what this process has open for writing is for a moment also open in
        // the processes that other tests start, and a file that is open for writing cannot be run.
        let write = r#"printf %s "$2" >"$1" && chmod 755 "$1""#;
        let mut shell = Command::new("sh");
        let written = shell.args(["-c", write, "sh"]).arg(&program).arg(script).status();
        assert!(written.unwrap().success());
        archive(&program, &directory).unwrap();
        let found = archives(&directory).unwrap();
        let [archive] = &*found else { panic!("one archive, not {found:?}") };
        assert_eq!(archive.target, host().unwrap());

        let file = directory.join(&archive.file);
        let listed = Command::new("tar").arg("-tzf").arg(&file).output().unwrap();
        let inside = archive.file.trim_end_matches(".tar.gz");
        let listed = String::from_utf8(listed.stdout).unwrap();
        let mut listed: Vec<&str> =
            listed.lines().filter_map(|path| path.strip_prefix(inside)).collect();
        listed.retain(|path| !path.ends_with('/'));
        listed.sort_unstable();
        let expected = [
            "/LICENSE",
            "/README.md",
            "/completions/_kubectl-informer",
            "/completions/kubectl-informer.bash",
            "/completions/kubectl-informer.fish",
            "/completions/kubectl_complete-informer",
            "/kubectl-informer",
            "/man/kubectl-informer-watch.1",
            "/man/kubectl-informer.1",
        ];
        assert_eq!(listed, expected);
        let page = format!("{inside}/man/kubectl-informer-watch.1");
        let page = Command::new("tar").arg("-xzOf").arg(&file).arg(page).output().unwrap();
        assert_eq!(String::from_utf8(page.stdout).unwrap(), "man watch\n");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn commands_are_those_of_the_help() {
        let help = "Usage: x\n\nCommands:\n  watch  Prints events\n         and more\n  get    Gets\n  help   Helps\n\nOptions:\n  -h  Help\n";
        assert_eq!(listed(help), ["watch", "get"]);
    }
}
