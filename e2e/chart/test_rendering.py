"""What `helm` makes of the chart, and what the real API server says of that without storing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.chart.crd import CRD
from e2e.chart.helm import CHART, Helm, objects, the
from e2e.cluster.stage import Stage

DIGEST = "sha256:" + "0123456789abcdef" * 4
ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ZONE]}}}
KEY = "A" * 43 + "="
"""Has the shape of a public key."""

VARIANTS: dict[str, list[str]] = {
    "as it is": [],
    "digests": [f"--set=image.digest={DIGEST},routerImage.digest={DIGEST}"],
    "a registry with a port": ["--set=image.repository=registry.example:5000/team/operator,image.tag=1.2.3"],
    "another front": ["--set=frontImage.repository=registry.example/nginx,frontImage.tag=1.29"],
    "without the CRD": ["--set=crds.enabled=false"],
    "a CRD that goes": ["--set=crds.keep=false"],
    "without a NetworkPolicy": ["--set=networkPolicy.enabled=false"],
    "some namespaces": ["--set=watchNamespaces={default,kube-public}"],
    "placed": [
        "--set=nodeSelector.disk=fast,podAnnotations.team=a,imagePullSecrets[0].name=registry",
        "--set=tolerations[0].key=control,tolerations[0].operator=Exists,tolerations[0].effect=NoSchedule",
        f"--set-json=affinity={json.dumps(AFFINITY)}",
    ],
    "resources": ["--set=resources.requests.cpu=1,resources.limits.memory=1Gi"],
    "advisories": [
        f"--set=advisories.configMap=mine,advisories.publicKeys[0]={KEY}",
        "--set=advisories.cutSeverity=critical,advisories.cutLimit=3",
    ],
    "settings": [
        "--set=logFormat=text,concurrentReconciles=2,resyncSeconds=60,minimumVersion=0.5.24",
        "--set=engineImage.pluginVersion=0.1.1",
    ],
}


def settings(rendered: str) -> dict[str, str]:
    """Variables of the operator with plain values."""
    (container,) = the("Deployment", rendered)["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def image(rendered: str) -> str:
    (container,) = the("Deployment", rendered)["spec"]["template"]["spec"]["containers"]
    name: str = container["image"]
    return name


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


@pytest.mark.parametrize("variant", VARIANTS)
def test_rendering_twice_gives_the_same_bytes(helm: Helm, variant: str) -> None:
    first, second = (helm.template("somewhere", *VARIANTS[variant]) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_api_server_takes_every_object_without_a_warning(
    helm: Helm, api: Stage, no_crd: None, shared_namespace: str, variant: str
) -> None:
    rendered = helm.template(shared_namespace, *VARIANTS[variant])
    ran = api.kubectl.try_run("apply", "--dry-run=server", "--validate=strict", "--filename", "-", given=rendered)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("created (server dry run)") == len(objects(rendered))


def test_a_pod_that_could_do_more_is_warned_of(helm: Helm, api: Stage, shared_namespace: str) -> None:
    rendered = helm.template(shared_namespace, "--show-only=templates/deployment.yaml")
    weakened = rendered.replace("runAsNonRoot: true", "runAsNonRoot: false")
    assert weakened != rendered
    ran = api.kubectl.try_run("apply", "--dry-run=server", "--filename", "-", given=weakened)
    assert "would violate PodSecurity" in ran.stderr


@pytest.mark.parametrize(
    ("release", "namespace"), [("123", "456"), ("true", "null"), ("a" * 53, "n" * 63)], ids=["numbers", "words", "long"]
)
def test_names_that_yaml_would_read_as_something_else_stay_names(
    helm: Helm, api: Stage, no_crd: None, release: str, namespace: str
) -> None:
    rendered = helm.template(namespace, "--set=watchNamespaces={0123}", release=release)
    for one in objects(rendered):
        assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == release
        assert one["metadata"].get("namespace", "0123") in (namespace, "0123")
    assert f"app.kubernetes.io/instance={release}" in settings(rendered)["KVFENCE_OPERATOR_LABELS"]
    # stored nowhere: the namespace does not exist, and that is the only complaint
    ran = api.kubectl.try_run("apply", "--dry-run=server", "--validate=strict", "--filename", "-", given=rendered)
    complaints = [line for line in ran.stderr.splitlines() if line and "namespaces" not in line]
    assert complaints == []


def test_the_crd_in_the_chart_is_the_committed_one_with_labels_and_its_policy(helm: Helm) -> None:
    (committed,) = objects(CRD.read_text())
    (rendered,) = objects(helm.template("somewhere", "--show-only=templates/crd-inferencepools.yaml"))
    assert rendered["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert rendered["metadata"].pop("labels")["app.kubernetes.io/managed-by"] == "Helm"
    assert json.dumps(rendered) == json.dumps(committed)  # 1e12 and 1000000000000 are equal, and not the same


def test_images_and_versions_follow_the_chart(helm: Helm) -> None:
    (chart,) = objects((CHART / "Chart.yaml").read_text())
    version = chart["appVersion"]
    rendered = helm.template("somewhere")
    assert image(rendered) == f"kvfence/operator:{version}"
    assert settings(rendered) == {
        "KVFENCE_OPERATOR_LABELS": "app.kubernetes.io/name=kvfence-operator,app.kubernetes.io/instance=kvfence",
        "KVFENCE_WATCH_NAMESPACES": "",
        "KVFENCE_ENGINE_IMAGE_REPOSITORY": "kvfence/kvfence-engine",
        "KVFENCE_PLUGIN_VERSION": version,
        "KVFENCE_ROUTER_IMAGE": f"kvfence/router:{version}",
        "KVFENCE_FRONT_IMAGE": f"kvfence/router:{version}",
        "KVFENCE_MINIMUM_VERSION": "",
        "KVFENCE_ADVISORIES": "",
        "KVFENCE_ADVISORY_KEYS": "",
        "KVFENCE_ADVISORY_CUT_SEVERITY": "",
        "KVFENCE_ADVISORY_CUT_LIMIT": "1",
        "KVFENCE_LOG_FORMAT": "json",
        "KVFENCE_CONCURRENT_RECONCILES": "8",
        "KVFENCE_RESYNC_SECONDS": "300",
    }


@pytest.mark.parametrize(
    ("variant", "changed"),
    [
        (
            "digests",
            {"KVFENCE_ROUTER_IMAGE": f"kvfence/router@{DIGEST}", "KVFENCE_FRONT_IMAGE": f"kvfence/router@{DIGEST}"},
        ),
        ("another front", {"KVFENCE_FRONT_IMAGE": "registry.example/nginx:1.29"}),
        ("some namespaces", {"KVFENCE_WATCH_NAMESPACES": "default,kube-public"}),
        (
            "advisories",
            {
                "KVFENCE_ADVISORIES": "/etc/kvfence/advisories/advisories.json",
                "KVFENCE_ADVISORY_KEYS": KEY,
                "KVFENCE_ADVISORY_CUT_SEVERITY": "critical",
                "KVFENCE_ADVISORY_CUT_LIMIT": "3",
            },
        ),
        (
            "settings",
            {
                "KVFENCE_LOG_FORMAT": "text",
                "KVFENCE_CONCURRENT_RECONCILES": "2",
                "KVFENCE_RESYNC_SECONDS": "60",
                "KVFENCE_MINIMUM_VERSION": "0.5.24",
                "KVFENCE_PLUGIN_VERSION": "0.1.1",
            },
        ),
    ],
)
def test_a_value_reaches_the_operator_as_this_setting(helm: Helm, variant: str, changed: dict[str, str]) -> None:
    assert settings(helm.template("somewhere", *VARIANTS[variant])) == settings(helm.template("somewhere")) | changed


def test_a_digest_wins_over_a_tag(helm: Helm) -> None:
    rendered = helm.template("somewhere", f"--set=image.digest={DIGEST},image.tag=1.2.3")
    assert image(rendered) == f"kvfence/operator@{DIGEST}"


def test_the_operators_pod_can_do_no_more_than_it_has_to(helm: Helm) -> None:
    pod = the("Deployment", helm.template("somewhere"))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["volumes"] == [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}


def test_added_advisories_are_mounted_as_a_folder_and_may_come_later(helm: Helm) -> None:
    pod = the("Deployment", helm.template("somewhere", *VARIANTS["advisories"]))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {"name": "advisories", "configMap": {"name": "mine", "optional": True}} in pod["volumes"]
    mount = {"name": "advisories", "mountPath": "/etc/kvfence/advisories", "readOnly": True}  # no subPath: it changes
    assert mount in container["volumeMounts"]


def test_the_operators_pod_is_started_and_probed_like_this(helm: Helm) -> None:
    deployment = the("Deployment", helm.template("somewhere"))["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert container["command"] == ["python3", "-m", "kvfence.app"]
    assert "args" not in container
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    # an image that does not start leaves the old operator at work
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize(
    ("version", "taken"), [("1.32.9", False), ("1.33.0", True), ("1.33.4-vendor.1", True), ("1.37.2", True)]
)
def test_kubernetes_before_1_33_is_refused(helm: Helm, version: str, taken: bool) -> None:
    ran = helm.try_run("template", "kvfence", str(CHART), "--kube-version", version)
    assert (ran.returncode == 0) == taken
    assert taken or "requires kubeVersion" in ran.stderr


def test_the_labels_that_pools_let_in_are_those_of_the_operators_pods(helm: Helm) -> None:
    rendered = helm.template("somewhere", release="mine")
    given = dict(pair.split("=") for pair in settings(rendered)["KVFENCE_OPERATOR_LABELS"].split(","))
    deployment, policy = the("Deployment", rendered)["spec"], the("NetworkPolicy", rendered)["spec"]
    assert given == deployment["selector"]["matchLabels"] == policy["podSelector"]["matchLabels"]
    assert given.items() <= deployment["template"]["metadata"]["labels"].items()
    assert policy["ingress"] == [{"ports": [{"port": 8080, "protocol": "TCP"}]}]
    (container,) = deployment["template"]["spec"]["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [8080]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("resyncSecond=60", "resyncSecond"),
        ("image.repo=kvfence/operator", "repo"),
        ("crds.enable=false", "enable"),
        ("tolerations[0].kee=a", "kee"),
        ("logFormat=yaml", "logFormat"),
        ("resyncSeconds=0", "resyncSeconds"),
        ("concurrentReconciles=many", "concurrentReconciles"),
        ("image.repository=kvfence/operator:1.0", "repository"),
        ("image.digest=0123", "digest"),
        ("minimumVersion=v0.5.23", "minimumVersion"),
        ("advisories.configMap=mine", "set publicKeys with configMap"),
        ("advisories.publicKeys[0]=abc", "publicKeys"),
        ("advisories.cutSeverity=low", "cutSeverity"),
        ("advisories.cutLimit=0", "cutLimit"),
        ("engineImage.pluginVersion=0.1.0+local", "pluginVersion"),
        ("watchNamespaces={Team_A}", "watchNamespaces"),
        ("frontImage.tag=1.29", "frontImage: a tag or digest without a repository says nothing"),
        ("frontImage.repository=nginx", "frontImage: set a tag or a digest with the repository"),
    ],
)
def test_a_value_that_is_wrong_is_refused_by_name(helm: Helm, given: str, words: str) -> None:
    ran = helm.try_run("template", "kvfence", str(CHART), f"--set={given}")
    assert ran.returncode != 0
    assert words in ran.stderr


def test_the_chart_can_be_a_part_of_another(helm: Helm, tmp_path: Path) -> None:
    (chart,) = objects((CHART / "Chart.yaml").read_text())
    dependency = {"name": "kvfence", "version": chart["version"], "repository": CHART.as_uri()}
    parent: dict[str, Any] = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(json.dumps(parent))
    helm.run("dependency", "build", str(tmp_path))
    assert the("Deployment", helm.run("template", "kvfence", str(tmp_path)))["metadata"]["name"] == "kvfence-operator"
