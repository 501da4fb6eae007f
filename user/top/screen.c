// SPDX-License-Identifier: Apache-2.0
/* Draws with ncurses, and turns keys into choices. */
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "top/terminals.h"

/* After this time Escape is a key, and not the first byte of a key's sequence. */
#define ESCAPE_MS  25
#define KEY_ESCAPE 27
#define KEY_DELETE 127
#define KEY_STOP   26 /* Ctrl-Z */
#define KEY_REDRAW 12 /* Ctrl-L */

enum pair {
	PAIR_GREW = 1,
	PAIR_SHRANK,
	PAIR_CELL,
};

static const short cell_colours[TOP_CELLS_END - TOP_CELL] = {COLOR_YELLOW, COLOR_CYAN, COLOR_GREEN, COLOR_MAGENTA};

struct top_screen {
	SCREEN *terminal;
	struct top_choice choice;
	bool utf8, coloured;
	size_t rows, page; /* that the last view had, and that fit */
};

static void before_message(void)
{
	if (!isendwin())
		endwin();
}

/* tigetstr() returns -1 for what is no capability of that kind. */
static bool has_capability(const char *name)
{
	const char *text = tigetstr(name);

	return text && text != (const char *)-1;
}

/*
 * Has Ctrl-Z come as a key: as a signal, it would stop the helpers, too, for which this process may be waiting. The
 * handler of ncurses is of no use: it needs system calls that are given up.
 */
static void take_stop_key(void)
{
	struct termios mode;

	if (!tcgetattr(STDIN_FILENO, &mode)) {
		mode.c_cc[VSUSP] = _POSIX_VDISABLE;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
		def_prog_mode();
	}
	signal(SIGTSTP, SIG_DFL);
}

/*
 * Where pybpf has capabilities that its caller has not (getauxval(3), AT_SECURE), terminals are those that the system
 * describes: ncurses would open files of the caller's choice with these capabilities, and parse what he wrote. glibc
 * removes the variables of its own.
 */
static void forget_descriptions(void)
{
	/* Those of ncurses(3) and terminfo(5) that are more than a number; HOME has .terminfo. */
	static const char *const names[] = {
		"TERMINFO",
		"TERMINFO_DIRS",
		"TERMPATH",
		"TERMCAP",
		"HOME",
		"NCURSES_ASSUMED_COLORS",
		"NCURSES_CONSOLE2",
		"NCURSES_GPM_TERMS",
		"NCURSES_NO_HARD_TABS",
		"NCURSES_NO_MAGIC_COOKIE",
		"NCURSES_NO_PADDING",
		"NCURSES_NO_SETBUF",
		"NCURSES_NO_UTF8_ACS",
		"NCURSES_TRACE",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && getauxval(AT_SECURE); i++)
		unsetenv(names[i]);
}

/*
 * Takes the user's character set if it is UTF-8: for any other, glibc would load a converter from the host, and a
 * static binary must load nothing. Returns whether it is. A root without locales has no other UTF-8 than the C
 * library's own.
 */
static bool take_utf8(void)
{
	const char *asked = getenv("LC_ALL") ?: getenv("LC_CTYPE") ?: getenv("LANG") ?: "";

	if (!setlocale(LC_CTYPE, "") && (strcasestr(asked, "utf-8") || strcasestr(asked, "utf8")))
		setlocale(LC_CTYPE, "C.UTF-8");
	if (!strcmp(nl_langinfo(CODESET), "UTF-8"))
		return true;
	setlocale(LC_CTYPE, "C");
	return false;
}

/* Opens the terminal as this host describes it, else as pybpf itself does. Returns NULL if neither does. */
static SCREEN *open_terminal(const char *term)
{
	SCREEN *screen = newterm(NULL, stdout, stdin);
	const struct terminal *known = screen ? NULL : terminals_find(term);

	if (!known || setenv("TERMINFO", known->description, 1))
		return screen;
	screen = newterm(known->name, stdout, stdin);
	unsetenv("TERMINFO");
	return screen;
}

struct top_screen *top_screen_open(struct error *error)
{
	struct top_screen *s = calloc(1, sizeof(*s));
	const char *term = getenv("TERM") ?: "";

	if (!s) {
		error_set(error, -ENOMEM, "out of memory while starting");
		return NULL;
	}
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		error_set(error, -ENOTTY,
			  "top needs a terminal as stdin and stdout; --output=jsonl prints lines instead");
		goto fail;
	}
	forget_descriptions();
	s->utf8 = take_utf8();
	s->terminal = open_terminal(term);
	if (!s->terminal || !has_capability("cup")) {
		if (s->terminal)
			endwin();
		error_set(error, -ENOTTY,
			  "the terminal (TERM=%s) is not known, or cannot move its cursor; --output=jsonl prints lines",
			  term);
		goto fail;
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
	take_stop_key();
	s->coloured = has_colors() && start_color() == OK;
	if (s->coloured) {
		use_default_colors();
		init_pair(PAIR_GREW, COLOR_RED, -1);
		init_pair(PAIR_SHRANK, COLOR_GREEN, -1);
		for (int i = 0; i < TOP_CELLS_END - TOP_CELL; i++)
			init_pair((short)(PAIR_CELL + i), COLOR_BLACK, cell_colours[i]);
	}
	log_set_before_message(before_message);
	return s;
fail:
	if (s->terminal)
		delscreen(s->terminal);
	free(s);
	return NULL;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	log_set_before_message(NULL);
	if (!isendwin())
		endwin();
	delscreen(s->terminal);
	free(s);
}

bool top_screen_is_frozen(const struct top_screen *s)
{
	return s->choice.frozen;
}

static attr_t attributes(const struct top_screen *s, enum top_style style)
{
	switch (style) {
	case TOP_BOLD:
		return A_BOLD;
	case TOP_CHOSEN:
	case TOP_HEAD:
		return A_REVERSE;
	case TOP_GREW:
		return s->coloured ? (attr_t)COLOR_PAIR(PAIR_GREW) : A_NORMAL;
	case TOP_SHRANK:
		return s->coloured ? (attr_t)COLOR_PAIR(PAIR_SHRANK) : A_NORMAL;
	default:
		return A_NORMAL;
	}
}

static void draw_span(const struct top_screen *s, int line, const struct top_span *span)
{
	bool chosen = span->style == TOP_CHOSEN;
	short pair = chosen || !s->coloured ? 0 : (short)(PAIR_CELL + (span->style - TOP_CELL));

	mvchgat(line, (int)span->from, (int)span->columns, chosen ? A_REVERSE | A_BOLD : A_NORMAL, pair, NULL);
}

/* Without UTF-8, arrows are signs, and each other character that is not ASCII as many question marks as its columns. */
static void make_ascii(char *text)
{
	char *to = text;
	size_t size, columns;

	for (; *text; text += size) {
		size = text_measure(text, &columns);
		if ((unsigned char)*text < 0x80)
			*to++ = *text;
		else if (!strncmp(text, TOP_UP, size))
			*to++ = '+';
		else if (!strncmp(text, TOP_DOWN, size))
			*to++ = '-';
		else
			for (size_t i = 0; i < columns; i++)
				*to++ = '?';
	}
	*to = '\0';
}

/* Follows the terminal's size: signals are taken by the session's loop, and not by ncurses. */
static void follow_size(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col &&
	    (size.ws_row != LINES || size.ws_col != COLS))
		resizeterm(size.ws_row, size.ws_col);
}

int top_screen_draw(struct top_screen *s, const struct top_model *m, const struct top_facts *facts)
{
	struct top_view view;
	int err;

	follow_size();
	err = top_view_draw(m, facts, &s->choice, (size_t)COLS, (size_t)LINES, &view);
	erase();
	for (size_t i = 0; !err && i < view.count; i++) {
		attr_t style = attributes(s, view.lines[i].style);

		if (!s->utf8)
			make_ascii(view.lines[i].text);
		attrset((int)style);
		mvaddstr((int)i, 0, view.lines[i].text);
		if (style & A_REVERSE)
			hline(' ' | A_REVERSE, COLS);
		for (size_t k = 0; k < view.lines[i].nr_spans; k++)
			draw_span(s, (int)i, &view.lines[i].spans[k]);
	}
	attrset(A_NORMAL);
	s->rows = view.rows;
	s->page = LINES > TOP_LEAST_LINES ? (size_t)LINES - 6 : 1;
	top_view_free(&view);
	refresh();
	return err;
}

static void show(struct top_choice *c, enum top_page page)
{
	c->page = page;
	c->scroll = 0;
}

static void choose_table(struct top_choice *c, int table)
{
	c->table = (enum top_table)table;
	c->cursor = 0;
	show(c, TOP_PAGE_TABLE);
}

void top_screen_choose_table(struct top_screen *s, enum top_table table)
{
	choose_table(&s->choice, (int)table);
}

static void move_by(struct top_screen *s, long by)
{
	struct top_choice *c = &s->choice;
	size_t *at = c->page == TOP_PAGE_TABLE ? &c->cursor : &c->scroll;

	if (by < 0)
		*at -= *at < (size_t)-by ? *at : (size_t)-by;
	else
		*at += (size_t)by;
	if (*at >= s->rows)
		*at = s->rows ? s->rows - 1 : 0;
}

/* Takes a key while the filter is typed. */
static void type(struct top_choice *c, int key)
{
	size_t len = strlen(c->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		c->typing = false;
	} else if (key == KEY_ESCAPE) {
		c->typing = false;
		c->filter[0] = '\0';
	} else if (key == KEY_BACKSPACE || key == KEY_DELETE || key == '\b') {
		/* All bytes of a character of UTF-8. */
		while (len && ((unsigned char)c->filter[len - 1] & 0xc0) == 0x80)
			len--;
		c->filter[len ? len - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 256 && len + 1 < sizeof(c->filter)) {
		c->filter[len] = (char)key;
		c->filter[len + 1] = '\0';
	}
}

/* Goes further in: from a row to its stacks, from there to its source and back; into a node of the flame graph. */
static void enter(struct top_screen *s, const struct top_model *m)
{
	struct top_choice *c = &s->choice;

	if (c->page == TOP_PAGE_SOURCE || (c->page == TOP_PAGE_TABLE && top_view_choose(m, c)))
		show(c, TOP_PAGE_STACKS);
	else if (c->page == TOP_PAGE_STACKS && top_table_is_code(c->of_table))
		show(c, TOP_PAGE_SOURCE);
	else if (c->page == TOP_PAGE_FLAME)
		c->flame.zoomed = c->flame.depth;
	c->seek = c->page == TOP_PAGE_SOURCE;
}

/* Goes back out. */
static void leave(struct top_choice *c)
{
	if (c->page == TOP_PAGE_FLAME && c->flame.zoomed)
		c->flame.zoomed = 0;
	else
		show(c, TOP_PAGE_TABLE);
}

/* Takes a key that moves within the flame graph. Returns false if it is another key. */
static bool take_flame_key(struct top_flame *flame, const struct profile *profile, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		top_flame_move(flame, profile, TOP_FLAME_CALLER);
		return true;
	case KEY_DOWN:
	case 'j':
		top_flame_move(flame, profile, TOP_FLAME_CALLED);
		return true;
	case KEY_LEFT:
		top_flame_move(flame, profile, TOP_FLAME_LEFT);
		return true;
	case KEY_RIGHT:
		top_flame_move(flame, profile, TOP_FLAME_RIGHT);
		return true;
	case KEY_HOME:
		flame->depth = flame->zoomed;
		return true;
	case KEY_END:
	case KEY_PPAGE:
	case KEY_NPAGE:
		return true;
	default:
		return false;
	}
}

static enum top_wish take_key(struct top_screen *s, const struct top_model *m, const struct profile *profile, int key)
{
	struct top_choice *c = &s->choice;

	c->message[0] = '\0';
	if (c->typing && key != KEY_STOP) {
		type(c, key);
		return TOP_WISH_NONE;
	}
	if (key >= '1' && key < '1' + TOP_TABLES) {
		choose_table(c, key - '1');
		return TOP_WISH_NONE;
	}
	if (c->page == TOP_PAGE_FLAME && take_flame_key(&c->flame, profile, key))
		return TOP_WISH_NONE;
	switch (key) {
	case 'q':
		return TOP_WISH_END;
	case 'w':
		return TOP_WISH_WRITE;
	case KEY_STOP:
		return TOP_WISH_STOP;
	case KEY_REDRAW:
		clearok(curscr, TRUE);
		break;
	case 'f':
		show(c, TOP_PAGE_FLAME);
		break;
	case '\t':
		choose_table(c, (c->table + 1) % (top_model_has_expressions(m) ? TOP_TABLES : TOP_EXPRESSIONS));
		break;
	case 's':
		c->order = (enum top_order)((c->order + 1) % TOP_ORDERS);
		break;
	case '/':
		c->typing = true;
		show(c, TOP_PAGE_TABLE);
		break;
	case ' ':
		c->frozen = !c->frozen;
		break;
	case '?':
	case 'h':
		show(c, TOP_PAGE_HELP);
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		enter(s, m);
		break;
	case KEY_ESCAPE:
	case KEY_BACKSPACE:
	case KEY_DELETE:
		leave(c);
		break;
	case KEY_UP:
	case 'k':
		move_by(s, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_by(s, 1);
		break;
	case KEY_PPAGE:
		move_by(s, -(long)s->page);
		break;
	case KEY_NPAGE:
		move_by(s, (long)s->page);
		break;
	case KEY_HOME:
		move_by(s, -(long)s->rows);
		break;
	case KEY_END:
		move_by(s, (long)s->rows);
		break;
	default:
		break;
	}
	return TOP_WISH_NONE;
}

enum top_wish top_screen_keys(struct top_screen *s, const struct top_model *m, const struct top_facts *facts)
{
	enum top_wish wish = TOP_WISH_NONE;
	int key;

	while (wish == TOP_WISH_NONE && (key = getch()) != ERR)
		wish = take_key(s, m, facts->all, key);
	return wish;
}

void top_screen_stop(void)
{
	if (!isendwin())
		endwin();
	raise(SIGTSTP);
}

void top_screen_say(struct top_screen *s, const char *text)
{
	snprintf(s->choice.message, sizeof(s->choice.message), "%s", text);
}

const char *top_screen_source(const struct top_screen *s, const struct top_model *m)
{
	return s->choice.page == TOP_PAGE_SOURCE && !top_view_is_stale(m, &s->choice)
		       ? top_model_string(m, s->choice.of.file)
		       : NULL;
}
