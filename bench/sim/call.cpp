#include "bench/sim/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>

#include "bench/sim/events.hpp"
#include "joining/fifo_sizes.hpp"
#include "plan/model_table.hpp"
#include "plan/plan.hpp"

namespace rondo::sim {
namespace {

using detail::FifoGeometry;
using detail::Plan;
using detail::RingPlace;

constexpr std::array<const char*, kStrategies> kNames = {
    "ring", "hierarchical", "halving_doubling", "recursive_doubling", "naive", "server"};
constexpr std::size_t kElementBytes = sizeof(float);

// Slices have the library's sizes, or larger ones where there would be more than this.
constexpr double kMostSlices = 1e7;

bool halves(Strategy strategy) {
  return strategy == Strategy::halving_doubling || strategy == Strategy::recursive_doubling;
}

Algorithm algorithm_of(Strategy strategy) {
  switch (strategy) {
    case Strategy::halving_doubling:
      return Algorithm::halving_doubling;
    case Strategy::recursive_doubling:
      return Algorithm::recursive_doubling;
    case Strategy::naive:
      return Algorithm::naive;
    default:
      return Algorithm::ring;
  }
}

detail::LinkFacts link_of(const Network& network) {
  return {network.latency_us, network.link_bytes_per_us};
}

Strategy as_strategy(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return Strategy::ring;
    case Algorithm::naive:
      return Strategy::naive;
    default:
      return Strategy::halving_doubling;
  }
}

// As the library would choose them, with its usual options.
detail::Geometries geometries(const Network& network, int ranks) {
  constexpr std::uint64_t kCacheBytes = std::uint64_t{1} << 20U;
  std::optional<detail::LinkFacts> link;
  if (ranks > network.ranks_per_host) link = link_of(network);
  detail::LocalEdges local;
  local.ranks = static_cast<std::uint64_t>(std::min(ranks, network.ranks_per_host));
  local.ring = local.off_ring = local.ranks;
  return detail::choose_geometries({}, kCacheBytes, link, local);
}

// Where an actor stands for several ranks, all their chunks must be of one size: as many elements
// for each, which have fewer bytes than a float where the vector is not a multiple.
double even_out(detail::Slicing& slicing, std::size_t bytes) {
  const std::uint64_t each = (slicing.count + slicing.chunks - 1) / slicing.chunks;
  slicing.count = std::max<std::uint64_t>(each, 1) * slicing.chunks;
  slicing.granule = 1;
  return static_cast<double>(bytes) / static_cast<double>(slicing.count);
}

// How many actors stand for so many ranks: all, or a whole number of hosts, of which there are two
// at least, since one host alone would send nothing over its link.
int actors_for(Strategy strategy, int ranks, int ranks_per_host, std::optional<int> most_actors) {
  // Ranks of a ring take a number of steps that grows with their number; those of other schedules
  // take few.
  const int most = most_actors.value_or(halves(strategy) ? kMostActors : kMostRingActors);
  if (strategy == Strategy::naive || ranks <= most) return ranks;
  const int hosts = std::max(2, most / ranks_per_host);
  return std::min(ranks, hosts * ranks_per_host);
}

// How many slices all actors handle, of so many elements.
double slices_of(const Plan& plan, std::uint64_t slice_elems, int actors) {
  const auto slices = [&](double elems) {
    return std::max(1.0, elems / static_cast<double>(slice_elems));
  };
  const auto count = static_cast<double>(plan.slicing.count);
  const int steps = plan.schedule.steps();
  switch (plan.schedule.algorithm) {
    case Algorithm::naive:
      return 4 * slices(count) * actors;  // the centre has as many as all others together
    case Algorithm::halving_doubling:
      return (steps * slices(count / static_cast<double>(plan.slicing.chunks)) +
              4 * slices(count)) *
             actors;
    default:
      return steps * slices(count / static_cast<double>(plan.slicing.chunks)) * actors;
  }
}

// Takes larger slices where there would be too many.
void limit_slices(Plan& plan, int actors) {
  const double slices = slices_of(plan, plan.slicing.slice_elems, actors);
  plan.slicing.slice_elems *=
      static_cast<std::uint64_t>(std::max(1.0, std::ceil(slices / kMostSlices)));
}

double by_schedule(const Network& network, Strategy strategy, int ranks, std::size_t bytes,
                   const Simulation& simulation) {
  const detail::Geometries chosen = geometries(network, ranks);
  const detail::EdgeGeometries& sizes =
      ranks > network.ranks_per_host ? chosen.link : chosen.memory;
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  RingPlace place;
  place.size = ranks;
  place.ring = &order;
  place.ring_geometry = sizes.ring;
  place.off_ring_geometry = sizes.off_ring;
  if (ranks > network.ranks_per_host) place.link_costs = detail::link_costs(link_of(network));
  Call call;
  call.collective = Collective::all_reduce;
  call.count = bytes / kElementBytes;
  call.type = DataType::f32;
  Plan plan = detail::make_plan(call, algorithm_of(strategy), place, detail::kChunkGranuleBytes);
  const int count = actors_for(strategy, ranks, network.ranks_per_host, simulation.most_actors);
  double element_bytes = kElementBytes;
  if (count < ranks) {
    element_bytes = even_out(plan.slicing, bytes);
  }
  limit_slices(plan, count);
  Events::Shape shape{element_bytes};
  const FifoGeometry& fifo = strategy == Strategy::ring ? sizes.ring : sizes.off_ring;
  shape.fifo = fifo;
  shape.between_hosts_slots = static_cast<int>(fifo.slots);
  shape.within_host_slots = static_cast<int>(chosen.memory.ring.slots);
  shape.one_sender = strategy == Strategy::ring;
  shape.calls = simulation.calls;
  std::vector<ActorPlace> actors;
  for (int i = 0; i < count; ++i) {
    plan.schedule.position = i;
    actors.push_back({plan.schedule, plan.slicing, i / network.ranks_per_host, 0});
  }
  return Events(network, shape, actors, simulation.seed).run();
}

// As the library goes between hosts, by its model of this network.
detail::BetweenHosts between_hosts(const Network& network, int ranks, std::size_t bytes) {
  detail::CostPlace place;
  place.ranks = ranks;
  place.hosts = ranks / network.ranks_per_host;
  place.rails = network.ranks_per_host;
  place.link = detail::link_costs(link_of(network));
  const detail::Geometries chosen = geometries(network, ranks);
  place.ring = chosen.link.ring;
  place.off_ring = chosen.link.off_ring;
  return detail::ModelTable(place).between_hosts(bytes);
}

// What `here` ranks of a host reduce and copy.
double inside_us(const Network& network, int here, int owners, std::size_t bytes) {
  const auto share = static_cast<double>(bytes) / owners;
  return share * (here - 1) * (1 / network.reduce_bytes_per_us + 1 / network.copy_bytes_per_us);
}

std::size_t pieces_of(const Network& network, std::size_t bytes, int hosts, int owners,
                      const detail::BetweenHosts& between) {
  if (!between.along_rails) return 1;
  const std::uint64_t piece = detail::rail_piece_bytes(between.algorithm, bytes, hosts, owners,
                                                       detail::link_costs(link_of(network)));
  return std::max<std::size_t>((bytes + piece - 1) / piece, 1);
}

// The slices and steps of an owner of a host in a piece of a hierarchical call, as an owner among
// those of its rail; and the FIFOs.
struct Owner {
  Plan plan;
  FifoGeometry fifo;
};
Owner owner_of(const Network& network, int ranks, std::size_t bytes, int owners,
               const detail::BetweenHosts& between) {
  const int hosts = ranks / network.ranks_per_host;
  const detail::EdgeGeometries sizes = geometries(network, ranks).link;
  Call call;
  call.collective = Collective::all_reduce;
  call.type = DataType::f32;
  call.count = bytes / kElementBytes / static_cast<std::size_t>(owners);
  if (between.algorithm == Algorithm::ring) {
    Owner owner{detail::rail_plan(call, {0, hosts, nullptr, sizes.ring}), sizes.ring};
    owner.plan.slicing.count = call.count;
    return owner;
  }
  std::vector<int> rail(static_cast<std::size_t>(hosts));
  std::iota(rail.begin(), rail.end(), 0);
  RingPlace place;
  place.size = hosts;
  place.ring = &rail;
  place.ring_geometry = sizes.ring;
  place.off_ring_geometry = sizes.off_ring;
  place.link_costs = detail::link_costs(link_of(network));
  place.sharing_link = owners;
  return {detail::make_plan(call, between.algorithm, place, detail::kChunkGranuleBytes),
          sizes.off_ring};
}

// How late the last of so many messages is that leave at the same time.
double latest_of(int messages, double jitter_us, std::mt19937_64& random) {
  if (jitter_us == 0) return 0;
  const double chance = std::uniform_real_distribution<double>(0, 1)(random);
  return -jitter_us * std::log1p(-std::pow(chance, 1.0 / messages));
}

// Gradients go to the servers, over the links of the hosts of ranks and of servers, and are added
// there; then parameters go back along the same links. The first host has as many servers as any.
double by_servers(const Network& network, int ranks, std::size_t bytes, std::uint64_t seed) {
  const int here = std::min(network.ranks_per_host, ranks);
  const int hosts = ranks / here;
  const int servers = servers_of(network, ranks, bytes);
  const int servers_here = (servers + hosts - 1) / hosts;
  const auto least_servers_here = servers / hosts;
  const double shard = static_cast<double>(bytes) / servers;
  const double to_servers = shard * servers_here * (ranks - here);
  const double from_ranks = shard * (servers - least_servers_here) * here;
  // The same direction of that link carries less in the other of the two phases. What it could have
  // carried meanwhile, up to the burst, it carries at once.
  const bool at_servers = to_servers >= from_ranks;
  const double one_way = std::max(to_servers, from_ranks);
  const double other_way = at_servers ? shard * (servers - servers_here) * here
                                      : shard * least_servers_here * (ranks - here);
  const double saved = std::min(network.burst_bytes, std::max(one_way - other_way, 0.0) / 2);
  const double on_link = (one_way - saved) / network.link_bytes_per_us;
  // A server hears of each rank, and the rank beside it tells each server.
  const double messages = (ranks - 1.0 + servers - 1.0) * network.slice_us;
  const double reduced = shard * (ranks - 1) / network.reduce_bytes_per_us;
  std::mt19937_64 random(seed);
  const double late =
      latest_of(ranks, network.jitter_us, random) + latest_of(ranks, network.jitter_us, random);
  return 2 * (std::max(on_link, messages) + network.latency_us) + late + reduced;
}

}  // namespace

std::string name(Strategy strategy) { return kNames.at(static_cast<std::size_t>(strategy)); }

Strategy strategy_named(const std::string& name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    std::string known;
    for (const char* one : kNames) known += (known.empty() ? "" : ", ") + std::string(one);
    throw std::runtime_error(fmt::format("there is no strategy '{}': take {}", name, known));
  }
  return static_cast<Strategy>(found - kNames.begin());
}

int servers_of(const Network& network, int ranks, std::size_t bytes) {
  const auto wanted =
      static_cast<std::size_t>(network.servers > 0 ? std::min(network.servers, ranks) : ranks);
  return static_cast<int>(std::min(wanted, std::max<std::size_t>(bytes / kElementBytes, 1)));
}

std::string objection_to(Strategy strategy, const Network& network, int ranks) {
  const int here = network.ranks_per_host;
  if (ranks > here && ranks % here != 0) return fmt::format("hosts have {} ranks each", here);
  const auto power = [](int number) { return std::has_single_bit(static_cast<unsigned>(number)); };
  const bool folds = halves(strategy) || strategy == Strategy::hierarchical;
  if (folds && ranks > kMostActors && !(power(ranks) && power(here))) {
    return fmt::format("above {} ranks, their number must be a power of two, on each host, too",
                       kMostActors);
  }
  return {};
}

bool is_beyond_library(Strategy strategy, const Network& network, int ranks) {
  return halves(strategy) && ranks > 1 && ranks <= network.ranks_per_host;
}

// The owners of a host reduce a part each, these parts go between hosts, and the ranks gather them;
// or one rank does all that.
double hierarchical_us(const Network& network, int ranks, std::size_t bytes,
                       const detail::BetweenHosts& between, const Simulation& simulation) {
  const int here = network.ranks_per_host;
  const int hosts = ranks / here;
  const int owners = between.along_rails ? here : 1;
  const double inside = inside_us(network, here, owners, bytes);
  const std::size_t pieces = pieces_of(network, bytes, hosts, owners, between);
  const bool as_ring = between.algorithm == Algorithm::ring;
  // The ring goes on from piece to piece without a pause.
  const std::size_t at_once = as_ring ? bytes : bytes / pieces;
  Owner owner = owner_of(network, ranks, at_once, owners, between);
  Plan& plan = owner.plan;
  const int rows =
      actors_for(as_strategy(between.algorithm), hosts * owners, owners, simulation.most_actors) /
      owners;
  const double element_bytes =
      rows < hosts ? even_out(plan.slicing, at_once / static_cast<std::size_t>(owners))
                   : kElementBytes;
  limit_slices(plan, rows * owners);
  Events::Shape shape;
  shape.element_bytes = element_bytes;
  shape.stride = owners;
  shape.fifo = owner.fifo;
  shape.between_hosts_slots = static_cast<int>(owner.fifo.slots);
  shape.within_host_slots = 0;
  shape.one_sender = as_ring;
  shape.calls = simulation.calls;
  std::vector<ActorPlace> actors;
  for (int host = 0; host < rows; ++host) {
    for (int rank = 0; rank < owners; ++rank) {
      plan.schedule.position = host;
      actors.push_back({plan.schedule, plan.slicing, host, 0});
    }
  }
  const double rails = Events(network, shape, actors, simulation.seed).run() *
                       (as_ring ? 1.0 : static_cast<double>(pieces));
  if (here == 1) return rails;
  // What is done inside a host is hidden except for the first and the last piece.
  return std::max(rails, inside) + inside / static_cast<double>(pieces) + 2 * network.slice_us;
}

double call_us(const Network& network, Strategy strategy, int ranks, std::size_t bytes,
               const Simulation& simulation) {
  if (ranks == 1) return static_cast<double>(bytes) / network.copy_bytes_per_us;
  if (strategy == Strategy::server) return by_servers(network, ranks, bytes, simulation.seed);
  if (strategy == Strategy::hierarchical) {
    if (ranks > network.ranks_per_host) {
      return hierarchical_us(network, ranks, bytes, between_hosts(network, ranks, bytes),
                             simulation);
    }
    return inside_us(network, ranks, ranks, bytes) + 2 * network.slice_us;
  }
  return by_schedule(network, strategy, ranks, bytes, simulation);
}

}  // namespace rondo::sim
