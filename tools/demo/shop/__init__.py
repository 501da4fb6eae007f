# SPDX-License-Identifier: Apache-2.0
"""A small web shop's back office, for something to profile: it reads the access log, books orders and reports.

Everything is made up from a fixed seed and nothing is read or written but standard output's last line.
"""
