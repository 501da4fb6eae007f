// SPDX-License-Identifier: Apache-2.0
/*
 * Instructions of x86-64: their lengths, their operands, and which registers they write (Intel SDM, volume 2, chapter 2
 * and appendix A).
 */
#ifndef NATIVE_X86_H
#define NATIVE_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of registers in instructions. */
#define X86_SP 4
#define X86_BP 5

/* In place of a base or an index. */
#define X86_NO_REGISTER 16
#define X86_IP          17

enum x86_map {
	X86_ONE_BYTE,
	X86_0F,
	X86_0F38,
	X86_0F3A,
	X86_OTHER_MAP, /* of EVEX: 5 and 6 */
};

struct x86_instruction {
	enum x86_map map;
	uint8_t opcode, length;
	bool is_vex, is_evex;
	bool wide; /* REX.W */
	bool has_rex, has_66, has_f2, has_f3;
	bool has_modrm;
	uint8_t mod, reg, rm; /* of ModRM; reg and rm with their fourth bit from the prefix */
	uint8_t vvvv;         /* the third register of VEX */
	uint8_t extension;    /* of registers in opcodes: 8 or 0 */
	uint8_t base, index;  /* of an operand in memory */
	uint8_t scale;        /* of the index: 1, 2, 4, 8 */
	int32_t displacement;
	int64_t immediate; /* with sign; of jumps and calls: bytes from the next instruction on */
};

/* Decodes the instruction at the start of the bytes. Returns false where they are not one that is known. */
bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *out);

/* Returns whether the instruction may write a general register, but for push, pop, leave, enter, and calls. */
bool x86_writes(const struct x86_instruction *i, unsigned number);

/* Returns whether the instruction is a jump that the flags, or a counter, decide. */
bool x86_is_conditional(const struct x86_instruction *i);
/* ud2, ud1, ud0: what a compiler puts where nothing comes to. */
bool x86_is_undefined(const struct x86_instruction *i);
bool x86_is_call(const struct x86_instruction *i);

#endif
