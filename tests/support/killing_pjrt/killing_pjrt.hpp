#pragma once
/// A PJRT plug-in for tests that passes all calls on to a real one, and kills its process in one of
/// them. Tests and the workers of their jobs name it in WEFT_PJRT_PLUGIN.

namespace weft::testing {

/// The variable with the path of the real plug-in.
inline constexpr const char* kRealPluginVariable = "WEFT_TEST_REAL_PLUGIN";
/// The variable that says which call kills: "FUNCTION NUMBER MARKER". FUNCTION is
/// PJRT_Client_Compile, PJRT_LoadedExecutable_Execute or PJRT_Buffer_ToHostBuffer. Its calls are
/// counted from 1; counting begins with the compilation of the first step, and leaves out questions
/// for a size. The call makes the file MARKER; if this file is there already, nothing is killed.
inline constexpr const char* kKillVariable = "WEFT_TEST_KILL";

}  // namespace weft::testing
