#pragma once
/// What fault_app's victim does wrong.

#include <string>

/// Tells the test where this worker is, and stays there until it is killed.
[[noreturn]] void stop_at_mark(const char* mark);

/// Kills the job's trainer, with which this worker ends.
[[noreturn]] void kill_trainer();

/// Prints a line of stdin, as the loop of this worker has it.
void say_stdin();

/// As the mode says; nothing for modes that are another's.
void misbehave(const std::string& mode);
