// SPDX-License-Identifier: Apache-2.0
/* How to run this program as root, for messages. sudo looks for programs in folders of its own (secure_path). */
#ifndef BASE_SUDO_H
#define BASE_SUDO_H

/* Keeps the command line, which getopt permutes later. For the start of main: helpers have it, too. */
void sudo_remember(int argc, char *const *argv);

/* Returns "sudo pybpf", or "sudo /path/of/pybpf" where sudo would not find it. */
const char *sudo_program(void);

/* Returns sudo_program() with the arguments of this run, to be pasted into a shell; "..." stands for long ones. */
const char *sudo_command(void);

#endif
