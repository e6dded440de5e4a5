// Joins that the program gives up from another thread, long before their deadline.
#include <chrono>
#include <cstdio>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.h>
#include <rondo/rondo.hpp>

#include "tests/support/errors.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/free_port.hpp"

namespace rondo::test {
namespace {

// Of a join that nobody gives up.
constexpr std::chrono::minutes kPatient{5};

std::string url_of(const std::string& kind, const ForkedRank& me, const FreePort& port) {
  if (kind == "tcp") return port.url();
  const std::string folder = me.socket.substr(0, me.socket.rfind('/'));
  return kind == "unix" ? "unix://" + me.socket : "file://" + folder;
}

// Joins, and gives up from another thread when the join has begun to wait. Returns 0 if the error
// says so.
int give_up(const std::string& url, int rank, int size) {
  std::stop_source source;
  std::latch asked(1);
  bool first = true;
  CommunicatorOptions options;
  options.timeout = kPatient;
  options.give_up_if = [&, token = source.get_token()] {
    if (first) asked.count_down();
    first = false;
    return token.stop_requested();
  };
  const std::jthread other([&] {
    asked.wait();
    source.request_stop();
  });
  try {
    from_store(url, rank, size, options);
  } catch (const TransportError& error) {
    return says(error, "has given up joining") ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "another error: %s\n", error.what());
    return 2;
  }
  return 3;
}

TEST(GivingUp, WhoWaitsForOthersEndsSoon) {
  for (const char* kind : {"tcp", "unix", "file"}) {
    for (const int rank : {0, 1}) {
      const FreePort port;
      const std::vector<int> codes = run_forked(
          1, [&](const ForkedRank& me) { return give_up(url_of(kind, me, port), rank, 2); });
      EXPECT_EQ(codes, std::vector<int>{0}) << kind << ", rank " << rank;
    }
  }
}

// Rank 2 does not come, and rank 0 gives up: rank 1, which waits for it, gets an error.
TEST(GivingUp, TheOthersGetAnError) {
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 0) return give_up(port.url(), 0, 3);
    CommunicatorOptions options;
    options.timeout = kPatient;
    try {
      from_store(port.url(), 1, 3, options);
    } catch (const Error&) {
      return 0;
    }
    return 4;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(GivingUp, WhoIsAskedAndGoesOnJoins) {
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    CommunicatorOptions options;
    options.give_up_if = [] { return false; };
    Communicator comm = from_socket(me.socket, me.rank, me.size, options);
    std::vector<int> one = {me.rank};
    comm.all_reduce(one);
    return one[0] == 3 ? 0 : 1;
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

TEST(GivingUp, InC) {
  const std::vector<int> codes = run_forked(1, [&](const ForkedRank& me) {
    rondo_options options = RONDO_OPTIONS;
    int asked = 0;
    options.timeout_s = 300;
    options.give_up_context = &asked;
    options.give_up_if = [](void* context) { return ++*static_cast<int*>(context) > 2 ? 1 : 0; };
    rondo_comm* comm = nullptr;
    if (rondo_from_socket(me.socket.c_str(), 0, 2, &options, &comm) != RONDO_TRANSPORT_ERROR)
      return 1;
    return std::string(rondo_last_error()).find("has given up") != std::string::npos ? 0 : 2;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

}  // namespace
}  // namespace rondo::test
