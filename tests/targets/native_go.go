// SPDX-License-Identifier: Apache-2.0

// A shared library of Go: a function that burns time, and one that calls back, on stacks of Go's own.
package main

// typedef void (*callback)(int);
// static void ng_call_back(callback function, int ms) { function(ms); }
import "C"

import "time"

var sum int

//go:noinline
func spin() {
	for i := 0; i < 2000; i++ {
		sum += i
	}
}

//export ng_burn
func ng_burn(ms C.int) {
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	for time.Now().Before(end) {
		spin()
	}
}

//export ng_call
func ng_call(function C.callback, ms C.int) {
	C.ng_call_back(function, ms)
}

func main() {}
