#pragma once
/// Finds the classes that ActorType has registered.

#include <string_view>

#include <weft/actor/actor_type.hpp>

namespace weft {

/// Returns the class of this name. Throws not_found, naming the existing classes, or
/// invalid_argument if two classes have the name.
const detail::ActorClass& find_actor_class(std::string_view name);

/// Throws invalid_argument if the class can't be spawned because its name is invalid or another
/// class has it.
void require_usable(const detail::ActorClass& type);

/// Returns whether the text consists of 1 to 63 of the characters a-z A-Z 0-9 _ . -
bool is_actor_name(std::string_view text);

}  // namespace weft
