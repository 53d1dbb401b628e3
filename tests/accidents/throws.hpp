#pragma once
/// Functions that throw exceptions whose place `weft inspect why` has to name.

/// Throws an exception whose message contains its line.
[[noreturn]] void throw_here();
[[noreturn]] void throw_other();  ///< throws something that is no std::exception
/// Catches the exception of throw_here(), throws and catches others, and rethrows the first one.
void throw_again();
void throw_in_thread();   ///< throws in a thread and rethrows here
void add_other_shapes();  ///< makes a mistake at which weft throws
