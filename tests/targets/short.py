# SPDX-License-Identifier: Apache-2.0
"""short.py MILLISECONDS: a script that takes so much CPU time and ends, with the time that it took."""

import sys

import churn


def main(milliseconds):
    began = churn.cpu_s()
    churn.burn(milliseconds / 1000.0)
    churn.say(burnt_s=round(churn.cpu_s() - began, 6))


if __name__ == "__main__":
    main(float(sys.argv[1]))
