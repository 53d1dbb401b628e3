#pragma once
/// The loops of split_app, in a static library.

#include <weft/weft.hpp>

extern weft::Loop split_loop;
