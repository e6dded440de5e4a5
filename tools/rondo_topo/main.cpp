#include <utility>

#include "print.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
  const rondo::topo::Options options = rondo::topo::parse(argc, argv);
  rondo::launch::How how{"rondo-topo", options.ranks, options.processes, options.on_devices, {}};
  how.options.carrier = options.carrier;
  return rondo::launch::launch(how, &argc, &argv, [&](rondo::Communicator comm) {
    rondo::topo::show(std::move(comm), options);
    return 0;
  });
}
