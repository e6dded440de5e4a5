// Loads and unloads a plugin with Rondo again and again, in two processes that join each time:
// load_often PLUGIN TIMES shm|ucx.
#include "tests/plugin/load_often.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  ::setenv("UCX_MEM_EVENTS", "no", 1);  // UCX's changes to mmap stay (net/ucx_library.hpp)
  std::string folder = "/tmp/rondo-plugin-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 65;
  const int by_ucx = argv[3] == std::string("ucx") ? 1 : 0;
  const pid_t other = ::fork();
  const int rank = other == 0 ? 1 : 0;
  const int code =
      rondo::test::load_often(argv[1], std::stoi(argv[2]), [&](void* plugin, int time) {
        const auto join_and_add =
            reinterpret_cast<int (*)(const char*, int, int, int)>(::dlsym(plugin, "join_and_add"));
        const std::string url = "unix://" + folder + "/" + std::to_string(time);
        return join_and_add(url.c_str(), rank, 2, by_ucx);
      });
  if (other == 0) std::exit(code);
  int status = 0;
  ::waitpid(other, &status, 0);
  std::filesystem::remove_all(folder);
  return code != 0 ? code : status;
}
