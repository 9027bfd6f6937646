#include "pipeline/choose_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/agree.h"
#include "pipeline/device_streams.h"
#include "pipeline/ordered_transport.h"
#include "pipeline/peer_transport.h"
#include "pipeline/staged_transport.h"

namespace antichain {
namespace {

// Why the ranks can't use NCCL; "" when they can. The first reason found, by rank.
std::string against_nccl(const std::vector<WayFacts>& ranks) {
  std::map<std::pair<std::string, std::string>, size_t> owner;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const WayFacts& facts = ranks[r];
    if (facts.device.empty()) return fmt::format("rank {} computes in host memory", r);
    if (facts.messages_by.empty()) return fmt::format("rank {} has no NCCL ({})", r, facts.no_messages);
    if (facts.messages_by != ranks[0].messages_by)
      return fmt::format("rank {} has {}, rank 0 {}", r, facts.messages_by, ranks[0].messages_by);
    const auto [at, alone] = owner.try_emplace({facts.host, facts.device}, r);
    if (!alone)
      return fmt::format("ranks {} and {} on {} share one GPU, which NCCL refuses", at->second, r,
                         facts.host);
  }
  return "";
}

// Why no rank can copy into another one's device; "" when that is worth a try.
std::string against_direct(const std::vector<WayFacts>& ranks) {
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

WayChoice through_host_memory(const std::string& why) {
  return {Way::staged, "tensors travel through host memory: " + why};
}

// Facts travel as lines; none of them has a line break.
std::string to_text(const WayFacts& f) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", f.host, f.device, f.messages_by, f.no_messages,
                     f.peers ? "peers" : "");
}
WayFacts facts_from_text(const std::string& text) {
  std::istringstream in(text);
  WayFacts f;
  std::string peers;
  for (std::string* line : {&f.host, &f.device, &f.messages_by, &f.no_messages, &peers})
    std::getline(in, *line);
  f.peers = !peers.empty();
  return f;
}

}  // namespace

WayChoice choose_way(std::string_view asked, const std::vector<WayFacts>& ranks) {
  const std::string no_nccl = against_nccl(ranks), no_direct = against_direct(ranks);
  if (asked == "nccl" && !no_nccl.empty()) throw refused(asked, no_nccl);
  if (ranks.size() == 1 && asked != "nccl")
    return {Way::as_it_is, ranks[0].device.empty() ? "" : "tensors stay where they are: one rank"};
  if (asked == "ipc" && !no_direct.empty()) throw refused(asked, no_direct);
  const bool any_device = std::ranges::any_of(ranks, [](const WayFacts& f) { return !f.device.empty(); });
  if (!any_device) return {Way::as_it_is, ""};
  if (asked == "mpi") return {Way::staged, "tensors travel through host memory (--transport mpi)"};
  if (asked == "ipc") return {Way::direct, "--transport ipc"};
  if (no_nccl.empty())
    return {Way::nccl, fmt::format("tensors travel from GPU to GPU by {}: every rank has its own",
                                   ranks[0].messages_by)};
  return no_direct.empty() ? WayChoice{Way::direct, no_nccl} : through_host_memory(no_nccl);
}

WayChoice choose_way(std::string_view asked, const std::string& reason, const PeerPairs& pairs) {
  const std::string& exception = pairs.exception();
  if (asked == "ipc" && !exception.empty()) throw refused(asked, exception);
  if (!pairs.any()) return through_host_memory(fmt::format("{}; {}", reason, exception));
  return {Way::direct,
          fmt::format("tensors are copied from GPU to GPU{}: {}{}",
                      pairs.one_host() ? "" : " within a host and go through host memory between hosts",
                      reason, exception.empty() ? "" : fmt::format("; {}: through host memory", exception))};
}

namespace {

// Tries which pairs can, and takes what comes of it.
ChosenTransport directly(const Context& context, Transport& job, std::string_view asked,
                         const std::string& reason, const DeviceStreams& streams) {
  std::unique_ptr<PeerStream> peers = streams.peers(context);
  const PeerPairs pairs = find_pairs(job, *peers);
  const WayChoice choice = choose_way(asked, reason, pairs);
  if (choice.way == Way::direct)
    return {make_peer_transport(job, std::move(peers), streams.copies(context), pairs), choice.sentence};
  peers->close();
  job.barrier();
  peers->all_closed();
  return {make_staged_transport(job, streams.copies(context)), choice.sentence};
}

}  // namespace

std::string ChosenTransport::way() const { return sentence.substr(0, sentence.find(": ")); }

ChosenTransport choose_transport(const Context& context, Transport& job, std::string_view asked) {
  const Backend& device = context.backend();
  const DeviceStreams* streams = device_streams(device.name());
  WayFacts mine{.host = job.host()};
  const DeviceMessages* messages = nullptr;
  if (streams) {
    mine.device = streams->device(context);
    mine.peers = bool(streams->peers);
    messages = device_messages(device.name(), mine.no_messages);
    if (messages) mine.messages_by = messages->by;
  }
  const std::vector<std::string> texts = job.gather(to_text(mine));
  const std::string chosen = on_rank_zero(job, [&] {
    std::vector<WayFacts> ranks;
    for (const std::string& text : texts) ranks.push_back(facts_from_text(text));
    const WayChoice choice = choose_way(asked, ranks);
    return fmt::format("{}{}", int(choice.way), choice.sentence);
  });
  ChosenTransport result{.sentence = chosen.substr(1)};
  const Way way = Way(chosen[0] - '0');
  if (way == Way::direct) return directly(context, job, asked, result.sentence, *streams);
  if (way == Way::nccl)
    result.own = make_ordered_transport(job, messages->make(context, job));
  else if (way == Way::staged && streams)
    result.own = make_staged_transport(job, streams->copies(context));
  return result;
}

}  // namespace antichain
