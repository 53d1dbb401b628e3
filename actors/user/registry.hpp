#pragma once
/// Finds the classes that ActorType registers.

#include <string_view>

#include <weft/actor/actor_type.hpp>

namespace weft {

/// Returns the class of this name. Throws not_found with the names that exist, or invalid_argument
/// if two classes have the name.
const detail::ActorClass& find_actor_class(std::string_view name);

/// Throws invalid_argument unless the class can be spawned: its name isn't a valid one, or another
/// class has it.
void require_usable(const detail::ActorClass& type);

/// Whether the text is 1 to 63 of a-z A-Z 0-9 _ . -
bool is_actor_name(std::string_view text);

}  // namespace weft
