# SPDX-License-Identifier: Apache-2.0
"""tables.py numpy|pandas FOLDER: local variables of the library in that folder, and what each is shown as."""

import json
import os
import sys
import time

sys.path.append(sys.argv[2])
said = {}


def scalar(value):
    """As numpy of all versions would have it if it used its own name; of a derived class its own."""
    return "%s%s(%s)" % ("numpy." if type(value).__module__ == "numpy" else "", type(value).__name__, value)


def array(value, name="numpy.ndarray"):
    return "<%s shape=%r dtype=%s>" % (name, value.shape, value.dtype.type.__name__)


def wait():
    print(json.dumps({"pid": os.getpid(), "said": said}))
    sys.stdout.flush()
    time.sleep(1000)


def stand_numpy():
    import numpy

    class Own(numpy.ndarray):
        pass

    class Meters(numpy.float64):
        pass

    class Ratio(numpy.float32):
        pass

    class Offset(numpy.int8):
        pass

    class Further(Offset):
        pass

    metres, ratio, offset, further = Meters(1.5), Ratio(2.5), Offset(-3), Further(-4)
    small, large, byte = numpy.int8(-5), numpy.uint64(2**63 + 1), numpy.uint8(200)
    single, double, both = numpy.float32(0.1), numpy.float64(-1e300), numpy.complex128(1 - 2j)
    yes, infinite = numpy.bool_(True), numpy.float64("inf")
    square, point, none = numpy.zeros((3, 4)), numpy.array(5), numpy.zeros((0, 2))
    deep = numpy.zeros((2, 3, 4, 5, 6), dtype=numpy.int16)
    turned, part = square.T, deep[:, 1:, ::2]
    texts, objects = numpy.array(["ab", "c"]), numpy.array([None, 1], dtype=object)
    days, truths = numpy.array(["2020-01-01"], dtype="datetime64[D]"), numpy.array([True])
    own, matrix = square.view(Own), numpy.matrix([[1, 2]])
    for name, value in list(locals().items()):
        if isinstance(value, numpy.ndarray):
            said[name] = array(value, {"own": "Own", "matrix": "matrix"}.get(name, "numpy.ndarray"))
        elif isinstance(value, numpy.generic):
            said[name] = scalar(value)
    wait()


def stand_pandas():
    import pandas

    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    empty, keyed = pandas.DataFrame(), pandas.DataFrame({"a": [1]}, index=["q"])
    mixed = pandas.DataFrame({"a": [1.5, 2], "b": [1, 2], "c": [True, False], "d": ["x", "y"]})
    column, bare = pandas.Series([1, 2], name="n"), pandas.Series([1.0])
    counted, index = frame.index, pandas.Index(["a", "b"])
    moment, span = pandas.Timestamp("2020-01-02 03:04:05.5"), pandas.Timedelta(5, "s")
    dates, never = pandas.date_range("2020", periods=4), pandas.NaT
    for name, value in list(locals().items()):
        if isinstance(value, pandas.Series):
            said[name] = "<Series shape=%r name=%r>" % (value.shape, value.name)
        elif isinstance(value, (pandas.DataFrame, pandas.Index)):
            said[name] = "<%s shape=%r>" % (type(value).__name__, value.shape)
    said["never"] = "NaT"
    # Their values are in fields that pandas adds to those of datetime.
    said["moment"], said["span"] = "<Timestamp object>", "<Timedelta object>"
    wait()


if __name__ == "__main__":
    {"numpy": stand_numpy, "pandas": stand_pandas}[sys.argv[1]]()
