"""Bytes in the KV pool: pages are zeroed before others may write into them, and afterwards it is shown that they did.

Tags follow what SGLang was told to do. This looks at the memory itself, and as cheaply as that can be had: of the
buffers of a pool only the first and the last are read. In the order in which SGLang lists them these hold the first
layer's keys and the last layer's values. A transfer that left out whole pages is seen; one that left out a layer in
between is not.

Zeroing never makes the host wait for the device, nor does it wait itself: who publishes addresses to other machines
must wait for it first, because their writes keep no order with the work of this device.

Tensors in the host's memory are read and written as the numpy arrays that share it: as tensors, filling them by ids
took two to ten times as long, and summing up to twice, with words of 2 bytes six times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Array = Any
"""A numpy array, or a torch tensor."""

BASE_OF_TOKENS = 0x1A827999FCEF3245
BASE_OF_WORDS = 0x2ED9EBA16132A9CD
"""The first 62 binary places of the square roots of 2 and of 3, the last three set to 101.

Remainder 5 from 8 makes them odd, so that no multiplication below loses a bit, and their powers as different as powers
of odd numbers can be: the n-th less 1 has two more factors of 2 than n has, and no more.
"""

_MODULUS = 2**62

_WORDS = {"int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8}  # name of a type: bytes

# Bytes that are copied at once to be read: on the host what fits into the cache of a core, on a device enough that
# the number of steps does not count.
_HOST_BLOCK = 2**20
_DEVICE_BLOCK = 2**24


class KvPages:
    """The buffers of one KV pool.

    Args:
        buffers: of shape (slots, heads, numbers of a head), as SGLang's pools for multi-head attention (keys of all
            layers, then values of all layers) and for latent attention (all layers) hold them. Other shapes are other
            layouts of the memory, and are refused.
        page_size: tokens in a page; the slot of a token is page * `page_size` + its place in the page.
        words: shows a block of rows, without a copy, as integers of up to 8 bytes: the wider, the fewer of them there
            are to move. Both sides of a transfer need the same ones for equal proofs.

    Raises:
        ValueError: with what does not fit.
    """

    def __init__(self, buffers: Sequence[Array], page_size: int, words: Callable[[Array], Array]) -> None:
        if not buffers:
            raise ValueError("a KV pool without buffers")
        if page_size < 1:
            raise ValueError(f"a page has at least 1 token, not {page_size}")
        rows = [_rows(place, buffer, page_size, words) for place, buffer in enumerate(buffers)]
        counts = {len(row) for row in rows}
        if len(counts) > 1:
            raise ValueError(f"the buffers of one pool have {' or '.join(map(str, sorted(counts)))} slots")
        self._page_size = page_size
        self._identity = _identity(buffers)
        self._page_bytes = page_size * sum(_word_bytes(row) * row.shape[1] for row in rows)
        self._pages = [row.reshape(len(row) // page_size, -1) for row in rows]
        self._sample = [rows[0]] if len(rows) == 1 else [rows[0], rows[-1]]
        self._weights = list(_weights(self._sample))

    def __len__(self) -> int:
        """Return how many pages the buffers have, the dummy page 0 included."""
        return len(self._pages[0])

    @property
    def sampled_bytes(self) -> int:
        """Bytes of one token in the buffers that `proof` reads."""
        return sum(_word_bytes(rows) * rows.shape[1] for rows in self._sample)

    def holds(self, buffers: Sequence[Array]) -> bool:
        """Return whether these are the buffers that this was made from: the same memory, and the same shapes."""
        return _identity(buffers) == self._identity

    def zero(self, pages: Array) -> int:
        """Set all bytes of pages to 0, in all buffers, in order with the device's other work.

        Args:
            pages: page ids, where the buffers are: ids in the host's memory would have to be brought to the device.

        Returns:
            The number of bytes.
        """
        chosen = _as_host_array(pages)
        if _on_host(self._pages[0]):
            chosen = chosen[chosen.argsort()]  # in order of addresses: two to four times as fast
        for block in self._pages:
            block[chosen] = 0
        return int(len(pages) * self._page_bytes)

    def empty(self, pages: Array) -> Array:
        """Find pages in which nothing has arrived since they were zeroed: one truth value for each page.

        Such a page has nothing but zeros where its first token has its row, both in the first buffer and in the last.
        Reads that one row of a page from each.

        What it misses: a page of which either buffer was written and the other, or one that is not looked at, was not;
        and a page that was written in part, as long as its first token was.

        What it takes for empty and is not: a token whose key in the first layer and whose value in the last are both
        nothing but zeros. A key is the product of a matrix and of the token's normalised vector, turned by its
        position; no trained model makes it 0 in every number of every head, not even rounded to 8 bits. But there are
        checkpoints in which a token that training never met, such as padding, has an embedding of zeros, and at the
        start of a prompt it stays zero through all layers. Whoever may choose token ids can then send that. So an
        empty page may end its own request, but it is no sign of a fault by itself; and where both sides have a proof,
        that one decides. Values alone would not do: those of a begin token are tiny, and 8 bits can make them 0.
        """
        nothing = pages * 0 == 0
        found, first = _as_host_array(nothing), _as_host_array(pages) * self._page_size
        for rows in self._sample:
            for part in _parts(first, rows):
                found[part] &= ~(rows[first[part]] != 0).any(1)
        return nothing

    def proof(self, slots: Array) -> int:
        """Sum up what the tokens of a request have in the first and the last buffer. The host waits for the device.

        Both sides of a transfer get the same number if the same bytes lie there in the same order of tokens, in
        whichever slots; tokens left out or added change it too. With other words, another number of heads on a rank,
        or other layers on a rank, the numbers have nothing to do with each other.

        The sum, modulo 2**62, over tokens i = 1, 2 ... of `BASE_OF_TOKENS`**i * (1 + the sum over the token's words
        j = 1, 2 ..., first buffer and then last, of `BASE_OF_WORDS`**j * word), plus 1. Words of 8 bytes count as two,
        all lower halves in a buffer's row before the upper ones. A bit that flips changes a word by a power of 2 below
        2**32, and so the sum by an odd multiple of that: it is always seen. Two tokens that change places are seen
        unless their inner sums agree in the last 60 bits, less one for each factor of 2 in their distance. For other
        differences it is a matter of chance: about 1 in 2**62 goes unseen, and 1 in 2**31 of those that lie in the
        uppermost bits of words alone. There is no key: this finds faults, not forgers.

        Reads the rows of all the tokens from two buffers: with L layers 1/L of the request's keys and values.

        Args:
            slots: of all the tokens of a request in order, where the buffers are.

        Returns:
            A number from 1 up to 2**62.
        """
        slots = _as_host_array(slots)
        powers = _powers(BASE_OF_TOKENS, slots)
        total = powers[:1] * 0
        for part in _parts(slots, *self._sample):
            inner = 1
            for rows, weights in zip(self._sample, self._weights, strict=True):
                found = rows[slots[part]]
                for half, weight in zip(_halves(found), weights, strict=True):
                    inner = inner + (half * weight).sum(1)
            total = total + (inner * powers[part]).reshape(1, -1).sum(1)
        return int(total.sum()) % _MODULUS + 1


def _rows(place: int, buffer: Array, page_size: int, words: Callable[[Array], Array]) -> Array:
    """Return the same memory as words: a row for each slot. Raises ValueError with what does not fit."""
    shape = tuple(buffer.shape)
    if len(shape) != 3 or 0 in shape:
        raise ValueError(f"buffer {place} has the shape {shape} instead of (slots, heads, numbers of a head)")
    if shape[0] % page_size:
        raise ValueError(f"buffer {place} has {shape[0]} slots: no whole pages of {page_size} tokens")
    if not _contiguous(buffer):
        raise ValueError(f"buffer {place} has gaps between its rows")
    seen = words(buffer.reshape(shape[0], -1))
    if _type_name(seen) not in _WORDS:
        raise ValueError(f"buffer {place} is shown as {_type_name(seen)} instead of one of {', '.join(_WORDS)}")
    if _address(seen) != _address(buffer) or seen.nbytes != buffer.nbytes or len(seen) != shape[0]:
        raise ValueError(f"buffer {place} is shown as a copy, or not all of it")
    return _as_host_array(seen)


def _identity(buffers: Sequence[Array]) -> tuple[tuple[int, tuple[int, ...], str], ...]:
    return tuple((_address(buffer), tuple(buffer.shape), str(buffer.dtype)) for buffer in buffers)


def _parts(slots: Array, *rows: Array) -> Iterator[slice]:
    """Cut slots into runs whose rows can be copied at once."""
    block = _HOST_BLOCK if _on_host(slots) else _DEVICE_BLOCK
    most = max(1, block // max(_word_bytes(row) * row.shape[1] for row in rows))
    for start in range(0, len(slots), most):
        yield slice(start, start + most)


def _weights(sample: Sequence[Array]) -> Iterator[list[Array]]:
    """Give, for each buffer, the powers that its words are multiplied by: one array, or one for each of two halves."""
    before = 0
    for rows in sample:
        powers = _powers(BASE_OF_WORDS, rows[0])
        halves = 2 if _word_bytes(rows) == 8 else 1
        yield [powers * pow(BASE_OF_WORDS, before + half * len(powers), _MODULUS) for half in range(halves)]
        before += halves * len(powers)


def _powers(base: int, places: Array) -> Array:
    """Return base**1, base**2 ... modulo 2**64, as int64, one for each place of an integer array."""
    return ((places * 0 == 0) * base).cumprod(0)


def _halves(words: Array) -> list[Array]:
    """Cut words of 8 bytes in two; others are left as they are.

    A bit above the 62nd would be lost in the sum.
    """
    return [words & 0xFFFFFFFF, words >> 32] if _word_bytes(words) == 8 else [words]


def _word_bytes(words: Array) -> int:
    return _WORDS[_type_name(words)]


def _type_name(array: Array) -> str:
    """Return "int64", for torch.int64 too."""
    return str(array.dtype).rpartition(".")[2]


def _on_host(array: Array) -> bool:
    """Tell memory of the host, seen as a numpy array, from a tensor."""
    return not hasattr(array, "data_ptr")


def _as_host_array(array: Array) -> Array:
    """Return a tensor in memory of the host as the numpy array that shares it; all else as it is."""
    return array if _on_host(array) or array.device.type != "cpu" else array.numpy()


def _contiguous(array: Array) -> bool:
    return bool(array.flags.c_contiguous if _on_host(array) else array.is_contiguous())


def _address(array: Array) -> int:
    return int(array.ctypes.data if _on_host(array) else array.data_ptr())
