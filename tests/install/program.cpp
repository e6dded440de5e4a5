// A user's program: it is built from the installed files only.
#include <cstdio>
#include <rondo/rondo.hpp>
#include <thread>
#include <vector>

int main() {
  std::vector<rondo::Communicator> ranks = rondo::local_group(2);
  std::vector<float> a(1000, 1.0F);
  std::vector<float> b(1000, 2.0F);
  std::thread other([&] { ranks[1].all_reduce(b); });
  ranks[0].all_reduce(a);
  other.join();
  bool caught = false;
  try {
    ranks[0].broadcast(a, 5);
  } catch (const rondo::UsageError&) {  // the type must be the library's own
    caught = true;
  }
  const bool good = caught && a == b && a == std::vector<float>(1000, 3.0F);
  std::printf("rondo %s: %s\n", RONDO_VERSION, good ? "good" : "wrong");
  return good ? 0 : 1;
}
