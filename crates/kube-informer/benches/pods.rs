//! Pods as clusters have them, and as an API server writes them: about 11 KB of JSON each.
//!
//! Two containers with environment, probes, resources and mounts, labels, annotations, an owner,
//! conditions and `managedFields`. Pods of one of the 200 deployments have the same template; uids,
//! addresses, digests and times are everybody's own. The same numbers always give the same bytes.

use std::fmt::Write;

use fastrand::Rng;

const DEPLOYMENTS: usize = 200;
/// In the environment of each container.
const SETTINGS: usize = 6;
const NAMESPACES: usize = 20;
const NODES: usize = 500;

/// The parts of a pod that are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Metadata,
}

impl Part {
    pub(crate) fn types(self) -> &'static str {
        match self {
            Part::Whole => r#""kind":"Pod","apiVersion":"v1""#,
            Part::Metadata => r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#,
        }
    }

    pub(crate) fn list_types(self) -> &'static str {
        match self {
            Part::Whole => r#""kind":"PodList","apiVersion":"v1""#,
            Part::Metadata => r#""kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#,
        }
    }
}

pub(crate) fn namespace(pod: usize) -> String {
    format!("team-{:02}", pod % DEPLOYMENTS % NAMESPACES)
}

pub(crate) fn name(pod: usize) -> String {
    let Names { app, hash } = Names::of(pod);
    format!("{app}-{hash}-{pod:05x}")
}

pub(crate) fn node(pod: usize) -> String {
    format!("ip-10-0-{}-{}.eu-central-1.compute.internal", pod % NODES / 256, pod % NODES % 256)
}

/// As an item of a list: built-in kinds leave out what they are there.
pub(crate) fn item(text: &mut String, pod: usize, version: usize, part: Part) {
    text.push('{');
    if part == Part::Metadata {
        text.push_str(part.types());
        text.push(',');
    }
    rest(text, pod, version, part);
}

/// As an event of a watch, with the end of its line.
pub(crate) fn event(kind: &str, pod: usize, version: usize, part: Part) -> String {
    let mut text = format!(r#"{{"type":"{kind}","object":{{{},"#, part.types());
    rest(&mut text, pod, version, part);
    text.push_str("}\n");
    text
}

fn rest(text: &mut String, pod: usize, version: usize, part: Part) {
    metadata(text, pod, version);
    if part == Part::Whole {
        spec(text, pod);
        status(text, pod, version);
    }
    text.push('}');
}

struct Names {
    app: String,
    hash: String,
}

impl Names {
    fn of(pod: usize) -> Self {
        let deployment = pod % DEPLOYMENTS;
        let mut random = Rng::with_seed(deployment as u64);
        let tier = ["api", "web", "worker", "cache", "billing", "search"][deployment % 6];
        Self { app: format!("{tier}-service-{deployment}"), hash: letters(&mut random, 10) }
    }
}

fn metadata(text: &mut String, pod: usize, version: usize) {
    let Names { app, hash } = Names::of(pod);
    let namespace = namespace(pod);
    let mut random = Rng::with_seed(1 << 32 | pod as u64);
    let uid = uid(&mut random);
    let owner = self::uid(&mut Rng::with_seed(2 << 32 | (pod % DEPLOYMENTS) as u64));
    let config = hex(&mut Rng::with_seed(3 << 32 | (pod % DEPLOYMENTS) as u64), 64);
    let (ip, made, changed) = (ip(pod), time(pod), time(pod + version));
    let _ = write!(
        text,
        r#""metadata":{{"name":"{app}-{hash}-{pod:05x}","generateName":"{app}-{hash}-","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"{made}","labels":{{"app.kubernetes.io/component":"server","app.kubernetes.io/instance":"{app}","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"{app}","app.kubernetes.io/part-of":"shop","app.kubernetes.io/version":"2.14.3","helm.sh/chart":"{app}-1.8.2","pod-template-hash":"{hash}","team":"{namespace}"}},"annotations":{{"checksum/config":"{config}","cni.projectcalico.org/containerID":"{container}","cni.projectcalico.org/podIP":"{ip}/32","cni.projectcalico.org/podIPs":"{ip}/32","kubectl.kubernetes.io/restartedAt":"2026-11-02T09:14:07Z","prometheus.io/path":"/metrics","prometheus.io/port":"9102","prometheus.io/scrape":"true"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-{hash}","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],"#,
        container = hex(&mut random, 64),
    );
    managed_fields(text, &owner, &ip, &made, &changed);
    text.push('}');
}

/// Three managers: who made it, the network plugin and the kubelet.
fn managed_fields(text: &mut String, owner: &str, ip: &str, made: &str, changed: &str) {
    let container = |name: &str| {
        let mut env = String::new();
        for n in 0..SETTINGS {
            let _ = write!(
                env,
                r#""k:{{\"name\":\"SETTING_{n}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}},"#
            );
        }
        format!(
            r#""k:{{\"name\":\"{name}\"}}":{{".":{{}},"f:args":{{}},"f:env":{{".":{{}},{env}"k:{{\"name\":\"POD_IP\"}}":{{".":{{}},"f:name":{{}},"f:valueFrom":{{".":{{}},"f:fieldRef":{{}}}}}}}},"f:image":{{}},"f:imagePullPolicy":{{}},"f:livenessProbe":{{".":{{}},"f:failureThreshold":{{}},"f:httpGet":{{".":{{}},"f:path":{{}},"f:port":{{}},"f:scheme":{{}}}},"f:periodSeconds":{{}},"f:successThreshold":{{}},"f:timeoutSeconds":{{}}}},"f:name":{{}},"f:ports":{{".":{{}},"k:{{\"containerPort\":8080,\"protocol\":\"TCP\"}}":{{".":{{}},"f:containerPort":{{}},"f:name":{{}},"f:protocol":{{}}}}}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:memory":{{}}}},"f:requests":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}}}},"f:terminationMessagePath":{{}},"f:terminationMessagePolicy":{{}},"f:volumeMounts":{{".":{{}},"k:{{\"mountPath\":\"/etc/config\"}}":{{".":{{}},"f:mountPath":{{}},"f:name":{{}},"f:readOnly":{{}}}}}}}}"#
        )
    };
    let _ = write!(
        text,
        r#""managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{made}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:checksum/config":{{}},"f:prometheus.io/path":{{}},"f:prometheus.io/port":{{}},"f:prometheus.io/scrape":{{}}}},"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/component":{{}},"f:app.kubernetes.io/instance":{{}},"f:app.kubernetes.io/name":{{}},"f:pod-template-hash":{{}}}},"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"{owner}\"}}":{{}}}}}},"f:spec":{{"f:containers":{{{},{}}},"f:dnsPolicy":{{}},"f:enableServiceLinks":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}},"f:securityContext":{{}},"f:serviceAccountName":{{}},"f:terminationGracePeriodSeconds":{{}},"f:volumes":{{".":{{}},"k:{{\"name\":\"config\"}}":{{".":{{}},"f:configMap":{{".":{{}},"f:defaultMode":{{}},"f:name":{{}}}},"f:name":{{}}}}}}}}}}}},{{"manager":"calico","operation":"Update","apiVersion":"v1","time":"{made}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{"f:cni.projectcalico.org/containerID":{{}},"f:cni.projectcalico.org/podIP":{{}},"f:cni.projectcalico.org/podIPs":{{}}}}}}}},"subresource":"status"}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{changed}","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{"k:{{\"type\":\"ContainersReady\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}},"k:{{\"type\":\"Initialized\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}},"k:{{\"type\":\"Ready\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}}}},"f:containerStatuses":{{}},"f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:podIPs":{{".":{{}},"k:{{\"ip\":\"{ip}\"}}":{{".":{{}},"f:ip":{{}}}}}},"f:startTime":{{}}}}}},"subresource":"status"}}]"#,
        container("server"),
        container("proxy"),
    );
}

fn spec(text: &mut String, pod: usize) {
    let token = letters(&mut Rng::with_seed(4 << 32 | pod as u64), 5);
    let Names { app, .. } = Names::of(pod);
    let _ = write!(
        text,
        r#","spec":{{"volumes":[{{"name":"config","configMap":{{"name":"{app}","defaultMode":420}}}},{{"name":"kube-api-access-{token}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}],"containers":["#
    );
    container(text, pod, "server", &token);
    text.push(',');
    container(text, pod, "proxy", &token);
    let _ = write!(
        text,
        r#"],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{app}","serviceAccount":"{app}","nodeName":"{}","securityContext":{{"runAsNonRoot":true,"fsGroup":1000}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}}"#,
        node(pod),
    );
}

fn container(text: &mut String, pod: usize, name: &str, token: &str) {
    let Names { app, .. } = Names::of(pod);
    let mut random = Rng::with_seed(5 << 32 | (pod % DEPLOYMENTS) as u64);
    let _ = write!(
        text,
        r#"{{"name":"{name}","image":"registry.example.com/shop/{app}-{name}:2.14.3","args":["--port=8080","--log-level=info","--config=/etc/config/{name}.yaml"],"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"env":["#
    );
    for n in 0..SETTINGS {
        let _ = write!(
            text,
            r#"{{"name":"SETTING_{n}","value":"http://{}.{app}.svc.cluster.local:80{n}0"}},"#,
            letters(&mut random, 8)
        );
    }
    let probe = |path: &str, wait: u32| {
        format!(
            r#"{{"httpGet":{{"path":"{path}","port":"http","scheme":"HTTP"}},"initialDelaySeconds":{wait},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}}"#
        )
    };
    let _ = write!(
        text,
        r#"{{"name":"POD_IP","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}}],"resources":{{"limits":{{"memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"256Mi"}}}},"volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/config"}},{{"name":"kube-api-access-{token}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"livenessProbe":{},"readinessProbe":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{{"capabilities":{{"drop":["ALL"]}},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}}}"#,
        probe("/healthz", 15),
        probe("/readyz", 5),
    );
}

fn status(text: &mut String, pod: usize, version: usize) {
    let (ip, made, changed) = (ip(pod), time(pod), time(pod + version));
    let host = format!("10.0.{}.{}", pod % NODES / 256, pod % NODES % 256);
    let phase = if pod % 50 == 7 { "Pending" } else { "Running" };
    let ready = if version.is_multiple_of(3) { "False" } else { "True" };
    let condition = |kind: &str, status: &str, time: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","lastProbeTime":null,"lastTransitionTime":"{time}"}}"#
        )
    };
    let _ = write!(
        text,
        r#","status":{{"phase":"{phase}","conditions":[{},{},{},{},{}],"hostIP":"{host}","hostIPs":[{{"ip":"{host}"}}],"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"startTime":"{made}","containerStatuses":["#,
        condition("PodReadyToStartContainers", "True", &made),
        condition("Initialized", "True", &made),
        condition("Ready", ready, &changed),
        condition("ContainersReady", ready, &changed),
        condition("PodScheduled", "True", &made),
    );
    let Names { app, .. } = Names::of(pod);
    let mut own = Rng::with_seed(6 << 32 | pod as u64);
    let mut image = Rng::with_seed(7 << 32 | (pod % DEPLOYMENTS) as u64);
    for name in ["proxy", "server"] {
        let comma = if name == "proxy" { "," } else { "" };
        let _ = write!(
            text,
            r#"{{"name":"{name}","state":{{"running":{{"startedAt":"{made}"}}}},"lastState":{{}},"ready":{},"restartCount":{},"image":"registry.example.com/shop/{app}-{name}:2.14.3","imageID":"registry.example.com/shop/{app}-{name}@sha256:{}","containerID":"containerd://{}","started":true}}{comma}"#,
            ready == "True",
            version % 5,
            hex(&mut image, 64),
            hex(&mut own, 64),
        );
    }
    text.push_str(r#"],"qosClass":"Burstable"}"#);
}

fn ip(pod: usize) -> String {
    format!("10.{}.{}.{}", 64 + pod / 65_536, pod / 256 % 256, pod % 256)
}

fn time(at: usize) -> String {
    let (day, hour, minute, second) = (1 + at / 86_400 % 28, at / 3600 % 24, at / 60 % 60, at % 60);
    format!("2026-11-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn uid(random: &mut Rng) -> String {
    let parts = [8, 4, 4, 4, 12].map(|digits| hex(random, digits));
    parts.join("-")
}

fn hex(random: &mut Rng, digits: usize) -> String {
    (0..digits).map(|_| random.digit(16)).collect()
}

/// The alphabet of generated names in Kubernetes.
fn letters(random: &mut Rng, count: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..count).map(|_| char::from(LETTERS[random.usize(..LETTERS.len())])).collect()
}
