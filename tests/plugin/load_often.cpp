// Loads and unloads a plugin with Rondo again and again, in two processes that join each time: load_often PLUGIN TIMES shm|ucx.
// What the process has (descriptors, threads, reactions to signals) must stay as it is after the first time.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

namespace {

std::ptrdiff_t entries(const char* folder) {
  const std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

void own_reaction(int /*signal*/) {}

int load_often(const char* plugin, int times, bool by_ucx, const std::string& folder, int rank) {
  std::ptrdiff_t files = 0;
  std::ptrdiff_t threads = 0;
  for (int time = 0; time < times; ++time) {
    void* handle = ::dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      return 1;
    }
    // Not before: with MPI the system may load UCX, whose handlers are there before any code of Rondo runs.
    if (time == 0) std::signal(SIGSEGV, own_reaction);
    const auto join_and_add =
        reinterpret_cast<int (*)(const char*, int, int, int)>(::dlsym(handle, "join_and_add"));
    const std::string url = "unix://" + folder + "/" + std::to_string(time);
    if (const int code = join_and_add(url.c_str(), rank, 2, by_ucx ? 1 : 0)) {
      std::fprintf(stderr, "the plugin failed at time %d with %d\n", time, code);
      return 2;
    }
    if (::dlclose(handle) != 0) return 3;
    if (::dlopen(plugin, RTLD_NOW | RTLD_NOLOAD) != nullptr) {
      std::fprintf(stderr, "the plugin is still loaded\n");
      return 6;
    }
    if (time == 10) {
      files = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
    }
  }
  struct sigaction now{};
  ::sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_handler != own_reaction) return 4;
  if (entries("/proc/self/fd") <= files && entries("/proc/self/task") <= threads) return 0;
  std::fprintf(stderr, "%td descriptors, then %td; %td threads, then %td\n", files,
               entries("/proc/self/fd"), threads, entries("/proc/self/task"));
  return 5;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  ::setenv("UCX_MEM_EVENTS", "no", 1);  // UCX's changes to mmap stay (carrier/ucx_library.hpp)
  std::string folder = "/tmp/rondo-plugin-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 65;
  const pid_t other = ::fork();
  const int code = load_often(argv[1], std::stoi(argv[2]), argv[3] == std::string("ucx"), folder,
                              other == 0 ? 1 : 0);
  if (other == 0) std::exit(code);
  int status = 0;
  ::waitpid(other, &status, 0);
  std::filesystem::remove_all(folder);
  return code != 0 ? code : status;
}
