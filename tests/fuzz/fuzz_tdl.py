"""Mutated and random TDL texts: the parser ends in a tree or in diagnostics, and soon.

    python -m tests.fuzz.fuzz_tdl [--seconds N] [--seed N]

What parses is also formatted, and must mean the same afterwards. Noise of 100 kB has to be done
within two seconds. Prints the seed of the first failure and exits 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tdl.diagnostics import TdlError
from tdl.parser import parse
from tdl.text_layout import format_text
from tests.tdl.helpers import unspanned

NOISE_BYTES = 100_000
SLOW_SECONDS = 2.0
SEEDS = (
    """\
bootstrapper thunderstorm:2.0
seed 42
routing hops
service web img=nginx:1.27 exec="sleep 10" command=['a', "b"] replicas=3 tags=a;b env=A:1;B:"x y"
service db image=db:1 entrypoint=['d', '-v'] tags=c d \\
  port=80;443 cpu=0.5 mem=512MiB supervisor share reuse network=lan
bridges s1 s2 tags=core
link web--s1 latency=9.1 jitter=1 loss=1% up=1Gb down=800Mb queue=64KiB dist=uniform tags=x
link db — s2 lat=5 drop=0.01 up=1Gb symmetric \\
  tags=y
""",
    """\
at 0s web join 3 and db join
at 4h20m web--s1 leave   # comment
from 30m to 3h30m web churn 40% replace 50%
from 10h2m to 10h6m web—s1 flap 0.93s
at 1m crash tags=a 20%
from 0s to 100s flap web--s1 freq 0.5s
at 100s set latency=200% bandwidth=50%
at 5s web.0->s1 set latency+=5ms up=unlimited loss=0.5
at 6s partition web tags=c;db.0 s2
at 7s heal
from 8s to 9s a;b disconnect
churn web 3
at 10s a--b background 5Mb
at 1d quit
""",
    """\
let wan = "latency=20ms rate=100Mb"  # far
let n = 2
service web replicas=3 exec="sh -c 'echo $n $HOME \\$n'" env=A:$n tags=x[0..1];y
bridges s[0..2] core
for i in 0..$n { link web.$i--s$i latency=0.$i }
for i in 0..1 {   # each
  let far = s$i
  for k in 2..3 {
    at ${i}.${k}s $far--core set latency=${k}ms  # now
  }
  link $far--core $wan
}
at 5s s[0..1] leave and web.[0..2] disconnect
at 6s partition s[0..1] tags=x[0..1];s2
""",
)
MARKS = [
    "{",
    "}",
    "$i",
    "${n}",
    "[0..3]",
    "let i = ",
    "for i in 0..2 {",
    ";",
    "--",
    "[",
    "]",
    "'",
    '"',
    "\
",
    "#",
    "%",
]
WORDS = [*" ".join(SEEDS).replace("=", "= ").split(), *MARKS]


def noise(rnd: random.Random, size: int, kind: int) -> bytes:
    """Bytes, printable characters, words of the language, or one character over and over."""
    if kind == 0:
        return rnd.randbytes(size)
    if kind == 1:
        return bytes(rnd.randrange(32, 127) for _ in range(size))
    if kind == 2:
        words = "".join(rnd.choice(WORDS) + rnd.choice(" \n ") for _ in range(size // 5))
        return words.encode()[:size]
    return (
        rnd.choice(["[", '"', "\\", "-", "a", "1", "a-", "a;", "a ", "=", "#", "(", "'"]) * size
    )[:size].encode()


def mutate(rnd: random.Random, seeds: tuple[str, ...] = SEEDS) -> str:
    """One of these texts with a few characters or words replaced, removed or repeated."""
    text = rnd.choice(seeds)
    for _ in range(rnd.choice([1, 1, 2, 4, 8])):
        at = rnd.randrange(len(text) + 1)
        kind = rnd.randrange(5)
        if kind == 0:
            text = (
                text[:at] + chr(rnd.choice([rnd.randrange(128), rnd.randrange(0x3000)])) + text[at:]
            )
        elif kind == 1:
            text = text[:at] + text[at + rnd.randrange(1, 9) :]
        elif kind == 2:
            text = text[:at] + " " + rnd.choice(WORDS) + " " + text[at:]
        elif kind == 3:
            other = rnd.randrange(len(text) + 1)
            text = text[:at] + text[other : other + rnd.randrange(40)] + text[at:]
        else:
            text = text[:at] + rnd.choice("-;=.%'\"[]\\\n#,0") + text[at + 1 :]
    return text


def one(rnd: random.Random, round_number: int) -> None:
    """Raises AssertionError, or whatever the parser should not have raised."""
    large = round_number % 50 == 0
    text: str | bytes = noise(rnd, NOISE_BYTES, rnd.randrange(4)) if large else mutate(rnd)
    started = time.process_time()
    try:
        file, _ = parse(text)
    except TdlError as error:
        assert error.diagnostics
        file = None
    took = time.process_time() - started
    assert took < SLOW_SECONDS, f"{took:.1f} s of CPU time for {len(text)} characters"
    if file is not None:
        formatted = format_text(text)
        assert format_text(formatted) == formatted, "fmt is not idempotent"
        assert unspanned(parse(formatted)[0]) == unspanned(file), "fmt changed the meaning"


def main() -> int:
    options = argparse.ArgumentParser(description="Fuzzes the TDL parser and formatter.")
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--seed", type=int, default=None, help="repeat one round")
    chosen = options.parse_args()
    first = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(2**32)
    end = time.monotonic() + chosen.seconds
    rounds = 0
    while time.monotonic() < end:
        seed = first + rounds
        try:
            one(random.Random(seed), seed)
        except Exception:
            traceback.print_exc()
            print(f"failed: python -m tests.fuzz.fuzz_tdl --seed {seed} --seconds 0.01")
            return 1
        rounds += 1
    print(f"fuzz_tdl: {rounds} rounds from seed {first}, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
