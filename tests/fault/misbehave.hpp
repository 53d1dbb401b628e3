#pragma once
/// The ways in which fault_app's victim misbehaves.

#include <string>

/// Tells the test which point this worker has reached, and waits there until it is killed.
[[noreturn]] void stop_at_mark(const char* mark);

/// Kills the job's trainer; this worker ends with it.
[[noreturn]] void kill_trainer();

/// Reads a line from the worker's stdin and prints it.
void say_stdin();

/// Misbehaves as the mode says. Does nothing if the mode belongs to another function.
void misbehave(const std::string& mode);
