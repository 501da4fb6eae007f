// SPDX-License-Identifier: Apache-2.0
/* Names that compilers have made, and names that are made to harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "native/demangle.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
/* Far more than any name takes, and far less than a name whose length is not bounded. */
#define LONG_S 2

struct pair {
	const char *symbol, *shown;
};

static void check_all(const struct pair *pairs, size_t count, bool demangled)
{
	for (size_t i = 0; i < count; i++) {
		char shown[NATIVE_NAME_MAX];

		assert_int_equal(native_demangle(pairs[i].symbol, shown, sizeof(shown)), demangled);
		assert_string_equal(shown, pairs[i].shown);
	}
}

static void test_names_of_c(void **state)
{
	static const struct pair pairs[] = {
		{"list_sort.cold", "list_sort"},
		{"fast.part.0", "fast"},
		{"f.constprop.1.isra.0", "f"},
		{"f.lto_priv.7", "f"},
		{"plain", "plain"},
		{"cfunc._plain", "cfunc._plain"},
		{".cold", ".cold"},
		{"version.script.name", "version.script.name"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"@x", "@x"},
		{"", ""},
		{"_", "_"},
		{"_R", "_R"},
		{"_Z", "_Z"},
		{"_Z4foo", "_Z4foo"},
		{"rust_begin_unwind", "rust_begin_unwind"},
		{"operator", "operator"},
	};

	(void)state;
	check_all(pairs, COUNT(pairs), false);
}

static void test_names_of_numba(void **state)
{
	static const struct pair pairs[] = {
		{"_ZN8__main__6add_upB2v1B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dE5ArrayIdLi1E1C7mutable7alignedEx",
		 "__main__::add_up"},
		{"_ZN7cpython8__main__4make12_3clocals_3e12_3clambda_3eB2v3Ex",
		 "cpython::__main__::make::<locals>::<lambda>"},
		{"_ZN8__main__9_3clocalsB2v1Ex", "__main__::_3clocals"},
		{"cfunc._ZN8__main__6squareB2v1Ex", "cfunc.__main__::square"},
	};

	(void)state;
	check_all(pairs, COUNT(pairs), true);
}

static void test_names_of_cpp(void **state)
{
	static const struct pair pairs[] = {
		{"_ZNSt8ios_base7failureB5cxx11C1EPKcRKSt10error_code", "std::ios_base::failure::failure"},
		{"_ZN3fooB1a3barB1bIiEEvv", "foo::bar<int>"},
		{"_ZN3app4Data3addERKSsi", "app::Data::add"},
		{"_ZNSt6thread4joinEv@@GLIBCXX_3.4.11", "std::thread::join"},
		{"_ZN3app12_GLOBAL__N_16hiddenEi.cold", "app::(anonymous namespace)::hidden"},
		{"_ZN3app12_GLOBAL__N_16hiddenEi.constprop.0.isra.1", "app::(anonymous namespace)::hidden"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int>>::push_back"},
		/* Parameters of the functions that a lambda is in. */
		{"_ZZN3foo3barEiENKUlvE_clEv", "foo::bar::{lambda()#1}::operator()"},
		{"_ZZNK3foo3barEiENKUlvE_clEv", "foo::bar::{lambda()#1}::operator()"},
		{"_ZZZN3foo3barEiENKUlvE_clEvENKUliE0_clEi",
		 "foo::bar::{lambda()#1}::operator()::{lambda(int)#2}::operator()"},
		{"_ZZ3fooIiEvT_ENKUlvE_clEv", "foo<int>::{lambda()#1}::operator()"},
		{"_ZN1aIZ1fvEUlvE_E1bEv", "a<f::{lambda()#1}>::b"},
		/* Signs that are no brackets. */
		{"_ZlsIiERSoS0_RKT_", "operator<< <int>"},
		{"_ZN3fooltIiEEbT_", "foo::operator< <int>"},
		{"_ZN3fooptIiEEv", "foo::operator-><int>"},
		{"_ZN3fooclIiEEvT_", "foo::operator()<int>"},
		{"_ZN3foossIiEEiT_", "foo::operator<=><int>"},
		{"_ZN3foocvSt6vectorIiSaIiEEEv", "foo::operator std::vector<int, std::allocator<int>>"},
		{"_ZN1fILi5EXgtLi5ELi3EEE1gEv", "f<5, ((5)>(3))>::g"},
	};

	(void)state;
	check_all(pairs, COUNT(pairs), true);
}

static void test_long_lists_are_cut(void **state)
{
	static const struct pair pairs[] = {
		{"_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiSt4lessIS5_ESaISt4pairIKS5_"
		 "iEEEixERS9_",
		 "std::map<std::string, int, std::less<std::string>, std::allocator<...>>::operator[]"},
		/* What would be left out is shorter than what says so. */
		{"_Z1fI60abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh1iEvv",
		 "f<abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh, i>"},
		{"_Z1fI60abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghiEvv",
		 "f<abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh, ...>"},
		{"_Z1fI65abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmEvv", "f<...>"},
		{"_ZZ1fI65abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmEvT_ENKUlvE_clEv",
		 "f<...>::{lambda()#1}::operator()"},
	};

	(void)state;
	check_all(pairs, COUNT(pairs), true);
}

/* Made by rustc 1.95, with -C symbol-mangling-version=legacy and =v0. */
static void test_names_of_rust(void **state)
{
	static const struct pair pairs[] = {
		{"_ZN3lib4deep5apply17h1e7773c60bca4509E", "lib::deep::apply"},
		{"_ZN3lib4deep15Square$LT$T$GT$4side17h752d0037a8476669E", "lib::deep::Square<T>::side"},
		{"_ZN3lib4deep13gr$uf6$$udf$e17hd6916870d00b3559E", "lib::deep::gr$uf6$$udf$e"},
		{"_ZN4core3fmt5write17h0123456789abcdefE.llvm.4711", "core::fmt::write"},
		{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
		 "<Test + 'static as foo::Bar<Test>>::bar"},
		{"_RINvNtCsh537bOAIRKx_3lib4deep5applyNCNvB4_2go0EB4_", "lib::deep::apply::<lib::go::{closure#0}>"},
		{"_RNvMs_NtCsh537bOAIRKx_3lib4deepINtB4_6SquaredE4sideB6_", "<lib::deep::Square<f64>>::side"},
		{"_RNvXNtCsh537bOAIRKx_3lib4deepINtB2_6SquaredENtB2_5Shape4area",
		 "<lib::deep::Square<f64> as lib::deep::Shape>::area"},
		{"_RNvNtCsh537bOAIRKx_3lib4deepu9gre_6ka8i", "lib::deep::größe"},
		{"_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecINtNtNtCsduwmD7cSIQq_5gimli4read4line9FileEntry"
		 "INtNtBR_12endian_slice11EndianSliceNtNtBT_9endianity12LittleEndianEjEE8grow_oneCsjrHSEGnQ3l9_3std",
		 "<alloc::raw_vec::RawVec<gimli::read::line::FileEntry<...>>>::grow_one"},
	};

	(void)state;
	check_all(pairs, COUNT(pairs), true);
}

static void test_what_does_not_fit(void **state)
{
	char symbol[2 * NATIVE_SYMBOL_MAX] = "_Z300", shown[NATIVE_NAME_MAX], small[8];

	(void)state;
	memset(symbol + strlen(symbol), 'x', 300);
	symbol[strlen(symbol)] = 'v';
	assert_true(native_demangle(symbol, shown, sizeof(shown)));
	assert_int_equal(strlen(shown), sizeof(shown) - 1);
	assert_string_equal(shown + sizeof(shown) - 6, "xx...");
	/* An ö has two bytes. */
	assert_true(native_demangle("_RNvNtCsh537bOAIRKx_3lib4deepu9gre_6ka8i", shown, 17));
	assert_string_equal(shown, "lib::deep::gr...");
	assert_false(native_demangle("abcdefghij", small, sizeof(small)));
	assert_string_equal(small, "abcd...");
	/* Cut off before it was demangled. */
	memset(symbol + 2, '1', sizeof(symbol) - 3);
	assert_false(native_demangle(symbol, shown, sizeof(shown)));
}

/* A pair of pairs of pairs: each step doubles what is written. */
static void write_growing_cpp(char *symbol, int steps)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *to = symbol + sprintf(symbol, "_Z1fI1A1BIS0_S0_E");

	for (int i = 0; i < steps; i++)
		to += sprintf(to, "S1_IS%c_S%c_E", digits[i + 2], digits[i + 2]);
	stpcpy(to, "Evv");
}

static void write_growing_rust(char *symbol, int steps)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *to = symbol + sprintf(symbol, "_RINvC1a1f"), *last = to;

	to += sprintf(to, "TuuE");
	for (int i = 0; i < steps; i++) {
		/* From behind _R on, less 1. */
		int place = (int)(last - symbol) - 3;
		char back[] = {'B', digits[place / 62], digits[place % 62], '_', '\0'};

		last = to;
		to += sprintf(to, "T%s%sE", back, back);
	}
	stpcpy(to, "E");
}

static void check_growing(void (*write)(char *symbol, int steps))
{
	char symbol[NATIVE_SYMBOL_MAX], shown[NATIVE_NAME_MAX];
	time_t begin = time(NULL);

	write(symbol, 5);
	assert_true(native_demangle(symbol, shown, sizeof(shown)));
	write(symbol, 32);
	assert_false(native_demangle(symbol, shown, sizeof(shown)));
	assert_memory_equal(shown, symbol, sizeof(shown) - 4);
	assert_true(time(NULL) - begin <= LONG_S);
}

static void test_names_that_grow(void **state)
{
	char symbol[NATIVE_SYMBOL_MAX], shown[NATIVE_NAME_MAX];

	(void)state;
	check_growing(write_growing_cpp);
	check_growing(write_growing_rust);
	write_growing_rust(symbol, 32);
	/* Others are demangled still, and Rust's until there were too many of these. */
	assert_true(native_demangle("_RNvC1a1f", shown, sizeof(shown)));
	for (int i = 0; i < 1000; i++)
		native_demangle(symbol, shown, sizeof(shown));
	assert_false(native_demangle("_RNvC1a1f", shown, sizeof(shown)));
	assert_true(native_demangle("_ZN1a1fEv", shown, sizeof(shown)));
}

static void test_brackets_without_end(void **state)
{
	char symbol[NATIVE_SYMBOL_MAX], shown[NATIVE_NAME_MAX];
	size_t n = 0;

	(void)state;
	/* Pointers to functions that take pointers to functions, and templates in templates. */
	n = (size_t)snprintf(symbol, sizeof(symbol), "_Z1f");
	for (int i = 0; i < 240; i++)
		n += (size_t)snprintf(symbol + n, sizeof(symbol) - n, "PFv");
	n += (size_t)snprintf(symbol + n, sizeof(symbol) - n, "i");
	memset(symbol + n, 'E', 240);
	symbol[n + 240] = '\0';
	assert_true(native_demangle(symbol, shown, sizeof(shown)));
	assert_string_equal(shown, "f");
	n = (size_t)snprintf(symbol, sizeof(symbol), "_Z1fI");
	for (int i = 0; i < 250; i++)
		n += (size_t)snprintf(symbol + n, sizeof(symbol) - n, "1aI");
	n += (size_t)snprintf(symbol + n, sizeof(symbol) - n, "i");
	memset(symbol + n, 'E', 251);
	stpcpy(symbol + n + 251, "vv");
	native_demangle(symbol, shown, sizeof(shown));
	assert_true(strlen(shown) < sizeof(shown));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_c),           cmocka_unit_test(test_names_of_cpp),
		cmocka_unit_test(test_names_of_numba),       cmocka_unit_test(test_long_lists_are_cut),
		cmocka_unit_test(test_names_of_rust),        cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_brackets_without_end), cmocka_unit_test(test_names_that_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
