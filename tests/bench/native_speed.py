# SPDX-License-Identifier: Apache-2.0
"""How fast a target is while its functions of C are sampled as well: beside a bare interrupt's and other profilers'."""

import harness
import native
import samplers
import target_speed
from figures import Target
from kernel_time import NATIVE_FRAMES

RATE = 999
AIMS = {samplers.PybpfNative.name: Target(97, ">= 97 % of a bare interrupt's", at_least=True)}


def measure(bench):
    interpreter = harness.default_python()
    title = "target's speed while it is sampled, 52 frames of Python and %d of C below ctypes" % NATIVE_FRAMES
    arguments = ("native", NATIVE_FRAMES, native.library(interpreter, "native_calls"))
    return [target_speed.measure_beside(bench, title, [interpreter], samplers.NATIVE, [RATE], arguments, AIMS)]
