# SPDX-License-Identifier: Apache-2.0
"""A program that imports asyncio after a while, and whose task then burns CPU: `late_tasks.py SECONDS_BEFORE SECONDS`."""

import sys
import time


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def run(seconds):
    import asyncio

    async def main():
        for _ in range(20):
            spin(seconds / 20)
            await asyncio.sleep(0)

    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())


if __name__ == "__main__":
    spin(float(sys.argv[1]))
    run(float(sys.argv[2]))
