// SPDX-License-Identifier: Apache-2.0
/* Locks of the module _thread in another process, and the methods by which a with statement leaves them. */
#ifndef SYMBOLS_PY_LOCK_H
#define SYMBOLS_PY_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/objects/py_value.h"

struct py_lock {
	/*
	 * What threads that want it sleep for, as py_lock_wanted() tells: the address of its semaphore (to 3.13), or of
	 * its PyMutex.
	 */
	uint64_t place;
	uint64_t owner; /* of an RLock that a thread has: that thread's pthread_self(), else 0 */
	bool is_locked;
};

/* Returns for which place a thread wants a lock that sleeps on that futex; it may be one of something else. */
uint64_t py_lock_wanted(struct py_values *v, uint64_t futex);
/* Reads a lock. Returns false if the object is not a lock. */
bool py_lock_read(struct py_values *v, uint64_t object, struct py_lock *out);
/* Returns the object that a bound method is bound to, as the stack has it before a call; 0: it is not a bound method.
 */
uint64_t py_lock_bound_to(struct py_values *v, uint64_t method);
/*
 * Finds the lock that the with statement leaves by what the evaluation stack has: __exit__ bound to the lock, or
 * from 3.14 on the function and then the lock; the lock's, or that of a threading.Condition. Returns false if it is
 * anything else.
 */
bool py_lock_of_with(struct py_values *v, uint64_t item, uint64_t next, struct py_lock *out);

#endif
