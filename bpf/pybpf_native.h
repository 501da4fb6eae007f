/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Native frames: the tables by which the kernel side finds the caller of a C function, and what a stack has of these
 * frames.
 */
#ifndef PYBPF_NATIVE_H
#define PYBPF_NATIVE_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* Most native frames of a stack. */
#define PYBPF_NATIVE_FRAMES 1024

/* A row of a file's table: how the caller is found from the instruction at pc up to the next row. */
struct pybpf_native_row {
	__u32 pc;   /* as linked, less the address at which the file's first segment begins */
	__u32 rule; /* PYBPF_RULE_... */
};

/* A table is a run of pages. Rows are in order; the last page is filled up with rows at PYBPF_NATIVE_NO_PC. */
#define PYBPF_NATIVE_PAGE_ROWS 512
#define PYBPF_NATIVE_NO_PC     0xffffffffu

/*
 * What a process has mapped is a run of pages, too, in order of addresses. Its first element is the head: start is the
 * list's generation, which differs for all lists of a run.
 */
struct pybpf_native_mapping {
	__u64 start;
	__u64 bias;  /* an address less this is a row's pc */
	__u32 size;  /* bytes from start on */
	__u32 file;  /* number of the file; 0: bias is not known yet */
	__u32 first; /* page of its table; PYBPF_NATIVE_NO_PAGE: it is not there yet */
	__u32 pages; /* 0: it has no table, for good */
};
#define PYBPF_NATIVE_PAGE_MAPPINGS 128

struct pybpf_native_page {
	union {
		struct pybpf_native_row rows[PYBPF_NATIVE_PAGE_ROWS];
		struct pybpf_native_mapping mappings[PYBPF_NATIVE_PAGE_MAPPINGS];
	};
};
_Static_assert(sizeof(struct pybpf_native_page) == 4096, "a page is filled by either");

/* Pages are numbered through all chunks, which are made as they are needed. */
#define PYBPF_NATIVE_CHUNK_PAGES 256
#define PYBPF_NATIVE_NO_PAGE     0xffffffffu

/*
 * Where a process's list is; value of map native_lists, by proc_id. It is true as long as the process has as many pages
 * of code mapped as when it was read: who maps code where other code was has another number of them, unless both are of
 * the same size.
 */
struct pybpf_native_list {
	__u64 generation;
	__u64 code_pages; /* mm_struct.exec_vm */
	__u32 first;      /* page */
	__u32 count;      /* mappings, without the head */
};

/*
 * A rule: its kind, marks, and offsets in words of 8 bytes. The stack pointer of the caller is the CFA (canonical frame
 * address, DWARF 5, 6.4); the return address lies below it.
 */
enum pybpf_native_kind {
	PYBPF_NATIVE_NONE,       /* no call frame information */
	PYBPF_NATIVE_SP,         /* CFA = stack pointer + offset */
	PYBPF_NATIVE_BP,         /* CFA = frame pointer + offset */
	PYBPF_NATIVE_SP_WIDE,    /* likewise by the stack pointer; offsets are laid out otherwise */
	PYBPF_NATIVE_PLT,        /* CFA = stack pointer + 8, and 8 more from byte `offset` of each 16 on */
	PYBPF_NATIVE_SIGNAL,     /* a handler's return: the kernel has laid the registers on the stack */
	PYBPF_NATIVE_DEREF,      /* CFA = *(frame pointer + offset), the caller's frame pointer is *frame pointer */
	PYBPF_NATIVE_END,        /* there is no caller: the return address is undefined */
	PYBPF_NATIVE_EXPRESSION, /* a DWARF expression that none of these is */
	PYBPF_NATIVE_REGISTER,   /* CFA = another register + offset; it is known of the innermost function only */
	PYBPF_NATIVE_SP_DEREF,   /* CFA = *(stack pointer + offset) + 8: what OpenSSL's assembly keeps there */
	PYBPF_NATIVE_SP_INDEXED, /* CFA = *(stack pointer + 8 * another register + offset) + 8; as of REGISTER */
	PYBPF_NATIVE_RETURN,     /* CFA = stack pointer + offset; the return address is in a register: as of REGISTER */
	PYBPF_NATIVE_SP_KEPT,    /* CFA = *(stack pointer + offset) + another offset: what MKL's assembly keeps there */
};
#define PYBPF_RULE_KIND(rule) ((rule)&15u)
/* The instructions are those of the function that evaluates Python's frames. */
#define PYBPF_RULE_EVAL (1u << 4)
/* It was made of what follows the instruction: the return address that it leads to has to lie behind a call, in
 * a mapping. */
#define PYBPF_RULE_CHECKED (1u << 5)
/* Where the caller's frame pointer is, unless the kind says it: enum pybpf_native_bp. */
#define PYBPF_RULE_BP_SHIFT 6
#define PYBPF_RULE_BP(rule) ((rule) >> PYBPF_RULE_BP_SHIFT & 3u)
enum pybpf_native_bp {
	PYBPF_NATIVE_BP_SAME,
	PYBPF_NATIVE_BP_SAVED, /* at CFA + the second offset */
	PYBPF_NATIVE_BP_LOST,  /* anywhere else, or undefined */
};
/* Offsets: 12 bits each, with sign; of SP_WIDE 18 bits without one, and 6 bits below the CFA (0: not saved). */
#define PYBPF_RULE_OFFSET_SHIFT    8
#define PYBPF_RULE_BP_OFFSET_SHIFT 20
#define PYBPF_RULE_OFFSET(rule)    ((__s32)((rule) << 12) >> 20)
#define PYBPF_RULE_BP_OFFSET(rule) ((__s32)(rule) >> 20)
#define PYBPF_RULE_OFFSET_MAX      2047
/* The place of the register of REGISTER, SP_INDEXED and RETURN in struct pt_regs, and its offset: 8 bits without sign.
 */
#define PYBPF_RULE_REGISTER_SHIFT        8
#define PYBPF_RULE_REGISTER_OFFSET_SHIFT 12
#define PYBPF_RULE_REGISTER(rule)        ((rule) >> PYBPF_RULE_REGISTER_SHIFT & 15u)
#define PYBPF_RULE_REGISTER_OFFSET(rule) ((rule) >> PYBPF_RULE_REGISTER_OFFSET_SHIFT & 0xffu)
#define PYBPF_RULE_REGISTER_OFFSET_MAX   0xff
#define PYBPF_RULE_NO_REGISTER           15u /* it is not followed */
#define PYBPF_WIDE_BP_SHIFT              26
/* SP_KEPT: 8 bits each, without sign: of the place, from what is kept there to the CFA, and how far below that the
 * caller's frame pointer is (0: not saved).
 */
#define PYBPF_KEPT_SHIFT        16
#define PYBPF_KEPT_BP_SHIFT     24
#define PYBPF_KEPT_PLACE(rule)  ((rule) >> PYBPF_RULE_OFFSET_SHIFT & 0xffu)
#define PYBPF_KEPT_OFFSET(rule) ((rule) >> PYBPF_KEPT_SHIFT & 0xffu)
#define PYBPF_KEPT_BELOW(rule)  ((rule) >> PYBPF_KEPT_BP_SHIFT)
#define PYBPF_KEPT_MAX          0xff
#define PYBPF_WIDE_OFFSET(rule) ((rule) >> PYBPF_RULE_OFFSET_SHIFT & 0x3ffffu)
#define PYBPF_WIDE_BELOW(rule)  ((rule) >> PYBPF_WIDE_BP_SHIFT)
#define PYBPF_WIDE_OFFSET_MAX   0x3ffff
#define PYBPF_WIDE_BELOW_MAX    63

/* A frame: 8 bytes, many of them cross to user space. */
#define PYBPF_NATIVE_FRAME(file, pc)   ((__u64)(file) << 32 | (__u32)(pc))
#define PYBPF_NATIVE_FRAME_FILE(frame) ((__u32)((frame) >> 32) & 0xffffffu) /* 0: in no file */
#define PYBPF_NATIVE_FRAME_PC(frame)   ((__u32)(frame))
#define PYBPF_NATIVE_FRAME_EVAL        (1ull << 56)

/* Whose instructions are told apart in frames. Those of a row are one otherwise, which keeps stacks few. */
enum pybpf_native_exact {
	PYBPF_NATIVE_ROWS,      /* no function's */
	PYBPF_NATIVE_EXACT,     /* all but those of the function that evaluates Python's frames */
	PYBPF_NATIVE_EXACT_ALL, /* all */
};

/*
 * How the search for callers ended.
 * X(name, key in --json-stats, how people are told of it after a number of samples)
 */
#define PYBPF_NATIVE_ENDS(X)                                                                                           \
	X(WHOLE, "whole", "with all native frames")                                                                    \
	X(NO_MAPPINGS, "no_mappings", "before the process's mappings were known")                                      \
	X(NO_MAPPING, "no_mapping", "in code that is in no mapped file, or in a file that was mapped a moment ago")    \
	X(NO_TABLE, "no_table", "in a file whose table was not there yet")                                             \
	X(NO_ROW, "no_row", "in code without call frame information")                                                  \
	X(FAULT, "fault", "whose stack could not be read")                                                             \
	X(EXPRESSION, "expression", "in code whose call frame information is an expression")                           \
	X(REGISTER, "register", "in code whose frame is found by a register that is not followed")                     \
	X(STUCK, "stuck", "whose stack did not lead outwards")                                                         \
	X(LIMIT, "limit", "deeper than 1,024 native frames")                                                           \
	X(NO_REGISTERS, "no_registers", "of threads whose registers were not there")                                   \
	X(SWITCH, "switch", "while the stack of another greenlet, or of an exception's handler, was being restored")

enum pybpf_native_end {
	PYBPF_NATIVE_NOT_ASKED,
#define X(name, key, text) PYBPF_NATIVE_END_##name,
	PYBPF_NATIVE_ENDS(X)
#undef X
	PYBPF_NR_NATIVE_ENDS,
};

#endif
