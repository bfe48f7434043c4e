"""What each finding of the doctor is about, for `kvfence explain`; a finding's message has the figures and the cure."""

from __future__ import annotations

FINDINGS: dict[str, str] = {
    "ContextAbovePool": (
        "More context is advertised than the KV pool of the engine holds. Prompts in between are refused late, cut "
        "short or never served; a pair of SGLang older than 0.5.20 answers them out of other users' requests."
    ),
    "DecodeReserveTooSmall": (
        "The context fits into the pool of decode, but not beside the tokens that decode keeps back: such a prompt "
        "waits for ever, and everything behind it too."
    ),
    "StartFailed": "The log ends in a failed start: the engine takes no request.",
    "LimitsDisagree": (
        "The input limit that the engine tells is not what its pool and its context explain. The engine's own limit "
        "counts; one of the three figures is not what it seems."
    ),
    "RanksDiffer": (
        "Data-parallel ranks have KV pools of different sizes: which one a request gets decides how long it may be."
    ),
    "PoolSmallerThanAsked": "--max-total-tokens asks for a larger KV pool than there is: the flag is an upper bound.",
    "EngineTooOldForPairs": (
        "A release of SGLang that runs as a half of a pair and answers a prompt that does not fit with other users' "
        "text, or refuses it late and has no checksum of what is handed over."
    ),
    "VersionsDiffer": (
        "Halves of a pair run different releases, which do not agree on how memory is given back when a request is "
        "given up."
    ),
    "RolesDiffer": (
        "Halves of a pair differ in a setting that both must share, such as context length or page size: one then "
        "reads what the other did not write so."
    ),
    "AutoTruncateInPair": (
        "--allow-auto-truncate in a pair: prefill and decode cut a prompt that is too long at different places, and "
        "decode reads pages that were not written for it."
    ),
    "AutoTruncate": "--allow-auto-truncate: prompts that are too long are cut without a word, and answered with 200.",
    "ChecksumOff": "The KV checksum is off: KV that arrives broken or from somebody else is not noticed.",
    "ChecksumSkipped": (
        "The KV checksum is on, and halves of different --tp-size let everything through unverified, with one warning."
    ),
    "ChecksumOneSided": "The KV checksum is on in one half of the pair alone, so that nothing is compared.",
    "ChecksumNotReliable": "A release whose KV checksum may come out differently on the ranks of one engine.",
    "KeysShown": "Secret values of settings stand in clear in what was read: whoever can read it has them.",
    "ControlPlaneOpen": "Whoever reaches the router can list and add workers, and so get prompts sent to his own.",
    "ServerInfoOpen": "The router hands an engine's whole /server_info to anybody, keys included.",
    "RouterWaitsForDecode": (
        "Pools of different size behind a router that waits for the larger one: a prompt that prefill refuses hangs "
        "for minutes and is tried anew."
    ),
    "LongerContextForced": "A context longer than the model's own is forced; positions beyond it run over.",
    "LoraBesideClientKeys": "A client's extra_key and a LoRA adapter's name are one key to the cache.",
    "CacheReportOn": "Answers tell how many tokens came from the cache, and so what others have asked.",
    "PoolSizedLate": "The KV pool gets its size after it was first announced: early lines of the log are upper bounds.",
    "KvCanaryKills": "SGLang's own KV canary stops the whole server at the first mismatch.",
    "KvCanaryBlind": "SGLang's own KV canary is on and does not see pages of other requests.",
    "CustomLogitProcessor": "Whoever may send a prompt may send code, and the engine runs it.",
    "EncoderApart": "Encoder and language model talk over sockets that had faults through which code could be run.",
    "HeadersOverrideBodies": "Headers of a request replace fields of its body, past a proxy that checks bodies alone.",
    "TestSwitchOn": "A variable that is meant for tests of SGLang is set on a server.",
    "FakeTransferBackend": "KV is not transferred at all: decode answers out of whatever its memory held before.",
    "DeferredReleaseOff": "Memory of a request that was given up is used again while prefill may still write to it.",
    "DeferredReleaseTooShort": "Memory is kept back for a shorter time than a transfer may take.",
    "DeferredReleaseUnsupported": "A transfer backend that does not tell when it is done with a request.",
    "HiCacheOnPrefill": "Prefill may hand over pages that are still being restored from its hierarchical cache.",
    "DecodeRadixCache": "Decode shares pages between requests, which is experimental; without it each has one owner.",
    "OptimisticPrefill": "Prefill computes before it knows that decode is there, and gives its work up when it is not.",
    "StagingBuffer": "KV passes through a staging buffer on its way, which had faults of its own.",
    "SpeculativeInPair": "Drafts are decoded ahead in a pair; several faults that mixed up KV were in that.",
}
