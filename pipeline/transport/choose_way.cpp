#include "pipeline/transport/choose_way.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

// Why the ranks can't use NCCL; "" when they can. The first reason found, by rank.
std::string against_messages(const std::vector<WayFacts>& ranks) {
  std::map<std::pair<std::string, std::string>, size_t> owner, process;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const WayFacts& facts = ranks[r];
    if (facts.device.empty()) return fmt::format("rank {} computes in host memory", r);
    if (facts.messages_by.empty()) return fmt::format("rank {} has no NCCL ({})", r, facts.no_messages);
    if (facts.messages_by != ranks[0].messages_by)
      return fmt::format("rank {} has {}, rank 0 {}", r, facts.messages_by, ranks[0].messages_by);
    if (const auto [at, alone] = owner.try_emplace({facts.host, facts.device}, r); !alone)
      return fmt::format("ranks {} and {} on {} share one GPU, which NCCL refuses", at->second, r,
                         facts.host);
    if (facts.process.empty()) continue;
    // A call of one thread may wait for the devices of all, and a device for what that thread has not issued
    // yet.
    if (const auto [at, alone] = process.try_emplace({facts.host, facts.process}, r); !alone)
      return fmt::format("ranks {} and {} are threads of one process, which may deadlock over NCCL",
                         at->second, r);
  }
  return "";
}

Error refused(std::string_view asked, const std::string& why) {
  return Error(fmt::format("--transport {} is asked for, but {}", asked, why), "use --transport mpi, or auto",
               ExitCode::usage);
}

WayChoice through_host_memory(const std::string& why) {
  return {Way::staged, "tensors travel through host memory: " + why};
}

}  // namespace

WayChoice choose_way(std::string_view asked, const std::vector<WayFacts>& ranks) {
  const bool any_device = std::ranges::any_of(ranks, [](const WayFacts& f) { return !f.device.empty(); });
  if (asked != "nccl" && ranks.size() == 1)
    return {Way::as_it_is, any_device ? "tensors stay where they are: one rank" : ""};
  if (asked != "nccl" && !any_device) return {};
  if (asked == "mpi") return through_host_memory("--transport mpi");
  if (const std::string why_not = against_messages(ranks); !why_not.empty()) {
    if (asked == "nccl") throw refused(asked, why_not);
    return through_host_memory(why_not);
  }
  return {Way::messages, "tensors travel from GPU to GPU by " + ranks[0].messages_by};
}

WayChoice way_without_messages(std::string_view asked, const std::string& failure) {
  if (asked == "nccl") throw refused(asked, failure);
  return through_host_memory(failure);
}

}  // namespace antichain
