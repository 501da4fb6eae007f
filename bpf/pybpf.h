/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Everything that both sides speak: layouts, map keys and values, ring buffer records, counters. */
#ifndef PYBPF_H
#define PYBPF_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* Frames of one stack that are kept. A deeper stack keeps its leaf half and its root half. */
#define PYBPF_MAX_FRAMES 8192
#define PYBPF_HALF_FRAMES (PYBPF_MAX_FRAMES / 2)
/* Frames that one walk visits before it gives up on reaching the root: bounds the time of one sample. */
#define PYBPF_MAX_WALK 65536
/* Interpreters and thread states that one search visits. */
#define PYBPF_MAX_THREADS 16384

/* Largest windows that the walk reads of one struct; a layout that needs more is refused. */
#define PYBPF_TSTATE_WINDOW 320
#define PYBPF_FRAME_WINDOW 128
#define PYBPF_CODE_WINDOW 256

/* An offset that this Python does not have. */
#define PYBPF_NO_OFFSET 0xffff

/* How a frame says where it is (cpython.md section 3). */
enum pybpf_position_kind {
	PYBPF_POS_LASTI = 1,   /* f_lasti, an int: bytes to 3.9, code units in 3.10 */
	PYBPF_POS_INSTR_PTR,   /* a pointer into the code object: prev_instr 3.11-3.12, instr_ptr 3.13+ */
};

enum pybpf_string_kind {
	PYBPF_STR_BYTES = 1, /* 2.7 str */
	PYBPF_STR_UNICODE,   /* PEP 393 */
};

/* How a code object maps positions to lines. */
enum pybpf_line_kind {
	PYBPF_LINES_LNOTAB_UNSIGNED = 1, /* to 3.5: unsigned line deltas */
	PYBPF_LINES_LNOTAB,              /* 3.6-3.9: signed line deltas */
	PYBPF_LINES_PEP626,              /* 3.10: co_linetable of pairs */
	PYBPF_LINES_PEP657,              /* 3.11+: location table with varints */
};

/*
 * Where things are in one build of CPython. Offsets in bytes from the start of the struct that the
 * prefix names; PYBPF_NO_OFFSET where the build has no such field.
 */
struct pybpf_layout {
	__u16 major;
	__u16 minor;

	/* PyInterpreterState */
	__u16 interp_next;
	__u16 interp_threads_head;

	/* PyThreadState; window: bytes to read so that every field below is in one read */
	__u16 tstate_next;
	__u16 tstate_interp;
	__u16 tstate_thread_id;
	__u16 tstate_frame;   /* the frame, or the cframe where cframe_frame is an offset */
	__u16 tstate_window;
	__u16 cframe_frame;   /* _PyCFrame.current_frame (3.11, 3.12) */

	/* PyFrameObject (to 3.10) or _PyInterpreterFrame */
	__u16 frame_window;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_position;
	__u16 frame_owner;
	__u16 frame_tlbc_index; /* free-threaded 3.14+ */

	/* PyCodeObject; code_window covers all but co_code_adaptive and co_tlbc, which may lie beyond */
	__u16 code_window;
	__u16 code_type;        /* ob_type */
	__u16 code_filename;
	__u16 code_name;
	__u16 code_qualname;    /* 3.11+ */
	__u16 code_linetable;   /* co_lnotab to 3.9 */
	__u16 code_firstlineno;
	__u16 code_version;     /* co_version (3.12+), unique to a code object of an interpreter */
	__u16 code_adaptive;    /* co_code_adaptive (3.11+) */
	__u16 code_tlbc;        /* co_tlbc (free-threaded 3.14+) */

	/* PyASCIIObject and PyCompactUnicodeObject; for PYBPF_STR_BYTES str_length and str_ascii_data are
	 * those of PyStringObject, and str_hash its ob_shash */
	__u16 str_length;
	__u16 str_hash;
	__u16 str_state;        /* the 32-bit bit field */
	__u16 str_ascii_data;
	__u16 str_compact_data;

	/* PyBytesObject (PyStringObject in 2.7) */
	__u16 bytes_size;
	__u16 bytes_data;

	/* Frames whose owner is this or more are no Python frames: entry, shim, C stack. */
	__u8 owner_not_python;
	/* Mask of the tag bits in the frame's executable (3.14+), else 0. */
	__u8 code_tag_mask;
	__u8 position_kind; /* enum pybpf_position_kind */
	__u8 string_kind;   /* enum pybpf_string_kind */
	__u8 line_kind;     /* enum pybpf_line_kind */
	__u8 free_threaded;
	__u8 debug_build;
	__u8 pad[7];
};
_Static_assert(sizeof(struct pybpf_layout) == 80, "pybpf_layout has no hidden padding");
