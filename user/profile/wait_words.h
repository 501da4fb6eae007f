/* SPDX-License-Identifier: Apache-2.0 */
/* Words with which names of waits say what is awaited, and by which those of idle loops are recognized. */
#ifndef PROFILE_WAIT_WORDS_H
#define PROFILE_WAIT_WORDS_H

#define WAIT_TCP         "tcp "
#define WAIT_UDP         "udp "
#define WAIT_ON          "on " /* of a socket that listens, or has no peer */
#define WAIT_TCP_CLIENTS WAIT_TCP "clients of "
#define WAIT_UNIX        "unix " /* with a name */
#define WAIT_PIPE        "a pipe"
#define WAIT_PROCESS     "process "
/* Before what has ended the wait. */
#define WAIT_UNTIL " until "

#endif
