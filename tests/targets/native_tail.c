// SPDX-License-Identifier: Apache-2.0
/*
 * A library that evaluates as Python 3.14 and later do where they are built with --with-tail-call-interp: each
 * instruction has a function, which ends with a jump to that of the next one, and which keeps no register for its
 * caller. Only nt_run is exported.
 */
#if __has_attribute(preserve_none)
#define KEEPS_NOTHING __attribute__((preserve_none))
#else
#define KEEPS_NOTHING /* for those who only look at this file */
#endif
#define OPERATION(name)                                                                                                \
	static KEEPS_NOTHING __attribute__((noinline)) void name(const unsigned char *next, void (*call_back)(void),   \
								 long turns)
#define GO_ON __attribute__((musttail)) return operations[*next](next + 1, call_back, turns)

typedef KEEPS_NOTHING void operation(const unsigned char *next, void (*call_back)(void), long turns);
static operation *const operations[];

static volatile double sink;

OPERATION(op_add)
{
	sink = sink + (double)turns;
	GO_ON;
}

OPERATION(op_burn)
{
	for (long i = 0; i < turns; i++)
		sink = sink + (double)i;
	GO_ON;
}

static __attribute__((noinline)) void leaf(long turns)
{
	for (long i = 0; i < turns; i++)
		sink = sink + (double)i;
	sink = 1;
}

OPERATION(op_leaf)
{
	volatile long kept[20];

	kept[turns % 20] = turns;
	leaf(turns);
	sink = (double)kept[turns % 20];
	GO_ON;
}

OPERATION(op_call)
{
	call_back();
	GO_ON;
}

OPERATION(op_end)
{
	sink = (double)turns;
	(void)next;
	(void)call_back;
}

static operation *const operations[] = {op_add, op_burn, op_leaf, op_call, op_end};

void nt_run(const unsigned char *code, void (*call_back)(void), long turns);
void nt_run(const unsigned char *code, void (*call_back)(void), long turns)
{
	sink = 0;
	operations[*code](code + 1, call_back, turns);
	sink = 2;
}
