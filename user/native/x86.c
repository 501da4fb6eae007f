// SPDX-License-Identifier: Apache-2.0
#include "native/x86.h"

#include <string.h>

/*
 * What follows the opcode, by opcode. M: ModRM; b, z: ModRM and an immediate of 1 byte, or of 4 (2 with prefix 66); 1,
 * 2, 4: an immediate alone, 4 likewise; q: of 4, or 8 with REX.W; o: an address of 8; 3: of 2 and 1; r, R: a distance
 * of 1 or 4; g, h: ModRM, and of two of eight instructions an immediate of 1 or 4; p: a prefix; x: none of 64-bit mode.
 */
static const char one_byte[] = "MMMM14xxMMMM14xp"  /* 00 */
			       "MMMM14xxMMMM14xx"  /* 10 */
			       "MMMM14pxMMMM14px"  /* 20 */
			       "MMMM14pxMMMM14px"  /* 30 */
			       "pppppppppppppppp"  /* 40 */
			       "                "  /* 50 */
			       "xxpMpppp4z1b    "  /* 60 */
			       "rrrrrrrrrrrrrrrr"  /* 70 */
			       "bzxbMMMMMMMMMMMM"  /* 80 */
			       "          x     "  /* 90 */
			       "oooo    14      "  /* a0 */
			       "11111111qqqqqqqq"  /* b0 */
			       "bb2 ppbz3 2  1x "  /* c0 */
			       "MMMMxxx MMMMMMMM"  /* d0 */
			       "rrrr1111RRxr    "  /* e0 */
			       "p pp  gh      MM"; /* f0 */
static const char after_0f[] = "MMMMx     x xM b"  /* 00 */
			       "MMMMMMMMMMMMMMMM"  /* 10 */
			       "MMMMxxxxMMMMMMMM"  /* 20 */
			       "      x pxpxxxxx"  /* 30 */
			       "MMMMMMMMMMMMMMMM"  /* 40 */
			       "MMMMMMMMMMMMMMMM"  /* 50 */
			       "MMMMMMMMMMMMMMMM"  /* 60 */
			       "bbbbMMM xxxxMMMM"  /* 70 */
			       "RRRRRRRRRRRRRRRR"  /* 80 */
			       "MMMMMMMMMMMMMMMM"  /* 90 */
			       "   MbMxx   MbMMM"  /* a0 */
			       "MMMMMMMMMMbMMMMM"  /* b0 */
			       "MMbMbbbM        "  /* c0 */
			       "MMMMMMMMMMMMMMMM"  /* d0 */
			       "MMMMMMMMMMMMMMMM"  /* e0 */
			       "MMMMMMMMMMMMMMMM"; /* f0 */

struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static uint8_t take_byte(struct cursor *c)
{
	if (c->at == c->end) {
		c->failed = true;
		return 0;
	}
	return *c->at++;
}

static int64_t take_signed(struct cursor *c, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < size) {
		c->failed = true;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return size && size < 8 ? (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size) : (int64_t)value;
}

struct prefixes {
	uint8_t r, x, b; /* the fourth bits: 8 or 0 */
	bool address_32;
};

static void take_rex(struct x86_instruction *i, struct prefixes *p, uint8_t rex)
{
	i->has_rex = true;
	i->wide = rex & 8;
	p->r = rex & 4 ? 8 : 0;
	p->x = rex & 2 ? 8 : 0;
	p->b = rex & 1 ? 8 : 0;
}

/* Returns the opcode, or the first byte of VEX or EVEX. */
static uint8_t take_prefixes(struct cursor *c, struct x86_instruction *i, struct prefixes *p)
{
	for (;;) {
		uint8_t byte = take_byte(c);

		switch (byte) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
			break;
		case 0x66:
			i->has_66 = true;
			break;
		case 0x67:
			p->address_32 = true;
			break;
		case 0xf2:
			i->has_f2 = true;
			break;
		case 0xf3:
			i->has_f3 = true;
			break;
		default:
			if ((byte & 0xf0) != 0x40)
				return byte;
			take_rex(i, p, byte);
			/* It counts only right before the opcode. */
			return take_byte(c);
		}
	}
}

static void take_modrm(struct cursor *c, struct x86_instruction *i, const struct prefixes *p)
{
	uint8_t modrm = take_byte(c), low = modrm & 7;

	i->has_modrm = true;
	i->mod = modrm >> 6;
	i->reg = (modrm >> 3 & 7) | p->r;
	i->rm = low | p->b;
	i->base = i->index = X86_NO_REGISTER;
	if (i->mod == 3)
		return;
	i->base = i->rm;
	if (low == 4) {
		uint8_t sib = take_byte(c);

		low = sib & 7;
		i->base = low | p->b;
		i->index = (sib >> 3 & 7) | p->x;
		i->scale = (uint8_t)(1 << (sib >> 6));
		if (i->index == 4)
			i->index = X86_NO_REGISTER;
		if (low == 5 && !i->mod)
			i->base = X86_NO_REGISTER;
	} else if (low == 5 && !i->mod) {
		i->base = X86_IP;
	}
	if (i->mod == 1)
		i->displacement = (int32_t)take_signed(c, 1);
	else if (i->mod == 2 || i->base == X86_IP || (i->base == X86_NO_REGISTER && !i->mod))
		i->displacement = (int32_t)take_signed(c, 4);
}

/* Returns what follows the opcode of VEX or EVEX: ModRM but for vzeroupper, and an immediate of some. */
static char vector_form(const struct x86_instruction *i)
{
	if (i->map == X86_0F3A)
		return 'b';
	if (i->map != X86_0F)
		return 'M';
	if (i->opcode == 0x77 && i->is_vex)
		return ' ';
	return (i->opcode >= 0x70 && i->opcode <= 0x73) || i->opcode == 0xc2 || (i->opcode >= 0xc4 && i->opcode <= 0xc6)
		       ? 'b'
		       : 'M';
}

static bool set_map(struct x86_instruction *i, unsigned number)
{
	static const enum x86_map maps[] = {
		[1] = X86_0F, [2] = X86_0F38, [3] = X86_0F3A, [5] = X86_OTHER_MAP, [6] = X86_OTHER_MAP};

	if (number >= sizeof(maps) / sizeof(*maps) || !maps[number])
		return false;
	i->map = maps[number];
	return i->is_evex || number <= 3;
}

/* Takes the prefix whose first byte is c4, c5 or 62, and the opcode. Returns whether it is one. */
static bool take_vector(struct cursor *c, struct x86_instruction *i, struct prefixes *p, uint8_t first)
{
	uint8_t one = take_byte(c), two = first == 0xc5 ? one : take_byte(c);
	unsigned map = first == 0xc5 ? 1 : one & (first == 0x62 ? 7 : 31);

	i->is_evex = first == 0x62;
	i->is_vex = !i->is_evex;
	/* What these bits must be. */
	if (i->has_66 || i->has_f2 || i->has_f3 || i->has_rex || !set_map(i, map) ||
	    (i->is_evex && (one & 8 || !(two & 4))))
		return false;
	p->r = one & 0x80 ? 0 : 8;
	p->x = first == 0xc5 || one & 0x40 ? 0 : 8;
	p->b = first == 0xc5 || one & 0x20 ? 0 : 8;
	i->wide = first != 0xc5 && two & 0x80;
	i->vvvv = ~two >> 3 & 15;
	i->has_66 = (two & 3) == 1;
	i->has_f3 = (two & 3) == 2;
	i->has_f2 = (two & 3) == 3;
	if (i->is_evex)
		take_byte(c);
	i->opcode = take_byte(c);
	return true;
}

/* Takes the opcode. Returns its form. */
static char take_opcode(struct cursor *c, struct x86_instruction *i, struct prefixes *p)
{
	i->opcode = take_prefixes(c, i, p);
	if (i->opcode == 0xc4 || i->opcode == 0xc5 || i->opcode == 0x62)
		return take_vector(c, i, p, i->opcode) ? vector_form(i) : 'x';
	if (i->opcode != 0x0f)
		return one_byte[i->opcode];
	i->map = X86_0F;
	i->opcode = take_byte(c);
	if (i->opcode != 0x38 && i->opcode != 0x3a)
		return after_0f[i->opcode];
	i->map = i->opcode == 0x38 ? X86_0F38 : X86_0F3A;
	i->opcode = take_byte(c);
	return i->map == X86_0F38 ? 'M' : 'b';
}

static size_t immediate_size(const struct x86_instruction *i, char form)
{
	size_t full = i->has_66 && !i->wide ? 2 : 4;

	switch (form) {
	case 'b':
	case '1':
	case 'r':
		return 1;
	case 'g':
		return (i->reg & 7) < 2;
	case 'h':
		return (i->reg & 7) < 2 ? full : 0;
	case 'z':
	case '4':
		return full;
	case 'q':
		return i->wide ? 8 : full;
	case 'R':
		return 4;
	case 'o':
		return 8;
	case '2':
		return 2;
	case '3':
		return 3;
	default:
		return 0;
	}
}

bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *out)
{
	/* No instruction is longer. */
	struct cursor c = {.at = code, .end = code + (size < 15 ? size : 15)};
	struct prefixes prefixes = {.r = 0};
	char form;

	memset(out, 0, sizeof(*out));
	form = take_opcode(&c, out, &prefixes);
	/* AMD's and Intel's processors differ in what prefix 66 makes of a distance. */
	if (form == 'x' || form == 'p' || (form == 'R' && out->has_66 && !out->wide) ||
	    (form == 'o' && prefixes.address_32))
		return false;
	out->extension = prefixes.b;
	if (form == 'M' || form == 'b' || form == 'z' || form == 'g' || form == 'h')
		take_modrm(&c, out, &prefixes);
	out->immediate = take_signed(&c, immediate_size(out, form));
	out->length = (uint8_t)(c.at - code);
	return !c.failed;
}

/* Which of its operands an instruction writes, if they are general registers. */
enum written {
	WRITES_NONE = 0,
	WRITES_REG = 1,
	WRITES_RM = 2,
	WRITES_OPCODE = 4, /* the register in the opcode */
	WRITES_VVVV = 8,
	WRITES_BYTE = 16, /* of that register, only a byte */
};

static unsigned group(const struct x86_instruction *i)
{
	return i->reg & 7;
}

static unsigned one_byte_writes(const struct x86_instruction *i)
{
	static const uint8_t arithmetic[] = {WRITES_RM | WRITES_BYTE, WRITES_RM, WRITES_REG | WRITES_BYTE, WRITES_REG};
	uint8_t op = i->opcode;

	if (op < 0x38)
		return (op & 7) < 4 ? arithmetic[op & 7] : WRITES_NONE;
	if (op >= 0x90 && op < 0x98)
		return WRITES_OPCODE;
	if (op >= 0xb0 && op < 0xc0)
		return WRITES_OPCODE | (op < 0xb8 ? WRITES_BYTE : 0);
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8b:
	case 0x8d:
		return WRITES_REG;
	case 0x8a:
		return WRITES_REG | WRITES_BYTE;
	case 0x80:
		return group(i) == 7 ? WRITES_NONE : WRITES_RM | WRITES_BYTE;
	case 0x81:
	case 0x83:
		return group(i) == 7 ? WRITES_NONE : WRITES_RM;
	case 0x86:
		return WRITES_REG | WRITES_RM | WRITES_BYTE;
	case 0x87:
		return WRITES_REG | WRITES_RM;
	case 0x88:
	case 0xc0:
	case 0xc6:
	case 0xd0:
	case 0xd2:
		return WRITES_RM | WRITES_BYTE;
	case 0x89:
	case 0x8c:
	case 0x8f:
	case 0xc1:
	case 0xc7:
	case 0xd1:
	case 0xd3:
		return WRITES_RM;
	case 0xf6:
		return group(i) == 2 || group(i) == 3 ? WRITES_RM | WRITES_BYTE : WRITES_NONE;
	case 0xf7:
		return group(i) == 2 || group(i) == 3 ? WRITES_RM : WRITES_NONE;
	case 0xfe:
		return WRITES_RM | WRITES_BYTE;
	case 0xff:
		return group(i) < 2 ? WRITES_RM : WRITES_NONE;
	default:
		return WRITES_NONE;
	}
}

static unsigned after_0f_writes(const struct x86_instruction *i)
{
	uint8_t op = i->opcode;

	if (op >= 0x40 && op < 0x50)
		return WRITES_REG;
	if (op >= 0x90 && op < 0xa0)
		return WRITES_RM | WRITES_BYTE;
	if (op >= 0xc8 && op < 0xd0)
		return WRITES_OPCODE;
	switch (op) {
	case 0x02:
	case 0x03:
	case 0x2c:
	case 0x2d:
	case 0x50:
	case 0xaf:
	case 0xb2:
	case 0xb4:
	case 0xb5:
	case 0xb6:
	case 0xb7:
	case 0xb8:
	case 0xbc:
	case 0xbd:
	case 0xbe:
	case 0xbf:
	case 0xc5:
	case 0xd7:
		return WRITES_REG;
	case 0x00:
	case 0x01:
	case 0x20:
	case 0x21:
	case 0x7e:
	case 0xa4:
	case 0xa5:
	case 0xab:
	case 0xac:
	case 0xad:
	case 0xae:
	case 0xb1:
	case 0xb3:
	case 0xba:
	case 0xbb:
	case 0xc7:
		return WRITES_RM;
	case 0xb0:
		return WRITES_RM | WRITES_BYTE;
	case 0xc0:
		return WRITES_REG | WRITES_RM | WRITES_BYTE;
	case 0xc1:
		return WRITES_REG | WRITES_RM;
	default:
		return WRITES_NONE;
	}
}

static unsigned vector_writes(const struct x86_instruction *i)
{
	uint8_t op = i->opcode;

	if (i->map == X86_0F3A)
		return op == 0xf0 ? WRITES_REG : op >= 0x14 && op <= 0x17 ? WRITES_RM : WRITES_NONE;
	if (i->map == X86_0F38)
		return op >= 0xe0 && i->is_vex ? WRITES_REG | WRITES_VVVV : WRITES_NONE;
	switch (op) {
	case 0x2c:
	case 0x2d:
	case 0x50:
	case 0x78:
	case 0x79:
	case 0x93:
	case 0xc5:
	case 0xd7:
		return WRITES_REG;
	case 0x7e:
		return WRITES_RM;
	default:
		return WRITES_NONE;
	}
}

static unsigned writes(const struct x86_instruction *i)
{
	if (i->is_vex || i->is_evex)
		return vector_writes(i);
	switch (i->map) {
	case X86_ONE_BYTE:
		return one_byte_writes(i);
	case X86_0F:
		return after_0f_writes(i);
	case X86_0F38:
		return i->opcode >= 0xf0 ? WRITES_REG : WRITES_NONE;
	default:
		return i->opcode >= 0x14 && i->opcode <= 0x17 ? WRITES_RM : WRITES_NONE;
	}
}

bool x86_writes(const struct x86_instruction *i, unsigned number)
{
	unsigned written = writes(i);

	/* Without REX these numbers of bytes are ah to bh. */
	if (written & WRITES_BYTE && !i->has_rex && number >= 4)
		return false;
	return (written & WRITES_REG && i->reg == number) || (written & WRITES_RM && i->mod == 3 && i->rm == number) ||
	       (written & WRITES_OPCODE && ((i->opcode & 7u) | i->extension) == number) ||
	       (written & WRITES_VVVV && i->vvvv == number);
}

bool x86_is_conditional(const struct x86_instruction *i)
{
	if (i->map == X86_ONE_BYTE)
		return (i->opcode >= 0x70 && i->opcode < 0x80) || (i->opcode >= 0xe0 && i->opcode < 0xe4);
	return i->map == X86_0F && !i->is_vex && !i->is_evex && i->opcode >= 0x80 && i->opcode < 0x90;
}

bool x86_is_undefined(const struct x86_instruction *i)
{
	return i->map == X86_0F && !i->is_vex && !i->is_evex &&
	       (i->opcode == 0x0b || i->opcode == 0xb9 || i->opcode == 0xff);
}

bool x86_is_call(const struct x86_instruction *i)
{
	return i->map == X86_ONE_BYTE &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && ((i->reg & 7) == 2 || (i->reg & 7) == 3)));
}
