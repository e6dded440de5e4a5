// For what the process keeps of this library when a plugin that needs it is unloaded.
#pragma once

namespace rondo::detail {

// From now on the code and the static objects of this library stay, also if the plugin that
// contains the library, or needs it, is unloaded, and it is the same library when the plugin is
// loaded again. A no-op where it is a part of the program's own file.
void keep_loaded();

}  // namespace rondo::detail
