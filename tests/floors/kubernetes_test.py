#!/usr/bin/env python3
"""Checks the Kubernetes documents of docs/clusters.md against the fields that the API has.

The schema has only the kinds and fields of these documents, after the reference of Kubernetes 1.28
and JobSet v1alpha2. Exits with 77 where PyYAML is missing, which ctest shows as skipped.
"""
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIPPED: this machine has no PyYAML")
    sys.exit(77)

TEXT, NUMBER, FLAG, WORDS, MAP = str, int, bool, [str], {str: str}
POD = {
    "subdomain?": TEXT,
    "restartPolicy": ("Never", "OnFailure"),
    "containers": [{
        "name": TEXT,
        "image": TEXT,
        "command": WORDS,
        "env": [{"name": TEXT, "value": TEXT}],
        "volumeMounts": [{"name": TEXT, "mountPath": TEXT, "readOnly?": FLAG}],
    }],
    "volumes": [{
        "name": TEXT,
        "emptyDir?": {"medium": ("Memory",), "sizeLimit": TEXT},
        "secret?": {"secretName": TEXT, "defaultMode?": NUMBER},
    }],
}
JOB = {
    "completions": NUMBER,
    "parallelism": NUMBER,
    "completionMode": ("Indexed",),
    "backoffLimit": NUMBER,
    "template": {"spec": POD},
}
KINDS = {
    ("v1", "Service"): {
        "clusterIP": ("None",), "publishNotReadyAddresses": FLAG, "selector": MAP},
    ("batch/v1", "Job"): JOB,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {
        "failurePolicy": {"maxRestarts": NUMBER},
        "network": {"enableDNSHostnames": FLAG, "publishNotReadyAddresses": FLAG},
        "replicatedJobs": [{"name": TEXT, "replicas": NUMBER, "template": {"spec": JOB}}],
    },
}


def faults(value, schema, path):
    """Returns a text for each place of `value` that doesn't fit the schema."""
    if isinstance(schema, tuple):
        return [] if value in schema else [f"{path} = {value!r}: expected one of {schema}"]
    if isinstance(schema, type):
        return [] if type(value) is schema else [f"{path} = {value!r}: expected {schema.__name__}"]
    if isinstance(schema, list):
        if not isinstance(value, list) or not value:
            return [f"{path} = {value!r}: expected a list"]
        return [f for i, v in enumerate(value) for f in faults(v, schema[0], f"{path}[{i}]")]
    if not isinstance(value, dict):
        return [f"{path} = {value!r}: expected fields"]
    if schema == MAP:
        return [f for k, v in value.items() for f in faults(v, str, f"{path}.{k}")]
    known = {name.rstrip("?"): part for name, part in schema.items()}
    found = [f"{path}.{name}: unknown field" for name in value if name not in known]
    for name, part in schema.items():
        if name.rstrip("?") in value:
            found += faults(value[name.rstrip("?")], part, f"{path}.{name.rstrip('?')}")
        elif not name.endswith("?"):
            found.append(f"{path}.{name}: missing")
    return found


def document_faults(document):
    schema = KINDS.get((document.get("apiVersion"), document.get("kind")))
    if schema is None:
        return [f"unknown kind {document.get('apiVersion')} {document.get('kind')}"]
    found = faults(document, {"apiVersion": TEXT, "kind": TEXT, "metadata": {"name": TEXT},
                              "spec": schema}, document["kind"])
    return found or hosts_faults(document)


def hosts_faults(document):
    """Checks that number, memory, secret and name of the pods agree with each other."""
    spec, name = document["spec"], document["metadata"]["name"]
    if document["kind"] == "Service":
        return []
    is_set = document["kind"] == "JobSet"
    job = spec["replicatedJobs"][0]["template"]["spec"] if is_set else spec
    pod = job["template"]["spec"]
    container = pod["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    mounts = {entry["mountPath"]: entry["name"] for entry in container["volumeMounts"]}
    volumes = {entry["name"]: entry for entry in pod["volumes"]}
    first = f"{name}-{spec['replicatedJobs'][0]['name']}-0-0" if is_set else f"{name}-0"
    domain = name if is_set else pod.get("subdomain")
    checks = {
        "WEFT_HOSTS": int(env["WEFT_HOSTS"]) == job["completions"] == job["parallelism"],
        "WEFT_TRAINER": env["WEFT_TRAINER"].split(":")[0] == f"{first}.{domain}",
        "WEFT_SECRET_FILE": "WEFT_SECRET_FILE" in env,
        "/dev/shm": "emptyDir" in volumes[mounts["/dev/shm"]],
        "/secret": "secret" in volumes[mounts["/secret"]],
    }
    return [f"{document['kind']}: {what} contradicts the rest" for what, good in checks.items()
            if not good]


def main():
    text = pathlib.Path(sys.argv[1], "docs/clusters.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    documents = [d for block in blocks for d in yaml.safe_load_all(block)]
    found = [f for document in documents for f in document_faults(document)]
    kinds = sorted(document["kind"] for document in documents)
    if kinds != ["Job", "JobSet", "Service"]:
        found.append(f"docs/clusters.md has {kinds}: expected a Job, a JobSet and a Service")
    # A test that can't fail would be none: each document must be refused without one of its fields.
    for document in documents:
        broken = {**document, "spec": {k: v for k, v in list(document["spec"].items())[1:]}}
        if not document_faults(broken):
            found.append(f"{document['kind']} without a field is not refused")
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
