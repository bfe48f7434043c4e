"""Writes the stage's model: a two-layer Llama, set by hand, that repeats what its KV cache holds.

Why there is one: with random weights a stale KV page changes an answer, but another request's marker never comes out as
text, and a test that looks for markers stays green with every defence off. This model looks up where the latest tokens
stood before, anywhere in the cache, and says what followed them there. What is in the cache comes out, whoever put it
there.
Nothing is trained or downloaded; every weight follows from the formulas here, and two runs write the same bytes.

How it works. The residual stream (640 numbers) has a slice A for the code of the current token, slices B1 to B5 for the
codes of the tokens 1 to 5 back, a slice C for the prediction, a constant, and a flag for the begin token.

- Codes: ASCII tokens get the rows of a 64 x 64 Hadamard matrix and their negatives. The product of two different ones
  is 0 or negative, so different tokens never look alike.
- Layer 0 fills the slices B. Head m looks m positions back and copies the code found there into B_m. Its queries and
  keys come from the constant alone, and RoPE does the rest: the query is written as if it were already turned back by
  m positions, so that the sum of cosines over the RoPE pairs is greatest at distance m. The begin token is where the
  head looks when no key stands at distance m, as happens when the cache holds another request's pages with other
  positions. Its score lies half-way between distance m and the next best; it has no code, so B_m stays 0.
- Layer 1 finds the match. It compares (A, B1 .. B4) of the asking position with (B1 .. B5) of every position in the
  cache, through RoPE pairs that turn so slowly that distance does not count, and copies A of the best one to C. A
  longer match scores more. The current token outweighs the four before it together, so copying goes on through a
  cache in which the positions do not fit.
- The output layer reads the token whose code stands in C.

The tokenizer has one token per byte and puts the begin token in front: a prompt of N ASCII characters is N + 1 tokens.

Runs in the engine's environment: `python copy_model.py FOLDER [MAX_POSITIONS]`.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from tokenizers import (  # type: ignore[import-not-found,unused-ignore]
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
)
from transformers import (  # type: ignore[import-not-found,unused-ignore]
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

LOOK_BACK = 5  # tokens that take part in a match, and so the heads of layer 0
CODE = 64  # numbers in the code of a token
HEAD = 512  # numbers in a head: 256 RoPE pairs
HALF = HEAD // 2
HIDDEN = 640
VOCABULARY = 320

# Where things stand in the residual stream.
A = 0
B = CODE
C = CODE * (LOOK_BACK + 1)
ONE = CODE * (LOOK_BACK + 2)
BEGIN = ONE + 1

CONSTANT = (
    8.0  # its value; large, so that the size of the stream (which the norm divides by) hardly depends on the token
)
ROPE_BASE = 1e12  # so high that about two thirds of the pairs hardly turn
REACH = 4096  # positions over which "hardly" is meant
STILL = 0.3  # rad over REACH
STEP = 20.0  # nats by which layer 0 prefers distance m to m +- 1; e^20 is far above any number of positions
MATCH = (56.0, 16.0, 14.0, 12.0, 10.0)  # nats for a match of the current token, of the one before it, and so on
CERTAINTY = 30.0  # logit of the predicted token

PADDING_TOKEN, BEGIN_TOKEN, END_TOKEN = 0, 1, 2


def write(folder: Path, max_positions: int = 65536) -> None:
    """Write model and tokenizer into `folder`, as SGLang and transformers load them.

    Args:
        folder: made if it is missing.
        max_positions: the longest context that the model claims; a server's `--context-length` may be lower.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(max_positions)
    tokenizer.save_pretrained(folder)
    ascii_tokens = [tokenizer.encode(chr(i), add_special_tokens=False)[0] for i in range(128)]
    codes = _codes(ascii_tokens)
    model = LlamaForCausalLM(_config(max_positions))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:  # the others are the norms' and stay 1
                weight.zero_()
        _set_embedding(model.model.embed_tokens.weight, codes)
        first, second = (layer.self_attn for layer in model.model.layers)
        for back in range(1, LOOK_BACK + 1):
            _set_look_back(first, back)
        _set_match(second)
        model.lm_head.weight[ascii_tokens, C : C + CODE] = (
            codes[ascii_tokens] * (CERTAINTY / CODE) * _size(LOOK_BACK + 2)
        )
    model.to(torch.bfloat16).save_pretrained(folder)


def _tokenizer(max_positions: int) -> Any:
    special = {"<pad>": PADDING_TOKEN, "<s>": BEGIN_TOKEN, "</s>": END_TOKEN}
    letters = {letter: len(special) + i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab=special | letters, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(list(special))
    core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", BEGIN_TOKEN)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=max_positions)
    tokenizer.add_special_tokens({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"})
    tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    return tokenizer


def _config(max_positions: int) -> Any:
    return LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=LOOK_BACK,
        num_key_value_heads=LOOK_BACK,
        head_dim=HEAD,
        max_position_embeddings=max_positions,
        bos_token_id=BEGIN_TOKEN,
        eos_token_id=END_TOKEN,
        pad_token_id=PADDING_TOKEN,
        tie_word_embeddings=False,
        rope_theta=ROPE_BASE,
        rms_norm_eps=1e-6,
        torch_dtype="bfloat16",
    )


def _codes(ascii_tokens: list[int]) -> Any:
    """Return one row of +1 and -1 per token; tokens that are not ASCII get random ones, the same on every run."""
    hadamard = torch.ones(1, 1)
    while hadamard.shape[0] < CODE:
        hadamard = torch.cat([torch.cat([hadamard, hadamard], 1), torch.cat([hadamard, -hadamard], 1)], 0)
    chance = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 2, (VOCABULARY, CODE), generator=chance).float() * 2 - 1
    for row, token in zip(torch.cat([hadamard, -hadamard]), ascii_tokens, strict=True):
        codes[token] = row
    return codes


def _size(filled: int) -> float:
    """Root mean square of a stream with `filled` code slices and the constant: the norm before a layer divides by
    it.
    """
    return math.sqrt((CODE * filled + CONSTANT * CONSTANT) / HIDDEN)


def _turns() -> list[float]:
    """Angle, in rad, by which each RoPE pair turns per position."""
    exponents = -2 * torch.arange(HALF, dtype=torch.float64) / HEAD
    turns: list[float] = (ROPE_BASE**exponents).tolist()
    return turns


def _set_embedding(embedding: Any, codes: Any) -> None:
    embedding[:, A : A + CODE] = codes
    embedding[:, ONE] = CONSTANT
    for token in (PADDING_TOKEN, BEGIN_TOKEN):  # no code: who looks here finds nothing
        embedding[token, A : A + CODE] = 0
        embedding[token, BEGIN] = CONSTANT


def _set_look_back(attention: Any, back: int) -> None:
    """Set the head of layer 0 that copies the code of the token `back` positions before into its slice B."""
    head = (back - 1) * HEAD
    turning = [(pair, turn) for pair, turn in enumerate(_turns()) if turn * REACH >= STILL]
    step = sum(1 - math.cos(turn) for _, turn in turning) / math.sqrt(
        HEAD
    )  # what one position of distance costs at size 1
    size = math.sqrt(STEP / step)
    scale = _size(1) / CONSTANT
    best = 0.0
    for pair, turn in turning:
        cosine, sine = size * math.cos(-back * turn), size * math.sin(-back * turn)
        attention.q_proj.weight[head + pair, ONE] = cosine * scale
        attention.q_proj.weight[head + pair + HALF, ONE] = sine * scale
        attention.k_proj.weight[head + pair, ONE] = size * scale
        attention.k_proj.weight[head + pair, BEGIN] = (
            -size * scale
        )  # takes the constant's key away: no position of its own
        best += math.hypot(_rounded(cosine), _rounded(sine)) * _rounded(size)
    # In two pairs that hardly turn: a score for the begin token, half a STEP below what distance `back` gets.
    begin_score = best - STEP / 2 * math.sqrt(HEAD)
    for place, (query, key) in zip((HALF - 1, HEAD - 1), _two_products(begin_score), strict=True):
        attention.q_proj.weight[head + place, ONE] = query * scale
        attention.k_proj.weight[head + place, BEGIN] = key * scale
    attention.v_proj.weight[head : head + CODE, A : A + CODE] = torch.eye(CODE) * _size(1)
    attention.o_proj.weight[B + (back - 1) * CODE : B + back * CODE, head : head + CODE] = torch.eye(CODE)


def _rounded(number: float) -> float:
    """Return the number as the engine, which computes in bfloat16, will see it."""
    return float(torch.tensor(number).to(torch.bfloat16))


def _two_products(wanted: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two pairs of bfloat16 numbers whose products add up to `wanted`: one pair alone is too coarse."""
    query = 2.0 ** round(math.log2(math.sqrt(wanted)))
    key = _rounded(wanted / query)
    return (query, key), (16.0, _rounded((wanted - query * key) / 16.0))


def _set_match(attention: Any) -> None:
    """Set the one head of layer 1: find the longest match with what came before, copy what followed it to C."""
    slow = [pair for pair, turn in enumerate(_turns()) if turn * REACH < STILL]
    places = [place for pair in slow for place in (pair, pair + HALF)]
    if len(places) < LOOK_BACK * CODE:
        raise ValueError(f"only {len(places)} numbers of a head turn slowly enough; {LOOK_BACK * CODE} are needed")
    for slice_, nats in enumerate(MATCH):
        weight = math.sqrt(nats * math.sqrt(HEAD) / CODE) * _size(LOOK_BACK + 1)
        for i, place in enumerate(places[slice_ * CODE : (slice_ + 1) * CODE]):
            attention.q_proj.weight[place, A + slice_ * CODE + i] = weight
            attention.k_proj.weight[place, B + slice_ * CODE + i] = weight
    attention.v_proj.weight[:CODE, A : A + CODE] = torch.eye(CODE) * _size(LOOK_BACK + 1)
    attention.o_proj.weight[C : C + CODE, :CODE] = torch.eye(CODE)


if __name__ == "__main__":
    write(Path(sys.argv[1]), *(int(argument) for argument in sys.argv[2:3]))
