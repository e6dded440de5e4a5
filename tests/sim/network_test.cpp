// Files that hold a network.

#include "bench/sim/network.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace rondo::sim {
namespace {

std::string file_named(const std::string& name) { return ::testing::TempDir() + name; }

std::string error_of(const std::string& name, const std::string& text) {
  std::ofstream(file_named(name)) << text;
  try {
    read_network(file_named(name));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

template <typename Value>
std::string with(const std::string& name, const Value& value) {
  nlohmann::json values = json_of(Network{});
  values[name] = value;
  return values.dump();
}

TEST(NetworkFile, IsReadAsItWasWritten) {
  const Network network{3, 0, 111.5, 7.25, 4096, 0.5, 1.75, 5000, 6000};
  write_network(file_named("network.json"), network);
  const Network read = read_network(file_named("network.json"));
  EXPECT_EQ(read.ranks_per_host, 3);
  EXPECT_DOUBLE_EQ(read.link_bytes_per_us, 111.5);
  EXPECT_DOUBLE_EQ(read.latency_us, 7.25);
  EXPECT_DOUBLE_EQ(read.burst_bytes, 4096);
  EXPECT_DOUBLE_EQ(read.jitter_us, 0.5);
  EXPECT_DOUBLE_EQ(read.slice_us, 1.75);
  EXPECT_DOUBLE_EQ(read.reduce_bytes_per_us, 5000);
  EXPECT_DOUBLE_EQ(read.copy_bytes_per_us, 6000);
}

TEST(NetworkFile, ThatCannotBeUsedIsNamed) {
  EXPECT_THROW(read_network("/nowhere.json"), std::runtime_error);
  EXPECT_THROW(write_network("/nowhere/network.json", {}), std::runtime_error);
  EXPECT_NE(error_of("half", "{").find("half"), std::string::npos);
  EXPECT_NE(error_of("text", with("latency_us", "30")).find("text"), std::string::npos);
  EXPECT_NE(error_of("less", with("latency_us", -1)).find("latency_us must not be negative"),
            std::string::npos);
  EXPECT_NE(error_of("zero", with("link_bytes_per_us", 0)).find("above 0"), std::string::npos);
  EXPECT_NE(error_of("other", with("latency", 500)).find("other fields; a network has"),
            std::string::npos);
  EXPECT_NE(error_of("few", R"({"ranks_per_host": 1})").find("'link_bytes_per_us' is missing"),
            std::string::npos);
  EXPECT_NE(error_of("list", "[]").find("no JSON object"), std::string::npos);
}

}  // namespace
}  // namespace rondo::sim
