#pragma once
/// What fault_app's victim does wrong.

#include <string>

/// Tells the test where this worker is, and stays there until it is killed.
[[noreturn]] void stop_at_mark(const char* mark);

/// Kills the job's trainer, with which this worker ends.
[[noreturn]] void kill_trainer();

/// As the mode says; nothing for modes that are another's.
void misbehave(const std::string& mode);
