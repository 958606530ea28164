//! The programs that are built from Go modules, and the versions that they report.

/// A module in `peers/`. Most only pin versions: the code is in the modules that they require.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Its directory below `peers/`.
    pub(super) module: &'static str,
    /// The requirement whose version the programs have.
    pub(super) main: &'static str,
    /// Duration of the first build on two cores.
    pub(super) takes: &'static str,
    /// Programs and their packages.
    pub(super) programs: &'static [(&'static str, &'static str)],
    /// A variable for the version, for programs that receive it from the linker.
    version_variables: Option<&'static str>,
}

pub(super) const RECIPES: [Recipe; 4] = [
    Recipe {
        module: "leader-election",
        main: "k8s.io/client-go",
        takes: "a minute",
        programs: &[("leader-election", ".")],
        version_variables: None,
    },
    Recipe {
        module: "metrics-check",
        main: "github.com/prometheus/prometheus",
        takes: "two minutes",
        programs: &[
            ("metrics-of-client-go", "./client-go"),
            ("metrics-of-controller-runtime", "./controller-runtime"),
            ("metrics-parse", "./parse"),
            ("metrics-rules", "./rules"),
        ],
        version_variables: None,
    },
    Recipe {
        module: "etcd",
        main: "go.etcd.io/etcd/server/v3",
        takes: "a minute",
        programs: &[
            ("etcd", "go.etcd.io/etcd/server/v3"),
            ("etcdctl", "go.etcd.io/etcd/etcdctl/v3"),
            ("etcdutl", "go.etcd.io/etcd/etcdutl/v3"),
        ],
        version_variables: None,
    },
    Recipe {
        module: "kubernetes",
        main: "k8s.io/kubernetes",
        takes: "five minutes",
        programs: &[
            ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
        ],
        version_variables: Some("k8s.io/component-base/version"),
    },
];

impl Recipe {
    /// Returns the version that a `go.mod` requires.
    pub(super) fn version<'a>(&self, go_mod: &'a str) -> Result<&'a str, String> {
        let required = go_mod.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| *word == "require");
            let version = words.next().filter(|word| *word == self.main).and(words.next());
            version.filter(|version| version.starts_with('v'))
        });
        required.ok_or_else(|| format!("peers/{}/go.mod requires no {}", self.module, self.main))
    }

    /// Returns the linker flags that make a program built from a module report its version.
    pub(super) fn linker_flags(&self, version: &str) -> Option<String> {
        let package = self.version_variables?;
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(format!(
            "-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_requirements() {
        let [.., etcd, kubernetes] = &RECIPES;
        let go_mod = "module m\n\nrequire k8s.io/kubernetes v1.36.3\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.6.5 // indirect\n)\n\ntool k8s.io/kubernetes/cmd/kubectl\n";
        assert_eq!(kubernetes.version(go_mod), Ok("v1.36.3"));
        assert_eq!(etcd.version(go_mod), Ok("v3.6.5"));
        assert_eq!(
            kubernetes.version("replace k8s.io/kubernetes => ../k"),
            Err("peers/kubernetes/go.mod requires no k8s.io/kubernetes".into())
        );
    }

    #[test]
    fn kubernetes_learns_its_version_from_the_linker() {
        let [.., etcd, kubernetes] = &RECIPES;
        assert_eq!(etcd.linker_flags("v3.6.5"), None);
        let flags = kubernetes.linker_flags("v1.36.3").unwrap();
        assert!(flags.starts_with("-X k8s.io/component-base/version.gitVersion=v1.36.3 "));
        assert!(flags.ends_with(".gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"));
    }
}
