#pragma once
/// The mistakes of fault_app's victim.

#include <string>

/// Tells the test which point this worker has reached, and waits there until it is killed.
[[noreturn]] void stop_at_mark(const char* mark);

/// Kills the job's trainer; this worker ends with it.
[[noreturn]] void kill_trainer();

/// Prints a line from stdin, as the loop of this worker sees it.
void say_stdin();

/// Misbehaves as the mode says; does nothing if the mode belongs to another function.
void misbehave(const std::string& mode);
