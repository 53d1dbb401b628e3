#pragma once
/// The loops of split_app, which are in a static library.

#include <weft/weft.hpp>

extern weft::Loop split_loop;
