# SPDX-License-Identifier: Apache-2.0
"""read_mojo.py FILE: what Austin sampled, as JSON: [samples, number of errors].

samples: [[count, whether Austin marks it as invalid, [[name, file, line]...]]...]

Runs in the virtual environment of tests/peers.py.
"""

import json
import sys
from collections import Counter

from austin.format.mojo import MojoStreamReader


def main(path):
    invalid = set()
    with open(path, "rb") as stream:
        reader = MojoStreamReader(stream)
        parse = reader.get_invalid_frame

        def note():
            invalid.add(len(reader.samples))  # the sample that is being read
            return parse()

        reader.get_invalid_frame = note
        reader.unwind()
    counts = Counter()
    for number, sample in enumerate(reader.samples):
        frames = tuple((frame.function, frame.filename, frame.line) for frame in sample.frames or ())
        counts[number in invalid, frames] += 1
    samples = [[count, bad, frames] for (bad, frames), count in counts.items()]
    json.dump([samples, int(reader.metadata["errors"].partition("/")[0])], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
