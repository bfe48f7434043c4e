"""`python -m kvfence.catalogue`: for whoever writes advisories. Signs, checks, and writes the reference."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from kvfence.catalogue import added, merged, packaged, signing
from kvfence.catalogue.packaged import left_out
from kvfence.catalogue.reference import reference


def main(arguments: list[str]) -> int:
    """Run the command; 0 when nothing is wrong, 1 for a problem, 2 for wrong use."""
    asked = _parser().parse_args(arguments)
    try:
        match asked.command:
            case "sign":
                return _sign(asked.file, asked.key)
            case "check":
                return _check(asked.file, asked.signature, asked.public_key)
        sys.stdout.write(reference(packaged(), left_out()))
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kvfence.catalogue", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sign = commands.add_parser("sign", help="print the signature of a document, in base64")
    sign.add_argument("file", type=Path)
    sign.add_argument("--key", type=Path, required=True, help="private key: PEM, or 32 bytes in base64")
    check = commands.add_parser("check", help="say what kvfence would take of a document, and what is wrong with it")
    check.add_argument("file", type=Path)
    check.add_argument("--signature", type=Path, required=True)
    check.add_argument("--public-key", type=Path, required=True, action="append", help="may be given twice")
    commands.add_parser("reference", help="print docs/reference/advisories.md")
    return parser


def _sign(file: Path, key: Path) -> int:
    """Print a signature, unless what would be signed is not taken by anybody."""
    raw = file.read_bytes()
    try:
        private = signing.private_key(key.read_bytes())
    except ValueError as error:
        sys.stderr.write(f"{key}: {error}\n")
        return 1
    signature = signing.sign(raw, private)
    public = signing.encoded(private.public_key())
    problems = added(raw, signature, (public,), datetime.now(UTC)).problems
    sys.stderr.writelines(f"{one}\n" for one in problems)
    if problems:
        sys.stderr.write("Nothing was signed.\n")
        return 1
    sys.stdout.write(signature.decode())
    return 0


def _check(file: Path, signature: Path, public_keys: list[Path]) -> int:
    keys = [key.read_bytes() for key in public_keys]
    more = added(file.read_bytes(), signature.read_bytes(), keys, datetime.now(UTC))
    together = merged(packaged(), more)
    sys.stdout.writelines(f"taken: {one.id}\n" for one in more.advisories if one in together.advisories)
    sys.stdout.writelines(f"note: {one}\n" for one in together.notes)
    sys.stderr.writelines(f"problem: {one}\n" for one in together.problems)
    return 1 if together.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
