#pragma once
/// Exceptions whose place `weft inspect why` has to name.

/// Says its line in the message.
[[noreturn]] void throw_here();
[[noreturn]] void throw_other();  ///< what is no std::exception
/// Throws what throw_here() threw again; others are thrown and caught meanwhile.
void throw_again();
void throw_in_thread();   ///< and gets it from there
void add_other_shapes();  ///< a mistake, at which weft throws
