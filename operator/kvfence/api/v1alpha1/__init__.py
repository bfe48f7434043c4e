"""Version v1alpha1 of `kvfence.io`. What is declared here works; what is planned and does nothing yet is left out.

Left out for now, each addable later without changing what a stored pool means:

- `engine.sglang.pluginDelivery`: kvfence-engine is always injected.
- `router.policy`, `router.template`: one policy, and the router's pods are kvfence's own.
- `contextLength.minimumPoolPercent`: no pod is left out for having less than its peers.
- `integrity.pageTagging`, `pageScrubbing`, `coverage`, and the mode `Disabled`: these defences are not built yet.
- `verification`, `advisories`, `quarantine`: canaries and version floor have no settings; there is no catalogue yet and
  nothing to quarantine with.
- `progressDeadlineSeconds`, `paused`, `networkPolicy`: nothing reads them yet.
- `env[].valueFrom`: `env` carries plain values; secrets get in through `model.tokenSecretRef` or volumes.
- In `template`: everything but what `template.py` lists.
- In `status`: incidents and the list of the worst pods.

Values that are declared and refused in words: role type `Unified`, transfer backend `NIXL`, strategy `BlueGreen`.

No field is immutable: what concerns the engine makes a new revision, which is proven before it serves, and the rest is
applied as it is.
"""
