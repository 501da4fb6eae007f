// SPDX-License-Identifier: Apache-2.0
/* A library for test_native_names.py: functions of C++ whose names, and whose callers, are known. */
#include <ctime>
#include <map>
#include <string>

#define SEEN __attribute__((noinline))
/* Keeps the compiler from making the call before a jump. */
#define RETURN_HERE() __asm__ volatile("" ::: "memory")

namespace shop
{
namespace
{
SEEN void burn(int ms)
{
	timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	const long end = now.tv_sec * 1000000000 + now.tv_nsec + ms * 1000000L;
	do {
		for (volatile int i = 0; i < 2000; i = i + 1)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000 + now.tv_nsec < end);
}
}

template <typename Key, typename Value> struct Store {
	std::map<Key, Value> items;

	SEEN void sum(int ms) const
	{
		auto part = [](int of) SEEN {
			burn(of);
			RETURN_HERE();
		};

		part(ms);
		RETURN_HERE();
	}
};

template struct Store<std::string, long>;

struct Price {
	int ms;

	SEEN bool operator<(const Price &other) const
	{
		Store<std::string, long>().sum(ms + other.ms);
		RETURN_HERE();
		return true;
	}
};

/* Its name is that of a function of the C library with which threads begin. */
SEEN void clone(int ms)
{
	(void)(Price{ms} < Price{0});
	RETURN_HERE();
}
}

SEEN void clone(int ms)
{
	shop::clone(ms);
	RETURN_HERE();
}

extern "C" __attribute__((visibility("default"))) void nn_go(int ms)
{
	clone(ms);
	RETURN_HERE();
}
