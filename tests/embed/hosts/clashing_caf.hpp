#pragma once
/// A library that has names of CAF, as another version of CAF would, and does other things.

/// Returns 42 if only this library's own constructors ran.
extern "C" int clash_answer();
/// Returns how often an actor system of this library was made.
extern "C" int clash_systems();
