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

// Why no rank can copy into another one's device; "" when that is worth a try.
std::string against_copies(const std::vector<WayFacts>& ranks) {
  std::map<std::string, int> on_host;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].device.empty()) return fmt::format("rank {} computes in host memory", r);
    if (!ranks[r].peers) return fmt::format("rank {}'s device can't be shared", r);
    ++on_host[ranks[r].host];
  }
  const bool neighbours = std::ranges::any_of(on_host, [](const auto& host) { return host.second > 1; });
  return neighbours ? "" : "no two ranks are on one host";
}

Error refused(std::string_view asked, const std::string& why) {
  return Error(fmt::format("--transport {} is asked for, but {}", asked, why), "use --transport mpi, or auto",
               ExitCode::usage);
}

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b ? (a.empty() ? b : a) : a + "; " + b;
}

std::string after_colon(const std::string& why) { return why.empty() ? "" : ": " + why; }

// What the pairs that can't copy do instead.
std::string copied_and(const PeerPairs& pairs, const std::string& between, const std::string& others) {
  const std::string& exception = pairs.exception();
  return fmt::format("tensors are copied from GPU to GPU{}{}",
                     pairs.one_host() ? "" : fmt::format(" within a host and {} between hosts", between),
                     exception.empty() ? "" : fmt::format("; {}: {}", exception, others));
}

}  // namespace

Ways ways_to_try(std::string_view asked, const std::vector<WayFacts>& ranks) {
  Ways ways{.no_copies = against_copies(ranks),
            .no_messages = against_messages(ranks),
            .messages_by = ranks[0].messages_by};
  if (asked == "nccl" && !ways.no_messages.empty()) throw refused(asked, ways.no_messages);
  const bool any_device = std::ranges::any_of(ranks, [](const WayFacts& f) { return !f.device.empty(); });
  ways.as_it_is = asked != "nccl" && (ranks.size() == 1 || (asked != "ipc" && !any_device));
  if (ways.as_it_is && any_device) ways.without = "tensors stay where they are: one rank";
  if (ways.as_it_is) return ways;
  if (asked == "ipc" && !ways.no_copies.empty()) throw refused(asked, ways.no_copies);
  if (asked == "ipc" || asked == "mpi") ways.no_messages = fmt::format("--transport {}", asked);
  if (asked == "nccl" || asked == "mpi") ways.no_copies = fmt::format("--transport {}", asked);
  ways.copies = ways.no_copies.empty();
  ways.messages = ways.no_messages.empty();
  return ways;
}

WayChoice choose_way(std::string_view asked, const Ways& ways, const PeerPairs* pairs,
                     const std::string& failure) {
  if (ways.as_it_is) return {Way::as_it_is, ways.without};
  const std::string no_copies = pairs ? pairs->exception() : ways.no_copies;
  const std::string no_messages = failure.empty() ? ways.no_messages : failure;
  if (asked == "nccl" && !failure.empty()) throw refused(asked, failure);
  if (asked == "ipc" && !no_copies.empty()) throw refused(asked, no_copies);
  const bool copies = pairs && pairs->any(), messages = no_messages.empty();
  if (copies && pairs->all())
    return {Way::copies,
            "tensors are copied from GPU to GPU" + after_colon(asked == "ipc" ? no_messages : "")};
  const std::string by = "by " + ways.messages_by;
  if (copies && messages) return {Way::copies_and_messages, copied_and(*pairs, "go " + by, by)};
  if (copies)
    return {Way::copies,
            copied_and(*pairs, "go through host memory", "through host memory") + after_colon(no_messages)};
  if (messages)
    return {Way::messages, fmt::format("tensors travel from GPU to GPU {}{}", by, after_colon(no_copies))};
  return {Way::staged, "tensors travel through host memory" + after_colon(joined(no_messages, no_copies))};
}

}  // namespace antichain
